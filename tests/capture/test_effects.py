"""What a program does outside itself is recorded where it was caused, and nothing that the recorder does."""

from __future__ import annotations

import asyncio
import compileall
import concurrent.futures
import functools
import gc
import multiprocessing
import os
import pathlib
import pickle
import py_compile
import shutil
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.capture.launching import launched, only_run

import playhead
from playhead.capture import audit, callers, effects
from playhead.store.disk import out_of_the_way
from playhead.testing import ScriptedProvider

ROOT_SPAN = "0"
TRUE = str(shutil.which("true"))


def observed(reference: str = "@last") -> list[Any]:
    return [event for event in playhead.load(reference).events() if event.kind == "effect.observed"]


def said(reference: str = "@last") -> list[tuple[str, str]]:
    """Return what was done to what, names without the folder that the test runs in."""
    here = os.getcwd() + "/"
    return [(event.data["what"], event.data["target"].removeprefix(here)) for event in observed(reference)]


def recorded(act: Callable[[], object]) -> list[tuple[str, str]]:
    with playhead.record("run"):
        act()
    return said()


@pytest.fixture
def listener() -> Any:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        yield server.getsockname()


def test_a_tool_that_writes_starts_and_connects_in_a_thread_has_three_effects(listener: Any) -> None:
    @playhead.tool
    def publish() -> None:
        def work() -> None:
            Path("report.txt").write_text("done")
            subprocess.run(["true"], check=True)
            with socket.create_connection(listener):
                pass

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    with playhead.record("run"):
        publish()
    events = list(playhead.load("@last").events())
    (called,) = [event for event in events if event.kind == "tool.called"]
    found = [event for event in events if event.kind == "effect.observed"]
    assert [event.data["what"] for event in found] == ["file.written", "process.started", "socket.connected"]
    assert {event.parent for event in found} == {called.span}
    assert {event.lane for event in found} == {"0.1"}
    assert [event.data["target"] for event in found] == [
        f"{os.getcwd()}/report.txt", shutil.which("true"), f"127.0.0.1:{listener[1]}",
    ]  # fmt: skip
    assert [event.data["detail"] for event in found] == [
        {"mode": "w", "created": True},
        {"argv": ["true"], "by": "subprocess.Popen"},
        {"type": "stream", "attempted": True},
    ]


def test_effects_in_tasks_and_executors_belong_to_the_step_that_caused_them() -> None:
    async def work(name: str) -> None:
        with playhead.step(name):
            await asyncio.sleep(0)
            await asyncio.get_running_loop().run_in_executor(None, Path(name).write_text, "x")

    async def main() -> None:
        await asyncio.gather(work("a"), work("b"))

    with playhead.record("run"), concurrent.futures.ThreadPoolExecutor() as pool:
        asyncio.run(main())
        pool.submit(os.mkdir, "c").result()
    events = list(playhead.load("@last").events())
    steps = {event.span: event.data["name"] for event in events if event.kind == "step.started"}
    found = {Path(event.data["target"]).name: event for event in observed()}
    assert {name: steps.get(str(event.parent)) for name, event in found.items()} == {"a": "a", "b": "b", "c": None}
    assert len({event.lane for event in found.values()}) == 3


def test_two_runs_in_two_threads_do_not_see_each_others_effects() -> None:
    both = threading.Barrier(2)

    def work(name: str) -> None:
        with playhead.record(name):
            both.wait()
            Path(f"{name}.txt").write_text("x")
            both.wait()

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (said("one"), said("two")) == ([("file.written", "one.txt")], [("file.written", "two.txt")])


def _with_dir_fd() -> None:
    os.mkdir("folder")
    descriptor = os.open("folder", os.O_RDONLY)
    os.mkdir("inner", dir_fd=descriptor)
    os.rename("inner", "moved", src_dir_fd=descriptor, dst_dir_fd=descriptor)
    os.close(descriptor)


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda: open("a", "w").close(), [("file.written", "a")]),
        (lambda: open(b"a", "ab").close(), [("file.written", "a")]),
        (lambda: os.close(os.open("a", os.O_CREAT | os.O_WRONLY)), [("file.written", "a")]),
        (lambda: os.truncate("there", 1), [("file.written", "there")]),
        (lambda: open("there").close(), []),
        (lambda: pathlib.Path("a").touch(), [("file.written", "a")]),
        (lambda: pathlib.Path("there").rename("new"), [("file.renamed", "there")]),
        (lambda: pathlib.Path("there").unlink(), [("file.deleted", "there")]),
        (lambda: os.makedirs("x/y", exist_ok=True), [("directory.created", "x"), ("directory.created", "x/y")]),
        (_with_dir_fd, [("directory.created", "folder"), ("directory.created", "folder/inner"),
                        ("file.renamed", "folder/inner")]),
        (lambda: os.symlink("there", "link"), [("link.created", "link")]),
        (lambda: os.link("there", "link"), [("link.created", "link")]),
        (lambda: os.chmod("there", 0o600), [("mode.changed", "there")]),
        (lambda: shutil.copy("there", "copy"), [("file.written", "copy")]),
        (lambda: shutil.move("there", "moved"), [("file.renamed", "there")]),
        (lambda: shutil.rmtree("full"), [("file.deleted", "full/inside"), ("directory.deleted", "full")]),
        (lambda: sqlite3.connect("data.db").close(), [("file.written", "data.db")]),
        (lambda: sqlite3.connect(":memory:").close(), []),
        (lambda: sqlite3.connect("file:there?mode=ro", uri=True).close(), []),
        (lambda: tempfile.TemporaryFile().close(), []),
        (lambda: os.system("true"), [("process.started", "/bin/sh")]),
        (lambda: os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0), [("process.started", "/bin/true")]),
        (lambda: subprocess.run(["/bin/true"], close_fds=False, check=True), [("process.started", "/bin/true")]),
        (lambda: subprocess.run("true", shell=True, check=True), [("process.started", "/bin/sh")]),
        *(
            (functools.partial(subprocess.run, ["true"], env=variables, check=True), [("process.started", TRUE)])
            for variables in (None, os.environ, os.environb, {"PATH": os.environ["PATH"]})
        ),
        (lambda: os.environ.pop("HOME"), [("environment.changed", "HOME")]),
        (lambda: os.environ.update(HOME=os.environ["HOME"]), []),
    ],
)  # fmt: skip
def test_what_is_done_to_files_processes_and_the_environment(
    act: Callable[[], object], expected: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", os.environ.get("HOME", "/"))
    Path("there").write_text("content")
    Path("there").chmod(0o644)
    Path("full").mkdir()
    Path("full/inside").touch()
    assert recorded(act) == expected


@pytest.mark.parametrize(
    "act",
    [
        lambda: open("no/such/folder", "w").close(),
        lambda: open("full", "w").close(),
        lambda: open("there", "x").close(),
        lambda: os.open("nothing", os.O_WRONLY),
        lambda: os.truncate("nothing", 0),
        lambda: os.remove("nothing"),
        lambda: os.remove("full"),
        lambda: os.rename("nothing", "b"),
        lambda: os.rename("there", "no/such/folder"),
        lambda: os.rename("full", "there"),
        lambda: os.rename("empty", "full"),
        lambda: os.mkdir("full"),
        lambda: os.rmdir("full"),
        lambda: os.rmdir("there"),
        lambda: os.symlink("a", "there"),
        lambda: os.link("nothing", "b"),
        lambda: os.chmod("nothing", 0o600),
        lambda: subprocess.run(["no-such-program"], check=True),
        lambda: subprocess.run(["./there"], check=True),
        lambda: subprocess.run(["true"], cwd="no-such-folder", check=True),
        lambda: os.execv("no-such-program", ["x"]),
        lambda: os.execvp("no-such-program", ["x"]),
        lambda: os.kill(2**22 + 1, signal.SIGTERM),
        lambda: sqlite3.connect("no/such/folder/x.db"),
    ],
)
def test_what_fails_does_not_read_as_done(act: Callable[[], object]) -> None:
    Path("there").write_text("content")
    Path("empty").mkdir()
    Path("full").mkdir()
    Path("full/inside").touch()
    with playhead.record("run"), pytest.raises((OSError, sqlite3.OperationalError)):
        act()
    assert said() == []


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_what_is_not_permitted_does_not_read_as_done(monkeypatch: pytest.MonkeyPatch) -> None:
    acts: list[Callable[[], object]] = [
        lambda: open("closed/a", "w").close(),
        lambda: open("locked", "a").close(),
        lambda: os.remove("closed/inside"),
        lambda: os.mkdir("closed/folder"),
        lambda: os.rename("closed/inside", "mine/a"),
        lambda: os.kill(1, signal.SIGTERM),
    ]
    with tempfile.TemporaryDirectory() as folder:  # where everybody may look, not only we
        os.chmod(folder, 0o755)
        monkeypatch.chdir(folder)
        Path("closed").mkdir()
        Path("closed/inside").touch()
        Path("locked").touch(mode=0o444)
        Path("mine").mkdir()
        Path("mine").chmod(0o777)
        Path("closed").chmod(0o555)
        with playhead.record("run"):
            if (child := os.fork()) == 0:
                if os.geteuid() == 0:
                    os.setuid(65534)  # nobody
                refused = 0
                for act in acts:
                    try:
                        act()
                    except PermissionError:
                        refused += 1
                Path("mine/done").touch()
                os._exit(refused)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(acts)
        assert said() == [("file.written", "mine/done")]
        Path("closed").chmod(0o755)


def test_a_name_is_kept_as_it_was_meant_at_that_moment(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    with playhead.record("run"):
        os.chdir("inner")
        open("../inner/a", "w").close()
        os.chdir("..")
    assert [event.data["target"] for event in observed()] == [str(tmp_path / "inner" / "a")]


def test_a_renamed_file_says_its_new_name_and_a_link_what_it_leads_to(tmp_path: Path) -> None:
    Path("a").touch()
    with playhead.record("run"):
        os.replace("a", "b")
        os.symlink("b", "c")
        os.link("b", "d")
    assert [event.data["detail"] for event in observed()] == [
        {"to": str(tmp_path / "b")},
        {"to": "b", "symbolic": True},
        {"to": str(tmp_path / "b")},
    ]


def test_writes_to_the_terminal_and_to_nowhere_are_no_effects() -> None:
    def act() -> None:
        print("x")
        with open(os.devnull, "w") as nowhere, open(sys.__stdout__.fileno(), "w", closefd=False) as out:
            nowhere.write("x")
            out.write("x")
        subprocess.run(["true"], stdout=subprocess.DEVNULL, check=True)

    assert recorded(act) == [("process.started", shutil.which("true"))]


def test_what_the_import_system_writes_is_no_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(os.getcwd())
    Path("fresh_module.py").write_text("from pathlib import Path\nPath('by_the_module').touch()\n")

    def act() -> None:
        import fresh_module  # type: ignore[import-not-found]  # noqa: F401

    assert recorded(act) == [("file.written", "by_the_module")]
    assert list(Path("__pycache__").iterdir())


def test_what_the_program_compiles_is_an_effect() -> None:
    Path("package").mkdir()
    Path("package/one.py").write_text("1\n")

    def act() -> None:
        py_compile.compile("package/one.py", cfile="other.pyc", doraise=True)
        compileall.compile_dir("package", quiet=1)

    folder = "package/__pycache__"
    compiled = f"{folder}/one.{sys.implementation.cache_tag}.pyc"
    found = recorded(act)
    assert [what for what, _ in found] == [
        "file.written", "file.renamed", "directory.created", "file.written", "file.renamed",
    ]  # fmt: skip
    assert [event.data["detail"]["to"] for event in observed() if event.data["what"] == "file.renamed"] == [
        os.path.abspath("other.pyc"), os.path.abspath(compiled),
    ]  # fmt: skip


def test_a_file_that_is_opened_relative_to_a_folder_has_its_own_path() -> None:
    Path("folder").mkdir()
    Path("other").mkdir()

    def act() -> None:
        ours = out_of_the_way(os.open(".", os.O_RDONLY))  # as whoever brings entries to the disk has one
        folder = os.open("folder", os.O_RDONLY)
        os.close(os.open("a", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        os.close(os.open("b", os.O_CREAT | os.O_WRONLY))
        other = os.open("other", os.O_RDONLY)
        os.close(os.open("c", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=other))  # which folder, is not told
        os.close(folder)
        open("d", "w", opener=lambda name, flags: os.open(name, flags, dir_fd=other)).close()
        open("e", "w", opener=functools.partial(os.open, dir_fd=other)).close()
        open("f", "w", opener=lambda name, flags: os.open("g", flags)).close()
        open("h", "w").close()
        os.close(other)
        os.close(ours)

    names = ["folder/a", "b", "c", "other/d", "other/e", "g", "h"]
    assert recorded(act) == [("file.written", name) for name in names]
    assert Path("other/c").exists()


def test_the_name_of_what_is_made_for_others_says_what_it_is() -> None:
    Path("folder").mkdir()
    kept = {name: getattr(os, name) for name in ("mkfifo", "mknod")}

    def act() -> None:
        folder = os.open("folder", os.O_RDONLY)
        os.mkfifo("pipe")
        os.mkfifo(path="pipe", mode=0o600, dir_fd=folder)
        os.mknod("file")
        os.mknod("socket", 0o600 | stat.S_IFSOCK)
        os.close(folder)
        for again in (lambda: os.mkfifo("pipe"), lambda: os.mknod("file"), lambda: os.mkfifo(path="no/folder")):
            with pytest.raises(OSError, match=r"exists|No such"):
                again()
        with pytest.raises(TypeError):
            os.mkfifo()  # type: ignore[call-arg]
        assert {os.mkfifo, os.mknod} <= os.supports_dir_fd
        assert pickle.loads(pickle.dumps(os.mkfifo)) is os.mkfifo

    assert recorded(act) == [("file.created", name) for name in ("pipe", "folder/pipe", "file", "socket")]
    assert [event.data["detail"]["type"] for event in observed()] == ["pipe", "pipe", "file", "socket"]
    assert kept == {name: getattr(os, name) for name in kept}
    assert len({function for function in os.supports_dir_fd if function.__name__ == "mkfifo"}) == 1


def test_times_modes_and_owners_are_told_also_of_open_files() -> None:
    Path("there").write_text("x")
    Path("there").chmod(0o644)

    def act() -> None:
        os.utime("there", (1, 2.5))
        Path("there").touch()
        with open("there", "rb") as file:
            os.utime(file.fileno(), ns=(3, 4))
            os.fchmod(file.fileno(), 0o600)
            os.fchown(file.fileno(), -1, os.getgid())
        with pytest.raises(FileNotFoundError):
            os.utime("nothing")
        reading, writing = os.pipe()
        os.fchmod(reading, 0o600)
        os.close(reading)
        os.close(writing)

    changed = ["times", "times", "times", "mode", "owner"]
    assert recorded(act) == [(f"{what}.changed", "there") for what in changed]
    assert [event.data.get("detail") for event in observed()] == [
        {"accessed_ns": 10**9, "modified_ns": 2_500_000_000},
        {"times": 2},
        {"accessed_ns": 3, "modified_ns": 4, "times": 3},
        {"mode": "0600"},
        {"owner": [-1, os.getgid()]},
    ]  # fmt: skip


def test_one_effect_in_a_loop_is_recorded_less_and_less_often() -> None:
    def act() -> None:
        for _ in range(1234):
            open("log", "a").close()
        with playhead.step("another"):
            open("log", "a").close()

    recorded(act)
    assert [event.data["detail"].get("times", 1) for event in observed()] == [*range(1, 11), 100, 1000, 1]


def test_processes_are_all_recorded_however_many() -> None:
    def act() -> None:
        for number in range(13):
            subprocess.run(["true", str(number)], check=True)

    recorded(act)
    assert [event.data["detail"]["argv"][1] for event in observed()] == [str(number) for number in range(13)]


def test_a_secret_in_the_environment_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PLAIN", raising=False)
    monkeypatch.setenv("SERVICE_TOKEN", "earlier")
    with playhead.record("run"):
        os.environ["SERVICE_TOKEN"] = "sesame"
        os.environ["PLAIN"] = "visible"
        del os.environ["PLAIN"]
    assert [(event.data["target"], event.data["detail"]) for event in observed()] == [
        ("SERVICE_TOKEN", {"set": {"SERVICE_TOKEN": "[redacted:env]"}}),
        ("PLAIN", {"set": {"PLAIN": "visible"}}),
        ("PLAIN", {"removed": True}),
    ]
    kept = b"".join(path.read_bytes() for path in (tmp_path / ".playhead").rglob("*") if path.is_file())
    assert b"sesame" not in kept


def test_sockets_say_where_they_go(listener: Any, tmp_path: Path) -> None:
    def act() -> None:
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind("door")
            server.listen()
            client.connect("door")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x", ("127.0.0.1", 9))
            sender.connect(("127.0.0.1", 9))
            sender.send(b"y")
        with socket.socket() as refused:
            assert refused.connect_ex(("127.0.0.1", 1))

    assert recorded(act) == [
        ("socket.bound", "door"), ("socket.connected", "door"), ("socket.connected", "127.0.0.1:9"),
        ("socket.connected", "127.0.0.1:9"), ("socket.connected", "127.0.0.1:1"),
    ]  # fmt: skip
    assert all(event.data["detail"]["attempted"] for event in observed())


def test_a_connection_of_asyncio_belongs_to_the_task_that_asked_for_it(listener: Any) -> None:
    async def connect() -> None:
        with playhead.step("connect"):
            _, writer = await asyncio.open_connection(*listener)
            writer.close()
            process = await asyncio.create_subprocess_exec("true")
            await process.wait()

    recorded(lambda: asyncio.run(connect()))
    (step,) = [event for event in playhead.load("@last").events() if event.kind == "step.started"]
    assert [event.data["what"] for event in observed()] == ["socket.connected", "process.started"]
    assert {event.parent for event in observed()} == {step.span}


def test_a_request_through_our_own_patches_is_the_agents_connection() -> None:
    with ScriptedProvider(["x"]) as provider, playhead.record("run"):
        address = provider.base_url.split("/")[2]
        with pytest.raises(urllib.error.HTTPError):
            urllib.request.urlopen(f"http://{address}/nothing")
    connected = [target for what, target in said() if what == "socket.connected"]
    assert connected == [address]


def test_a_thread_that_runs_a_function_of_pythons_own_acts_for_the_agent() -> None:
    Path("a").touch()

    def act() -> None:
        thread = threading.Thread(target=os.remove, args=("a",))
        thread.start()
        thread.join()
        playhead.tool(os.mkdir)("folder")

    assert recorded(act) == [("file.deleted", "a"), ("directory.created", "folder")]


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_writes_its_effects_into_the_run_in_a_lane_of_its_own() -> None:
    def act() -> None:
        if (child := os.fork()) == 0:
            Path("by_the_child").touch()
            os._exit(0)
        os.waitpid(child, 0)
        os.spawnlp(os.P_WAIT, "true", "true")

    assert recorded(act) == [("file.written", "by_the_child"), ("process.started", shutil.which("true"))]
    assert [event.lane for event in observed()] == ["0.1", "0.2"]


def _work() -> None:
    Path("by_the_worker").touch()


def test_what_multiprocessing_starts_is_a_process() -> None:
    def act() -> None:
        process = multiprocessing.get_context("spawn").Process(target=_work)
        process.start()
        process.join()
        assert process.exitcode == 0

    started = [target for what, target in recorded(act) if what == "process.started"]
    assert started
    assert set(started) == {sys.executable}


def test_a_signal_says_to_whom_it_goes() -> None:
    with playhead.record("run"), subprocess.Popen(["sleep", "60"]) as process:
        process.send_signal(0)
        process.terminate()
    last = observed()[-1]
    assert (last.data["what"], last.data["target"]) == ("process.signalled", str(process.pid))
    assert last.data["detail"] == {"signal": signal.SIGTERM}


def test_what_a_finaliser_does_while_the_collector_works_is_recorded_later() -> None:
    class Leaving:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            Path("left").write_text("x")

    with playhead.record("run"):
        with playhead.step("collect"):
            Leaving()
            gc.collect()
        Path("after").touch()
    assert sorted(said()) == [("file.written", "after"), ("file.written", "left")]
    (step,) = [event for event in playhead.load("@last").events() if event.kind == "step.started"]
    assert {Path(event.data["target"]).name: event.parent for event in observed()}["left"] == step.span


def test_nothing_is_listened_to_when_no_run_is_open() -> None:
    before = dict(audit._listeners)
    with playhead.record("run"):
        assert set(audit._listeners) >= set(effects._LISTENERS)
    assert audit._listeners == before
    assert "open" not in before


def test_with_capture_off_there_are_no_effects() -> None:
    with playhead.record("run", capture=False):
        Path("a").touch()
    assert said() == []


def test_an_effect_that_cannot_be_recorded_is_counted_and_done(failing: Callable[[int], None]) -> None:
    with playhead.record("run") as run:
        failing(0)
        Path("a").write_text("x")
        assert run.lost == 1
        failing(10**9)
    assert Path("a").read_text() == "x"


def test_under_strict_what_cannot_be_recorded_is_not_done(failing: Callable[[int], None]) -> None:
    def act() -> None:
        with playhead.record("run", strict=True):
            failing(0)
            try:
                Path("a").write_text("x")
            finally:
                failing(10**9)

    with pytest.raises(playhead.PlayheadError):
        act()
    assert not Path("a").exists()


def test_in_a_recorded_program_everything_from_the_first_line_on_is_seen_and_nothing_of_ours(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(
        "import os, threading\n"
        "open('first', 'w').close()\n"
        "thread = threading.Thread(target=os.mkdir, args=('second',))\n"
        "thread.start(); thread.join()\n"
        "import playhead\n"
        "@playhead.agent('inner')\n"
        "def agent():\n"
        "    open('third', 'w').close()\n"
        "agent()\n"
    )
    code, _, err = launched(tmp_path / "store", [sys.executable, "agent.py"])
    assert (code, err) == (0, b"")
    found = [event for event in only_run(tmp_path / "store").events() if event.kind == "effect.observed"]
    here = str(tmp_path)
    assert [(event.data["what"], event.data["target"].removeprefix(here)) for event in found] == [
        ("file.written", "/first"), ("directory.created", "/second"), ("file.written", "/third"),
    ]  # fmt: skip
    assert [event.lane for event in found] == ["0", "0.1", "0"]


@pytest.mark.usefixtures("with_git")
def test_the_recorders_own_git_and_files_are_not_effects(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    with playhead.record("run", input={"large": "x" * 100_000}) as run:
        run.recording.artifact("a.txt", b"x")
        playhead.note("x" * 100_000)
        playhead.load("@last").verify()
        playhead.runs()
    assert said() == []


def test_every_part_that_patches_something_is_known_to_stand_between() -> None:
    """Otherwise what happens below its wrappers would be taken for the recorder's own doing, and not be recorded."""
    root = Path(effects.__file__).parents[2]
    files = [path for path in root.rglob("playhead/**/*.py") if "import Patches" in path.read_text("utf-8")]
    modules = {".".join(path.relative_to(root).with_suffix("").parts) for path in files}
    between = {name for name in modules if name.startswith(effects._BETWEEN) or callers.sort_of(name) == callers.PASSES}
    # One wraps the end of the process, one the attaching of it: neither has an effect below it. Of the third, nothing
    # that it does is to be recorded.
    silent = {"playhead.capture.ambient", "playhead.capture.reads", "playhead.capture.temporary"}
    assert modules - between == silent
