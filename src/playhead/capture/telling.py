"""Tell the launcher which values are secret: it redacts what a program writes, and the program's process learns them.

They go over a socket that the program inherits, one line for each value, and never through a file or the environment.
A process tells a value when it becomes known, so before it can write it; the launcher listens after it has read some
output and before it does anything with it. So what was known before it was written is known before it is recorded.
Programs that the program starts inherit the socket too: their output takes the same way.

Over the same socket a process asks how much of its outputs the launcher has: it sends a socket to be answered on, since
many processes share this one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator

from playhead import _limits
from playhead.store.disk import identity, out_of_the_way

_RULES = frozenset({"env", "known", "field", "header", "url-password", "url-secret"})


class Ear:
    """The launcher's end."""

    def __init__(self) -> None:
        import socket  # here: a recorded program that does not need it shall not have it

        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        self._given = out_of_the_way(theirs.detach())
        os.set_inheritable(self._given, True)
        self._begun = b""  # of a line whose end has not come yet
        self.asked: list[int] = []  # sockets on which somebody waits to be told how much the launcher has
        self.open = True

    @property
    def handed(self) -> str:
        """Return what a process needs to know to use the other end: its number, and how to tell it from others."""
        return "/".join(map(str, (self._given, *(identity(self._given) or ()))))

    def fileno(self) -> int:
        """Return what to wait for."""
        return self._socket.fileno()

    def let_go(self) -> None:
        """Close the end of the program, which has its own now."""
        os.close(self._given)

    def hear(self) -> list[tuple[str, str]]:
        """Return the values that were told since, each with its rule."""
        import socket

        while self.open:
            try:
                data, asked, _, _ = socket.recv_fds(self._socket, _limits.OUTPUT_READ_BYTES, 1)
                self.asked += asked
            except BlockingIOError:
                break
            except OSError:  # somebody reset it
                data = b""
            if not data:
                self.close()
            self._begun += data
        *lines, self._begun = self._begun.split(b"\n")
        return [found for line in lines if (found := _read(line)) is not None]

    def close(self) -> None:
        """Listen no more."""
        if self.open:
            self.open = False
            self._socket.close()
        while self.asked:
            os.close(self.asked.pop())  # who waits is not told


def _read(line: bytes) -> tuple[str, str] | None:
    rule, _, value = line.partition(b" ")
    try:
        name, text = rule.decode(), value.decode("unicode_escape")
    except UnicodeDecodeError:
        return None  # half a line of a process that was killed
    return (text, name if name in _RULES else "known") if text else None


_line: tuple[int, tuple[int, int]] | None = None  # the program's end: its number, and which socket that was
_told: set[str] = set()
_outputs: frozenset[tuple[int, int]] | None = None  # which files the launcher reads; None for not asked yet
_unheard = False  # once nobody answered in time, nobody is asked again


def connect(handed: str) -> None:
    """Use the end that the launcher handed over; nothing is told where it is not there."""
    global _line
    parts = [int(part) for part in handed.split("/") if part.isdecimal()]
    if len(parts) == 3:
        _line = parts[0], (parts[1], parts[2])


def descriptor() -> int | None:
    """Return the end that this process has; None where it has none, or has closed it."""
    if _line is None or identity(_line[0]) != _line[1]:
        return None
    return _line[0]


def tell(values: Iterable[tuple[str, str]]) -> None:
    """Tell the launcher, where there is one, values that are secret from now on, each with its rule."""
    global _line
    if _line is None:
        return
    for value, rule in values:
        if value in _told:
            continue
        number = descriptor()  # looked at each time: a program may close what it did not open, and use the number again
        if number is None or not _send(number, b"\n%b %b\n" % (rule.encode(), value.encode("unicode_escape"))):
            _line = None
            return
        _told.add(value)


def _send(number: int, data: bytes) -> bool:
    import _socket  # what others patch is `socket`

    line = _socket.socket(fileno=number)
    try:
        line.setblocking(True)
        line.sendall(data, getattr(_socket, "MSG_NOSIGNAL", 0))
    except OSError:
        return False  # the launcher is gone, and nothing is recorded any more
    finally:
        line.detach()  # it stays open
    return True


Marks = dict[
    tuple[int, int], tuple[str, int]
]  # by which file it is: the name of an output, and the bytes written to it


def marks(descriptors: Iterable[int]) -> Marks:
    """Ask the launcher how many bytes were written to its outputs, if one of these leads there; nothing for no answer.

    What was written before we ask is counted, whether it has been read yet or not.
    """
    global _outputs, _unheard
    files = {identity(number) for number in descriptors}
    line = descriptor()
    if line is None or _unheard or (_outputs is not None and _outputs.isdisjoint(files)):
        return {}
    answer = _ask(line)
    _unheard = answer is None
    found = {(int(dev), int(ino)): (name, int(count)) for name, dev, ino, count in _rows(answer or b"")}
    if found:
        _outputs = frozenset(found).union(_outputs or ())
    return found


def _rows(answer: bytes) -> Iterator[list[str]]:
    for row in answer.decode("ascii").splitlines():
        yield row.split()


def _ask(number: int) -> bytes | None:
    """Send a socket over the line and return what comes back on it; None where nothing came in time."""
    import _socket  # what others patch is `socket`

    line = _socket.socket(fileno=number)
    try:
        ours, theirs = _socket.socketpair()
        try:
            line.setblocking(True)
            passed = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, theirs.fileno().to_bytes(4, sys.byteorder))]
            line.sendmsg([b"\n"], passed, getattr(_socket, "MSG_NOSIGNAL", 0))
            theirs.close()  # so that we see when the launcher has closed it
            ours.settimeout(_limits.MARK_WAIT_S)
            return ours.recv(_limits.MARK_BYTES_MAX)
        finally:
            ours.close()
            theirs.close()
    except OSError:  # the launcher is gone or held up, or there are no descriptors left
        return None
    finally:
        line.detach()  # it stays open
