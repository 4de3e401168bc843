"""Say whether a program can be run again from its record, and name every reason why not; waive those that are named."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from playhead.errors import NotReplayable, UsageError
from playhead.event.envelope import parse
from playhead.event.rebuilt import is_whole
from playhead.ledger.verify import Verification
from playhead.replay.readiness import REASONS, Readiness, readiness
from playhead.replay.tape import Tape
from playhead.store.reader import RunReader

# What stands against a replay and not against a playback.
MORE_REASONS = {
    "unrestorable_value": "a tool gave back what cannot be made again from its record",
    "content_erased": "something that the agent was answered has been erased",
    "self_replay_differs": "a replay of this run against itself came out differently",
    "not_captured": "something went on in the run that nobody could see, and so cannot be answered",
}
ALL_REASONS = {**REASONS, **MORE_REASONS}
# The record itself is not what was written, or has no end: there is nothing to go by.
NEVER_WAIVED = frozenset({"integrity_broken"})
# What to do about a reason, where something can be done.
_REMEDIES = {
    "execution_incomplete": "Record it to its end.",
    "unrestorable_value": "Let the tool give back plain values, dataclasses or pydantic models, and record anew.",
    "self_replay_differs": "`playhead grade RUN` names what differs, with the line of the program.",
    "not_captured": (
        "Record with `playhead record`, so that all is watched, let nothing interrupt it from outside, and put what "
        "cannot be seen into a function with `@playhead.tool`: then its answer is on the tape."
    ),
}
_SHOWN = 5
# What may stand for a value that cannot be made again.
_DOUBTFUL = (b'"$repr"', b'"$cycle"', b'"collections.defaultdict"')


def exact_readiness(reader: RunReader, verification: Verification | None = None) -> Readiness:
    """Read a run to its end and judge whether its code can be run again."""
    state = readiness(reader, verification)
    found = dict(state.detail)
    if state.not_captured:
        told = [f"{gap['source']} {gap['where']}".strip() for gap in state.not_captured]
        more = f" and {len(told) - _SHOWN} more" if len(told) > _SHOWN else ""
        found["not_captured"] = f"{'; '.join(told[:_SHOWN])}{more}"
    if "integrity_broken" not in found:
        found.update(_in_values(reader))
    reasons = [reason for reason in ALL_REASONS if reason in found]
    return dataclasses.replace(
        state, replayable=not reasons, reasons=reasons, detail={reason: found[reason] for reason in reasons}
    )


def _in_values(reader: RunReader) -> dict[str, str]:
    """Look for what was erased, and for what a tool gave back and cannot be restored."""
    found: dict[str, str] = {}
    doubtful = False
    for line in reader.lines():
        if b'"kind":"run.graded"' in line and (event := parse(line)).kind == "run.graded":
            if event.data.get("verdict") == "differs":
                first = reader.value(event.data.get("first")) or {}
                found["self_replay_differs"] = str(first.get("text") or ALL_REASONS["self_replay_differs"])
            else:
                found.pop("self_replay_differs", None)
        elif b'"content.erased"' in line and b'"kind":"content.erased"' in line:
            found.setdefault("content_erased", "an event of this run says so (`content.erased`)")
        doubtful = doubtful or any(mark in line for mark in _DOUBTFUL)
    if doubtful and (seq := _unrestorable(reader)) is not None:
        found["unrestorable_value"] = f"event {seq}: a value is known by its repr alone"
    return found


def _unrestorable(reader: RunReader) -> int | None:
    """Return the first tool on the tape that gave back what cannot be made again."""
    for call in Tape(reader).calls:
        if call.kind == "tool.called" and call.closing is not None and not is_whole(call.data.get("output")):
            return call.closing
    return None


def _waiving(reasons: list[str]) -> list[str]:
    if not reasons:
        return []
    named = ", ".join(f'"{reason}"' for reason in reasons)
    told = "replays it all the same, and the report says so."
    return [f"`--waive {','.join(reasons)}`, in Python `force=[{named}]`, {told}"]


def known_reasons(waived: Iterable[str]) -> list[str]:
    """Return the reasons that shall not count, each once; UsageError where there is no such reason."""
    named = list(dict.fromkeys(waived))
    for reason in named:
        if reason not in ALL_REASONS:
            known = ", ".join(each for each in ALL_REASONS if each not in NEVER_WAIVED)
            raise UsageError(f"there is no reason {reason!r} to waive", hint=f"Reasons are {known}.")
    return named


def refuse_unless_ready(state: Readiness, run: str, waived: Iterable[str]) -> list[str]:
    """Raise NotReplayable unless every reason is waived by its name; return those that were."""
    named = known_reasons(waived)
    left = [reason for reason in state.reasons if reason not in named or reason in NEVER_WAIVED]
    if left:
        told = "; ".join(f"{reason}: {state.detail[reason]}" for reason in left)
        can = [reason for reason in left if reason not in NEVER_WAIVED]
        hint = " ".join([*(_REMEDIES[reason] for reason in left if reason in _REMEDIES), *_waiving(can)])
        raise NotReplayable(
            f"{run} cannot be replayed exactly: {told}",
            reasons=left,
            detail={"reasons": {reason: state.detail[reason] for reason in left}},
            hint=hint or None,
        )
    return [reason for reason in named if reason in state.reasons]
