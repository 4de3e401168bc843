"""Append lines that were sealed elsewhere to a run of files, byte by byte as they are."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from playhead._ids import is_run_id
from playhead.errors import BrokenLine, Conflict, LinesMissing, UsageError
from playhead.event import envelope
from playhead.event.envelope import HASH_AT, PREV_AT
from playhead.store import layout
from playhead.store.disk import Disk
from playhead.store.file_log import FileLog
from playhead.store.files import FileStore


class Appended(NamedTuple):
    """How far a run is, after lines were appended to it."""

    run: str
    events: int
    head: str
    added: int
    created: bool


def append_lines(store: FileStore, run: str, lines: Sequence[bytes]) -> Appended:
    """Append lines without their newlines; what is there already is passed over, and nothing else is ever changed.

    Each must be sound, of this run, and follow the one before it. On return they survive a power loss.
    """
    if not is_run_id(run):
        raise UsageError(f"not a run id: {run[:80]!r}", hint="A run id is `run_` and 26 characters.")
    first = _check(run, lines)
    timeline = layout.timeline(store.folder(run))
    created = not timeline.exists()
    if created:
        if first:
            raise LinesMissing(f"{run} is not here: send it from its first line", events=0)
        store.ledger(run, create=True).close()
    log = FileLog(timeline, Disk(), create=False, before_sync=store.sync_files)
    try:
        log.acquire()
        try:
            there, head = _head(store, run)
            new = _new(store, run, lines, first, there, head)
            if new:
                log.append(b"".join(line + b"\n" for line in new))
                head = new[-1][HASH_AT].decode()
        finally:
            log.release()
        if new:
            store.note(run, "open")
            log.sync()
    finally:
        log.close()
    return Appended(run, there + len(new), head, len(new), created)


def _check(run: str, lines: Sequence[bytes]) -> int:
    """Return the seq of the first line, after each was found to be sound and to follow the one before it."""
    if not lines:
        raise UsageError("no lines were sent")
    first = envelope.seq_of(lines[0])
    if first is None:
        raise BrokenLine("the first line is not one of a timeline")
    prev = lines[0][PREV_AT] if first else envelope.genesis(run).encode()
    for seq, line in enumerate(lines, first):
        if not line.startswith(envelope.prefix(run, seq)) or not envelope.sound(line) or line[PREV_AT] != prev:
            raise BrokenLine(f"line {seq} is not sound, or does not follow the one before it in {run}")
        envelope.parse(line)
        prev = line[HASH_AT]
    return first


def _head(store: FileStore, run: str) -> tuple[int, str]:
    """Return how many whole lines a run has here, and the hash of the last one."""
    count, last = 0, b""
    for line in store.lines(run):
        if line[-1:] != b"\n":
            raise Conflict(f"the last line of {run} is cut off here", hint="Its own writer mends that.")
        count, last = count + 1, line
    return count, last[:-1][HASH_AT].decode() if count else envelope.genesis(run)


def _new(store: FileStore, run: str, lines: Sequence[bytes], first: int, there: int, head: str) -> Sequence[bytes]:
    """Return the lines that are not here yet; the others must be the same."""
    if first > there:
        raise LinesMissing(f"{run} has {there} events here: lines {there} to {first - 1} are missing", events=there)
    known = itertools.islice(store.lines(run), first, None)
    for seq, (line, here) in enumerate(zip(lines, known, strict=False), first):
        if here[:-1] != line:
            raise Conflict(
                f"{run} has another line {seq} here",
                hint="Two writers went on from the same place. Both are kept where they are.",
                detail={"seq": seq, "here": {"events": there, "head": head}, "sent": lines[-1][HASH_AT].decode()},
            )
    new = lines[there - first :]
    if new and new[0][PREV_AT].decode() != head:
        raise Conflict(f"line {there} of {run} does not follow the head here", detail={"events": there, "head": head})
    return new
