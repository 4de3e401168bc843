"""Find side effects that were attempted more than once: in one run, and across runs such as one and its resumption."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from playhead.views.audit.around import IRREVERSIBLE, WRITE, Around
from playhead.views.audit.findings import SEVERITIES, Finding

_SHOWN_MAX = 10  # attempts that are named in a text; `attempts` has all
_OFTEN = {"PUT": "low", "DELETE": "low"}  # which come to the same, done once or twice


@dataclass(slots=True)
class Attempt:
    """One call that may have had a side effect, by the question that it asked."""

    call: Around  # its own span
    key: str
    name: str
    method: str = ""  # of a request
    lane: str = "0"
    acted: bool = False  # something was seen to be done inside of it

    @property
    def severity(self) -> str | None:
        """Return how grave it is to do it again; None where nothing says that it changes something."""
        declared = self.call.declared
        match self.call.kind:
            case "tool" if IRREVERSIBLE in declared:
                return "high"
            case "tool" if WRITE in declared or self.acted:
                return "medium"
            case "http":
                return _OFTEN.get(self.method, "medium")
            case "process":
                return "low"
            case _:
                return None


def repeated(attempts: Iterable[Attempt], families: Mapping[str, str] | None = None) -> list[Finding]:
    """Return a finding for each side effect that was attempted more than once, at its first attempt.

    `families` says of runs what they come from: those that come from different ones have nothing to do with each other.
    """
    by_key: dict[tuple[str, str], dict[tuple[str, int], Attempt]] = {}
    for attempt in attempts:  # of a run that is there as a copy, too, each counts once
        run = attempt.call.run
        asked = (families or {}).get(run, ""), attempt.key
        by_key.setdefault(asked, {}).setdefault((run, attempt.call.seq), attempt)
    return [found for same in by_key.values() if len(same) > 1 and (found := _finding([*same.values()])) is not None]


def _finding(same: list[Attempt]) -> Finding | None:
    severities = [attempt.severity for attempt in same if attempt.severity is not None]
    if not severities:
        return None
    first, several = same[0], len({attempt.call.run for attempt in same}) > 1
    run = first.call.run
    told = [f"{attempt.call.run} " * several + f"event {attempt.call.seq} ({_ended(attempt)})" for attempt in same]
    shown = ", ".join(told[:_SHOWN_MAX]) + (f" and {len(told) - _SHOWN_MAX} more" if len(told) > _SHOWN_MAX else "")
    return Finding(
        rule="repeated",
        severity=min(severities, key=SEVERITIES.index),
        run=run,
        seq=first.call.seq,
        detail=f"{first.name} attempted {len(same)} times: {shown}",
        what=first.call.kind,
        target=first.name,
        path=first.call.up.path if first.call.up is not None else "",
        lane=first.lane,
        count=len(same),
        seqs=[attempt.call.seq for attempt in same if attempt.call.run == run],
        attempts=[{"run": one.call.run, "seq": one.call.seq, "status": _ended(one)} for one in same],
    )


def _ended(attempt: Attempt) -> str:
    return attempt.call.status or "unfinished"
