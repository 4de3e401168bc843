"""Say whether a run can be played back, and name every reason why not."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from playhead.capture.request import hash_of
from playhead.errors import PlayheadError
from playhead.event.envelope import Event
from playhead.event.kinds import UNSEEN
from playhead.ledger.verify import ContentCheck, Verification, verify
from playhead.store import presence
from playhead.store.base import Store, content_check
from playhead.store.cassettes.reading import Cassette, by_header
from playhead.store.exported import ExportedRun
from playhead.store.reader import RunReader
from playhead.views.points import mapping, words
from playhead.views.spans import OpenSpans

REASONS = {
    "integrity_broken": "the chain is broken: the record was altered",
    "execution_incomplete": "the run did not finish",
    "recording_failure": "the recorder lost something",
    "envelope_invalid": "the stored request and its hash disagree",
    "manually_invalidated": "somebody declared that this run must not be played back",
    "content_missing": "a blob or artifact that the run refers to is gone",
}
_NOT_WATCHED = "reads", "clocks, random numbers, variables, files: nobody watched them when the run began"


@dataclass(frozen=True)
class Readiness:
    """The answer: replayable or not, and why not. `detail` says more about each reason.

    `not_captured` lists what went on in the run and was never seen, as {source, where, count}. It is no reason against
    a playback, and tells what a replay of the agent's code could not answer.
    """

    replayable: bool
    reasons: list[str]
    detail: dict[str, str]
    in_flight: list[dict[str, Any]] = field(default_factory=list)
    not_captured: list[dict[str, Any]] = field(default_factory=list)


def verify_run(reader: RunReader, *, known_head: tuple[int, str] | None = None, deep: bool = False) -> Verification:
    """Check the chain of one run and everything that its lines refer to."""
    store, run = reader.store, reader.id
    check = content_check(store, run)
    exported = isinstance(store, ExportedRun)
    found = verify(
        store.lines(run), run, check=_blobs_only(check) if exported else check, known_head=known_head, deep=deep
    )
    completeness = found.completeness
    if isinstance(store, Cassette) and found.integrity.message:
        found.integrity.message = by_header(found.integrity.message)
        completeness.detail = by_header(completeness.detail or "") or None
    if exported:
        told = completeness.detail or "every event that was declared is there, and every blob"
        completeness.detail = f"{told}; artifacts are no part of an exported timeline and were not looked at"
    elif completeness.verdict == "unfinished" and _is_held(store, run) and "not judged" not in str(completeness.detail):
        completeness.detail = "it is still running: a writer holds it"
    return found


def _is_held(store: Store, run: str) -> bool:
    return presence.is_written(store, run)


def _blobs_only(check: ContentCheck) -> ContentCheck:
    return lambda kind, digest, name: check(kind, digest, name) if kind == "blob" else None


def readiness(reader: RunReader, verification: Verification | None = None) -> Readiness:
    """Read a run to its end and judge it."""
    verification = verification or verify_run(reader)
    found: dict[str, str] = {}
    if verification.integrity.verdict == "broken" or verification.integrity.reason == "cut_tail":
        found["integrity_broken"] = verification.integrity.message or REASONS["integrity_broken"]
    finished: Event | None = None
    open_spans = OpenSpans()
    unseen: dict[tuple[str, str], int] = {}
    watched = True
    for event in _readable(reader, found):
        open_spans.take(event)
        match event.kind:
            case "run.finished":
                finished = event
            case "run.reopened":
                finished = None
            case "gap.noted" if event.data.get("reason") in UNSEEN:
                place = _unseen(reader, event)
                unseen[place] = unseen.get(place, 0) + 1
            case "gap.noted":
                lost = f"{event.data.get('count', 1)} × {event.data.get('reason')}"
                found["recording_failure"] = ", ".join(filter(None, (found.get("recording_failure"), lost)))
            case "run.invalidated":
                found["manually_invalidated"] = str(event.data.get("why"))
            case "run.started" | "step.started":
                watched = watched and event.data.get("ambient") is not False
                _check_envelope(reader, event, found)
    flying = open_spans.listed()
    if finished is None:
        detail = REASONS["execution_incomplete"]
        if flying:
            told = ", ".join(f"{item['kind']} {item['name']} (event {item['seq']})" for item in flying)
            detail += f"; in flight: {told}"
        found["execution_incomplete"] = detail
    if verification.missing:
        found["content_missing"] = ", ".join(verification.missing[:10])
    if not watched:
        unseen[_NOT_WATCHED] = 1
    reasons = [reason for reason in REASONS if reason in found]
    return Readiness(
        not reasons,
        reasons,
        {reason: found[reason] for reason in reasons},
        flying if not finished else [],
        [{"source": source, "where": where, "count": count} for (source, where), count in unseen.items()],
    )


def _unseen(reader: RunReader, event: Event) -> tuple[str, str]:
    """Return source and place of what a gap tells of."""
    try:
        detail = mapping(reader.value(event.data.get("detail")))
    except PlayheadError:
        detail = {}
    if event.data.get("reason") == "not_captured":
        return words(detail.get("source")), words(detail.get("where"))
    return "python", " ".join(filter(None, (words(detail.get(name)) for name in ("executable", "version", "why"))))


def _readable(reader: RunReader, found: dict[str, str]) -> Any:
    """Yield events up to the first that cannot be read; a broken line is a reason, not a crash."""
    try:
        yield from reader.events()
    except PlayheadError as problem:
        found.setdefault("integrity_broken", problem.message)


def _check_envelope(reader: RunReader, event: Event, found: dict[str, str]) -> None:
    if not event.data.get("envelope_hash") or (event.kind == "step.started" and not event.data.get("adopts")):
        return
    try:
        recorded = reader.value(event.data.get("input"))
    except PlayheadError as problem:
        found["envelope_invalid"] = problem.message
        return
    if not isinstance(recorded, dict) or hash_of(recorded) != event.data["envelope_hash"]:
        found["envelope_invalid"] = f"event {event.seq}: {REASONS['envelope_invalid']}"
