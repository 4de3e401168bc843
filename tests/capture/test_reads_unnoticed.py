"""A program whose reads are recorded does what it does alone: its locks, its timeouts, its sets, its pickles."""

from __future__ import annotations

import ctypes
import functools
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from tests.capture import launching

import playhead
from playhead.capture import reads
from playhead.event import reads as form


@pytest.fixture(autouse=True)
def taping() -> Iterator[None]:
    playhead.install()
    yield
    playhead.uninstall()


def test_a_database_that_is_opened_twice_keeps_its_locks(tmp_path: Path) -> None:
    path = tmp_path / "data.db"
    other = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('insert into t values (9)')"
    with playhead.record("agent"):
        first = sqlite3.connect(path, isolation_level=None)
        first.execute("create table t (a)")
        first.execute("begin immediate")
        sqlite3.connect(path).close()  # of SQLite itself this takes no lock away
        tried = subprocess.run([sys.executable, "-c", other, str(path)], capture_output=True, text=True)
        first.execute("insert into t values (1)")
        first.execute("commit")
        first.close()
    assert "database is locked" in tried.stderr


def test_a_locked_file_that_is_opened_again_stays_locked(tmp_path: Path) -> None:
    import fcntl

    path = tmp_path / "lock"
    path.write_text("x")
    other = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    with playhead.record("agent"), open(path, "r+") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        again = open(path)  # noqa: SIM115
        tried = subprocess.run([sys.executable, "-c", other, str(path)], capture_output=True, text=True)
        again.close()
    assert "BlockingIOError" in tried.stderr


class Timeout(Exception):
    """What a handler raises, or another thread lets this one raise."""


class Ringing:
    """A handler that is no function."""

    def __call__(self, number: int, frame: object) -> None:
        raise Timeout

    def once(self, number: int, frame: object) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        raise Timeout

    def with_more(self, more: str, *_: object) -> None:
        raise Timeout


def look_for(seconds: float, path: Path) -> None:
    """Look all the time. A function, since Python 3.13.0 lets what is raised in a loop past a `try` right around it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        os.path.exists(path)


@pytest.mark.parametrize(
    "handler", [Ringing(), Ringing().once, functools.partial(Ringing().with_more, "x"), lambda *_: Ringing()(*_)]
)
def test_what_a_signal_handler_raises_reaches_the_program(
    tmp_path: Path, handler: Callable[[int, FrameType | None], None]
) -> None:
    before = signal.getsignal(signal.SIGALRM)
    caught = 0
    try:
        with playhead.record("agent") as run:
            for _ in range(30):
                try:
                    signal.signal(signal.SIGALRM, handler)
                    signal.setitimer(signal.ITIMER_REAL, 0.002)
                    look_for(2, tmp_path)
                except Timeout:
                    caught += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert caught >= 28  # one that falls into a callback of the collector is lost, as Python has it
    gaps = [event.data for event in playhead.load(str(run.id)).events() if event.kind == "gap.noted"]
    assert [gap for gap in gaps if gap["detail"]["source"] != "signal"] == [], "beside the alarm itself"


@pytest.mark.parametrize("after", [False, True])
def test_reads_whose_writing_is_interrupted_are_written_once(after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twice: what was left by the first interrupt, and the next, are of one lane and hold no bytes of their own."""
    with playhead.record("agent") as run:
        assert run.recording is not None
        ledger = run.recording.ledger
        append, asked = ledger.append, 0
        os.environ.get("BEFORE")
        playhead.note("before")  # with it go the imports; from now on packs are alike

        def interrupted(kind: str, *args: Any) -> Any:
            nonlocal asked
            asked += kind == "ambient.read"
            if kind == "ambient.read" and asked in (1, 2 if after else 3):
                if after:
                    append(kind, *args)
                raise Timeout
            return append(kind, *args)

        with monkeypatch.context() as patched:
            patched.setattr(ledger, "append", interrupted)
            for name in ("NO_SUCH_A", "NO_SUCH_B"):
                os.environ.get(name)
                with pytest.raises(Timeout):
                    playhead.note(name)
    read = [read.value for read in playhead.load(str(run.id)).reads() if read.of == "os.environ"]
    assert [value for value in read if "NO_SUCH" in str(value)] == [{"NO_SUCH_A": None}, {"NO_SUCH_B": None}]


def test_what_another_thread_makes_this_one_raise_reaches_the_program(tmp_path: Path) -> None:
    caught = []

    def work() -> None:
        try:
            begun.set()
            look_for(5, tmp_path)
        except Timeout:
            caught.append(1)

    with playhead.record("agent"):
        for _ in range(20):
            begun = threading.Event()
            thread = threading.Thread(target=work)
            thread.start()
            begun.wait(10)
            time.sleep(0.002)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(Timeout))
            thread.join()
    assert len(caught) == 20


def test_what_a_thread_of_ours_writes_comes_before_the_next_event_of_the_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    told, original = threading.Event(), form.written

    def slowly(*args: Any) -> Any:
        if threading.current_thread() is not threading.main_thread():
            taken.set()
            told.wait(0.3)  # as long as the lane is kept waiting
        return original(*args)

    taken = threading.Event()
    with playhead.record("agent") as run, monkeypatch.context() as slow:
        slow.setattr(form, "written", slowly)
        value = time.time_ns()
        writer = threading.Thread(target=reads._settle_all)
        writer.start()
        assert taken.wait(10)
        playhead.note("next")
        told.set()
        writer.join()
    events = list(playhead.load(str(run.id)).events())
    (note,) = [event.seq for event in events if event.kind == "note.added"]
    (read,) = [read.seq for read in playhead.load(str(run.id)).reads() if read.value == value]
    assert read < note


def test_lanes_that_begin_to_read_while_others_are_written_are_written_too(tmp_path: Path) -> None:
    """In a process of its own: what other tests have left to be written in the background would come in between."""
    program = tmp_path / "program.py"
    program.write_text(
        "import time, playhead\n"
        "from playhead.capture import reads\n"
        "asked, original = [], reads.seal\n"
        "def seal(recording, pack):\n"
        "    original(recording, pack)\n"
        "    if not asked:\n"
        "        asked.append(False)\n"
        "        time.time_ns()\n"
        "playhead.install()\n"
        "with playhead.record('agent'):\n"
        "    time.time_ns()\n"
        "    soon, reads.seal, reads.write_soon = reads.write_soon, seal, lambda: asked.append(True)\n"
        "    reads._write_waiting()\n"
        "    reads.seal, reads.write_soon = original, soon\n"
        "print(asked)\n"
    )
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[False, True]\n", "")


def test_functions_are_found_in_the_sets_of_os_and_can_be_pickled() -> None:
    with playhead.record("agent"):
        assert os.stat in os.supports_dir_fd
        assert os.scandir in os.supports_fd
        for function in (os.system, os.stat, os._exit, time.time, os.open):
            assert pickle.loads(pickle.dumps(function)) is function
    assert os.stat in os.supports_dir_fd


def test_code_without_a_name_is_the_agents() -> None:
    with playhead.record("agent") as run:
        space: dict[str, object] = {}
        exec("import time; told = time.time_ns()", space)
    reads = [read for read in playhead.load(str(run.id)).reads() if read.of == "time.time_ns"]
    assert [(read.by, read.value) for read in reads] == [("?", space["told"])]


def test_many_modules_that_read_lose_nothing() -> None:
    told = []
    with playhead.record("agent") as run:
        for number in range(120):
            space: dict[str, object] = {"__name__": f"module{number}"}
            exec("import time; told = time.time_ns()", space)
            told.append(space["told"])
        assert run.lost == 0
    reads = [read for read in playhead.load(str(run.id)).reads() if read.by.startswith("module")]
    assert [read.value for read in reads] == told


def test_a_file_is_the_one_that_was_opened_whatever_folder_it_is_relative_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "name").write_text("right")
    (tmp_path / "name").write_text("wrong")
    monkeypatch.chdir(tmp_path)
    folder = os.open("sub", os.O_RDONLY)
    with playhead.record("agent") as run:
        number = os.open("name", os.O_RDONLY, dir_fd=folder)
        assert os.read(number, 10) == b"right"
        os.close(number)
        loaded = str(run.id)
    os.close(folder)
    (read,) = [read for read in playhead.load(loaded).reads() if read.of == "open"]
    assert (read.value["path"], read.value["content"]) == (str(tmp_path / "sub" / "name"), "right")


def test_an_opener_says_itself_what_it_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "name").write_text("right")
    (tmp_path / "plain").write_text("plain")
    monkeypatch.chdir(tmp_path)
    folder = os.open("sub", os.O_RDONLY)
    with playhead.record("agent") as run:
        with open("name", opener=functools.partial(os.open, dir_fd=folder)) as file, open("plain") as other:
            assert (file.read(), other.read()) == ("right", "plain")
        with open("no such name", opener=lambda name, flags: os.open("plain", flags)) as file:
            assert file.read() == "plain"
        with pytest.raises(FileNotFoundError):
            open("nothing").close()
        loaded = str(run.id)
    os.close(folder)
    reads = [read.value for read in playhead.load(loaded).reads() if read.of == "open"]
    paths = [os.path.relpath(value["path"], tmp_path) for value in reads]
    assert paths == ["sub/name", "plain", "nothing"]
    assert [value.get("error") for value in reads] == [None, None, "ENOENT"]


def test_a_mistake_in_what_a_process_is_given_is_no_loss() -> None:
    with playhead.record("agent") as run:
        with pytest.raises(TypeError):
            subprocess.run(["cat"], input="text by mistake", capture_output=True)  # type: ignore[call-overload]
        assert run.lost == 0


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_the_work_of_a_pool_reads_is_kept_although_its_workers_are_killed(tmp_path: Path, method: str) -> None:
    (tmp_path / "agent.py").write_text(
        "import multiprocessing, os, sys\n"
        "def work(n): return os.environ.get(f'POOL_{n}')\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool: pool.map(work, range(6), chunksize=1)\n"
    )
    status, _, err = launching.launched(
        tmp_path / ".playhead", [sys.executable, "agent.py", method], env={"POOL_3": "x"}, cwd=tmp_path
    )
    assert (status, err) == (0, b"")
    reads = launching.only_run(tmp_path / ".playhead").reads()
    names = [name for read in reads if read.of == "os.environ" for name in read.value if name.startswith("POOL")]
    assert sorted(names) == [f"POOL_{number}" for number in range(6)]


def test_a_program_that_hangs_can_be_looked_at_and_one_that_is_killed_has_told_what_it_read(tmp_path: Path) -> None:
    code = (
        "import os, time\nfor n in range(50): os.environ.get(f'HUNG_{n}')\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    store = tmp_path / ".playhead"
    process = launching.start(store, launching.python(code), stdout=subprocess.PIPE, cwd=tmp_path)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    end = time.monotonic() + 30
    while time.monotonic() < end and hung(store) < 50:
        time.sleep(0.05)
    process.terminate()
    process.communicate(timeout=30)
    assert hung(store) == 50


def hung(store: Path) -> int:
    reads = launching.only_run(store).reads()
    return sum(name.startswith("HUNG_") for read in reads if read.of == "os.environ" for name in read.value)


def test_a_secret_that_comes_in_two_pieces_is_redacted(tmp_path: Path) -> None:
    code = "import os\nwhile os.read(0, 9): pass"
    secret = "sk-proj-" + "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJ"
    launching.launched(tmp_path / ".playhead", launching.python(code), f"key {secret} end".encode(), cwd=tmp_path)
    run = launching.only_run(tmp_path / ".playhead")
    told = "".join(str(read.value) for read in run.reads() if read.of == "sys.stdin")
    assert "abcdefgh" not in told
    assert "[redacted:" in told


def test_a_child_keeps_its_first_reads_and_says_what_is_missing(tmp_path: Path) -> None:
    child = "import time\nfor _ in range(5000): time.time_ns()\nopen('made', 'w').close()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}], check=True)"
    status, _, err = launching.launched(tmp_path / ".playhead", launching.python(code), cwd=tmp_path)
    assert (status, err) == (0, b"")
    from playhead._api.reading import Run
    from playhead.store.files import FileStore

    store = FileStore(tmp_path / ".playhead")
    runs = [Run(store, id) for id in store.runs()]
    (run,) = [run for run in runs if any(event.kind == "gap.noted" for event in run.events())]
    assert len([read for read in run.reads() if read.of == "time.time_ns"]) == 4096
    (gap,) = [event.data["detail"] for event in run.events() if event.kind == "gap.noted"]
    assert gap["source"] == "reads"


def test_threads_that_read_do_not_stop_a_fork() -> None:
    stop = threading.Event()

    def read() -> None:
        while not stop.wait(0.0005):
            os.environ.get(f"THREAD_{time.time_ns() % 100}")

    with playhead.record("agent"):
        threads = [threading.Thread(target=read) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(40):
            child = os.fork()
            if child == 0:
                time.time()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        stop.set()
        for thread in threads:
            thread.join()
