"""Write the events of a run by hand, and audit them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playhead.event.envelope import Event
from playhead.event.kinds import OPENING_TO_CLOSING
from playhead.ledger.verify import Completeness, Integrity, Verification
from playhead.views.audit.findings import Audit, Finding
from playhead.views.audit.report import report
from playhead.views.audit.watching import Watched


class Told:
    """A run that is told event by event; inside of a `with`, events belong to the span that it opened."""

    def __init__(self, run: str = "run_a", **started: Any) -> None:
        self.run = run
        self.events: list[Event] = []
        self._around: list[str | None] = [None]
        entry = {"name": "n", "agent": {"name": "n"}, "entrypoint": {"cwd": "/repo"}, "git": {"root": "/repo"}}
        self.add("run.started", {**entry, **started}, span="0")
        self._around.append("0")

    def add(self, kind: str, data: Any, *, span: str | None = None, key: str | None = None, lane: str = "0") -> int:
        seq = len(self.events)
        self.events.append(
            Event(v=1, run=self.run, seq=seq, time="2026-01-01T00:00:00.000000Z", elapsed_us=seq, kind=kind, span=span,
                  parent=self._around[-1], lane=lane, key=key, data=data, prev="", hash="")
        )  # fmt: skip
        return seq

    def effect(self, what: str, target: str, **detail: Any) -> int:
        return self.add("effect.observed", {"what": what, "target": target, "detail": detail})

    @contextmanager
    def within(
        self, kind: str, data: dict[str, Any], *, key: str | None = None, ends: str | None = "ok"
    ) -> Iterator[int]:
        seq = self.add(kind, data, span=(span := str(len(self.events))), key=key)
        self._around.append(span)
        yield seq
        self._around.pop()
        if ends is not None:
            self.add(OPENING_TO_CLOSING[kind], {"status": ends}, span=span)

    def tool(self, name: str, *declared: str, key: str | None = None, ends: str | None = "ok") -> Any:
        return self.within("tool.called", {"name": name, "effects": list(declared)}, key=key, ends=ends)

    def call(self, kind: str, data: dict[str, Any], *, key: str | None = None, ends: str | None = "ok") -> int:
        with self.within(kind, data, key=key, ends=ends) as seq:
            return seq

    def watched(self, others: dict[str, Watched] | None = None) -> Watched:
        one = Watched(self.run, None, others or {})
        for event in self.events:
            one.take(event)
        return one


def audited(*runs: Told) -> Audit:
    """Audit runs together, each of which the ones before it may have started."""
    others: dict[str, Watched] = {}
    for told in runs:
        others[told.run] = told.watched(others)
    return report([(_intact(run), watched) for run, watched in others.items()])


def found(rule: str, *runs: Told) -> list[Finding]:
    return [one for one in audited(*runs).findings if one.rule == rule]


def _intact(run: str) -> Verification:
    return Verification(run=run, integrity=Integrity(), completeness=Completeness(verdict="complete"))
