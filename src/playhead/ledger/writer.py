"""Extend a run's timeline: the one place where lines are sealed and written.

Any number of threads, tasks, forks and processes may hold a Ledger of the same run. Each append takes the lock, looks
whether the file grew meanwhile, follows what others wrote, seals, writes once, and lets go. So `seq` is dense, `prev`
is right, and an event is on its way to the disk before its caller goes on.
"""

from __future__ import annotations

import functools
import os
import threading
from collections import deque
from collections.abc import Callable

import msgspec
import orjson

from playhead._clock import Clock, parse_utc, utc_text
from playhead.errors import LedgerClosed, PlayheadError, WriteFailed
from playhead.event import envelope
from playhead.event.resolve import has_references
from playhead.ledger import log as log_module
from playhead.ledger.log import Log
from playhead.ledger.merkle import Tree

Data = bytes | Callable[[int, str], bytes]
Around = tuple[str, bytes, str | None]  # kind, data, parent
SetAside = Callable[[bytes], str]


class Sealed(msgspec.Struct, frozen=True, gc=False):
    """Where an event went."""

    seq: int
    span: str | None
    offset: int
    at_us: int = 0  # by the monotonic clock


def _as_bytes(data: Data) -> bytes:
    return data if isinstance(data, bytes) else data(0, "")


class Ledger:
    """Append to one run.

    Proves order and wholeness among those who use it. It cannot stop a process that writes to the file directly; verify
    finds that.
    """

    def __init__(self, log: Log, run: str, clock: Clock, set_aside: SetAside) -> None:
        self.run = run
        self._log = log
        self.clock = clock
        self._set_aside = set_aside
        self.lock = threading.RLock()  # whoever holds it keeps other threads from writing
        self._busy = False  # inside `append`: a finaliser or signal handler there must not start another
        self._deferred: list[Callable[[], object]] = []
        self.closed = False
        self._lost: deque[tuple[str, int]] = deque()  # counted, not yet looked at
        self._losses: dict[str, int] = {}  # looked at, not yet declared; touched only with the lock held
        self._declared = 0
        self._pending = b""
        self.cuts = 0  # how often lines that were written vanished: what refers to them must not be written
        self.dirty = False
        self.on_dirty: Callable[[], None] | None = None
        self._reset()

    def _reset(self) -> None:
        self._end = 0
        self._seq = 0
        self._prev = envelope.genesis(self.run).encode()
        self._tree, self._in_tree = Tree(), 0  # the lines it has taken in so far, and where they end
        self._elapsed_us = 0
        self._start_us: int | None = None  # monotonic reading that counts as elapsed 0

    @property
    def head(self) -> tuple[int, str]:
        """Return seq and hash of the last line this writer knows; seq is -1 before the first."""
        return self._seq - 1, self._prev.decode()

    def append(
        self,
        kind: str,
        data: Data,
        span: str | None = None,
        parent: str | None = None,
        lane: str = "0",
        key: str | None = None,
        opens: bool = False,
        time_us: int | None = None,
        elapsed_us: int | None = None,
        cuts: int | None = None,
        before: Around | None = None,
        after: Around | None = None,
        drains: bool = True,
    ) -> Sealed | None:
        """Seal one event and write it; on return it survives SIGKILL of this process.

        An opening event without a span id gets its own seq as the id. `data` may be a function of (seq, root), for the
        line that declares both. `cuts` is how often lines had vanished when the event was made: if more have since, it
        is refused where it refers to others. `before` opens a span around it, `after` closes that. In a finaliser or
        signal handler that interrupted an append of its thread, the event is written right after that one: what is
        returned has no place yet (seq -1), and None is returned for what opens no span.
        """
        with self.lock:
            if self._busy:
                late = opens and span is None and before is None
                span = os.urandom(8).hex() if late else span  # its seq is not known
                rest = (span, parent, lane, key, opens, time_us, elapsed_us, cuts, before, after, False)
                self._deferred.append(functools.partial(self.append, kind, data, *rest))
                return Sealed(-1, span, -1) if late else None
            self._busy = True
            log = self._log
            known, cuts = None, self.cuts if cuts is None else cuts
            try:
                if self.closed:
                    raise LedgerClosed(f"{self.run} is closed", hint="`playhead.record` opens a new run.")
                try:
                    if log.acquire() != self._end:  # in here, since a signal handler may raise right after it
                        self._follow()
                    if self.cuts != cuts and has_references(_as_bytes(data)):
                        raise WriteFailed(f"{self.run} was cut under its writer, and this event refers to what is gone")
                    if self._lost or self._losses:
                        self._write_losses()
                    known, self._pending = (self._seq, self._prev, self._end), b""
                    if before is not None:
                        parent = str(self._seq)
                        self._write(before[0], before[1], parent, before[2], lane, None, more=True)
                    if opens and span is None:
                        span = str(self._seq)
                    offset = self._end
                    seq = self._write(kind, data, span, parent, lane, key, time_us, elapsed_us, after is not None)
                    if after is not None:
                        self._write(after[0], after[1], parent, after[2], lane, None)
                except WriteFailed:
                    if known is not None and (before or after):
                        self._seq, self._prev, self._end = known  # nothing of it is there
                    raise
                finally:
                    try:
                        log.release()
                    except BaseException:  # a signal handler again; the lock must not stay
                        log.release()
                        raise
                return Sealed(seq, span, offset, self._elapsed_us + (self._start_us or 0))
            finally:
                self._busy = False
                if self._deferred and drains:
                    self._append_deferred()

    def _append_deferred(self) -> None:
        """Write what came meanwhile. Its failure is counted, not raised: the event in progress is not to blame."""
        while self._deferred:
            try:
                self._deferred.pop(0)()  # what comes during that waits for this loop: no append nests in another
            except (PlayheadError, OSError) as problem:
                self.lose(getattr(problem, "code", type(problem).__name__))

    def lose(self, reason: str, count: int = 1) -> None:
        """Count an event that could not be recorded; the count is written before the next one that can."""
        # One step and no lock, so that no count is missed: not among threads, not in a handler that interrupts another.
        self._lost.append((reason, count))

    @property
    def pending_losses(self) -> dict[str, int]:
        """Return what was lost and is not yet declared in the timeline."""
        out = dict(self._losses)
        for reason, count in tuple(self._lost):
            out[reason] = out.get(reason, 0) + count
        return out

    @property
    def loss_total(self) -> int:
        """Return how many events were lost, declared or not."""
        return self._declared + sum(self.pending_losses.values())

    def sync(self) -> None:
        """Return when everything written so far survives a power loss."""
        self.dirty = False
        if not self.closed:
            self._log.sync()

    def line_at(self, offset: int) -> bytes:
        """Read back one line, without its newline, that begins at this byte."""
        return next(log_module.lines(log_module.chunks(self._log, offset)), b"")

    def after_fork(self) -> None:
        """Make this copy of a forked parent's ledger usable in the child."""
        if self._busy and not self.in_hand:
            self._reset()  # another thread was in the middle of a line, and does not exist here
        self.lock = threading.RLock()
        self._busy = False
        self._deferred = []
        self._losses = {}  # the parent declares its own
        self._lost.clear()
        self._log.reopen()

    @property
    def in_hand(self) -> bool:
        """Say whether this thread is in the middle of an append: then we are in a finaliser or signal handler."""
        return self.lock._is_owned()  # type: ignore[attr-defined, no-any-return]

    def close(self) -> None:
        """Stop writing. Losses that nobody declared are left in `pending_losses`."""
        with self.lock:
            if not self.closed:
                self.closed = True
                self._log.close()

    # Everything below runs with the lock held.

    def _write(
        self,
        kind: str,
        data: Data,
        span: str | None,
        parent: str | None,
        lane: str,
        key: str | None,
        time_us: int | None = None,
        elapsed_us: int | None = None,
        more: bool = False,
    ) -> int:
        seq = self._seq
        if not isinstance(data, bytes):
            data = data(seq, self._root())
        time = utc_text(self.clock.wall_us() if time_us is None else time_us)
        if elapsed_us is None:  # it never goes back along the chain, whoever wrote the line before
            now = self.clock.monotonic_us()
            if self._start_us is None:
                self._start_us = now - self._elapsed_us
            elapsed_us = now - self._start_us
            if elapsed_us < self._elapsed_us:
                elapsed_us = self._elapsed_us
            self._elapsed_us = elapsed_us
        head = envelope.head_of(self.run, seq, time, elapsed_us, kind, span, parent, lane, key)
        line, digest = envelope.seal(head, data, self._prev)
        pending, self._pending = self._pending + line, b""
        if more:
            self._pending = pending  # lines that belong together are written with one call
        else:
            self._log.append(pending)
        self._end += len(line)
        self._seq = seq + 1
        self._prev = digest
        if not self.dirty:
            self.dirty = True
            if self.on_dirty is not None:
                self.on_dirty()
        return seq

    def _write_losses(self) -> None:
        while self._lost:
            reason, count = self._lost.popleft()
            self._losses[reason] = self._losses.get(reason, 0) + count
        for reason, count in list(self._losses.items()):
            self._write("gap.noted", orjson.dumps({"reason": reason, "count": count}), None, None, "0", None)
            del self._losses[reason]
            self._declared += count

    def _root(self) -> str:
        # From the file, and only when it is asked for: no append has to wait for it.
        for line in log_module.lines(log_module.chunks(self._log, self._in_tree, self._end)):
            self._tree.add(line)
        self._in_tree = self._end
        return self._tree.root()

    def _follow(self) -> None:
        """Read what others wrote since we last looked; put a torn line aside."""
        end = self._log.end()
        torn = self._join(end) if self._end == 0 else self._read_on(end)
        if torn is None:
            # The file was cut under us, and perhaps grew again. What is there now is the run; the loss goes on record.
            known = self._seq
            self.cuts += 1
            self._reset()
            torn = self._join(end)
            self.lose("timeline_cut", max(known - self._seq - bool(torn), 0 if torn else 1))
        if torn:
            self._mend(torn)

    def _read_on(self, end: int) -> bytes | None:
        """Take over the lines after ours; return what follows the last newline, or None where they do not chain."""
        rest = b""
        if end < self._end:
            return None
        for piece in log_module.chunks(self._log, self._end, end):
            *whole, rest = (rest + piece).split(b"\n")
            if not all(self._accept(line) for line in whole):
                return None
        return rest

    def _join(self, end: int) -> bytes:
        """Find the last whole line of an existing timeline, from its end, and the first one for its start time."""
        tail = b""
        start = end
        while start > 0 and tail.count(b"\n") < 2:
            step = min(start, 65536 + len(tail))
            start -= step
            tail = self._log.read(start, step) + tail
        body, newline, torn = tail.rpartition(b"\n")
        if newline:
            last = body.rpartition(b"\n")[2]
            self._seq, self._prev = self._check(last) + 1, last[envelope.HASH_AT]
            self._resume_clock(next(log_module.lines(log_module.chunks(self._log, 0, end))), last)
        self._end = end - len(torn)  # last: a damaged line raises before it, and is looked at again the next time
        return torn

    def _resume_clock(self, first: bytes, last: bytes) -> None:
        """Continue elapsed time in a process that did not start the run: by wall time since then, never backwards."""
        started = envelope.parse(first)
        began_us = parse_utc(started.time) - started.elapsed_us
        self._elapsed_us = envelope.parse(last).elapsed_us
        # Both clocks in one breath: what passes between the two would be missing from every duration.
        since, now = self.clock.wall_us() - began_us, self.clock.monotonic_us()
        self._start_us = now - max(since, self._elapsed_us)

    def _check(self, line: bytes) -> int:
        """Return the seq of a line that another one can follow."""
        seq = envelope.seq_of(line)
        if seq is None or not envelope.sound(line) or envelope.run_of(line) != self.run:
            raise WriteFailed(
                f"the last line of {self.run} is damaged, so nothing can be added after it",
                hint="`playhead verify` names the first bad line. Record into a new run.",
            )
        return seq

    def _accept(self, line: bytes) -> bool:
        """Take over a line that another writer added, if it follows ours."""
        if envelope.seq_of(line) != self._seq or line[envelope.PREV_AT] != self._prev:
            return False
        self._check(line)
        elapsed = max(self._elapsed_us, envelope.elapsed_of(line))
        after = self._seq + 1, line[envelope.HASH_AT], self._end + len(line) + 1
        # No call in between: a signal handler that raises must not leave half of it.
        self._seq, self._prev, self._end = after
        self._elapsed_us = elapsed
        return True

    def _mend(self, torn: bytes) -> None:
        """Deal with bytes after the last newline: we hold the lock, so their writer is gone."""
        whole = envelope.sound(torn) and torn.startswith(envelope.prefix(self.run, self._seq))
        if whole and torn[envelope.PREV_AT] == self._prev:
            self._log.append(b"\n")  # only the newline was missing
            self._accept(torn)
            return
        digest = self._set_aside(torn)
        self._log.truncate(self._end)
        data = orjson.dumps({"reason": "torn_tail", "count": 1, "detail": {"bytes": len(torn), "blob": digest}})
        try:
            self._write("gap.noted", data, None, None, "0", None)
        except WriteFailed:
            self.lose("torn_tail")
            raise
