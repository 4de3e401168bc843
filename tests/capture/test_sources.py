"""What programs read from is watched as it comes: modules that come again or are others, files that are not as most."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.capture import launching

import playhead
from playhead._api.reading import Run
from playhead.capture import shadows


def gaps(run: Run) -> list[tuple[str, str]]:
    found = [event.data for event in run.events() if event.kind == "gap.noted"]
    assert {gap["reason"] for gap in found} <= {"not_captured"}
    return [(gap["detail"]["source"], gap["detail"]["where"]) for gap in found]


def told(run: Run, of: str) -> list[Any]:
    return [read.value for read in run.reads() if read.of == of]


def recorded(folder: Path, code: str, **env: str) -> tuple[Run, list[str]]:
    """Record a program that is in a file; return its run, and the lines that it wrote."""
    (folder / "prog.py").write_text(code)
    status, out, err = launching.launched(
        folder / ".playhead", [sys.executable, "prog.py"], b"first\nsecond\n", env=env, cwd=folder
    )
    assert (status, err) == (0, b"")
    return launching.only_run(folder / ".playhead"), out.decode().splitlines()


AGAIN = """
import datetime, importlib, random, socket, sys, uuid
before = random.random
importlib.reload(random)
print(before(), random.random())
importlib.reload(datetime)
del sys.modules["datetime"], sys.modules["_socket"], sys.modules["_uuid"]
import datetime, _socket, _uuid
print(datetime.datetime.now().isoformat())
print(_socket.gethostname())
"""


@pytest.mark.parametrize("pure", ["0", "1"])
def test_a_module_that_is_loaded_again_stays_watched(tmp_path: Path, pure: str) -> None:
    run, (numbers, now, host) = recorded(tmp_path, AGAIN, PLAYHEAD_PURE=pure)
    assert [str(value) for value in told(run, "random.random")] == numbers.split()
    assert told(run, "datetime.datetime.now") == [now]
    # One that is built in, as Debian's, Python makes again from a copy of its own.
    is_copied = pure == "1" and "_socket" in sys.builtin_module_names
    assert told(run, "socket.gethostname") == ([] if is_copied else [{"value": host}])
    assert gaps(run) == []


def test_a_module_of_the_programs_own_that_has_a_known_name_is_a_named_gap(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("told = 5\n")
    run, out = recorded(tmp_path, "import torch; print(torch.told)")
    assert out == ["5"]
    assert [source for source, _ in gaps(run)] == ["torch"]


def test_what_a_test_put_in_the_place_of_a_module_is_a_named_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setitem(sys.modules, "numpy.random", ModuleType("numpy.random"))
    playhead.install()
    try:
        with playhead.record("agent") as run:
            inside = True
    finally:
        playhead.uninstall()
    assert inside
    sources = [source for source, _ in gaps(playhead.load(str(run.id)))]
    assert sorted(set(sources)) == ["numpy.random", "torch"]


LOCKED = """
import os, subprocess, sys
number = os.open("lock", os.O_RDWR)
os.lockf(number, os.F_LOCK, 0)
os.write(number, b"changed")
again = open("lock")
other = "import os; os.lockf(os.open('lock', os.O_RDWR), os.F_TLOCK, 0)"
print(subprocess.run([sys.executable, "-S", "-c", other], stderr=subprocess.DEVNULL).returncode)
"""


def test_a_file_that_is_locked_with_os_stays_locked(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("x")
    _, out = recorded(tmp_path, LOCKED)
    assert out == ["1"]


NEW_DATABASE = """
import sqlite3, subprocess, sys
database = sqlite3.connect("data.db", isolation_level=None)
database.execute("create table t (a)")
database.execute("begin immediate")
looked_at = open("data.db", "rb")
other = "import sqlite3; sqlite3.connect('data.db', timeout=0).execute('insert into t values (9)')"
print(subprocess.run([sys.executable, "-S", "-c", other], stderr=subprocess.DEVNULL).returncode)
"""


def test_a_database_that_the_program_made_stays_locked(tmp_path: Path) -> None:
    _, out = recorded(tmp_path, NEW_DATABASE)
    assert out == ["1"]


CLOSED = """
import hashlib, os, sqlite3
def change(number):
    database = sqlite3.connect("data.db")
    with database: database.execute("create table if not exists t (a)"), database.execute("insert into t values (?)", [number])
    database.close()
    with open("data.db", "rb") as file: print(hashlib.sha256(file.read()).hexdigest())
change(1)
os.closerange(3, 64)
change(2)
os.closerange(3, 64)
others = [os.open("prog.py", os.O_RDONLY) for _ in range(40)]
change(3)
for number in others: os.close(number)
others = [os.open("data.db", os.O_WRONLY) for _ in range(40)]
change(4)
"""


def test_a_database_is_read_as_it_is_after_the_program_closed_what_it_does_not_know(tmp_path: Path) -> None:
    run, out = recorded(tmp_path, CLOSED)
    read = [value for value in told(run, "open") if value["path"].endswith("data.db")]
    assert [value.get("digest") for value in read] == out
    assert len(set(out)) == 4


@pytest.mark.skipif(not Path("/proc/sys/kernel/random/uuid").exists(), reason="files of Linux")
def test_files_of_the_system_are_kept_unless_they_say_something_else_each_time(tmp_path: Path) -> None:
    kept = ["/proc/sys/kernel/hostname", "/proc/sys/kernel/random/boot_id", "/proc/sys/vm/overcommit_memory"]
    anew = "/proc/sys/kernel/random/uuid"
    code = f"for path in {[*kept, anew, anew]}:\n    with open(path) as file: print(ascii(file.read()))"
    run, out = recorded(tmp_path, code)
    values = told(run, "open")
    assert [(value["path"], ascii(value.get("content")), value.get("live")) for value in values[:3]] == [
        (path, told, True) for path, told in zip(kept, out, strict=False)
    ]
    assert values[3:] == [{"path": anew, "special": "-"}]
    assert gaps(run) == [("file", f"{anew}: another content each time it is read at __main__:2")]


ASKED = """
import asyncio, os, resource, uvloop
async def main(): return asyncio.get_running_loop().time()
print(len(os.environ))
print(os.statvfs("/").f_bsize, os.statvfs("/proc").f_bsize)
print(os.sysconf("SC_PAGE_SIZE"))
print(resource.getrusage(resource.RUSAGE_SELF).ru_utime)
print(uvloop.new_event_loop().run_until_complete(main()))
"""


@pytest.mark.parametrize("pure", ["0", "1"])
def test_what_the_system_says_is_kept_with_what_it_was_asked_for(tmp_path: Path, pure: str) -> None:
    run, (variables, sizes, page, used, clock) = recorded(tmp_path, ASKED, PLAYHEAD_PURE=pure)
    (names,) = told(run, "os.environ")
    assert str(len(names["*"])) == variables
    found = {value["path"]: value["value"][0] for value in told(run, "os.statvfs")}
    assert [str(found[path]) for path in ("/", "/proc")] == sizes.split()
    assert told(run, "os.sysconf") == [{"asked": ["SC_PAGE_SIZE"], "value": int(page)}]
    (usage,) = told(run, "resource.getrusage")
    assert (usage["asked"], str(usage["value"][0])) == ([0], used)
    assert [str(value) for value in told(run, "asyncio.loop.time")] == [clock]


def test_variables_that_are_printed_are_kept_and_secret_ones_are_not(tmp_path: Path) -> None:
    run, _ = recorded(tmp_path, "import os; repr(os.environ)", TOLD="value", SOME_API_KEY="not-for-anybody-17")
    found = {name: value for read in told(run, "os.environ") for name, value in read.items()}
    assert found["TOLD"] == "value"
    assert {"TOLD", "SOME_API_KEY"} <= set(found["*"])
    assert "not-for-anybody" not in str(found)


OWN = """
import os, subprocess, sys, time, uuid
for name in sys.argv[1:]: print(__import__(name).told)
time.time_ns(), uuid.uuid4
with open(__file__) as file: file.read()
with open("made", "w") as file: file.write("x")
subprocess.run(["true"])
if os.fork() == 0:
    time.time_ns()
    os._exit(0)
os.wait()
"""


def test_a_module_of_the_programs_own_comes_before_pythons(tmp_path: Path) -> None:
    program, names = tmp_path / "app" / "prog.py", sorted(shadows.GIVING_WAY - set(sys.builtin_module_names))
    (tmp_path / "app" / "uuid").mkdir(parents=True)  # no package: it comes after Python's
    program.write_text(OWN)
    for name in names:
        program.with_name(f"{name}.py").write_text(f"told = '{name}, its own'\n")
    argv = [sys.executable, str(program), *names]
    status, out, err = launching.launched(tmp_path / ".playhead", argv, cwd=tmp_path)
    assert (status, err) == (0, b"")
    assert out.decode().splitlines() == [f"{name}, its own" for name in names]
    run = launching.only_run(tmp_path / ".playhead")
    assert len(told(run, "time.time_ns")) == 2
    assert gaps(run) == []
    launching.assert_whole(run)
