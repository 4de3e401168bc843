"""Keep runs open to which spans come: write what is new to each, end those that are over, let go of the quiet ones."""

from __future__ import annotations

import contextlib
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol

from playhead import _limits
from playhead._api.receiving.beginning import begins_us, started
from playhead._api.receiving.open_run import OpenRun
from playhead._api.receiving.repeated import prepare
from playhead._clock import Clock, SystemClock
from playhead.capture.gate import Gate
from playhead.capture.opening import shared_redactor
from playhead.errors import LedgerError, PlayheadError, RunNotFound, WriteFailed
from playhead.event.kinds import Status
from playhead.ingest.otlp.grouping import Group
from playhead.ingest.otlp.spans import LogRecord, Span
from playhead.settings import Settings
from playhead.store.batch_log import BatchStore

_HELD_EVERY = 8  # requests, after which it is looked how much content is held for all runs


class Piece(NamedTuple):
    """What one request has of one trace, for one run."""

    run: str
    is_new: bool
    group: Group
    trace: str | None
    spans: Sequence[Span]
    logs: Sequence[LogRecord]


class Done(NamedTuple):
    """What came of it."""

    touched: dict[str, int] = {}  # runs that have something new, and how long their timelines are now
    closed: Sequence[str] = ()  # runs that were let go of
    refused: Sequence[int] = ()  # the pieces, by number, whose runs cannot be gone on with
    problem: PlayheadError | None = None
    open: int = 0  # how many runs are open now


class Keeper(Protocol):
    """Keep some of the runs of one store open, here or in another process."""

    @property
    def is_gone(self) -> bool:
        """Say whether that process is no more."""

    def take(self, pieces: Sequence[Piece]) -> Callable[[], Done]:
        """Begin to write what is new; what is returned says what came of it."""

    def finish(self, run: str, status: Status | None, error: str | None) -> Done:
        """End a run, because somebody says so."""

    def end_if_over(self, run: str) -> Done:
        """End a run whose root has ended, without waiting until it is quiet."""

    def look_after(self) -> Done:
        """End the runs that are over, and let go of those of which nothing was heard for long."""

    def resume(self, runs: Sequence[str]) -> Done:
        """Open again what another process left unfinished."""

    def sync(self, runs: Iterable[str]) -> None:
        """Bring these runs to the disk, each by itself."""

    def close(self) -> Done:
        """Let go of every run; what is over is ended."""


class OpenRuns:
    """Write to runs of one store what comes from outside. Whoever calls makes sure that one thread does."""

    def __init__(
        self,
        root: Path,
        settings: Settings,
        *,
        quiet_s: float = _limits.RUN_QUIET_S,
        share: int = 1,
        runs_max: int = _limits.RUNS_OPEN_MAX,
        clock: Clock | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.store = BatchStore(root)
        self._gate = Gate(shared_redactor(settings), watches=False)
        self._quiet_s = quiet_s
        self._runs_max = max(1, runs_max // share)  # of all that are open, those that are ours
        self._held_max = _limits.RECEIVED_BYTES_HELD_MAX // share
        self._clock = clock or SystemClock()
        self._monotonic = monotonic
        self._open: OrderedDict[str, OpenRun] = OrderedDict()  # the one that was quiet longest first
        self._closed: list[str] = []
        self._takes = 0

    is_gone = False

    def take(self, pieces: Sequence[Piece]) -> Callable[[], Done]:
        return lambda: self._take(pieces)

    def finish(self, run: str, status: Status | None, error: str | None) -> Done:
        told = None if error is None else {"type": "Error", "message": error}
        found = self._open.get(run) or self._reopened(run)
        if found is None:
            raise RunNotFound(f"{run} did not come from outside: it ends by itself")
        found.finish(status or ("error" if error is not None else None), told)
        self._let_go(run)
        return self._done([found])

    def end_if_over(self, run: str) -> Done:
        one = self._open.get(run)
        return self._done([] if one is None or not one.standing.rooted else [self._end(one)])

    def look_after(self) -> Done:
        ended, now_s = [], self._monotonic()
        for id, one in list(self._open.items()):
            quiet_s = now_s - one.touched_s
            if quiet_s < self._quiet_s:
                break  # and all after it were heard of later
            if one.standing.rooted:
                ended.append(self._end(one))
            elif quiet_s >= _limits.RUN_ABANDONED_S:
                self._let_go(id)
        return self._done(ended)

    def resume(self, runs: Sequence[str]) -> Done:
        for id in runs[: self._runs_max]:
            if id not in self._open:
                with contextlib.suppress(WriteFailed):  # what comes to it opens it, or says why not
                    self._reopened(id)
        return self._done([])

    def sync(self, runs: Iterable[str]) -> None:
        for id in runs:
            if (one := self._open.get(id)) is not None:
                one.sync()

    def close(self) -> Done:
        ended = [self._end(one) for one in list(self._open.values()) if one.standing.rooted]
        for id in list(self._open):
            self._let_go(id)
        self.store.close()
        return self._done(ended)

    def _done(self, touched: Iterable[OpenRun], **more: object) -> Done:
        closed, self._closed = self._closed, []
        sizes = {one.id: one.size for one in touched}
        return Done(sizes, closed, open=len(self._open), **more)  # type: ignore[arg-type]

    def _take(self, pieces: Sequence[Piece]) -> Done:
        self._gate.look_at_variables()
        spans = [span for piece in pieces for span in piece.spans]
        if len(spans) <= _limits.OTLP_PREPARED_MAX:
            prepare(spans)
        touched: list[OpenRun] = []
        refused: list[int] = []
        problem: PlayheadError | None = None
        for number, piece in enumerate(pieces):
            try:
                one = self._run_of(piece)
                if one is None:
                    refused.append(number)
                    continue
                one.touched_s = self._monotonic()
                if one.take(piece.spans, piece.logs):
                    touched.append(one)
            except PlayheadError as error:
                problem = problem or error
                self._let_go(piece.run)  # what it knows of itself may not be in its file
            except OSError as error:
                problem = problem or LedgerError(f"cannot write to {self.store.root}: {error.strerror}")
                self._let_go(piece.run)
            except BaseException:
                self._let_go(piece.run)
                raise
        self._make_room()
        return self._done(touched, refused=refused, problem=problem)

    def _run_of(self, piece: Piece) -> OpenRun | None:
        """Return the run that is open, was let go of, or is to begin; None where one cannot be gone on with."""
        one = self._open.get(piece.run)
        if one is None:
            one = self._begun(piece) if piece.is_new else self._reopened(piece.run)
        if one is not None:
            self._open.move_to_end(one.id)
        return one

    def _begun(self, piece: Piece) -> OpenRun:
        one = OpenRun(self.store, piece.run, self._gate, create=True)
        try:
            at_us = begins_us(piece.spans, piece.logs, self._clock.wall_us())
            one.begin(started(piece.group, piece.spans, piece.logs, self._gate), at_us)
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
        except WriteFailed:
            raise  # it is there, and the system refuses it just now
        except (RunNotFound, LedgerError):
            return None
        if one.standing.rule is None:
            one.close()
            return None
        one.touched_s = self._monotonic()
        self._open[id] = one
        return one

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
            if held <= self._held_max:
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
            self._closed.append(id)
