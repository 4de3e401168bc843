"""Take in spans and logs for one store: find the run that each belongs to, and have whoever keeps that write it."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from playhead import _limits
from playhead._api.receiving.addresses import Addresses
from playhead._api.receiving.open_runs import Done, Keeper, OpenRuns, Piece
from playhead._clock import Clock, SystemClock
from playhead.errors import PlayheadError
from playhead.event.kinds import Status
from playhead.ingest.otlp.grouping import Group, groups, of_span
from playhead.ingest.otlp.spans import LogRecord, Span
from playhead.settings import Settings
from playhead.store import presence
from playhead.store.flushing import Flusher
from playhead.store.index import Index

_OPEN = (
    "SELECT id FROM runs WHERE received IS NOT NULL AND origin IS NULL AND finished IS NULL ORDER BY id DESC LIMIT ?"
)


class _Batch(NamedTuple):
    """What one request has of one trace, and of one run."""

    group: Group
    trace: str | None
    spans: list[Span]
    logs: list[LogRecord]


class Intake:
    """Write to the runs of one store what comes from outside. Threads may share one.

    `others` are keepers in other processes. Each run has one keeper for good, told by its id.
    """

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
        others: Sequence[Keeper] = (),
    ) -> None:
        self._index = index
        self._runs_max = runs_max
        self._written = written  # told of each run that has something new
        self._lock = threading.RLock()
        share = 1 + len(others)
        ours = OpenRuns(
            root, settings, quiet_s=quiet_s, share=share, runs_max=runs_max, clock=clock, monotonic=monotonic
        )
        self.store = ours.store
        self._keepers: list[Keeper] = [ours, *others]
        self._counts = [0] * share  # of runs that are open
        self._vouched: list[set[str]] = [set() for _ in range(share)]  # runs that others hold
        self._addresses = Addresses(ours.store, index, clock or SystemClock())
        self._flusher = Flusher(root)

    def take(self, spans: Sequence[Span] = (), logs: Sequence[LogRecord] = ()) -> list[str]:
        """Write what is new, and return the runs that it belongs to; on return all of it survives a power loss."""
        with self._lock:
            done = self._take(self._batches(spans, logs))
            for number, one in done:
                self._heard(number, one)
        runs = [run for _, one in done for run in one.touched]
        if done:  # also where nothing is new: what came before may have been written, and not flushed
            self._flush(done)
        for run in runs:
            self._written(run)
        problem = next((one.problem for _, one in done if one.problem is not None), None)
        if problem is not None:
            raise problem
        return runs

    @property
    def open_count(self) -> int:
        """Return how many runs spans may come to without opening them again."""
        return sum(self._counts)

    def finish(self, run: str, status: Status | None = None, error: str | None = None) -> None:
        """End a run that came from outside, because somebody says so."""
        self._ask_one(run, lambda keeper: keeper.finish(run, status, error))

    def end_if_over(self, run: str) -> None:
        """End a run whose root has ended, without waiting until it is quiet; what comes later opens it again."""
        self._ask_one(run, lambda keeper: keeper.end_if_over(run))

    def look_after(self) -> None:
        """End the runs that are over, and let go of those of which nothing was heard for long."""
        self._ask_all(lambda number, keeper: keeper.look_after())

    def resume(self) -> None:
        """Open again what another process left unfinished."""
        rows = self._index().query(_OPEN, (self._runs_max,))[1]
        runs = [str(id) for (id,) in rows]
        self._ask_all(lambda number, keeper: keeper.resume([run for run in runs if self._keeper_of(run) == number]))

    def close(self) -> None:
        """Let go of every run; what is over is ended."""
        self._ask_all(lambda number, keeper: keeper.close())

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

    def _take(self, batches: Iterable[_Batch]) -> list[tuple[int, Done]]:
        pieces = []
        for batch in batches:
            run, is_new = self._addresses.of(batch.group, batch.trace)
            pieces.append(Piece(run, is_new, *batch))
        done, refused = self._given(pieces)
        if refused:  # runs that are gone, or damaged: what comes of them begins new ones
            begun: dict[str, str] = {}  # in the place of which
            again = []
            for piece in refused:
                is_new = piece.run not in begun
                if is_new:
                    begun[piece.run] = self._addresses.begin(piece.group, piece.trace)
                else:
                    self._addresses.lead(piece.group, piece.trace, begun[piece.run])
                again.append(piece._replace(run=begun[piece.run], is_new=is_new))
            done += self._given(again)[0]
        return done

    def _given(self, pieces: Sequence[Piece]) -> tuple[list[tuple[int, Done]], list[Piece]]:
        """Give each keeper what is for its runs; the others are at work while ours is."""
        shares: dict[int, list[Piece]] = {}
        for piece in pieces:
            shares.setdefault(self._keeper_of(piece.run), []).append(piece)
        done: list[tuple[int, Done]] = []
        begun: list[tuple[int, Callable[[], Done]]] = []
        mistake: Exception | None = None
        for number in sorted(shares, reverse=True):
            try:
                begun.append((number, self._keepers[number].take(shares[number])))
            except PlayheadError as problem:  # that keeper is gone; the others are to end what they have begun
                done.append((number, Done(problem=problem)))
            except Exception as problem:
                mistake = mistake or problem
        for number, result in reversed(begun):
            try:
                done.append((number, result()))
            except PlayheadError as problem:
                done.append((number, Done(problem=problem)))
            except Exception as problem:  # each is heard to its end, whatever another does
                mistake = mistake or problem
        if mistake is not None:
            raise mistake
        return done, [shares[number][place] for number, one in done for place in one.refused]

    def _keeper_of(self, run: str) -> int:
        return zlib.crc32(run.encode()) % len(self._keepers)

    def _ask_one(self, run: str, ask: Callable[[Keeper], Done]) -> None:
        number = self._keeper_of(run)
        with self._lock:
            done = ask(self._keepers[number])
            self._heard(number, done)
        if done.touched:
            self._flush([(number, done)])

    def _ask_all(self, ask: Callable[[int, Keeper], Done]) -> None:
        done: list[tuple[int, Done]] = []
        with self._lock:
            for number, keeper in enumerate(self._keepers):
                try:
                    one = ask(number, keeper)
                except PlayheadError as problem:  # the others are asked all the same
                    one = Done(problem=problem)
                self._heard(number, one)
                done.append((number, one))
        if any(one.touched for _, one in done):
            self._flush(done)
        for _, one in done:
            if one.problem is not None:
                raise one.problem

    def _heard(self, number: int, done: Done) -> None:
        """Note what a keeper says of its runs."""
        self._counts[number] = done.open
        if number:  # what is held in another process, this one vouches for
            closed = self._vouched[number] if self._keepers[number].is_gone else done.closed
            for run, size in done.touched.items():
                presence.vouch(self.store.folder(run), lambda size=size: size)  # type: ignore[misc]
            self._vouched[number].update(done.touched)
            for run in list(closed):
                presence.let_go(self.store.folder(run))
                self._vouched[number].discard(run)
        for run in done.closed:
            self._written(run)

    def _flush(self, done: Sequence[tuple[int, Done]]) -> None:
        self._flusher.flush(
            [lambda number=number, one=one: self._keepers[number].sync(one.touched) for number, one in done]  # type: ignore[misc]
        )
