"""Say of a run what the first spans or logs that came of it tell: its name, its agent, where its code came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playhead._version import __version__
from playhead.capture.gate import Gate
from playhead.event.kinds import RunStarted
from playhead.ingest.otlp.grouping import Group
from playhead.ingest.otlp.spans import LogRecord, Span

BY = "otlp"
_UNNAMED = "unknown_service"  # what an SDK calls a service that nobody named
_GIT = (
    ("commit", ("vcs.ref.head.revision", "vcs.repository.ref.revision")),
    ("branch", ("vcs.ref.head.name", "vcs.repository.ref.name")),
    ("remote", ("vcs.repository.url.full",)),
)
_CI = (("provider", ("cicd.system.name",)), ("run_id", ("cicd.pipeline.run.id",)), ("job", ("cicd.pipeline.name",)))


def started(group: Group, spans: Sequence[Span], logs: Sequence[LogRecord], gate: Gate) -> RunStarted:
    """Return the first event of a run."""
    first: Span | LogRecord = spans[0] if spans else logs[0]
    resource = first.emitter.resource.get("attributes") or {}
    service = resource.get("service.name")
    root = next((span for span in spans if span.parent is None), None)
    agent = next(filter(None, map(agent_of, spans)), None)
    version = resource.get("service.version")
    named = isinstance(service, str) and not service.startswith(_UNNAMED)
    first_name = spans[0].name if spans else BY
    rooted = root is not None and root.name
    name = name_of(root, agent_of(root)) if root is not None and rooted else service if named else first_name
    told = agent or (service if named else None)
    return RunStarted(
        name=str(name),
        agent=None if told is None else _filled(("name", told), ("version", version)),
        environment={},
        git=_of(resource, _GIT),
        ci=_of(resource, _CI),
        external_id=group.id,
        received=_filled(("by", BY), ("rule", group.rule), ("trace", first.trace)),
        redaction={"version": gate.redactor.version},
        sdk={"name": "playhead", "version": __version__},
    )


def agent_of(span: Span) -> str | None:
    """Return the agent that a span names."""
    name = span.naming().agent
    found = None if name is None else span.attributes[name]
    return found if isinstance(found, str) and found else None


def name_of(root: Span, agent: str | None) -> str:
    """Return what a run is called by its root: `invoke_agent NAME` says no more than the name of the agent."""
    return agent if agent is not None and root.name == f"invoke_agent {agent}" else root.name


def begins_us(spans: Sequence[Span], logs: Sequence[LogRecord], now_us: int) -> int:
    """Return the moment from which the time of a run counts: the earliest that is known of it."""
    moments = [span.start_ns or span.end_ns for span in spans] + [log.time_ns or log.observed_ns for log in logs]
    return min(filter(None, moments), default=now_us * 1000) // 1000


def _filled(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields if isinstance(value, str) and value}


def _of(resource: dict[str, Any], names: Sequence[tuple[str, Sequence[str]]]) -> dict[str, Any] | None:
    found = [(field, next((resource[name] for name in keys if name in resource), None)) for field, keys in names]
    return _filled(*found) or None
