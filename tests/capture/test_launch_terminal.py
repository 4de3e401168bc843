from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.capture.launching import assert_whole, only_run, python, start, written

ROWS, COLUMNS = 40, 100


class Terminal:
    """A terminal with somebody in front of it."""

    def __init__(self) -> None:
        self.person, self.inner = os.openpty()
        self.resize(ROWS, COLUMNS)
        self.seen = b""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.person, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def take(self) -> None:
        """Become the controlling terminal of the process that this runs in."""
        os.setsid()
        fcntl.ioctl(self.inner, termios.TIOCSCTTY, 0)

    def type(self, keys: bytes) -> None:
        os.write(self.person, keys)

    def until(self, text: bytes) -> bytes:
        """Return what was shown up to and including a text."""
        deadline = time.monotonic() + 20
        while text not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} was not shown, only {self.seen!r}"
            if select.select([self.person], [], [], 0.1)[0]:
                self.seen += os.read(self.person, 65536)
        at = self.seen.index(text) + len(text)
        shown, self.seen = self.seen[:at], self.seen[at:]
        return shown

    def echoes(self) -> bool:
        modes: list[int] = termios.tcgetattr(self.inner)
        return bool(modes[3] & termios.ECHO)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    os.close(made.person)
    os.close(made.inner)


def on(terminal: Terminal, store: Path, program: str) -> subprocess.Popen[bytes]:
    return start(
        store,
        python(program),
        stdin=terminal.inner,
        stdout=terminal.inner,
        stderr=terminal.inner,
        preexec_fn=terminal.take,
    )


def test_a_program_on_a_terminal_sees_terminals_of_the_same_size(tmp_path: Path, terminal: Terminal) -> None:
    program = """
import os, sys
print(*(os.isatty(n) for n in range(3)), *os.get_terminal_size(1), *os.get_terminal_size(2))
print("stderr", file=sys.stderr)
"""
    with on(terminal, tmp_path, program) as process:
        terminal.until(b"stderr")
        assert process.wait(20) == 0
    run = only_run(tmp_path)
    assert_whole(run)
    assert written(run, "stdout") == b"True True True 100 40 100 40\n"
    assert written(run, "stderr") == b"stderr\n"


def test_a_new_line_is_shown_as_without_us_and_recorded_as_it_was_written(tmp_path: Path, terminal: Terminal) -> None:
    with on(terminal, tmp_path, "print('one'); print('two', flush=True)") as process:
        assert terminal.until(b"two\r\n") == b"one\r\ntwo\r\n"
        assert process.wait(20) == 0
    assert written(only_run(tmp_path), "stdout") == b"one\ntwo\n"


def test_a_pipe_stays_a_pipe_beside_a_terminal(tmp_path: Path, terminal: Terminal) -> None:
    program = "import os, sys; print(os.isatty(1), os.isatty(2)); print('seen', file=sys.stderr)"
    with start(tmp_path, python(program), stdout=subprocess.PIPE, stderr=terminal.inner) as process:
        assert process.stdout is not None
        assert process.stdout.read() == b"False True\n"
        assert terminal.until(b"seen")


def test_a_new_size_of_the_terminal_reaches_the_program(tmp_path: Path, terminal: Terminal) -> None:
    program = """
import os, signal, time
sizes = []
signal.signal(signal.SIGWINCH, lambda *_: sizes.append(tuple(os.get_terminal_size(1))))
print("ready", flush=True)
while (70, 20) not in sizes:
    time.sleep(0.01)
print("resized", flush=True)
"""
    with on(terminal, tmp_path, program) as process:
        terminal.until(b"ready")
        terminal.resize(20, 70)
        terminal.until(b"resized")
        assert process.wait(20) == 0


def test_control_c_reaches_the_program_once_and_the_end_is_recorded(tmp_path: Path, terminal: Terminal) -> None:
    program = """
import signal, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
print("ready", flush=True)
deadline = time.monotonic() + 1.3  # longer than a signal that the terminal did not send would be held back
while not seen or time.monotonic() < deadline:
    time.sleep(0.01)
print("interrupts:", len(seen), flush=True)
"""
    with on(terminal, tmp_path, program) as process:
        terminal.until(b"ready")
        terminal.type(b"\x03")
        terminal.until(b"interrupts: 1")
        assert process.wait(20) == 0
    assert_whole(only_run(tmp_path))


def test_a_program_that_turns_off_the_echo_on_its_stdout_turns_it_off_on_ours(
    tmp_path: Path, terminal: Terminal
) -> None:
    program = """
import sys, termios
before = termios.tcgetattr(1)
quiet = termios.tcgetattr(1)
quiet[3] &= ~termios.ECHO
termios.tcsetattr(1, termios.TCSANOW, quiet)
print("quiet", flush=True)
answer = input()
termios.tcsetattr(1, termios.TCSANOW, before)
print("got", answer, flush=True)
"""
    with on(terminal, tmp_path, program) as process:
        terminal.until(b"quiet\r\n")
        assert not terminal.echoes()
        terminal.type(b"secret words\n")
        assert terminal.until(b"got secret words\r\n") == b"got secret words\r\n"
        assert process.wait(20) == 0
        assert terminal.echoes()
