"""Write runs in more than one process, so that a request is written on more than one processor.

Each run has one process for good, told by its id: the server itself, or a hand, which keeps its share of the runs open
and does what it is told through a pipe. Only the server answers, when all have written and everything was flushed.
A hand ends when the server does. Until then it holds the lock of the store with it, so that no other server begins
while a hand is still at work.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

from playhead import errors
from playhead import settings as settings_module
from playhead._api.collecting import collect_seldom
from playhead._api.receiving.carrying import carried, decoded, encoded, unpacked
from playhead._api.receiving.open_runs import Done, OpenRuns, Piece
from playhead.errors import LedgerError, PlayheadError, StoreError
from playhead.event.kinds import Status

logger = logging.getLogger("playhead.server")


class Hand:
    """Another process, and the pipe to it. It does one thing at a time."""

    def __init__(self, pid: int, pipe: Connection[bytes, bytes]) -> None:
        self.pid = pid
        self._pipe = pipe
        self.lock = threading.Lock()  # of whoever has told it something, and waits for the answer
        self.is_gone = False

    def tell(self, what: str, root: Path, *about: Any) -> None:
        """Tell it what to do."""
        try:
            self._pipe.send_bytes(encoded((what, os.fspath(root), about)))
        except OSError as problem:
            self.is_gone = True
            raise _gone(problem) from None

    def heard(self) -> Done:
        """Wait for what came of it."""
        try:
            touched, closed, refused, problem, count = decoded(self._pipe.recv_bytes())
        except (OSError, EOFError) as gone:
            self.is_gone = True
            raise _gone(gone) from None
        told = None if problem is None else _problem(*problem)
        return Done(touched, closed, refused, told, count)

    def give_up(self) -> None:
        """Close the pipe to it."""
        self._pipe.close()

    def close(self) -> None:
        """Let it end."""
        self.give_up()
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class HandsRuns:
    """Keep runs of one store open in a hand: a `Keeper`."""

    def __init__(self, hand: Hand, root: Path) -> None:
        self._hand = hand
        self._root = root

    @property
    def is_gone(self) -> bool:
        return self._hand.is_gone

    def take(self, pieces: Sequence[Piece]) -> Callable[[], Done]:
        self._hand.lock.acquire()
        try:
            self._hand.tell("take", self._root, carried(pieces))
        except BaseException:
            self._hand.lock.release()
            raise

        def result() -> Done:
            try:
                return self._hand.heard()
            finally:
                self._hand.lock.release()

        return result

    def finish(self, run: str, status: Status | None, error: str | None) -> Done:
        return self._asked("finish", run, status, error)

    def end_if_over(self, run: str) -> Done:
        return self._asked("end_if_over", run)

    def look_after(self) -> Done:
        return self._asked("look_after")

    def resume(self, runs: Sequence[str]) -> Done:
        return self._asked("resume", list(runs))

    def sync(self, runs: Iterable[str]) -> None:
        self._asked("sync", list(runs))

    def close(self) -> Done:
        return self._asked("close")

    def _asked(self, what: str, *about: Any) -> Done:
        with self._hand.lock:
            self._hand.tell(what, self._root, *about)
            done = self._hand.heard()
        if done.problem is not None:
            raise done.problem
        return done


def start_hands(count: int, quiet_s: float, closing: Iterable[int] = ()) -> list[Hand]:
    """Start so many; none where there is no fork. Call it before there are threads.

    `closing` are descriptors that they are not to keep open.
    """
    hands: list[Hand] = []
    if sys.platform == "win32":
        return hands
    for _ in range(count):
        ours, theirs = Pipe()
        pid = os.fork()
        if pid:
            theirs.close()
            hands.append(Hand(pid, ours))
            continue
        try:
            ours.close()
            for other in hands:  # each is to end with the server, and not with the last hand
                other.give_up()
            for descriptor in closing:
                os.close(descriptor)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            _work(theirs, quiet_s, 1 + count)
        except BaseException:
            logger.exception("a process that writes runs")
        finally:
            os._exit(0)
    return hands


def _work(pipe: Connection[bytes, bytes], quiet_s: float, share: int) -> None:
    """Do what one is told, until the server ends."""
    settings = settings_module.load()
    kept: dict[str, OpenRuns] = {}
    collect_seldom()
    while True:
        try:
            what, root, about = decoded(pipe.recv_bytes())
        except (EOFError, OSError):
            return  # what is acknowledged is written, and what is over is ended by the next server
        if root not in kept:
            kept[root] = OpenRuns(Path(root), settings, quiet_s=quiet_s, share=share)
        done = _done(kept[root], what, about)
        problem = None if done.problem is None else _told(done.problem)
        pipe.send_bytes(encoded((done.touched, list(done.closed), list(done.refused), problem, done.open)))


def _done(runs: OpenRuns, what: str, about: tuple[Any, ...]) -> Done:
    try:
        if what == "take":
            return runs.take(unpacked(about[0]))()
        if what == "sync":
            runs.sync(about[0])
            return Done()
        done: Done = getattr(runs, what)(*about)
        return done
    except PlayheadError as problem:
        return Done(problem=problem)
    except OSError as problem:
        return Done(problem=StoreError(f"the disk refused: {problem.strerror}"))
    except Exception as problem:  # the server answers 500, and goes on
        logger.exception("a process that writes runs: %s", what)
        return Done(problem=LedgerError(f"the server made a mistake: {type(problem).__name__}"))


def _told(problem: PlayheadError) -> tuple[str, str, str | None]:
    return type(problem).__name__, problem.message, problem.hint


def _problem(name: str, message: str, hint: str | None) -> PlayheadError:
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, PlayheadError) and kind.__init__ is PlayheadError.__init__:
        return kind(message, hint=hint)
    return LedgerError(message, hint=hint)


def _gone(problem: BaseException) -> StoreError:
    return StoreError(
        f"a process of the server that writes runs is gone: {problem}",
        hint="Start the server again: what was acknowledged is there.",
    )
