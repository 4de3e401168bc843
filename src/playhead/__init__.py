"""Playhead, the flight recorder for AI agents.

Names are loaded when they are first used: importing playhead costs an agent almost nothing. PYTEST_DONT_REWRITE: pytest
loads its plugin from here, and would warn that it cannot look into what `playhead record` has loaded already.
"""

from __future__ import annotations

import sys

from playhead._version import __version__

TYPE_CHECKING = False  # as in typing, whose import would take longer than all of this
if TYPE_CHECKING:
    from typing import Any

    from playhead._api.auditing import audit
    from playhead._api.comparing import diff
    from playhead._api.connecting import Client, connect
    from playhead._api.metrics import stats
    from playhead._api.normalising import normaliser
    from playhead._api.reading import Run, find, load, runs
    from playhead._api.recording import (
        add_secret,
        agent,
        artifact,
        check,
        context_pack,
        install,
        model_call,
        note,
        record,
        step,
        tool,
        uninstall,
    )
    from playhead._api.replaying import fork, replay, resume
    from playhead._api.reporting import Report, report
    from playhead._api.verifying import verify
    from playhead.capture.clients.wrapping import unwrap, wrap
    from playhead.capture.guard import RecordingWarning
    from playhead.capture.request import Envelope
    from playhead.errors import (
        DeviationError,
        EnvelopeMismatch,
        InFlight,
        NotComparable,
        NotReplayable,
        PlayheadError,
        PolicyDenied,
        RecordedError,
        RecordingStopped,
        ReplayHashMismatch,
        RunNotFound,
    )
    from playhead.event.envelope import Event
    from playhead.replay.exact import Replayed
    from playhead.replay.models.isolated import AskedAlone
    from playhead.replay.models.times import Repeated
    from playhead.replay.onwards import Rerun
    from playhead.replay.playback import PlaybackResult
    from playhead.replay.readiness import Readiness
    from playhead.replay.stepping import Stepped
    from playhead.views.audit.findings import Audit, Finding
    from playhead.views.diff.comparison import Comparison, Deviation
    from playhead.views.moments import Moment

_WHERE = {
    "AskedAlone": "playhead.replay.models.isolated",
    "Audit": "playhead.views.audit.findings",
    "Client": "playhead._api.connecting",
    "Comparison": "playhead.views.diff.comparison",
    "Deviation": "playhead.views.diff.comparison",
    "DeviationError": "playhead.errors",
    "Envelope": "playhead.capture.request",
    "EnvelopeMismatch": "playhead.errors",
    "Event": "playhead.event.envelope",
    "Finding": "playhead.views.audit.findings",
    "InFlight": "playhead.errors",
    "Moment": "playhead.views.moments",
    "NotComparable": "playhead.errors",
    "NotReplayable": "playhead.errors",
    "PlaybackResult": "playhead.replay.playback",
    "PlayheadError": "playhead.errors",
    "PolicyDenied": "playhead.errors",
    "Readiness": "playhead.replay.readiness",
    "RecordedError": "playhead.errors",
    "RecordingStopped": "playhead.errors",
    "RecordingWarning": "playhead.capture.guard",
    "Repeated": "playhead.replay.models.times",
    "ReplayHashMismatch": "playhead.errors",
    "Report": "playhead._api.reporting",
    "Rerun": "playhead.replay.onwards",
    "Run": "playhead._api.reading",
    "RunNotFound": "playhead.errors",
    "Replayed": "playhead.replay.exact",
    "Stepped": "playhead.replay.stepping",
    "audit": "playhead._api.auditing",
    "connect": "playhead._api.connecting",
    "diff": "playhead._api.comparing",
    "fork": "playhead._api.replaying",
    "replay": "playhead._api.replaying",
    "report": "playhead._api.reporting",
    "resume": "playhead._api.replaying",
    "add_secret": "playhead._api.recording",
    "agent": "playhead._api.recording",
    "artifact": "playhead._api.recording",
    "check": "playhead._api.recording",
    "context_pack": "playhead._api.recording",
    "find": "playhead._api.reading",
    "install": "playhead._api.recording",
    "load": "playhead._api.reading",
    "model_call": "playhead._api.recording",
    "normaliser": "playhead._api.normalising",
    "note": "playhead._api.recording",
    "record": "playhead._api.recording",
    "runs": "playhead._api.reading",
    "stats": "playhead._api.metrics",
    "step": "playhead._api.recording",
    "tool": "playhead._api.recording",
    "uninstall": "playhead._api.recording",
    "unwrap": "playhead.capture.clients.wrapping",
    "verify": "playhead._api.verifying",
    "wrap": "playhead.capture.clients.wrapping",
}

__all__ = [
    "AskedAlone",
    "Audit",
    "Client",
    "Comparison",
    "Deviation",
    "DeviationError",
    "Envelope",
    "EnvelopeMismatch",
    "Event",
    "Finding",
    "InFlight",
    "Moment",
    "NotComparable",
    "NotReplayable",
    "PlaybackResult",
    "PlayheadError",
    "PolicyDenied",
    "Readiness",
    "RecordedError",
    "RecordingStopped",
    "RecordingWarning",
    "Repeated",
    "ReplayHashMismatch",
    "Replayed",
    "Report",
    "Rerun",
    "Run",
    "RunNotFound",
    "Stepped",
    "__version__",
    "add_secret",
    "agent",
    "artifact",
    "audit",
    "check",
    "connect",
    "context_pack",
    "diff",
    "find",
    "fork",
    "install",
    "load",
    "model_call",
    "normaliser",
    "note",
    "record",
    "replay",
    "report",
    "resume",
    "runs",
    "stats",
    "step",
    "tool",
    "uninstall",
    "unwrap",
    "verify",
    "wrap",
]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module 'playhead' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(where), name)
    if getattr(value, "__module__", "").startswith("playhead."):
        value.__module__ = "playhead"
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


class _Public(type(sys)):  # type: ignore[misc]  # `types` would have to be imported
    """Keep the function `playhead.replay` from being hidden by the part of the package that has its name."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in _WHERE and isinstance(value, type(sys))):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Public
