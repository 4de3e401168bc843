"""Say which run a span belongs to: the run that it names, else its session, its service instance, or its trace."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, NamedTuple

from playhead.ingest.otlp.conventions import RUN_ID, SESSIONS
from playhead.ingest.otlp.spans import LogRecord, Span

Rule = Literal["run_id", "session", "instance", "trace"]
_STRENGTH: dict[Rule, int] = {"run_id": 3, "session": 2, "instance": 1, "trace": 0}


class Group(NamedTuple):
    """A run, and by which rule a span belongs to it."""

    rule: Rule
    id: str


def group_of(span: Span | LogRecord) -> Group:
    """Return the run of a span, as far as it says so itself."""
    emitter = span.emitter
    if emitter.groups is None:
        emitter.groups = _of_resource(emitter.resource.get("attributes") or {})
    of_resource: list[Group] = emitter.groups
    own = span.naming().runs
    if not own:
        return of_resource[0] if of_resource else Group("trace", span.trace or "")
    if (id := _named(span.attributes, RUN_ID)) is not None:
        return Group("run_id", id)
    if of_resource and of_resource[0].rule == "run_id":
        return of_resource[0]
    for name in SESSIONS:
        if name in own and (id := _named(span.attributes, name)) is not None:
            return Group("session", id)
    return of_resource[0] if of_resource else Group("trace", span.trace or "")


def _of_resource(resource: dict[str, Any]) -> list[Group]:
    """Return the run that a resource names; nothing where it names none."""
    if (id := _named(resource, RUN_ID)) is not None:
        return [Group("run_id", id)]
    for name in SESSIONS:
        if name in resource and (id := _named(resource, name)) is not None:
            return [Group("session", id)]
    # An SDK of OpenTelemetry makes up an instance for each process, which may serve many runs; whoever sends one
    # without such an SDK means it: Span Chain has its run there.
    if "telemetry.sdk.name" not in resource and (id := _named(resource, "service.instance.id")) is not None:
        return [Group("instance", id)]
    return []


def groups(spans: Iterable[Span | LogRecord]) -> dict[str, Group]:
    """Return the run of each trace: the strongest that any of its spans names, so that a trace stays whole.

    Where several are as strong, that of the span without a parent counts, else that of the one that began first. A span
    that names its run (`playhead.run.id`) belongs to it whatever its trace does: ask `of_span`.
    """
    found: dict[str, tuple[tuple[int, bool, int, str], Group]] = {}
    for span in spans:
        if span.trace is None:
            continue
        group = group_of(span)
        is_root = isinstance(span, Span) and span.parent is None
        began = span.start_ns if isinstance(span, Span) else span.time_ns
        weight = (-_STRENGTH[group.rule], not is_root, began, group.id)
        known = found.get(span.trace)
        if known is None or weight < known[0]:
            found[span.trace] = weight, group
    return {trace: group for trace, (_, group) in found.items()}


def of_span(span: Span | LogRecord, traces: dict[str, Group]) -> Group:
    """Return the run of one span: what it says itself, where that is as strong as what its trace says."""
    own = group_of(span)
    of_trace = traces.get(span.trace or "")
    return of_trace if of_trace is not None and _STRENGTH[of_trace.rule] > _STRENGTH[own.rule] else own


def _named(attributes: dict[str, Any], name: str) -> str | None:
    value = attributes.get(name)
    if type(value) is int:
        return str(value)
    return value if type(value) is str and value else None
