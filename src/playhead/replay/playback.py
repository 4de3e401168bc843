"""Hand back the recorded outcome of a run: no agent code, no model, no tool, no side effect."""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from playhead.capture.gate import Gate
from playhead.capture.opening import default_settings, shared_redactor
from playhead.capture.request import Envelope, hash_of
from playhead.errors import EnvelopeMismatch, MissingContent, NotReplayable, PlayheadError, RecordedError
from playhead.event.envelope import Event
from playhead.event.kinds import CALLS, OPENING_TO_CLOSING
from playhead.event.plain import as_marks, restore
from playhead.ledger.verify import Verification
from playhead.replay.readiness import Readiness, readiness
from playhead.store.reader import RunReader
from playhead.views.imported import standing
from playhead.views.points import written
from playhead.views.spans import SpanView


@dataclass(frozen=True)
class PlaybackResult:
    """What a run answered. `status` is ok, error, cancelled, or `partial` when an unfinished run was forced."""

    payload: Any
    metadata: dict[str, Any]
    from_replay: bool
    original_run_id: str
    status: str = "ok"
    error: dict[str, Any] | None = None
    waived: list[str] = field(default_factory=list)  # reasons that `force` overrode

    def raise_for_error(self) -> PlaybackResult:
        """Raise RecordedError if the recorded run ended in an error; otherwise return self."""
        if self.error is not None:
            raise RecordedError(f"{self.error.get('type')}: {self.error.get('message')}", error=self.error)
        return self

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead replay`."""
        return asdict(self)


def playback(
    reader: RunReader,
    *,
    envelope: Envelope | Mapping[str, Any] | None = None,
    force: bool = False,
    plain: bool = False,
    types: Mapping[str, type] | None = None,
    verification: Verification | None = None,
) -> PlaybackResult:
    """Return the recorded outcome; refuse unless the run is replayable.

    `envelope` must be the request that was recorded, else EnvelopeMismatch, forced or not. `force` waives every other
    reason, with a warning. `plain` leaves values in their JSON form; `types` lets objects of the agent be rebuilt.
    """
    if envelope is not None:
        check_envelope(reader, envelope)
    state = readiness(reader, verification)
    if not state.replayable:
        told = "; ".join(f"{reason}: {state.detail[reason]}" for reason in state.reasons)
        if not force:
            raise NotReplayable(
                f"{reader.id} is not replayable: {told}", reasons=state.reasons, detail={"reasons": state.detail}
            )
        warnings.warn(f"playhead: forcing playback of a run that is not replayable: {told}", stacklevel=3)
    finished = _last_finished(reader)
    result = _partial(reader, state) if finished is None else _complete(reader, finished, state)
    if plain:
        return result
    return PlaybackResult(
        **{**result.__dict__, "payload": restore(result.payload, types), "metadata": restore(result.metadata, types)}
    )


def check_envelope(reader: RunReader, envelope: Envelope | Mapping[str, Any]) -> None:
    """Raise EnvelopeMismatch unless this is the request that the run recorded."""
    possible = envelope_hashes(envelope)
    expected = recorded_envelope_hash(reader)
    if expected not in possible:
        raise EnvelopeMismatch(
            f"this is not the request that {reader.id} recorded: {_short(expected)} there, {_short(possible[0])} given",
            expected=expected or "",
            actual=possible[0],
        )


Settled = tuple[dict[str, Any], dict[str, int]]  # a request as it would be recorded, and what was redacted in it
_PLACEHOLDER = re.compile(r"\[redacted:[a-z0-9-]+\]")


def envelope_hashes(envelope: Envelope | Mapping[str, Any]) -> list[str]:
    """Return the hashes that a run of this request may have, here and now: with the redaction that is in force."""
    return hashes_of(settled_envelopes(envelope))


def hashes_of(settled: list[Settled]) -> list[str]:
    """Return the hashes of a request that was settled in one way or two."""
    return list(dict.fromkeys(hash_of(request) for request, _ in settled))


def settled_envelopes(envelope: Envelope | Mapping[str, Any]) -> list[Settled]:
    """Return a request as it would be recorded, and what was redacted in it.

    A mapping comes from JSON, where a recorded request has its marks (`$tuple`) as keys: it is read both ways.
    """
    gate = Gate(shared_redactor(default_settings()))
    asked = envelope if isinstance(envelope, Envelope) else Envelope.from_dict(envelope)
    found = [gate.settle(asked.as_dict())]
    if not isinstance(envelope, Envelope):
        found.append(gate.settle(as_marks(asked.as_dict())))
    return found


def incomparable(settled: list[Settled]) -> str | None:
    """Say what in a request its hash does not compare: what is redacted, now or before, and what has only its repr."""
    if any(redacted for _, redacted in settled):
        return "something that is redacted"
    todo: list[Any] = [value for value, _ in settled]
    while todo:
        node = todo.pop()
        if isinstance(node, list):
            todo.extend(node)
        elif isinstance(node, str):
            if _PLACEHOLDER.search(node):
                return "something that was redacted"
        elif isinstance(node, dict):
            first = next(iter(node), "")
            if first == "$redacted" or any(map(_PLACEHOLDER.search, node)):
                return "something that was redacted"
            if first == "$repr" and "digest" not in node:
                return f"an object of {node.get('type')}, which is recorded by its repr alone"
            todo.extend(node.values())
    return None


def recorded_envelope_hash(reader: RunReader) -> str | None:
    """Return the hash of the request of a run; that of the agent that adopted it, if one did."""
    found: str | None = None
    for event in reader.events():
        if event.kind == "run.started" or (event.kind == "step.started" and event.data.get("adopts")):
            found = event.data.get("envelope_hash") or found
            if event.kind == "step.started":
                break
    return found


def _last_finished(reader: RunReader) -> Event | None:
    finished = None
    try:
        for event in reader.events():
            if event.kind == "run.finished":
                finished = event
            elif event.kind == "run.reopened":
                finished = None
    except PlayheadError:  # forced past a broken line: what stands before it is what there is
        return finished
    return finished


def _complete(reader: RunReader, finished: Event, state: Readiness) -> PlaybackResult:
    data = reader.resolve(finished).data
    payload = data.get("output")
    if isinstance(payload, dict) and payload.keys() == {"exit_code"} and payload == data.get("metadata"):
        payload = {**payload, **_written(reader)}
    return PlaybackResult(
        payload=payload,
        metadata=data.get("metadata") or {},
        from_replay=True,
        original_run_id=reader.id,
        status=data.get("status", "ok"),
        error=data.get("error"),
        waived=state.reasons,
    )


def _written(reader: RunReader) -> dict[str, Any]:
    """Return what a program wrote: with its exit code, that is its answer, unless an agent inside it answered."""
    streams: dict[str, list[bytes]] = {}
    for event in reader.events():
        if event.kind == "step.started" and event.data.get("adopts"):
            return {}
        if event.kind == "output.written":
            streams.setdefault(str(event.data.get("stream")), []).append(written(reader.resolve(event).data))
    return {name: b"".join(pieces).decode("utf-8", "backslashreplace") for name, pieces in sorted(streams.items())}


def _partial(reader: RunReader, state: Readiness) -> PlaybackResult:
    """Collect what an unfinished run had completed."""
    opened: dict[str, Event] = {}
    completed: list[dict[str, Any]] = []
    output: Any = None
    try:
        for event in standing(reader.events(), reader.readable):
            if event.kind in OPENING_TO_CLOSING and event.span is not None:
                opened[event.span] = event
            elif event.span in opened and OPENING_TO_CLOSING[opened[event.span].kind] == event.kind:
                opening = opened.pop(event.span)
                data = _value_or_none(reader, event)
                if event.data.get("adopts"):
                    output = data.get("output")
                answer = next((data[name] for name in ("output", "response", "body") if name in data), None)
                entry = {"seq": opening.seq, "kind": opening.kind, "name": SpanView(opening).name}
                if opening.kind in CALLS or answer is not None:
                    entry["output"] = answer
                completed.append({**entry, "status": data.get("status", "ok")})
    except PlayheadError:  # what stands before a broken line is what there is
        pass
    metadata = {"completed": completed, "in_flight": state.in_flight}
    return PlaybackResult(
        payload=output if output is not None else {"completed": completed},
        metadata=metadata if output is not None else {"in_flight": state.in_flight},
        from_replay=True,
        original_run_id=reader.id,
        status="partial",
        waived=state.reasons,
    )


def _value_or_none(reader: RunReader, event: Event) -> dict[str, Any]:
    try:
        data = reader.resolve(event).data
    except MissingContent:
        data = {"status": event.data.get("status"), "output": None}
    return data if isinstance(data, dict) else {}


def _short(text: str | None) -> str:
    return "none" if text is None else text[:15] + "…"
