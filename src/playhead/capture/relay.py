"""Pass on what a program writes, byte for byte and at once, and hand a copy to the recorder afterwards."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import selectors
import stat
import subprocess
import sys
import termios
import time
from collections.abc import Callable

from playhead import _limits
from playhead.capture.pieces import Pieces
from playhead.capture.telling import Ear
from playhead.store.disk import identity

Keep = Callable[[str, "str | bytes"], None]  # stream, text

_READ, _WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE


class Stream:
    """One output stream of the program: where it comes from, where it goes.

    `source` is what we read, `inner` what the program gets as its own: a `terminal`, of the size and modes of `target`
    where that is one too, or a pipe.
    """

    def __init__(self, name: str, target: int, terminal: bool) -> None:
        self.name = name
        self.target = target
        self.terminal = terminal
        self.source, self.inner = _terminal_like(target) if self.terminal else os.pipe()
        self._modes = termios.tcgetattr(self.source) if self.terminal else None
        self.file = identity(self.inner)
        self.open = True
        self.problem: OSError | None = None
        self.taken = 0  # bytes read so far
        self.pieces = Pieces()
        self.waiting_since = 0.0  # when the oldest byte that is not recorded yet was read
        self._unsent = memoryview(b"")
        # A write that is no longer than this does not block where select said that one is possible.
        self._step = _limits.OUTPUT_READ_BYTES if stat.S_ISREG(os.fstat(target).st_mode) else select.PIPE_BUF

    @property
    def blocked(self) -> bool:
        """Say whether something was read that the target has not taken yet."""
        return bool(self._unsent)

    def read(self, hear: Callable[[], None]) -> bytes | None:
        """Read what there is, listen, and begin to pass it on; None at the end of the stream."""
        try:
            data = os.read(self.source, _limits.OUTPUT_READ_BYTES)
        except OSError as problem:
            if problem.errno != errno.EIO:  # how a terminal says that nobody has its other side open
                raise
            data = b""
        if not data:
            self.close()
            return None
        self.taken += len(data)
        if self.terminal:
            self._follow_modes()
        hear()  # before it is passed on: a launcher that is recorded itself tells it to its own, in time
        self._unsent = memoryview(data)
        self.send()
        return data

    def send(self) -> None:
        """Pass on as much as the target takes without making us wait."""
        try:
            while self._unsent and select.select([], [self.target], [], 0)[1]:
                self._unsent = self._unsent[os.write(self.target, self._unsent[: self._step]) :]
        except BlockingIOError:
            return  # somebody made the target non-blocking, and it is full
        except OSError as problem:
            # The program shall see what it would see if it wrote there itself: that nobody reads any more.
            self.problem = None if problem.errno == errno.EPIPE else problem
            self._unsent = memoryview(b"")
            self.close()

    def hand_over(self) -> bool:
        """Leave a stream that other processes still hold to a process of its own, which outlives this one."""
        try:
            subprocess.Popen(
                ["cat"], stdin=self.source, stdout=self.target, stderr=subprocess.DEVNULL, close_fds=True
            ).returncode = 0  # not waited for: it ends when they do
        except OSError:
            return False
        finally:
            self.close()
        return True

    @property
    def readable(self) -> bool:
        """Say whether there is something to read, and nothing that has to be passed on before."""
        return self.open and not self.blocked and bool(select.select([self.source], [], [], 0)[0])

    def written(self) -> int | None:
        """Say how many bytes were written to it by now, read or not; None where that cannot be told."""
        if not self.open or (self.terminal and (self.blocked or self.readable)):
            return None
        if self.terminal:
            return self.taken  # what its buffers hold cannot be counted: all has been read
        return self.taken + int.from_bytes(fcntl.ioctl(self.source, termios.FIONREAD, bytes(4)), sys.byteorder)

    def resize(self) -> None:
        """Give the program's terminal the size of ours."""
        if self.terminal and self.open and os.isatty(self.target):
            _copy_size(self.target, self.source)

    def _follow_modes(self) -> None:
        """Set our terminal as the program set its own: `curses` turns off the echo on stdout, and keys are ours."""
        modes = termios.tcgetattr(self.source)
        if modes == self._modes or not in_foreground(self.target):
            return
        self._modes = modes
        ours = termios.tcgetattr(self.target)
        kept = ours[1] & termios.OPOST
        termios.tcsetattr(self.target, termios.TCSANOW, [modes[0], modes[1] | kept, *modes[2:]])

    def close(self) -> None:
        """Let go of the stream; a program that writes on gets an error, as from any reader that left."""
        if self.open:
            self.open = False
            os.close(self.source)


class Relay:
    """Serve the streams of one program, and the signals that come meanwhile."""

    def __init__(
        self,
        streams: list[Stream],
        keep: Keep,
        wake: int,
        woken: Callable[[], None],
        ear: Ear,
        hear: Callable[[], None],
    ) -> None:
        self._streams = streams
        self._keep = keep
        self._selector = selectors.SelectSelector()  # the others refuse regular files or terminals somewhere
        self._selector.register(wake, _READ)
        self._wake = wake
        self._woken = woken
        self._ear = ear
        self._hear = hear

    def turn(self, timeout: float) -> None:
        """Wait for something to happen, and do what it asks for."""
        watched = [self._watch(stream) for stream in self._streams if stream.open]
        if self._ear.open:  # whoever tells much waits until somebody listens
            self._selector.register(self._ear, _READ)
            watched.append(self._ear.fileno())
        try:
            ready = self._selector.select(self._patience(timeout))
        finally:
            for descriptor in watched:
                self._selector.unregister(descriptor)
        for key, _ in ready:
            if key.fd == self._wake:
                self._woken()
            elif key.fileobj is self._ear:
                self._hear()
            else:
                self._serve(key.data)
        self._record_overdue()
        while self._ear.asked:
            self._answer(self._ear.asked.pop(0))

    def finish(self) -> None:
        """Record what is still held back."""
        for stream in self._streams:
            for piece in stream.pieces.rest():
                self._keep(stream.name, piece)
        self._selector.close()

    def _watch(self, stream: Stream) -> int:
        descriptor = stream.target if stream.blocked else stream.source
        self._selector.register(descriptor, _WRITE if stream.blocked else _READ, stream)
        return descriptor

    def _serve(self, stream: Stream) -> None:
        if stream.blocked:
            stream.send()
            return
        data = stream.read(self._hear)
        if data is None:
            for piece in stream.pieces.rest():
                self._keep(stream.name, piece)
            return
        nothing_held = not stream.pieces
        ready = stream.pieces.take(data)
        if nothing_held or ready:  # what is held now has only just begun
            stream.waiting_since = time.monotonic()
        for piece in ready:
            self._keep(stream.name, piece)

    def _answer(self, asker: int) -> None:
        """Tell somebody how much was written to each stream by now; whoever cannot be told sees that we hang up."""
        rows = []
        for stream in self._streams:
            start = stream.taken
            while stream.terminal and stream.readable and stream.taken - start < _limits.OUTPUT_LEFT_BYTES_MAX:
                self._serve(stream)
            count = stream.written()
            if count is not None and stream.file is not None:
                rows.append(b"%b %d %d %d\n" % (stream.name.encode(), *stream.file, count))
        try:
            os.write(asker, b"".join(rows))
        except OSError:
            pass  # nobody waits any more
        finally:
            os.close(asker)

    def _patience(self, timeout: float) -> float:
        waits = [stream.waiting_since for stream in self._streams if stream.pieces]
        if not waits:
            return timeout
        return max(0.0, min(timeout, min(waits) + _limits.OUTPUT_LINE_WAIT_S - time.monotonic()))

    def _record_overdue(self) -> None:
        now = time.monotonic()
        for stream in self._streams:
            if stream.pieces and now - stream.waiting_since >= _limits.OUTPUT_LINE_WAIT_S:
                for piece in stream.pieces.overdue():
                    self._keep(stream.name, piece)
                stream.waiting_since = now  # for what cannot be recorded yet, half a character or half a key


def in_foreground(terminal: int) -> bool:
    """Say whether a terminal is ours to use, and sends its signals to our process group."""
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:  # it is not our controlling terminal
        return False


def _terminal_like(target: int) -> tuple[int, int]:
    """Make a pseudo-terminal with the size and the modes of another one, where there is one."""
    outer, inner = os.openpty()
    like = target if os.isatty(target) else inner
    modes = termios.tcgetattr(like)
    # What the program writes must reach our terminal unchanged, which then does what its own modes say, once.
    modes[1] &= ~termios.OPOST
    termios.tcsetattr(inner, termios.TCSANOW, modes)
    _copy_size(like, outer)
    return outer, inner


def _copy_size(source: int, target: int) -> None:
    fcntl.ioctl(target, termios.TIOCSWINSZ, fcntl.ioctl(source, termios.TIOCGWINSZ, bytes(8)))
