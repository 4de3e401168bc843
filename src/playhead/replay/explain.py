"""Explain a question that the tape cannot answer: find the nearest recorded one, and say what differs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead import _limits
from playhead.replay.deviation import unanswered
from playhead.replay.question import nearest, question_of
from playhead.replay.tape import Call, Tape
from playhead.store.reader import RunReader

if TYPE_CHECKING:
    from playhead.capture.recording import Recording


def unknown_question(
    tape: Tape, recording: Recording, kind: str, span: str, lane: str, key: str, times: int, where: str = ""
) -> dict[str, Any]:
    """Describe a question that the tape cannot answer: asked once too often, changed, or never recorded.

    What is returned are the fields of `replay.deviated`, and as `call` the nearest recorded call, if there is one. The
    question is read back as it was recorded a moment ago: complete, redacted, and in the form of those on the tape.
    """
    asked = question_of(RunReader(recording.store, recording.id).event(int(span)))
    recorded = tape.asked(key)
    calls = _same(tape, key) if recorded else _around(tape, kind, lane)
    by_seq = {call.seq: call for call in calls}
    taken = {call.seq for call in calls if call.taken}
    near = nearest(asked, (question_of(call.question) for call in calls), taken)
    call = None if near is None or near.seq is None else by_seq[near.seq]
    found = unanswered(
        asked,
        near,
        recorded_times=recorded,
        asked_times=times,
        consumed=call is not None and call.taken,
        where=where or None,
        in_new_lane=all(call.lane != lane for call in tape.calls),
    ).as_fields()
    if call is not None and (recorded or not call.taken):
        found["call"] = call
    return found


def _same(tape: Tape, key: str) -> list[Call]:
    """Return one call with this very question: the last."""
    return [call for call in tape.calls if call.key == key][-1:]


def _around(tape: Tape, kind: str, lane: str) -> list[Call]:
    """Choose calls whose questions are worth reading: the next of this lane, the next of others, the latest asked."""
    ours: list[Call] = []
    others: list[Call] = []
    asked: list[Call] = []
    for call in tape.calls:
        if call.kind == kind:
            (asked if call.taken else ours if call.lane == lane else others).append(call)
    most = _limits.NEAREST_COMPARED_MAX
    return sorted([*ours[:most], *others[:most], *asked[-most:]], key=lambda call: call.seq)
