"""How a child ended is what its run says: whichever way it came about, and as whoever started it saw it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.capture.launching import assert_whole, finished, launched, python

import playhead
from playhead.capture import hooks
from playhead.policy.rules import FILE
from playhead.store.files import FileStore

PARENT = """
import subprocess, sys
for child in {children!r}:
    argv = [*{before!r}, sys.executable, "-c", child]
    print(subprocess.run(argv, stderr=subprocess.DEVNULL).returncode, flush=True)
"""
CHILD = "import os, sys\nopen('made', 'w').close()\n"

seen_from_inside = pytest.mark.skipif(hooks.compiled is None, reason="only code of C can see the code of an exit")


def ends_of(store: Path, *children: str, before: tuple[str, ...] = ()) -> list[tuple[int, str, dict[str, Any]]]:
    """Run children of a recorded program; return the exit code that it saw of each, and how the run of each ended."""
    program = PARENT.format(before=before, children=[CHILD + child for child in children])
    _, out, err = launched(store, python(program), cwd=store.parent)
    assert err == b""
    files = FileStore(store)
    _, *runs = (playhead.Run(files, id) for id in sorted(files.runs()))
    for run in runs:
        assert_whole(run)
    codes = [int(line) for line in out.split()]
    return [(code, str(run.status), finished(run)) for code, run in zip(codes, runs, strict=True)]


@seen_from_inside
def test_a_child_that_asks_to_exit_with_a_code_has_failed_with_it(tmp_path: Path) -> None:
    children = {
        "sys.exit(3)": (3, "3"),
        "raise SystemExit(-1)": (255, "255"),
        "sys.exit('bad')": (1, "bad"),
        "sys.exit(object())": (1, "1"),
        "sys.exit(1 << 80)": (255, "255"),
        "class Mine(SystemExit): pass\nraise Mine(4)": (4, "4"),
        "try:\n    sys.exit(7)\nexcept SystemExit as error:\n    error.code = 8\n    raise": (8, "8"),
    }
    ends = ends_of(tmp_path / "store", *children)
    for child, (seen, status, end) in zip(children, ends, strict=True):
        code, message = children[child]
        assert (seen, status, end["metadata"]) == (code, "error", {"exit_code": code}), child
        assert end["error"] == {"type": "SystemExit", "message": message}, child


def test_a_child_that_ends_without_one_is_ok_also_where_it_thought_of_another_end(tmp_path: Path) -> None:
    children = (
        "",
        "sys.exit()",
        "raise SystemExit(0)",
        "try:\n    sys.exit(3)\nexcept SystemExit as error:\n    error.code",
        "import threading\nthreading.Thread(target=sys.exit, args=(3,)).start()",
        "import _thread, time\n_thread.start_new_thread(sys.exit, (3,))\ntime.sleep(.1)",
        "import atexit\natexit.register(sys.exit, 3)",
    )
    for child, (seen, status, end) in zip(children, ends_of(tmp_path / "store", *children), strict=True):
        assert (seen, status, "error" in end) == (0, "ok", False), child


AT_EXIT = {
    "a function": "import atexit\natexit.register(lambda: open('last', 'w'))",
    "a function of C": "import atexit\natexit.register(open, 'last', 'w')",
    "a finaliser": "import weakref\nclass A: pass\na = A()\nweakref.finalize(a, open, 'last', 'w')",
    "a log": "from logging import FileHandler, getLogger, handlers\n"
    "getLogger().addHandler(handlers.MemoryHandler(9, target=FileHandler('last', delay=True)))\n"
    "getLogger().warning('kept back')",
}


@pytest.mark.parametrize("what", AT_EXIT)
@pytest.mark.parametrize("is_child", [True, False])
def test_what_a_program_does_at_its_exit_is_in_its_run_and_held_to_its_policy(
    tmp_path: Path, what: str, is_child: bool
) -> None:
    code = f"{AT_EXIT[what]}\nopen('first', 'w').close()"
    started = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {code!r}])" if is_child else code
    launched(tmp_path / "store", python(started), cwd=tmp_path)
    files = FileStore(tmp_path / "store")
    events = [event for id in files.runs() for event in playhead.Run(files, id).events()]
    targets = [event.data["target"] for event in events if event.kind == "effect.observed"]
    assert [Path(target).name for target in targets if not target.endswith("python")] == ["first", "last"]
    (tmp_path / "last").unlink()
    (tmp_path / FILE).write_text(
        'mode = "enforce"\n[capabilities."process.exec"]\nallow = "*"\n[capabilities."fs.write"]\nallow = "first"\n'
    )
    launched(tmp_path / "store", python(started), cwd=tmp_path)
    assert not (tmp_path / "last").exists()


def test_an_exception_that_nobody_catches_is_an_error_and_ctrl_c_is_a_cancellation(tmp_path: Path) -> None:
    ends = ends_of(tmp_path / "store", "1 / 0", "raise KeyboardInterrupt")
    assert [(seen, status, end["metadata"]) for seen, status, end in ends] == [
        (1, "error", {"exit_code": 1}),
        (-2, "cancelled", {"exit_code": -2}),
    ]


def test_what_the_frames_of_an_exit_hold_ends_when_it_does_without_us(tmp_path: Path) -> None:
    child = """
import atexit
class Held:
    def __del__(self):
        print("gone", flush=True)
def main():
    held = Held()
    sys.exit(held)
atexit.register(print, "exit", flush=True)
main()
"""
    _, out, _ = launched(tmp_path / "store", python(PARENT.format(before=(), children=[CHILD + child])), cwd=tmp_path)
    assert out.split() == [b"gone", b"exit", b"1"]


def test_a_child_that_becomes_another_program_says_which(tmp_path: Path) -> None:
    child = "os.execlp('sh', 'sh', '-c', 'exit 5')"
    between = ("sh", "-c", '"$0" "$@"; exit 9')  # so that nobody sees how it ended
    for name, before, seen, told in (("a", (), 5, {"exit_code": 5}), ("b", between, 9, {})):
        (tmp_path / name).mkdir()
        ((code, status, end),) = ends_of(tmp_path / name / "store", child, before=before)
        assert Path(end["metadata"].pop("became")).name == "sh"
        assert (code, status, end["metadata"]) == (seen, "error" if told else "ok", told)
