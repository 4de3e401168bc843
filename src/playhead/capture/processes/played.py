"""Be a process that was recorded, for a program that is replayed: nothing is started, and it says what it said then.

What it says is handed out piece by piece, each when it is its turn (`answering.Player`). What the program tells it must
be what it was told then.
"""

from __future__ import annotations

import _thread
import builtins
import errno
import itertools
import os
import re
import sys
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from playhead.capture import lanes
from playhead.capture.clients import failures
from playhead.event.plain import restore
from playhead.store.disk import out_of_the_way

if TYPE_CHECKING:
    from playhead.capture.answering import Answer, Player

_HIDDEN = b"[redacted:"  # how a place begins where a secret was
_OS_ERROR = re.compile(r"\[Errno (\d+)\] (.*?)(?:: ('.*'|b'.*'|\".*\"|-?\d+))?", re.DOTALL)


def play(player: Player, span: str | None) -> Played | None:
    """Return the process that answers a question; None where it is to be started, as a mode of replay may have it."""
    answer = player.answer(span)
    return None if answer is None else Played(player, span, answer)


class Played:
    """One recorded process: what it said, what it was told, how it ended."""

    def __init__(self, player: Player, span: str | None, answer: Answer) -> None:
        data = answer.data
        self.player = player
        self.span = span
        self.pid: int | None = data.get("pid")
        self.code: int | None = data.get("exit_code")
        self.wait_status: int | None = data.get("wait_status")
        self.error: dict[str, Any] | None = data.get("error") if self.pid is None else None  # of its start
        self.reaped = False
        self.printed: dict[str, list[list[int]]] = data.get("printed") or {}
        self._began = answer.began_us
        self._ended = answer.ended_us
        exit_us = data.get("exit_us")
        self.exit_at: int | None = None if exit_us is None else answer.began_us + exit_us
        self._polls: int = data.get("polls") or 0
        self._asked = 0
        self._timeouts = {told["ask"]: (self.at(told["at_us"]), told["seconds"]) for told in data.get("timeouts") or ()}
        self.sent: Callable[[], object] | None = None  # to be told when a signal is sent
        self._signals = deque(told["signal"] for told in data.get("signals") or ())
        self.stdin = Told(self, data)
        seen = data.get("status") != "cancelled"
        self.streams = {name: Stream(self, name, data, seen) for name in ("stdout", "stderr")}

    def at(self, since_start_us: int) -> int:
        """Return a time of the run."""
        return self._began + since_start_us

    def failure(self) -> BaseException | None:
        """Return why it could not be started; None where it was."""
        return None if self.error is None else _rebuilt(self.error)

    def gives_up(self, seconds: float | None = None) -> GaveUp | None:
        """Say that it had not ended when it was asked this time, for so many seconds; None where it had."""
        if self._asked >= self._polls:
            return GaveUp(None, seconds) if self.exit_at is None else None
        self._asked += 1
        return GaveUp(*self._timeouts.get(self._asked - 1, (None, seconds)))

    def waited(self, seconds: float) -> bool:
        """Say whether all was said before the time was over, and it was the end that was waited for in vain."""
        return bool(self._timeouts.get(self._asked, (0, seconds))[1] != seconds)

    def exited(self, *, waits: bool = True) -> int:
        """Return how it ended, when it is its turn."""
        if self.exit_at is None:
            # As a thread that still waited when the program ended: it is its turn when all others have had theirs.
            self.player.wait(self._ended)
            self.player.differed("process.exited", self.span, "/exit_code", None, "waited for it to end")
            return sys.maxsize
        if waits:
            self.player.wait(self.exit_at)
        return sys.maxsize if self.code is None else self.code

    def signalled(self, number: int) -> None:
        """Take in that the program sends it a signal, which goes nowhere."""
        recorded = self._signals.popleft() if self._signals else None
        if self.sent is not None:
            self.sent()
        if recorded != int(number):
            self.player.differed("process.exited", self.span, "/signals", recorded, int(number))

    def owes(self) -> float:
        """Say for how many seconds it may take until the program sends the signal that ended the process; 0 for none.

        In an event loop whose timers are not in our hands, the program may only come to it when it did then.
        """
        return 0.0 if self.exit_at is None or not self._signals else 1.0 + (self.exit_at - self._began) / 1e6

    def holds(self, ends: dict[str, int]) -> None:
        """Keep the process's ends of pipes open, by copies out of the way."""
        for name, stream in self.streams.items():
            if name in ends:
                stream.end = End(ends[name])
        if "stdin" in ends:
            self.stdin.end = End(ends["stdin"])


class GaveUp(NamedTuple):
    """How asking whether a process has ended was given up."""

    at: int | None  # when, where it is known
    seconds: float | None  # after which time, in the words of the one who asked


class End:
    """The process's end of a pipe, open as long as somebody holds this."""

    def __init__(self, number: int) -> None:
        self.number: int = out_of_the_way(os.dup(number))

    def close(self, *, _close: Any = os.close) -> None:
        """Close it."""
        number, self.number = self.number, -1
        if number >= 0:
            _close(number)

    def __del__(self) -> None:
        self.close()


class Stream:
    """What the process said on one of its outputs."""

    def __init__(self, played: Played, name: str, data: dict[str, Any], seen: bool) -> None:
        told = (data.get("chunks") or {}).get(name) or {}
        whole = _raw(data.get(name))
        times = [played.at(at) for at in told.get("at_us", ())] or [played.at(0)]
        # What redaction made longer or shorter is in the last.
        ends = [*itertools.accumulate(told.get("sizes", ())[:-1]), len(whole)]
        parts = [whole[start:end] for start, end in zip([0, *ends], ends, strict=False)] if whole else []
        self._played = played
        self._name = name
        self._left = deque(zip(times, parts, strict=False))
        end_us = told.get("end_us")
        self._known = end_us is not None or (seen and not whole)  # that it said no more
        after = played.exit_at if played.exit_at is not None else times[-1]
        self._end_at = after if end_us is None else played.at(end_us)
        self.end: End | None = None
        self.spilled = False

    def next_at(self) -> int:
        """Return when what comes next is due: a piece, or the end."""
        return self._left[0][0] if self._left else self._end_at

    def steps(self) -> list[tuple[int, bytes | None]]:
        """Return everything that is left with its time; None for the end."""
        last: list[tuple[int, bytes | None]] = [(self._end_at, None)] if self._known else []
        out = [*self._left, *last]
        self._left.clear()
        return out

    def read(self, size: int) -> bytes:
        """Hand out what is next, as much of it as is asked for; nothing at the end."""
        self._played.player.wait(self.next_at())
        return self.take(size)

    def take(self, size: int | None) -> bytes:
        """Hand it out without waiting."""
        if not self._left:
            self._at_end()
            return b""
        at, piece = self._left.popleft()
        if size is not None and len(piece) > size:
            self._left.appendleft((at, piece[size:]))
            piece = piece[:size]
        return piece

    def read_all(self) -> bytes:
        """Hand out everything up to the end."""
        self.finish()
        return b"".join(piece for _, piece in self.pieces(None))

    def pieces(self, until: int | None) -> list[tuple[int, bytes]]:
        """Hand out all pieces up to a time, without waiting."""
        out = []
        while self._left and (until is None or self._left[0][0] <= until):
            out.append(self._left.popleft())
        return out

    def spill(self) -> None:
        """Put all that is left into the pipe itself, for whoever reads from its number; when is then up to chance."""
        if not self.spilled and self.end is not None:
            self.spilled = True
            before, lanes.local.quiet = lanes.local.quiet, True  # it is no thread of the program's
            try:
                _thread.start_new_thread(_pour, (b"".join(piece for _, piece in self.pieces(None)), self.end))
            finally:
                lanes.local.quiet = before
            self.end = None

    def finish(self) -> None:
        """Hand out the end, when it is its turn."""
        self._at_end()
        self._played.player.wait(self._end_at)

    def _at_end(self) -> None:
        if self.end is not None:
            self.end.close()
        if not self._known:
            self._known = True  # told once
            end = "the program read no further"
            self._played.player.differed("process.exited", self._played.span, f"/{self._name}", end, "read on")


def _pour(data: bytes, end: End, write: Any = os.write) -> None:
    view = memoryview(data)
    try:
        while view:
            view = view[write(end.number, view[:65536]) :]
    except OSError:
        pass  # nobody reads any more
    finally:
        end.close()


class Told:
    """What the program wrote to the process, which a replay must write again."""

    def __init__(self, played: Played, data: dict[str, Any]) -> None:
        told = (data.get("chunks") or {}).get("stdin") or {}
        self._played = played
        self.recorded = _raw(data.get("stdin"))
        sizes, times = told.get("sizes", ()), told.get("at_us", ())
        self._ends = list(zip((played.at(at) for at in times), itertools.accumulate(sizes), strict=False))
        self.unwritten: int | None = data.get("unwritten")
        self._hidden = _HIDDEN in self.recorded
        self.count = 0
        self.end: End | None = None

    def room(self, wanted: int, until: int | None) -> int:
        """Say how many of so many bytes are taken: all, or what was before it took no more, or before a time."""
        if until is not None:
            taken = max((count for at, count in self._ends if at <= until), default=0)
        elif self.unwritten is not None:
            taken = len(self.recorded)
        else:
            return wanted
        return wanted if self._hidden else max(0, min(wanted, taken - self.count))

    def wrote(self, data: bytes) -> None:
        """Take in what the program wrote."""
        start, self.count = self.count, self.count + len(data)
        if not self._hidden and self.recorded[start : self.count] != data:
            self._differs(self.recorded[:start] + data)

    def taken(self, size: int) -> int:
        """Say how many of so many bytes the pipe takes; BrokenPipeError where it took nothing more then."""
        count = self.room(size, None)
        if size and (not count or (self._played.reaped and self.count >= len(self.recorded))):
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        return count

    def longer(self, count: int) -> None:
        """Take in that the program had other input left over than it had then."""
        if not self._hidden:
            self._differs(self.recorded, left_over=count)

    def closed(self) -> None:
        """Take in that the program writes no more."""
        if not self._hidden and self.count < len(self.recorded):
            self._differs(self.recorded[: self.count])
        if self.end is not None:
            self.end.close()

    def _differs(self, now: bytes, left_over: int | None = None) -> None:
        self._hidden = True  # told once
        told: tuple[str, Any, Any] = ("/stdin", _text(self.recorded), _text(now))
        if left_over is not None:
            told = ("/unwritten", self.unwritten, left_over)
        self._played.player.differed("process.exited", self._played.span, *told)


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


def _raw(value: Any) -> bytes:
    plain = restore(value)
    if isinstance(plain, str):
        return plain.encode("utf-8", "surrogatepass")
    return bytes(plain) if isinstance(plain, (bytes, bytearray)) else b""


def _rebuilt(error: dict[str, Any]) -> BaseException:
    """Return an exception like the one that was recorded."""
    name, message = str(error.get("type")), str(error.get("message", ""))
    kind: Any = getattr(builtins, name, None)
    if kind is None:
        import subprocess

        kind = getattr(subprocess, name.rpartition(".")[2], None) or failures.kind_of(name)
    if not (isinstance(kind, type) and issubclass(kind, BaseException)):
        return OSError(errno.EIO, message)
    found = _OS_ERROR.fullmatch(message) if issubclass(kind, OSError) else None
    if found is None:
        return kind(message)
    number, text, file = found.groups()
    return kind(int(number), text, *([] if file is None else [_literal(file)]))


def _literal(text: str) -> Any:
    import ast

    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
