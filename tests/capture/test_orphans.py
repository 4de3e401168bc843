"""A child that was killed has an end: whoever started it knows how it came."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.capture.launching import assert_whole, launched, python

import playhead
from playhead.store.files import FileStore

CHILD = "import os, signal, time\nopen('made', 'w').close()\nprint('up', flush=True)\n"
PARENT = """
import subprocess, sys
child = subprocess.Popen([{shell}sys.executable, "-c", {child!r}], stdout=subprocess.PIPE)
child.stdout.readline()
{then}
print(child.wait())
"""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "store"


def child_of(store: Path) -> playhead.Run:
    files = FileStore(store)
    _, child = sorted(files.runs())
    return playhead.Run(files, child)


@pytest.mark.parametrize(
    ("child", "then", "code", "said"),
    [
        ("time.sleep(60)", "child.terminate()", -15, "the program was killed by SIGTERM"),
        ("time.sleep(60)", "child.kill()", -9, "the program was killed by SIGKILL"),
        ("os.kill(os.getpid(), signal.SIGSEGV)", "", -11, "the program was killed by SIGSEGV"),
        ("os._exit(3)", "", 3, "the program ended with exit code 3"),
    ],
)
def test_a_child_that_could_not_write_its_end_gets_one(
    store: Path, child: str, then: str, code: int, said: str
) -> None:
    _, out, err = launched(store, python(PARENT.format(shell="", child=CHILD + child, then=then)))
    assert (out, err) == (f"{code}\n".encode(), b"")
    run = child_of(store)
    last = list(run.events())[-1]
    assert (last.kind, run.status, last.data["metadata"]) == ("run.finished", "error", {"exit_code": code})
    assert last.data["error"]["message"] == said
    assert_whole(run)
    named = [event.data["detail"]["source"] for event in run.events() if event.kind == "gap.noted"]
    assert named == (["reads"] if code < 0 else [])


def test_one_that_ended_by_itself_with_no_code_but_ok_is_ok(store: Path) -> None:
    launched(store, python(PARENT.format(shell="", child=CHILD + "os._exit(0)", then="")))
    assert child_of(store).status == "ok"


def test_the_exit_code_of_a_shell_is_not_that_of_the_child(store: Path) -> None:
    wrapped = '"sh", "-c", \'"$0" "$@"; exit 7\', '
    code = PARENT.format(shell=wrapped, child=CHILD + "os.kill(os.getpid(), signal.SIGKILL)", then="")
    assert launched(store, python(code))[1] == b"7\n"
    assert child_of(store).status == "crashed"


def test_one_that_still_runs_is_left_alone(store: Path) -> None:
    then = "import os; pid = child.pid; os._exit(0)"
    launched(store, python(PARENT.format(shell="", child=CHILD + "os.close(1); os.close(2); time.sleep(5)", then=then)))
    assert child_of(store).status == "running"
