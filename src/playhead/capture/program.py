"""Serve one running program: pass its output on, pass signals to it, and see how it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from playhead import _limits
from playhead.capture.recording import Recording
from playhead.capture.relay import Relay, Stream, in_foreground
from playhead.capture.telling import Ear
from playhead.event import kinds

_TURN_S = 3600.0  # to wait at most for something to happen

_TO_US = (signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)  # sent to one process: passed on
_TO_GROUP = (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)  # mostly from the terminal, which sends them to the group
OUTPUTS = {"stdout": 1, "stderr": 2}
_NOTICED = (signal.SIGCHLD, signal.SIGWINCH, *_TO_US, *_TO_GROUP)


@dataclass(frozen=True)
class Again:
    """How to start a program once more, for a replay of its run."""

    origin: dict[str, Any]
    plan: str  # the file that says what to answer with
    seed: str  # of hashes, as it was recorded; empty where that is not known
    executable: str | None = None  # where the first word of the command was found
    folder: str | None = None
    variables: Mapping[str, str | None] = field(default_factory=dict)  # None for one that was not set
    terminals: frozenset[str] = frozenset()  # outputs that were terminals, whatever ours are
    isolate: Callable[[], None] | None = None  # called in the process before it becomes the program
    has_stdin: bool = False  # it is given ours; else its input has ended, and is told by the tape


def is_terminal(output: str, again: Again | None = None) -> bool:
    """Say whether an output of the program is to be a terminal: as ours is, and in a replay as it was."""
    return os.isatty(OUTPUTS[output]) if again is None else output in again.terminals


class Program:
    """The program while it runs: its streams, the signals on their way to it, its end."""

    def __init__(self, recording: Recording, span: str | None, ear: Ear) -> None:
        self.warnings: list[str] = []
        self._recording = recording
        self._span = span
        self._ear = ear
        self._owed: dict[int, float] = {}  # signals to pass on later, and when
        self._enough = False  # somebody wants us to end, and the program has ended already
        self._streams: list[Stream] = []
        self._process: subprocess.Popen[bytes]

    def start(self, argv: list[str], environment: dict[str, str], again: Again | None = None) -> None:
        """Start the program; OSError where it cannot be started. `again` says how it was started before."""
        self._streams = [Stream(name, target, is_terminal(name, again)) for name, target in OUTPUTS.items()]
        inner = [stream.inner for stream in self._streams]
        given = None if again is None or again.has_stdin else _ended_pipe()
        try:
            # Open files and the process group are passed on: what the program inherits is not ours to change.
            self._process = subprocess.Popen(
                argv,
                executable=None if again is None else again.executable,
                stdin=given,
                stdout=inner[0],
                stderr=inner[1],
                env=environment,
                cwd=None if again is None else again.folder,
                preexec_fn=None if again is None else again.isolate,
                close_fds=False,
            )
        except BaseException:
            self._close()
            raise
        finally:
            self._ear.let_go()
            for descriptor in (*inner, *(() if given is None else (given,))):
                os.close(descriptor)

    def serve(self, wake: socket.socket) -> int:
        """Pass on output and signals until the program has ended; return its exit code, -n for signal n."""
        relay = Relay(self._streams, self._keep, wake.fileno(), lambda: self._woken(wake), self._ear, self._hear)
        process = self._process
        try:
            while process.poll() is None:
                relay.turn(self._patience())
                self._pass_on()
            self._drain(relay)
        except BaseException:  # under `strict`, what cannot be recorded shall not go on
            self._close()
            _end(process)
            raise
        return process.returncode

    def _close(self) -> None:
        for stream in self._streams:
            stream.close()
        self._ear.close()

    def _drain(self, relay: Relay) -> None:
        """Take what the program left in its streams, which others may still hold."""
        start = before = self._taken()
        quiet_since = time.monotonic()
        while any(stream.open for stream in self._streams) and not self._enough:
            relay.turn(max(0.0, quiet_since + _limits.OUTPUT_QUIET_S - time.monotonic()))
            now, taken = time.monotonic(), self._taken()
            if any(stream.blocked for stream in self._streams):
                quiet_since = now  # silence begins when everything has been passed on
            elif taken != before:
                before, quiet_since = taken, now
            elif now - quiet_since >= _limits.OUTPUT_QUIET_S:
                break
            if taken - start > _limits.OUTPUT_LEFT_BYTES_MAX:
                break
        relay.finish()
        self._say_what_went_wrong()
        self._close()

    def _hear(self) -> None:
        """Learn what the program's processes say is secret."""
        redactor = self._recording.redactor
        for value, rule in self._ear.hear():
            if rule in ("env", "known"):
                redactor.add_known(value, rule)
            else:
                redactor.learn_value(value, rule)

    def _keep(self, stream: str, text: str | bytes) -> None:
        self._hear()
        named: Any = stream
        self._recording.emit(kinds.OutputWritten(stream=named, text=text), parent=self._span)

    def _taken(self) -> int:
        return sum(stream.taken for stream in self._streams)

    def _woken(self, wake: socket.socket) -> None:
        process = self._process
        for number in wake.recv(4096):
            if number == signal.SIGWINCH:
                for stream in self._streams:
                    stream.resize()
                process.send_signal(number)
            elif number != signal.SIGCHLD and process.poll() is not None:
                self._enough = True
                continue
            if number in _TO_US:
                process.send_signal(number)
            elif number in _TO_GROUP and not _has_foreground():
                # Either it went to the whole group and the program has it too, or to us alone. Twice would be wrong
                # as often as not at all: whoever has it is given time to act on it.
                self._owed.setdefault(number, time.monotonic() + _limits.SIGNAL_WAIT_S)
            if number in (*_TO_US, *_TO_GROUP):  # a replay cannot find the moment again
                self._recording.not_captured("signal", f"{signal.Signals(number).name} from outside")

    def _patience(self) -> float:
        return max(0.0, min((*self._owed.values(), time.monotonic() + _TURN_S)) - time.monotonic())

    def _pass_on(self) -> None:
        for number, due in list(self._owed.items()):
            if time.monotonic() >= due:
                del self._owed[number]
                self._process.send_signal(number)

    def _say_what_went_wrong(self) -> None:
        for stream in self._streams:
            if stream.problem is not None:
                self._warn(f"{stream.name} could not be passed on: {stream.problem.strerror}")
            if stream.open and not stream.blocked:
                stream.hand_over()
                self._note(
                    f"processes that the program left running hold its {stream.name}; what they write is not recorded"
                )

    def _warn(self, text: str) -> None:
        self.warnings.append(text)
        self._note(text)

    def _note(self, text: str) -> None:
        self._recording.emit(kinds.NoteAdded(text=text), parent=self._span)


def _ended_pipe() -> int:
    """Return a standard input for a replay, in which what came from there is on the tape.

    An event loop can wait for a pipe, which it cannot for /dev/null, and finds that there is always something to read.
    """
    reading, writing = os.pipe()
    os.close(writing)
    return reading


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_limits.PROGRAM_END_WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _has_foreground() -> bool:
    """Say whether signals from a terminal reach our process group, and so the program."""
    try:
        terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return in_foreground(terminal)
    finally:
        os.close(terminal)


@contextmanager
def noticed_signals() -> Iterator[socket.socket]:
    """Turn the signals that matter into bytes on a socket; what was ignored stays ignored, for the program too."""
    wake, inner = socket.socketpair()
    wake.setblocking(False)
    inner.setblocking(False)
    before: dict[signal.Signals, Any] = {}
    previous = signal.set_wakeup_fd(inner.fileno(), warn_on_full_buffer=False)
    try:
        for number in _NOTICED:
            if number == signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, lambda *_: None)
        yield wake
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        signal.set_wakeup_fd(previous)
        inner.close()
        wake.close()


def failure(code: int) -> dict[str, Any]:
    """Return the error of a program that ended with this code; -n for one that signal n killed."""
    if code > 0:
        return {"type": "ProgramFailed", "message": f"the program ended with exit code {code}"}
    try:
        name = signal.Signals(-code).name
    except ValueError:  # a real-time signal has no name
        name = f"signal {-code}"
    return {"type": "ProgramKilled", "message": f"the program was killed by {name}"}
