"""Child processes: those of fork and multiprocessing write their parent's run, in lanes; an exec'd Python its own."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.capture.launching import assert_whole, clean_environment, finished, launched, only_run, start
from tests.capture.test_lanes import act, recorded, run_lanes

import playhead
from playhead.store.files import FileStore

METHODS = ("fork", "spawn", "forkserver")

PROGRAM = """
import json, multiprocessing, os, signal, sys, time, threading
from concurrent.futures import ProcessPoolExecutor
import playhead

@playhead.tool
def act(name):
    return name

def exits(name):
    act(name)
    sys.exit(3)

def look():
    print(json.dumps({
        "ours": sorted({"PYTHONPATH", "PLAYHEAD_ATTACH", "PLAYHEAD_RUN"} & set(os.environ)), "path": sys.path,
        "argv": sys.argv[1:], "threads": [thread.name for thread in threading.enumerate()],
        "main": sorted(vars(sys.modules["__main__"])), "name": multiprocessing.current_process().name,
    }), flush=True)

def nested(context, name):
    act(name)
    child = context.Process(target=act, args=(name + " child",))
    child.start()
    child.join()

def main(context):
    {main}

if __name__ == "__main__":
    main(multiprocessing.get_context(sys.argv[1]))
"""


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Return a folder for temporary files, with a path that is short enough for the sockets of multiprocessing."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store"


def run_program(tmp_path: Path, store: Path, method: str, main: str, **options: Any) -> tuple[int, bytes, bytes]:
    """Run a program with this body under the launcher."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("{main}", main.strip().replace("\n", "\n    ")))
    return launched(store, [sys.executable, str(path), method], **options)


def gaps(run: playhead.Run) -> list[dict[str, Any]]:
    return [event.data for event in run.events() if event.kind == "gap.noted"]


@pytest.mark.parametrize("method", METHODS)
def test_processes_of_multiprocessing_write_the_run_of_their_parent(tmp_path: Path, store: Path, method: str) -> None:
    main = """
act("main")
first = context.Process(target=nested, args=(context, "first"))
second = context.Process(target=exits, args=("second",))
first.start(); second.start(); first.join(); second.join()
print(first.exitcode, second.exitcode)
act("end")
"""
    assert run_program(tmp_path, store, method, main) == (0, b"0 3\n", b"")
    run = only_run(store)
    assert_whole(run)
    found = {"main": "0", "first": "0.1", "first child": "0.1.1", "second": "0.2", "end": "0"}
    assert run_lanes(run) == found
    assert (gaps(run), finished(run)["status"]) == ([], "ok")


@pytest.mark.parametrize("method", METHODS)
def test_pools_of_processes_have_a_lane_for_each_piece_of_work(tmp_path: Path, store: Path, method: str) -> None:
    main = """
with context.Pool(2, act, ("first",)) as pool:
    assert pool.map(act, ["a", "b", "c"]) == ["a", "b", "c"]
    assert list(pool.imap(act, iter(["d", "e"]))) == ["d", "e"]
    assert pool.apply(act, ("f",)) == "f"
    assert pool.starmap(act, [("g",), ("h",)]) == ["g", "h"]
    pool.close(); pool.join()
with ProcessPoolExecutor(2, mp_context=context) as pool:
    assert list(pool.map(act, ["i", "j"])) == ["i", "j"]
    assert pool.submit(act, name="k").result() == "k"
threading.Thread(target=act, args=("thread",)).start()
"""
    assert run_program(tmp_path, store, method, main) == (0, b"", b"")
    run = only_run(store)
    assert_whole(run)
    found = run_lanes(run)
    assert found.pop("first", "0.0.1") in ("0.0.1", "0.0.2")
    assert found == {
        **{name: f"0.1.{number}" for number, name in enumerate("abc", 1)},
        **{name: f"0.2.{number}" for number, name in enumerate("de", 1)},
        **{name: f"0.4.{number}" for number, name in enumerate("gh", 1)},
        **dict(zip(("f", "i", "j", "k", "thread"), ("0.3", "0.5", "0.6", "0.7", "0.8"), strict=True)),
    }
    assert gaps(run) == []


@pytest.mark.parametrize("method", METHODS)
def test_a_child_that_is_killed_leaves_what_it_did_and_nothing_else(
    tmp_path: Path, store: Path, temporary: Path, method: str
) -> None:
    main = """
pool = context.Pool(1)
assert pool.apply(act, ("work",)) == "work"
hanging = context.Process(target=time.sleep, args=(60,))
hanging.start()
hanging.kill(); hanging.join()
pool.terminate(); pool.join()
with context.Manager() as manager:
    assert manager.list([1])[0] == 1
act("end")
"""
    code, out, err = run_program(tmp_path, store, method, main, env={"TMPDIR": str(temporary)})
    assert (code, out, err) == (0, b"", b"")
    run = only_run(store)
    assert_whole(run)
    assert run_lanes(run) == {"work": "0.1", "end": "0"}
    named = [event.data["detail"] for event in run.events() if event.kind == "gap.noted"]
    assert named == [{"source": "reads", "where": "of the last second of a process, before SIGKILL"}]
    assert list(temporary.iterdir()) == []
    assert run.path is not None
    assert not [path for path in run.path.iterdir() if path.name.startswith(".")]


def test_a_launcher_that_is_killed_leaves_nothing_outside_the_store(
    tmp_path: Path, store: Path, temporary: Path
) -> None:
    ready = tmp_path / "ready"
    code = f"import pathlib, time; pathlib.Path({str(ready)!r}).touch(); time.sleep(60)"
    process = start(store, [sys.executable, "-c", code], {"TMPDIR": str(temporary)}, start_new_session=True)
    while not ready.exists():
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("method", METHODS)
def test_a_child_sees_what_it_sees_without_us(tmp_path: Path, store: Path, method: str) -> None:
    main = """
child = context.Process(target=look)
child.start(); child.join()
with context.Pool(1) as pool:
    pool.apply(look)
    pool.close(); pool.join()
"""
    path = tmp_path / "program.py"
    code, out, err = run_program(tmp_path, store, method, main)
    plain = subprocess.run(
        [sys.executable, str(path), method], capture_output=True, check=True, env=clean_environment()
    )
    assert (code, out, err) == (0, plain.stdout, plain.stderr)


def test_the_tracker_of_multiprocessing_has_nothing_of_ours(tmp_path: Path, store: Path) -> None:
    main = """
from multiprocessing import resource_tracker
resource_tracker.ensure_running()
environment = open(f"/proc/{resource_tracker._resource_tracker._pid}/environ", "rb").read()
print(b"PLAYHEAD_ATTACH" in environment, b"sitecustomize" in environment, b"attach" in environment)
"""
    if not Path("/proc/self/environ").exists():
        pytest.skip("the environment of a process is read from /proc")
    assert run_program(tmp_path, store, "spawn", main)[:2] == (0, b"False False False\n")


def test_a_program_that_a_child_starts_or_becomes_is_found_from_there(tmp_path: Path, store: Path) -> None:
    (tmp_path / "inner.py").write_text(
        "import playhead, sys\n@playhead.tool\ndef act(name): return name\nact(sys.argv[1])\n"
    )
    inner = [sys.executable, str(tmp_path / "inner.py")]
    main = f"""
import subprocess
child = context.Process(target=subprocess.run, args=({[*inner, "started"]!r},))
child.start(); child.join()
child = context.Process(target=os.execv, args=({sys.executable!r}, {[*inner, "become"]!r}))
child.start(); child.join()
"""
    assert run_program(tmp_path, store, "spawn", main) == (0, b"", b"")
    files = FileStore(store)
    outer, child = (playhead.load(run, store=store) for run in files.runs())
    assert list(run_lanes(outer)) == ["become"]
    assert list(run_lanes(child)) == ["started"]
    assert next(iter(child.events())).data["origin"]["run"] == outer.id
    for run in (outer, child):
        assert_whole(run)


@pytest.mark.parametrize("method", METHODS)
def test_a_child_run_has_children_of_its_own(tmp_path: Path, store: Path, method: str) -> None:
    """A Python that a Python started is a run of its own; the processes of its multiprocessing write that one."""
    main = "child = context.Process(target=act, args=('child',))\nchild.start(); child.join()\nact('main')"
    path = tmp_path / "program.py"
    path.write_text(PROGRAM.replace("{main}", main.replace("\n", "\n    ")))
    outer = f"import subprocess, sys; subprocess.run([sys.executable, {str(path)!r}, {method!r}])"
    assert launched(store, [sys.executable, "-c", outer]) == (0, b"", b"")
    _, inner = (playhead.load(run, store=store) for run in FileStore(store).runs())
    assert run_lanes(inner) == {"child": "0.1", "main": "0"}
    assert_whole(inner)


def test_both_sides_of_a_fork_in_a_child_run_write_one_run(tmp_path: Path, store: Path) -> None:
    inner = tmp_path / "inner.py"
    inner.write_text(
        "import os, playhead\n@playhead.tool\ndef act(name): return name\n"
        "pid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\nact('parent' if pid else 'child')\n"
    )
    assert launched(store, [sys.executable, "-c", f"import os; os.system({f'{sys.executable} {inner}'!r})"])[0] == 0
    _, run = (playhead.load(run, store=store) for run in FileStore(store).runs())
    assert run_lanes(run) == {"parent": "0", "child": "0.1"}
    assert_whole(run)


# In one process, without a launcher


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # from 3.12 on, for a fork beside threads
def test_forked_processes_write_the_run_that_is_open_in_the_process() -> None:
    context = multiprocessing.get_context("fork")

    def main() -> None:
        process = context.Process(target=act, args=("process",))
        process.start()
        process.join()
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            assert list(pool.map(act, "ab")) == ["a", "b"]
        with context.Pool(1) as pool:
            assert pool.map(act, "cd") == ["c", "d"]
            pool.close()
            pool.join()

    assert recorded(main) == {"process": "0.1", "a": "0.2", "b": "0.3", "c": "0.4.1", "d": "0.4.2"}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_pool_of_processes_works_for_one_run_after_the_other() -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        assert recorded(lambda: pool.submit(act, "a").result()) == {"a": "0.1"}
        assert pool.submit(act, "in none").result() == "in none"
        assert recorded(lambda: list(pool.map(act, "bc", chunksize=2))) == {"b": "0.1", "c": "0.1"}
    assert [run_lanes(run) for run in playhead.runs()] == [{"b": "0.1", "c": "0.1"}, {"a": "0.1"}]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_future_calls_in_a_thread_of_a_pool_of_processes_is_done_in_the_lane_of_its_work() -> None:
    reading, writing = os.pipe()
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as pool:
        pool.submit(int).result()  # which starts that thread, before the run

        def work() -> None:
            called = threading.Event()
            pool.submit(os.read, reading, 1).add_done_callback(lambda _: (act("callback"), called.set()))
            os.write(writing, b"x")
            called.wait(60)

        assert recorded(work) == {"callback": "0.1"}
    os.close(reading)
    os.close(writing)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_pool_of_processes_from_before_the_run_is_named_as_a_gap() -> None:
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(1, mp_context=context) as first, context.Pool(1) as second:
        assert (first.submit(act, "a").result(), second.apply(act, ("b",))) == ("a", "b")
        with playhead.record("it") as run:
            assert (first.submit(act, "a").result(), second.apply(act, ("b",))) == ("a", "b")
        second.close()
        second.join()
    loaded = playhead.load(str(run.id))
    assert run_lanes(loaded) == {}
    where = {gap["detail"]["where"].partition(", ")[0] for gap in gaps(loaded)}
    assert where == {"a pool from before the run"}
    assert_whole(loaded)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_that_nobody_attaches_are_named_as_a_gap_once(method: str) -> None:
    context = multiprocessing.get_context(method)
    with playhead.record("it") as run:
        for _ in range(2):
            process = context.Process(target=json.dumps, args=({},))
            process.start()
            process.join()
            assert process.exitcode == 0
    assert run.id is not None
    loaded = playhead.load(run.id)
    (gap,) = gaps(loaded)
    assert (gap["reason"], gap["count"], gap["detail"]["source"]) == ("not_captured", 0, "multiprocessing")
    assert gap["detail"]["where"].startswith(f"{method}, {__name__}:")
    assert_whole(loaded)
