"""Check a timeline: is each line what was sealed, and does each follow the one before?

Reads any size in flat memory, in one pass, hashing the bytes as they are. What this proves: the lines are the ones that
were chained, in that order, with none missing in between. What it does not prove: that nothing was cut off the end
(`run.finished` declares the count; the index and checkpoints know heads), nor that the whole chain was not made anew.
Integrity and completeness are two answers. Neither says that the record is faithful to a replay.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, Literal

import msgspec
import orjson

from playhead.event import envelope
from playhead.ledger.merkle import Tree

Reason = Literal[
    "edited", "removed", "swapped", "inserted", "foreign_run", "torn_tail", "cut_tail", "rewritten", "content_altered",
    "root_mismatch",
]  # fmt: skip
# Asked about each blob and artifact that a line names: None when its bytes match, else what is wrong.
ContentCheck = Callable[[str, str, "str | None"], "Literal['missing', 'altered'] | None"]

_NOTEWORTHY = (b"run.", b"artifact.", b"gap.", b"content.", b"step.finished")
Pack = tuple[str, int]  # digest of a pack, and seq of the event that recorded it
BLOB = re.compile(rb'\{"\$blob":"([0-9a-f]{64})","len":\d+,"as":"(\w+)"')


class Integrity(msgspec.Struct, kw_only=True):
    """Say whether the lines are what was sealed; `at` is the seq of the first bad event."""

    verdict: Literal["intact", "broken"] = "intact"
    at: int | None = None
    reason: str | None = None
    message: str | None = None


class Completeness(msgspec.Struct, kw_only=True):
    """Say whether all of the run is there."""

    verdict: Literal["complete", "unfinished", "missing", "unattested"] = "unfinished"
    detail: str | None = None


class Verification(msgspec.Struct, kw_only=True):
    """What verify found about one run."""

    run: str
    level: str = "self-consistent"
    integrity: Integrity
    completeness: Completeness
    events: int = 0
    head: str | None = None
    gaps: dict[str, int] = {}
    missing: list[str] = []
    erased: int = 0
    root_checked: bool = False
    open_tail: int = 0  # lines after the last run.finished, which nothing counts; all of them where there is none


class _State:
    def __init__(self, run: str, check: ContentCheck | None, known_head: tuple[int, str] | None, deep: bool) -> None:
        self.run = run
        self.check = check
        self.known_head = known_head
        self.tree = Tree() if deep else None
        self.integrity = Integrity()
        self.seq = 0
        self.prev = envelope.genesis(run).encode()
        self.finished: dict[str, Any] | None = None
        self.finished_at = -1
        self.gaps: dict[str, int] = {}
        self.missing: list[str] = []
        self.erased = 0
        self.packs: list[Pack] = []  # every one that was recorded
        self.racing: list[Pack] = []  # the last one, and those that lanes were setting at the same time
        self.packing: dict[str, Pack] = {}  # by lane that has said nothing since: it may still be writing the file
        self.torn = 0
        self.stopped = False
        self.root_checked = False

    def found(self, verdict: Literal["intact", "broken"], at: int, reason: Reason, message: str) -> None:
        """Keep the first thing that is wrong: what comes after it may only follow from it."""
        if self.integrity.verdict == "intact":
            self.integrity = Integrity(verdict=verdict, at=at, reason=reason, message=message)


def verify(
    lines: Iterator[bytes],
    run: str,
    *,
    check: ContentCheck | None = None,
    known_head: tuple[int, str] | None = None,
    deep: bool = False,
) -> Verification:
    """Check every line of one run.

    `lines` yields each with its newline, as a file does, so that a torn last one can be told. `known_head` is a (seq,
    hash) that somebody else remembers. `deep` also recomputes the root that run.finished declares, at twice the cost.
    """
    state = _State(run, check, known_head, deep)
    for line in lines:
        if not _take(state, line):
            at, reason, message = _cause(state, line, lines)
            state.torn = len(line) if reason == "torn_tail" else 0
            state.stopped = not state.torn
            state.found("intact" if reason == "torn_tail" else "broken", at, reason, message)
            break
    if check is not None and state.packs:
        _check_pack(state, check)
    return _conclude(state)


def _take(state: _State, line: bytes) -> bool:
    """Accept one line if it is the next of the chain."""
    if line[-76:-67] != envelope.HASH_OPENS or line[-3:] != b'"}\n':
        return False
    body = line[:-76]
    digest = sha256(body).hexdigest().encode()
    seq = state.seq
    head = b'{"v":1,"run":"%b","seq":%d,"time":"' % (state.run.encode(), seq)
    if digest != line[-67:-3] or body[-65:-1] != state.prev or body[-74:-65] != b',"prev":"':
        return False
    if not line.startswith(head) and (envelope.seq_of(line) != seq or envelope.run_of(line) != state.run):
        return False
    if state.known_head is not None and state.known_head[0] == seq and state.known_head[1] != digest.decode():
        lost = "; a loss is declared before it" if any(state.gaps.values()) else ""
        state.found("broken", seq, "rewritten", f"event {seq} is not the one that the index remembers{lost}")
    at = line.find(b'"kind":"', len(head), len(head) + 90) + 8
    if state.packing:
        lane = line.find(b'"lane":"', at) + 8
        state.packing.pop(line[lane : line.find(b'"', lane)].decode("utf-8", "replace"), None)
    if line.startswith(_NOTEWORTHY, at):
        _note(state, line)
    if state.check is not None and b"$" in line:
        for blob, form in BLOB.findall(line):
            _check_content(state, "blob", blob.decode(), form.decode())
    if state.tree is not None:
        state.tree.add(line[:-1])
    state.seq = seq + 1
    state.prev = digest
    return True


def _note(state: _State, line: bytes) -> None:
    """Look into one of the few lines that completeness depends on. Anybody may have sealed it: trust no form."""
    try:
        fields = orjson.loads(line)
        kind, data = fields["kind"], fields["data"]
    except (ValueError, KeyError):
        return state.found("broken", state.seq, "edited", f"event {state.seq} is sealed, but it is not an event")
    if not isinstance(data, dict):
        data = {}
    match kind:
        case "run.finished":
            state.finished, state.finished_at = data, state.seq
            if state.tree is not None and isinstance(data.get("root"), str):
                state.root_checked = True
                if state.tree.root() != data["root"]:
                    message = "the declared root is not the root of the lines before it"
                    state.found("broken", state.seq, "root_mismatch", message)
        case "run.reopened":
            state.finished = None
        case "gap.noted":
            reason, count = data.get("reason"), data.get("count", 1)
            if isinstance(reason, str) and isinstance(count, int):
                state.gaps[reason] = state.gaps.get(reason, 0) + count
        case "content.erased":
            state.erased += 1
        case "run.started":
            policy, pack = data.get("policy"), data.get("context_pack")
            state.packs = state.racing = [(pack, state.seq)] if isinstance(pack, str) else []
            digest = policy.get("digest") if isinstance(policy, dict) else None
            if state.check is not None and isinstance(digest, str):
                _check_content(state, "policy_snapshot", digest, None)
        case "artifact.created":
            if data.get("role") == "context_pack" and isinstance(data.get("digest"), str):
                last = data["digest"], state.seq
                state.packs.append(last)
                state.racing = [*state.packing.values(), last]
                state.packing[str(fields.get("lane"))] = last
            if state.check is not None and isinstance(data.get("digest"), str):
                _check_content(state, "artifact", data["digest"], str(data.get("name")))
    return None


def _check_pack(state: _State, check: ContentCheck) -> None:
    """Check the file that holds the pack in force. Its event comes first, so a crash or a full disk in between leaves
    one from before it; and of two lanes that set a pack at once, either may be the last to write the file."""
    packs = state.packs if state.finished is None or any(state.gaps.values()) or state.packing else state.racing
    if not any(check("context_pack", digest, None) is None for digest, _ in reversed(packs[:-1])):
        _check_content(state, "context_pack", packs[-1][0], None, packs[-1][1])


def _check_content(state: _State, kind: str, digest: str, name: str | None, seq: int | None = None) -> None:
    assert state.check is not None
    problem, seq = state.check(kind, digest, name), state.seq if seq is None else seq
    label = f"{kind} {name if kind == 'artifact' else digest[:12]}"
    if problem == "missing":
        state.missing.append(label)
    elif problem == "altered":
        state.found("broken", seq, "content_altered", f"{label} is not what event {seq} recorded")


def _cause(state: _State, line: bytes, rest: Iterator[bytes]) -> tuple[int, Reason, str]:
    """Say what is wrong with the first line that does not fit."""
    expected = state.seq
    bare = line.removesuffix(b"\n")
    if bare is line and not envelope.sound(line[:-1]):
        if next(rest, None) is not None:
            return expected, "edited", f"event {expected} was edited: it is longer than any may be"
        return expected, "torn_tail", f"event {expected} is torn: {len(line)} bytes without an end"
    if not envelope.sound(bare):
        return expected, "edited", f"event {expected} was edited: its bytes do not match its hash"
    if envelope.run_of(bare) != state.run:
        return expected, "foreign_run", f"event {expected} belongs to another run: {envelope.run_of(bare)}"
    seq = envelope.seq_of(bare)
    if seq is None:
        return expected, "edited", f"event {expected} has no seq"
    if seq < expected:
        at = expected
        if seq == expected - 1 and bare[envelope.HASH_AT] != state.prev:
            # Two lines claim one place: the true one is the one that the next line was chained to.
            at -= next(rest, b"").removesuffix(b"\n")[envelope.PREV_AT] == bare[envelope.HASH_AT]
        return at, "inserted", f"event {at} was inserted: two say seq {seq}"
    if seq > expected:
        if any(envelope.seq_of(later) == expected for later in rest):
            return expected, "swapped", f"events were swapped: {seq} stands where {expected} belongs, which comes later"
        gone = f"event {expected} was" if seq == expected + 1 else f"events {expected} to {seq - 1} were"
        return expected, "removed", f"{gone} removed: seq {seq} follows {expected - 1}"
    following = next(rest, b"").removesuffix(b"\n")
    if envelope.seq_of(following) == expected and following[envelope.PREV_AT] == state.prev:
        return expected, "inserted", f"event {expected} was inserted: the true one follows it"
    if expected and following[envelope.PREV_AT] == bare[envelope.HASH_AT]:
        at = expected - 1
        return at, "edited", f"event {at} was edited and sealed anew: event {expected} was chained to another one"
    return expected, "edited", f"event {expected} was edited and sealed anew: it does not follow event {expected - 1}"


def _conclude(state: _State) -> Verification:
    completeness = _completeness(state)
    levels = {
        "broken": state.integrity.verdict == "broken",
        "declared loss": any(state.gaps.values()),  # late on the disk counts 0: it is not lost
        "missing": completeness.verdict == "missing",
        "erased": state.erased > 0,
        "open tail": completeness.verdict == "unfinished",
    }
    return Verification(
        run=state.run,
        level=next((level for level, holds in levels.items() if holds), "self-consistent"),
        integrity=state.integrity,
        completeness=completeness,
        events=state.seq,
        head=state.prev.decode() if state.seq else None,
        gaps=state.gaps,
        missing=state.missing,
        erased=state.erased,
        root_checked=state.root_checked,
        open_tail=state.seq - 1 - state.finished_at,
    )


def _completeness(state: _State) -> Completeness:
    known = state.known_head
    if known is not None and state.seq <= known[0] and state.integrity.verdict == "intact":
        told = f"cut tail: {known[0] + 1} events were indexed, {state.seq} are left"
        state.integrity = Integrity(at=state.seq, reason="cut_tail", message=told)
        return Completeness(verdict="missing", detail=told)
    if state.missing:
        return Completeness(verdict="missing", detail="gone: " + ", ".join(state.missing[:10]))
    if any(state.gaps.values()):
        lost = ", ".join(f"{count} × {reason}" for reason, count in state.gaps.items())
        return Completeness(verdict="missing", detail=f"declared loss: {lost}")
    if state.torn:
        return Completeness(verdict="unfinished", detail=f"torn tail of {state.torn} bytes after event {state.seq - 1}")
    if state.finished is None:
        why = "the run was not finished, or its end was cut off" if state.seq else "the timeline is empty"
        if state.stopped:
            why = f"not judged: the chain is broken at event {state.integrity.at}"
        return Completeness(verdict="unfinished", detail=why)
    declared = state.finished.get("events")
    if declared is None:
        return Completeness(verdict="unattested", detail="run.finished declares no count")
    if declared != (there := state.finished_at + 1):
        return Completeness(verdict="missing", detail=f"{declared} events were declared, {there} are there")
    return Completeness(verdict="complete")
