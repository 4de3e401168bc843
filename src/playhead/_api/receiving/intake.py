"""Take in spans and logs for one store: find the run that each belongs to, write what is new, and end what is over."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from playhead import _limits
from playhead._api.receiving.beginning import begins_us, started
from playhead._api.receiving.open_run import OpenRun
from playhead._api.receiving.repeated import prepare
from playhead._clock import Clock, SystemClock
from playhead._ids import is_run_id, new_run_id
from playhead.capture.gate import Gate
from playhead.capture.opening import shared_redactor
from playhead.errors import LedgerError, PlayheadError, RunNotFound
from playhead.event.kinds import Status
from playhead.ingest.otlp.grouping import Group, groups, of_span
from playhead.ingest.otlp.spans import LogRecord, Span
from playhead.settings import Settings
from playhead.store.batch_log import BatchStore
from playhead.store.flushing import Flusher
from playhead.store.index import Index

_FIND = (
    "SELECT r.id FROM runs r WHERE r.external_id = ?1 AND r.origin IS NULL AND r.received IS NOT NULL"
    " UNION SELECT r.id FROM traces t JOIN runs r ON r.id = t.run WHERE t.trace = ?1 AND r.origin IS NULL"
    " ORDER BY 1 DESC LIMIT 1"
)
_OPEN = (
    "SELECT id FROM runs WHERE received IS NOT NULL AND origin IS NULL AND finished IS NULL ORDER BY id DESC LIMIT ?"
)

_HELD_EVERY = 8  # requests, after which it is looked how much content is held for all runs


class _Batch(NamedTuple):
    """What one request has of one trace, and of one run."""

    group: Group
    trace: str | None
    spans: list[Span]
    logs: list[LogRecord]


class Intake:
    """Write to the runs of one store what comes from outside. Threads may share one."""

    def __init__(
        self,
        root: Path,
        index: Callable[[], Index],
        settings: Settings,
        *,
        quiet_s: float = _limits.RUN_QUIET_S,
        runs_max: int = _limits.RUNS_OPEN_MAX,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        written: Callable[[str], object] = lambda run: None,
    ) -> None:
        self.store = BatchStore(root)
        self._index = index
        self._gate = Gate(shared_redactor(settings), watches=False)
        self._quiet_s = quiet_s
        self._runs_max = runs_max
        self._clock = clock or SystemClock()
        self._monotonic = monotonic
        self._written = written  # told of each run that has something new
        self._lock = threading.RLock()
        self._open: OrderedDict[str, OpenRun] = OrderedDict()  # the one that was quiet longest first
        self._named: OrderedDict[str, str] = OrderedDict()  # external ids and traces, each with its run
        self._flusher: Flusher | None = None
        self._takes = 0
        self._is_caught_up = False

    def take(self, spans: Sequence[Span] = (), logs: Sequence[LogRecord] = ()) -> list[str]:
        """Write what is new, and return the runs that it belongs to; on return all of it survives a power loss."""
        self._gate.look_at_variables()
        if len(spans) <= _limits.OTLP_PREPARED_MAX:
            prepare(spans)
        with self._lock:
            touched, problem = self._take(self._batches(spans, logs))
        if touched:
            self._flush(touched)
            for one in touched:
                self._written(one.id)
        if problem is not None:
            raise problem
        return [one.id for one in touched]

    @property
    def open_count(self) -> int:
        """Return how many runs spans may come to without opening them again."""
        return len(self._open)

    def finish(self, run: str, status: Status | None = None, error: str | None = None) -> None:
        """End a run that came from outside, because somebody says so."""
        told = None if error is None else {"type": "Error", "message": error}
        with self._lock:
            found = self._open.get(run) or self._reopened(run)
            if found is None:
                raise RunNotFound(f"{run} did not come from outside: it ends by itself")
            found.finish(status or ("error" if error is not None else None), told)
            self._let_go(run)
        self._flush([found])

    def end_if_over(self, run: str) -> None:
        """End a run whose root has ended, without waiting until it is quiet; what comes later opens it again."""
        with self._lock:
            one = self._open.get(run)
            if one is None or not one.standing.rooted:
                return
            self._end(one)
        self._flush([one])

    def look_after(self) -> None:
        """End the runs that are over, and let go of those of which nothing was heard for long."""
        ended = []
        with self._lock:
            now_s = self._monotonic()
            for id, one in list(self._open.items()):
                quiet_s = now_s - one.touched_s
                if one.standing.rooted and quiet_s >= self._quiet_s:
                    ended.append(self._end(one))
                elif quiet_s >= _limits.RUN_ABANDONED_S:
                    self._let_go(id)
        if ended:
            self._flush(ended)

    def resume(self) -> None:
        """Open again what another process left unfinished."""
        rows = self._index().query(_OPEN, (self._runs_max,))[1]
        with self._lock:
            for (id,) in rows:
                if id not in self._open:
                    self._reopened(str(id))

    def close(self) -> None:
        """Let go of every run; what is over is ended."""
        with self._lock:
            ended = [self._end(one) for one in list(self._open.values()) if one.standing.rooted]
            for id in list(self._open):
                self._let_go(id)
            self.store.close()
        if ended:
            self._flush(ended)

    # Which run something belongs to.

    def _batches(self, spans: Sequence[Span], logs: Sequence[LogRecord]) -> list[_Batch]:
        found: dict[tuple[str, str, str | None], _Batch] = {}
        by_trace = groups(spans)
        for span in spans:
            group = of_span(span, by_trace)
            found.setdefault((*group, span.trace), _Batch(group, span.trace, [], [])).spans.append(span)
        for log in logs:
            group = of_span(log, by_trace)
            found.setdefault((*group, log.trace), _Batch(group, log.trace, [], [])).logs.append(log)
        return list(found.values())

    def _take(self, batches: Iterable[_Batch]) -> tuple[list[OpenRun], PlayheadError | None]:
        touched: list[OpenRun] = []
        problem: PlayheadError | None = None
        for batch in batches:
            try:
                one = self._run_of(batch)
                one.touched_s = self._monotonic()
                if one.take(batch.spans, batch.logs):
                    touched.append(one)
            except PlayheadError as error:
                problem = problem or error
                self._give_up(batch)
            except OSError as error:
                problem = problem or LedgerError(f"cannot write to {self.store.root}: {error.strerror}")
                self._give_up(batch)
        self._make_room()
        return touched, problem

    def _give_up(self, batch: _Batch) -> None:
        """Let go of a run that could not be written: what it knows of itself may not be in its file."""
        for name in (batch.trace, batch.group.id):
            if name is not None and (id := self._named.get(name)) is not None:
                self._let_go(id)

    def _run_of(self, batch: _Batch) -> OpenRun:
        group = batch.group
        # A trace stays whole, whatever more of its spans say, unless they name their run themselves.
        names = dict.fromkeys(filter(None, [None if group.rule == "run_id" else batch.trace, group.id]))
        for by in names:
            if (one := self._found(by)) is not None:
                break
        else:
            one, by = self._begun(batch), group.id
        self._open.move_to_end(one.id)
        for name in names if by == group.id else [by]:  # a session that is named too late is not that of this run
            self._named[name] = one.id
            self._named.move_to_end(name)
        while len(self._named) > _limits.RUN_NAMES_KEPT_MAX:
            self._named.popitem(last=False)
        return one

    def _found(self, name: str) -> OpenRun | None:
        """Find the run of a trace or a session: one that is open, of an earlier process, or let go of long ago."""
        id = self._named.get(name)
        if id is not None and (one := self._open.get(id) or self._reopened(id)) is not None:
            return one
        if not self._is_caught_up:  # what an earlier process wrote last is in no index yet
            self._index().catch_up()
            self._is_caught_up = True
        rows = self._index().peek(_FIND, (name,))
        if not rows:
            return None
        id = str(rows[0][0])
        return self._open.get(id) or self._reopened(id)

    def _begun(self, batch: _Batch) -> OpenRun:
        group = batch.group
        free = is_run_id(group.id) and not self.store.folder(group.id).exists()
        one = OpenRun(self.store, group.id if free else new_run_id(self._clock), self._gate, create=True)
        try:
            at_us = begins_us(batch.spans, batch.logs, self._clock.wall_us())
            one.begin(started(group, batch.spans, batch.logs, self._gate), at_us)
        except BaseException:
            one.close()
            self.store.delete(one.id)  # half of a run is none
            raise
        self._open[one.id] = one
        return one

    def _reopened(self, id: str) -> OpenRun | None:
        """Open a run that is there; None where it cannot be gone on with, or is not one of ours."""
        try:
            one = OpenRun(self.store, id, self._gate, create=False)
        except (RunNotFound, LedgerError):
            return None
        if one.standing.rule is None:
            one.close()
            return None
        one.touched_s = self._monotonic()
        self._open[id] = one
        return one

    # What is over.

    def _make_room(self) -> None:
        while len(self._open) > self._runs_max:
            id, one = next(iter(self._open.items()))
            if one.standing.rooted:
                self._end(one)
            else:
                self._let_go(id)
        self._takes += 1
        if self._takes % _HELD_EVERY:
            return
        held = sum(one.held_bytes for one in self._open.values())
        for one in self._open.values():
            if held <= _limits.RECEIVED_BYTES_HELD_MAX:
                break
            if one.held_bytes:
                held -= one.held_bytes
                one.held_bytes = 0
                one.writer.forget()

    def _end(self, one: OpenRun) -> OpenRun:
        """Finish a run, and let go of it: on the disk it is when somebody flushes."""
        try:
            one.finish()
        finally:
            self._let_go(one.id)
        return one

    def _let_go(self, id: str) -> None:
        one = self._open.pop(id, None)
        if one is not None:
            one.close()
            self._written(id)

    def _flush(self, touched: Sequence[OpenRun]) -> None:
        if self._flusher is None:
            self._flusher = Flusher(self.store.root)
        self._flusher.flush([one.sync for one in touched])
