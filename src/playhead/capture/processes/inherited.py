"""Say what a process wrote to the outputs that the program itself has: it inherits them, and nobody is in between.

The launcher reads these outputs and counts. While such a process runs, what the program itself writes with `sys.stdout`
and `sys.stderr` is set apart; all else that comes is taken for what the process wrote, and told by its place in the
whole output, which is recorded anyway. In a replay it is written there again, each part at its place.
"""

from __future__ import annotations

import errno
import functools
import io
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from playhead import _limits
from playhead.capture import telling
from playhead.store.disk import identity

Fetch = Callable[[str, int, int], bytes]  # what stands in an output, from one byte to another

_lock = threading.RLock()  # a handler of signals may print, too
_running: list[Inherited] = []  # the last one that was started at the end
_settled: dict[str, int] = {}  # by output: up to where it is known who wrote it
_watched: list[Any] = []  # the files below `sys.stdout` and `sys.stderr`
begun = done = 0  # how often a thread was at work here: one that waits for the launcher is not at rest


@contextmanager
def _at_work() -> Iterator[None]:
    global begun, done
    with _lock:
        begun += 1
        try:
            yield
        finally:
            done += 1


def inherit(descriptors: Sequence[int]) -> Inherited | None:
    """Take in that a process is about to be started that gets these for its outputs; None where none is the program's.

    Also where nobody can say how much was written to it.
    """
    if not descriptors:
        return None
    with _at_work():
        marks = telling.marks(descriptors)
        outputs = {}
        for number in descriptors:
            file = identity(number)
            if file is not None and file in marks:
                outputs[marks[file][0]] = number, file
                _settle(*marks[file])
        if not outputs:
            return None
        _watch(marks)
        _running.append(found := Inherited(outputs))
    return found


class Inherited:
    """The outputs of the program that a process shares with it, for as long as it runs."""

    def __init__(self, outputs: dict[str, tuple[int, tuple[int, int]]]) -> None:
        self.outputs = outputs  # by name: the descriptor, and which file that is
        self.parts: dict[str, list[list[int]]] = {}  # by name: what it wrote there, from which byte to which
        self._left: dict[str, deque[list[int]]] = {}  # in a replay: the same, as far as it is still to be written
        self._fetch: Fetch | None = None

    def expect(self, parts: dict[str, list[list[int]]], fetch: Fetch) -> None:
        """Take in, in a replay, what the process wrote when it was recorded."""
        self._left, self._fetch = {name: deque(found) for name, found in parts.items()}, fetch

    def ended(self) -> dict[str, list[list[int]]] | None:
        """Take in that the process has ended, and say what it wrote; None where nobody can say.

        Of two that ran side by side, what both may have written is told of one of them.
        """
        with _at_work():
            if self not in _running:
                return None
            self._write_rest()
            marks = telling.marks([number for number, _ in self.outputs.values()])
            for name, (_, file) in self.outputs.items():
                if file not in marks:
                    self.leave()
                    return None
                _settle(name, marks[file][1], self)
            self.leave()
        enough = all(len(parts) <= _limits.PRINTED_PARTS_MAX for parts in self.parts.values())
        return self.parts if enough else None

    def leave(self) -> None:
        """Take in that nobody will ask for it any more."""
        with _at_work():
            if self in _running:
                _running.remove(self)

    def is_due(self, name: str, place: int) -> bool:
        """Say whether the next part that it wrote begins where an output is now."""
        left = self._left.get(name)
        return bool(left and left[0][0] == place)

    def write_next(self, name: str) -> int:
        """Write that part, and return how long it is."""
        return self._write(name, *self._left[name].popleft())

    def _write_rest(self) -> None:
        for name, left in self._left.items():
            if left and name in self.outputs:
                place = _catch_up(name, self._place(name, left[0][0]), left)
                for start, end in left:
                    if place <= start:  # else the program wrote it by itself, past us
                        self._write(name, start, end)
                left.clear()

    def _place(self, name: str, otherwise: int) -> int:
        number, file = self.outputs[name]
        return telling.marks([number]).get(file, (name, otherwise))[1]

    def _write(self, name: str, start: int, end: int) -> int:
        number, file = self.outputs[name]
        if self._fetch is None or identity(number) != file:
            return 0  # the program has closed it since
        pour(number, data := self._fetch(name, start, end))
        return len(data)


def _settle(name: str, place: int, whose: Inherited | None = None) -> None:
    """Take in how far an output is: what is new comes from this process, or from the last that was started."""
    if whose is None:
        whose = next((one for one in reversed(_running) if name in one.outputs), None)
    start = _settled.get(name, 0)
    if whose is not None and place > start:
        parts = whose.parts.setdefault(name, [])
        if parts and parts[-1][1] == start:
            parts[-1][1] = place
        elif len(parts) <= _limits.PRINTED_PARTS_MAX:
            parts.append([start, place])
    _settled[name] = max(start, place)


def _catch_up(name: str, place: int, until_empty: Sequence[Any] | None = None) -> int:
    """Write what processes wrote at this place of an output, in a replay; return where the output is then."""
    while until_empty is None or until_empty:
        due = next((one for one in _running if one.is_due(name, place)), None)
        if due is None:
            break
        place += due.write_next(name)
    return place


# What the program writes itself.


def _watch(marks: telling.Marks) -> None:
    """See what the program writes with its own files, from now on: their last layer is asked by name to write."""
    for stream in (sys.__stdout__, sys.__stderr__, sys.stdout, sys.stderr):
        buffer = getattr(stream, "buffer", None)
        raw = getattr(buffer, "raw", buffer)
        if type(raw) is io.FileIO and not raw.closed and not any(raw is one for one in _watched):
            found = marks.get(identity(raw.fileno()) or (0, 0))
            if found is not None:
                _watched.append(raw)
                raw.write = _writing(raw.write, raw.fileno(), found[0])  # type: ignore[method-assign]


def _writing(original: Any, number: int, name: str, running: list[Inherited] = _running) -> Any:
    @functools.wraps(original)
    def write(data: Any) -> Any:
        if not any(name in one.outputs for one in running):  # also at the very end, when most names are gone
            return original(data)
        with _at_work():
            place = _catch_up(name, found[1]) if (found := _mark(number)) is not None else None
            if place is not None:
                _settle(name, place)
            count = original(data)
            if place is not None and isinstance(count, int):
                _settled[name] = max(_settled.get(name, 0), place + count)
        return count

    return write


def _mark(number: int) -> tuple[str, int] | None:
    file = identity(number)
    return None if file is None else telling.marks([number]).get(file)


def say(name: str, parts: list[list[int]], fetch: Fetch) -> None:
    """Write, in a replay, what processes wrote that a tool had started."""
    number, stream = {"stdout": 1, "stderr": 2}[name], getattr(sys, f"__{name}__")
    for start, end in parts:
        found = _mark(number)
        if found is None or found[0] != name:
            return  # it is not the program's output
        if found[1] < start and stream is not None:
            stream.flush()  # as the tool must have done
        with _at_work():
            pour(number, fetch(name, start, end))


def pour(number: int, data: bytes) -> None:
    """Write everything to a descriptor, whether it waits or not; a reader that has left gets no more."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(number, left) :]
        except BlockingIOError:
            import select  # here: few programs make it so

            select.select([], [number], [])
        except OSError as problem:
            if problem.errno in (errno.EPIPE, errno.EIO):
                return
            raise


def _after_fork_in_child() -> None:
    """Forget the processes of the parent, and a lock that a thread of it may hold."""
    global _lock, begun, done
    _lock, begun, done = threading.RLock(), 0, 0
    _running.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
