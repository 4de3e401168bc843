"""Programs that a forked process becomes: their output is named where it goes to the agent past us."""

from __future__ import annotations

import os
import pty
from collections.abc import Callable

import playhead


def gaps(work: Callable[[], None]) -> list[str]:
    with playhead.record("agent") as run:
        work()
    found = [event.data["detail"] for event in playhead.load(str(run.id)).events() if event.kind == "gap.noted"]
    return [f"{detail['source']} {detail['where'].rpartition(':')[0]}" for detail in found]


def become(*argv: str) -> None:
    try:
        os.execvp(argv[0], argv)
    finally:
        os._exit(1)


def read_all(descriptor: int) -> bytes:
    out = b""
    try:
        while piece := os.read(descriptor, 100):
            out += piece
    except OSError:  # how a terminal ends
        pass
    os.close(descriptor)
    return out


def test_output_through_a_pipe_of_the_agents_own_is_named_with_the_line() -> None:
    def work() -> None:
        for _ in range(2):
            inner, outer = os.pipe()
            if (child := os.fork()) == 0:
                os.dup2(outer, 1)
                become("echo", "hello")
            os.close(outer)
            assert read_all(inner) == b"hello\n"
            os.waitpid(child, 0)

    assert gaps(work) == [f"process stdout of echo, by its descriptor at {__name__}"] * 2  # each in its own process


def test_output_through_a_terminal_of_the_agents_own_is_named() -> None:
    def work() -> None:
        child, terminal = pty.fork()
        if child == 0:
            become("echo", "hello")
        assert read_all(terminal) == b"hello\r\n"
        os.waitpid(child, 0)

    assert gaps(work) == [f"process stdout and stderr of echo, by its descriptor at {__name__}"]


def test_of_output_that_goes_where_that_of_the_agent_goes_or_to_a_file_only_the_program_is_named() -> None:
    def work() -> None:
        for target in (None, os.devnull):
            if (child := os.fork()) == 0:
                if target is not None:
                    os.dup2(os.open(target, os.O_WRONLY), 1)
                become("true")
            os.waitpid(child, 0)

    assert {gap.partition(" at ")[0] for gap in gaps(work)} == {"process true, by os.exec"}


def test_a_program_that_is_not_there_prints_nothing() -> None:
    def work() -> None:
        inner, outer = os.pipe()
        if (child := os.fork()) == 0:
            os.dup2(outer, 1)
            become("no-such-program")
        os.close(outer)
        assert read_all(inner) == b""
        os.waitpid(child, 0)

    assert gaps(work) == []


def test_a_program_that_is_told_by_a_number_has_its_name() -> None:
    def work() -> None:
        file = os.open("/bin/true", os.O_RDONLY)
        if (child := os.fork()) == 0:
            try:
                os.execve(file, ["true"], {})
            finally:
                os._exit(1)
        os.close(file)
        assert os.waitpid(child, 0)[1] == 0

    assert gaps(work) == [f"process true, by os.exec at {__name__}"]
