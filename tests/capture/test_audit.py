"""Hold the one audit hook to what its listeners and the program rely on."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.capture import audit
from playhead.errors import RecordingStopped

EVENT = "playhead.test"


@pytest.fixture
def heard() -> Iterator[list[Any]]:
    found: list[Any] = []
    audit.listen(EVENT, found.append)
    yield found
    audit.unlisten(EVENT, found.append)


def in_a_fresh_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_listener_gets_the_arguments_of_its_event_and_of_no_other(heard: list[Any]) -> None:
    sys.audit(EVENT, 1, "two")
    sys.audit(EVENT + ".other", 3)
    assert heard == [(1, "two")]


def test_several_listeners_hear_one_event_and_each_can_leave(heard: list[Any]) -> None:
    more: list[Any] = []
    audit.listen(EVENT, more.append)
    sys.audit(EVENT, 1)
    audit.unlisten(EVENT, more.append)
    sys.audit(EVENT, 2)
    assert (heard, more) == ([(1,), (2,)], [(1,)])


def test_to_stop_listening_twice_is_no_mistake() -> None:
    audit.unlisten(EVENT, print)
    audit.unlisten(EVENT, print)


def test_what_a_listener_does_itself_is_not_listened_to() -> None:
    found: list[Any] = []

    def listener(args: tuple[Any, ...]) -> None:
        found.append(args)
        sys.audit(EVENT, "inside")
        os.scandir(".").close()

    for event in (EVENT, "os.scandir"):
        audit.listen(event, listener)
    try:
        sys.audit(EVENT, "outside")
        sys.audit(EVENT, "again")
    finally:
        for event in (EVENT, "os.scandir"):
            audit.unlisten(event, listener)
    assert found == [("outside",), ("again",)]


@pytest.mark.parametrize("way", ["collector", "signal"])
def test_what_interrupts_a_listener_is_heard(way: str) -> None:
    """The listener is code of ours, as all are; what comes between is code of the program's."""
    found: list[Any] = []

    class Finalised:
        def __del__(self) -> None:
            sys.audit(EVENT, "between")

    def handler(number: int, frame: object) -> None:
        sys.audit(EVENT, "between")

    def interrupt() -> None:
        if len(found) == 1 and way == "signal":
            signal.raise_signal(signal.SIGUSR1)
        elif len(found) == 1:
            cycle: list[Any] = [Finalised()]
            cycle.append(cycle)
            del cycle
            gc.collect()

    ours: dict[str, Any] = {"__name__": "playhead.capture.effects", "found": found, "interrupt": interrupt}
    exec("def listener(args):\n    found.append(args)\n    interrupt()\n", ours)
    before = signal.signal(signal.SIGUSR1, handler)
    audit.listen(EVENT, ours["listener"])
    try:
        sys.audit(EVENT, "outside")
        sys.audit(EVENT, "again")
    finally:
        audit.unlisten(EVENT, ours["listener"])
        signal.signal(signal.SIGUSR1, before)
    assert found == [("outside",), ("between",), ("again",)]


def test_a_thread_is_heard_while_a_listener_works_in_another() -> None:
    found: list[Any] = []

    def listener(args: tuple[Any, ...]) -> None:
        found.append(args)
        if args == ("first",):
            thread = threading.Thread(target=sys.audit, args=(EVENT, "other thread"))
            thread.start()
            thread.join()

    audit.listen(EVENT, listener)
    try:
        sys.audit(EVENT, "first")
    finally:
        audit.unlisten(EVENT, listener)
    assert found == [("first",), ("other thread",)]


def test_the_frame_above_the_hook_is_that_of_whoever_did_it() -> None:
    frames: list[Any] = []

    def listener(args: tuple[Any, ...]) -> None:
        frames.append(sys._getframe(2).f_code.co_name)

    audit.listen("open", listener)
    try:
        with open(os.devnull):
            pass
    finally:
        audit.unlisten("open", listener)
    assert frames == ["test_the_frame_above_the_hook_is_that_of_whoever_did_it"]


def test_a_mistake_in_a_listener_is_counted_and_the_program_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mistaken(args: tuple[Any, ...]) -> None:
        raise LookupError("nobody thought of this")

    with playhead.record("mistaken", store=tmp_path / "store") as run:
        audit.listen(EVENT, mistaken)
        try:
            monkeypatch.delenv("PYTEST_CURRENT_TEST")  # under pytest a mistake of ours is raised
            sys.audit(EVENT)
        finally:
            audit.unlisten(EVENT, mistaken)
        assert run.lost == 1


def test_under_strict_a_mistake_in_a_listener_stops_the_program(tmp_path: Path) -> None:
    def mistaken(args: tuple[Any, ...]) -> None:
        raise LookupError("nobody thought of this")

    def agent() -> None:
        with playhead.record("strict", store=tmp_path / "store", strict=True):
            audit.listen(EVENT, mistaken)
            try:
                with pytest.raises(RecordingStopped):
                    sys.audit(EVENT)
            finally:
                audit.unlisten(EVENT, mistaken)

    with pytest.raises(LookupError):
        agent()


def test_a_forked_child_listens_on(heard: list[Any]) -> None:
    child = os.fork()
    if child == 0:
        sys.audit(EVENT, "child")
        os._exit(0 if heard == [("child",)] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_nobody_hears_what_happens_while_the_interpreter_ends() -> None:
    code = """
import sys
from playhead.capture import audit
class Late:
    def __del__(self):
        sys.audit("late")
def hear(args):
    print("heard", sys.is_finalizing())
audit.listen("late", hear)
sys.audit("late")
keep = Late()
keep.me = keep
"""
    assert in_a_fresh_process(code) == "heard False\n"


def test_the_hook_is_added_by_the_first_who_listens_and_only_once() -> None:
    code = """
import sys
added = []
sys.addaudithook(lambda event, args: added.append(event) if event == "sys.addaudithook" else None)
del added[:]
from playhead.capture import audit
print(len(added))
print(audit.listen("a", print), audit.listen("b", print))
audit.unlisten("a", print), audit.unlisten("b", print), audit.listen("a", print)
print(len(added))
"""
    assert in_a_fresh_process(code) == "0\nTrue True\n1\n"


@pytest.mark.parametrize("kind", ["RuntimeError", "ValueError"])
def test_where_another_hook_forbids_ours_nothing_is_heard_and_that_is_said(kind: str) -> None:
    code = f"""
import sys
def forbid(event, args):
    if event == "sys.addaudithook":
        raise {kind}("no")
sys.addaudithook(forbid)
from playhead.capture import audit
print(audit.listen("a", print))
sys.audit("a", 1)
"""
    assert in_a_fresh_process(code) == "False\n"
