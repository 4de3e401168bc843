"""Whatever Python code does to a file by ordinary means is stopped before it happens, by whichever name it calls it."""

# ruff: noqa: PIE804  # arguments that come in a mapping are what some of this is about

from __future__ import annotations

import contextlib
import functools
import importlib.machinery
import logging.handlers
import mmap
import os
import posix
import readline
import shutil
import socket
import sqlite3
import stat
import sys
import tarfile
import threading
import types
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.capture import effects, effects_files, untold
from playhead.errors import EffectDenied
from playhead.policy.rules import FILE

TAKEN = os.open
SPAWN = os.posix_spawn
EMPTY = os.O_CREAT | os.O_WRONLY | os.O_TRUNC


def rule(text: str, mode: str = "enforce") -> None:
    Path(FILE).write_text(f'mode = "{mode}"\n{text}')


def state() -> dict[str, Any]:
    """Return what there is outside of `out`, to see that nothing happened to it."""
    found: dict[str, Any] = {}
    for place, folders, files in os.walk("."):
        folders[:] = [name for name in folders if name not in (".playhead", "out")]
        for name in (*folders, *files):
            path = os.path.join(place, name)
            there = os.lstat(path)
            content = Path(path).read_bytes() if stat.S_ISREG(there.st_mode) else b""
            leads = os.readlink(path) if os.path.islink(path) else None
            found[path] = (there.st_mode, there.st_ino, there.st_mtime_ns if leads is None else 0, content, leads)
            found[path] += (os.listxattr(path, follow_symlinks=False) if hasattr(os, "listxattr") else None,)
    return found


@pytest.fixture
def place() -> None:
    """Make `out`, in which all is allowed but `.env` and `secret`, and things around it that are not."""
    for name in ("out/deep/secret", "out/empty", "private", "elsewhere"):
        os.makedirs(name)
    for name in ("out/a", "out/.env", "out/deep/secret/key", "private/key", "elsewhere/key", "top"):
        Path(name).write_text("kept")
    os.symlink("../elsewhere", "out/away")  # out/away/.. is not out
    os.symlink("../private/key", "out/leads")
    os.symlink("out/a", "inward")  # outside, and leads inside
    os.symlink("out", "door")
    rule(
        '[capabilities."fs.write"]\nallow = ["out/**"]\ndeny = ["**/.env", "**/secret/**"]\n'
        '[capabilities."fs.delete"]\nallow = ["out/**"]\ndeny = ["**/.env", "**/secret/**"]\n'
        '[capabilities."process.exec"]\nallow = ["echo *", "true"]\n'
    )


def _folder(name: str) -> int:
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY)


def _beside_another(act: Callable[[], Any]) -> None:
    """Do something while another folder is open too."""
    other = _folder(".")
    try:
        act()
    finally:
        os.close(other)


def _in_folder(name: str, act: Callable[[int], Any]) -> None:
    """Do something with an open folder, in another one in which all is allowed."""
    folder = _folder(name)
    before = os.getcwd()
    os.chdir("out")
    try:
        act(folder)
    finally:
        os.chdir(before)
        os.close(folder)


def _by_number(form: str, name: str = "private/key") -> None:
    with open(name, "rb") as file:
        open(form.format(number=file.fileno(), process=os.getpid()), "w").close()


def _attached(statement: str, *given: Any) -> None:
    connection = sqlite3.connect("out/ok.db", isolation_level=None)
    try:
        connection.execute("CREATE TABLE IF NOT EXISTS t (x)")
        connection.execute(statement, given)
        connection.execute("CREATE TABLE other.t (x)")
    finally:
        connection.close()


def _from_nowhere() -> None:
    os.mkdir("out/gone")
    os.chdir("out/gone")
    os.rmdir("../gone")
    try:
        open("../../new", "w").close()
    finally:
        os.chdir("../..")


# Python 3.14 insists on a filter, and before 3.11.4 there is none.
FILTER: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}


def _tar() -> None:
    with tarfile.open("out/a.tar", "w") as archive:
        archive.add("out/a", "new")
    with tarfile.open("out/a.tar") as archive:
        archive.extractall(".", **FILTER)


def _zip() -> None:
    with zipfile.ZipFile("out/a.zip", "w") as archive:
        archive.writestr("new", "x")
    with zipfile.ZipFile("out/a.zip") as archive:
        archive.extractall("private")


def _mapped() -> None:
    with open("private/key", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:1] = b"x"


def _copied() -> None:
    with open("out/a", "rb") as source, open("private/key", "wb") as target:
        os.sendfile(target.fileno(), source.fileno(), 0, 4)


def _spawned() -> None:
    actions = [(os.POSIX_SPAWN_OPEN, 1, "private/key", EMPTY, 0o600)]
    os.waitpid(os.posix_spawn("/bin/true", ["true"], os.environ, file_actions=actions), 0)


def _bound() -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("new")


class _Holder:
    """What has an opener, and has none."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        self.kept: Any = None

    @property
    def made(self) -> Any:
        return self.kept


def _open_by(holder: _Holder, how: str) -> None:
    if how == "a slot":
        open("private/key", "w", opener=holder.kept).close()
    elif how == "a property":
        open("private/key", "w", opener=holder.made).close()
    elif how == "a choice":
        open("private/key", "w", opener=None if how else holder.made).close()
    else:
        open("private/key", "w", opener={"opener": holder.kept}["opener"]).close()


def _open_after_another(opener: Any, mode: str) -> None:
    open("out/a", mode=mode, opener=os.open).close()
    open("private/key", opener=opener, mode=mode).close()


def _beside(name: str, act: Callable[[], Any]) -> None:
    """Do something where there is a program of this name that the search path has too, and one that it has not."""
    shutil.copy("/bin/touch", f"out/{name}")
    os.chdir("out")
    try:
        act()
    finally:
        os.chdir("..")


def _become(name: str) -> None:
    if (child := os.fork()) == 0:
        try:
            os.execv(name, [name, "../new"])
        except EffectDenied:
            os._exit(77)
        finally:
            os._exit(1)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 77:
        raise EffectDenied("in the child", capability="process.exec")


def _become_by_number(file: int) -> None:
    if (child := os.fork()) == 0:
        try:
            os.execve(file, ["touch", "new"], {})
        except EffectDenied:
            os._exit(77)
        finally:
            os._exit(1)
    os.close(file)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 77:
        raise EffectDenied("in the child", capability="process.exec")


def _in_memory() -> int:
    file = os.memfd_create("program")
    os.write(file, Path("/bin/touch").read_bytes())
    return file


def _linked_to_nothing() -> None:
    os.symlink("nothing", "out/nowhere")
    os.link("out/nowhere", "new", follow_symlinks=False)


def _history_at_home() -> None:
    home, os.environ["HOME"] = os.environ.get("HOME", ""), os.getcwd()
    try:
        readline.write_history_file()
    finally:
        os.environ["HOME"] = home


WAYS: dict[str, Callable[[], Any]] = {
    # Links and `..`.
    "through a link and back": lambda: open("out/away/../new", "w").close(),
    "deleted through a link and back": lambda: os.remove("out/away/../top"),
    "made through a link and back": lambda: os.mkdir("out/away/../new"),
    "a link that leads out": lambda: open("out/leads", "w").close(),
    "from a folder that is gone": _from_nowhere,
    # By the number by which something is open.
    "/proc/self/fd": lambda: _by_number("/proc/self/fd/{number}"),
    "/dev/fd": lambda: _by_number("/dev/fd/{number}"),
    "/proc/PID/fd": lambda: _by_number("/proc/{process}/fd/{number}"),
    "/proc/thread-self/fd": lambda: _by_number("/proc/thread-self/fd/{number}"),
    "/proc/self/cwd": lambda: open("/proc/self/cwd/new", "w").close(),
    "/proc/self/root": lambda: open(f"/proc/self/root{os.getcwd()}/new", "w").close(),
    "mode by number": lambda: _in_folder("private", lambda folder: os.chmod(folder, 0o700)),
    # Relative to a folder that is open.
    "dir_fd": lambda: _in_folder("private", lambda folder: os.open("new", EMPTY, dir_fd=folder)),
    "dir_fd by **": lambda: _in_folder("private", lambda folder: os.open("a", EMPTY, **{"dir_fd": folder})),
    "dir_fd by partial": lambda: _in_folder("private", lambda folder: functools.partial(os.open, dir_fd=folder)("a", EMPTY)),
    "dir_fd, one of two": lambda: _in_folder("private", lambda folder: _beside_another(lambda: os.open("a", EMPTY, dir_fd=folder))),
    "dir_fd of posix": lambda: _in_folder("private", lambda folder: posix.open("a", EMPTY, **{"dir_fd": folder})),
    "dir_fd of a function taken before": lambda: _in_folder("private", lambda folder: TAKEN("a", EMPTY, **{"dir_fd": folder})),
    "dir_fd of unlink": lambda: _in_folder("private", lambda folder: os.unlink("key", **{"dir_fd": folder})),
    "dir_fd of mkdir": lambda: _in_folder("private", lambda folder: os.mkdir("new", 0o700, **{"dir_fd": folder})),
    "dir_fd of rename": lambda: _in_folder("private", lambda folder: os.rename("a", "new", **{"dst_dir_fd": folder})),
    "dir_fd of rename from": lambda: _in_folder("private", lambda folder: os.rename("key", "b", src_dir_fd=folder)),
    "dir_fd of link": lambda: _in_folder("private", lambda folder: os.link("a", "new", **{"dst_dir_fd": folder})),
    "dir_fd of symlink": lambda: _in_folder("private", lambda folder: os.symlink("a", "new", **{"dir_fd": folder})),
    "dir_fd of mkfifo": lambda: _in_folder("private", lambda folder: os.mkfifo("new", **{"dir_fd": folder})),
    "an opener that is none": lambda: open("private/key", "w", opener=None).close(),
    "an opener that is none, by name": lambda: _open("private/key", None),
    "an opener that is called for": lambda: open("private/key", "w", opener={}.get("opener")).close(),
    "an opener that is none, after another call": lambda: _open_after_another(None, "w"),
    "an opener in a slot": lambda: _open_by(_Holder(), "a slot"),
    "an opener of a property": lambda: _open_by(_Holder(), "a property"),
    "an opener that is chosen": lambda: _open_by(_Holder(), "a choice"),
    "an opener of a mapping": lambda: _open_by(_Holder(), "a mapping"),
    "an opener that opens elsewhere": lambda: open("out/a", "w", opener=lambda _, flags: os.open("top", flags)).close(),
    # Databases.
    "sqlite %2e": lambda: sqlite3.connect("file:out/%2e%2e/new.db", uri=True),
    "sqlite localhost": lambda: sqlite3.connect(f"file://localhost{os.getcwd()}/new.db", uri=True),
    "sqlite without host": lambda: sqlite3.connect(f"file://{os.getcwd()}/new.db", uri=True),
    "sqlite with two modes": lambda: sqlite3.connect("file:new.db?mode=ro&mode=rwc", uri=True),
    "sqlite immutable and new": lambda: sqlite3.connect("file:new.db?immutable=1", uri=True),
    "sqlite no URI": lambda: sqlite3.connect("file:out?mode=ro"),
    "sqlite by **": lambda: sqlite3.connect("file:new.db", **{"uri": True}),
    "sqlite Connection": lambda: sqlite3.Connection("new.db"),
    # Folders above what is denied.
    "rename of the folder above": lambda: os.rename("out/deep", "out/moved"),
    "move of the folder itself": lambda: shutil.move("out/deep/secret", "out/moved"),
    "rename to a denied name": lambda: os.rename("out/empty", "out/secret"),
    "rename of the whole": lambda: os.rename("out", "out2"),
    "rename above a denied file": lambda: Path("out").rename("new"),
    # Names that are links.
    "rename onto a link that leads in": lambda: os.rename("out/a", "inward"),
    "replace a link": lambda: os.replace("out/a", "inward"),
    "unlink a link that leads in": lambda: os.unlink("inward"),
    "rename away a link": lambda: os.rename("inward", "out/b"),
    "rename away a folder's link": lambda: os.rename("door", "out/b"),
    "lchown": lambda: os.lchown("inward", -1, os.getgid()),
    "times of a link": lambda: os.utime("inward", (1, 1), follow_symlinks=False),
    "mode of what a link leads to": lambda: os.chmod("out/leads", 0o600),
    "times of what a link leads to": lambda: os.utime("out/leads", (1, 1)),
    # Other functions that change files.
    "set_data": lambda: importlib.machinery.SourceFileLoader("x", "out/x.py").set_data("private/key", b"x"),
    "mkfifo": lambda: os.mkfifo("new"),
    "mknod": lambda: os.mknod("new"),
    "posix.mkfifo": lambda: posix.mkfifo("new"),
    "posix.mknod": lambda: posix.mknod("new"),
    "posix.unlink": lambda: posix.unlink("top"),
    "setxattr": lambda: os.setxattr("top", "user.x", b"1"),
    "removexattr": lambda: os.removexattr("top", "user.x"),
    "truncate": lambda: os.truncate("top", 0),
    "chmod": lambda: posix.chmod("top", 0o600),
    "utime": lambda: os.utime("top"),
    "open to empty": lambda: os.open("top", os.O_RDONLY | os.O_TRUNC),
    "a hard link": lambda: os.link("private/key", "out/key"),
    "a hard link by number": lambda: os.link("/proc/self/cwd/private/key", "out/key"),
    "a hard link to a link to nothing": _linked_to_nothing,
    "a symlink": lambda: os.symlink("out/a", "new"),
    "mmap": _mapped,
    "sendfile": _copied,
    "posix_spawn": _spawned,
    "posix_spawn of what lies here": lambda: _beside("own", lambda: os.waitpid(os.posix_spawn("own", ["own", "../new"], {}), 0)),
    "posix_spawn of a known name": lambda: _beside("echo", lambda: os.waitpid(os.posix_spawn("echo", ["echo", "../new"], {}), 0)),
    "posix_spawn of a function taken before": lambda: _beside("echo", lambda: os.waitpid(SPAWN("echo", ["echo", "../new"], {}), 0)),
    "exec of what lies here": lambda: _beside("own", lambda: _become("own")),
    "exec by number": lambda: _become_by_number(os.open("/bin/touch", os.O_RDONLY)),
    "exec of what is in memory": lambda: _become_by_number(_in_memory()),
    "exec of a known name": lambda: _beside("echo", lambda: _become("echo")),
    "tar": _tar,
    "zip": _zip,
    "a log": lambda: logging.handlers.RotatingFileHandler("new.log").close(),
    "copytree": lambda: shutil.copytree("out/empty", "new"),
    "touch": lambda: Path("top").touch(),
    "a socket's name": _bound,
    "a history": lambda: readline.write_history_file("new"),
    "a history that goes on": lambda: readline.append_history_file(0, "top"),
    "the history at home": _history_at_home,
    "another letter case": lambda: open("out/.ENV", "w").close(),
}  # fmt: skip


SWALLOWED = {"set_data"}  # the import system takes it for a folder that cannot be written


def _open(path: str, opener: Any) -> None:
    open(path, "w", encoding="utf-8", opener=opener).close()


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize("way", WAYS)
def test_nothing_slips_through(way: str) -> None:
    before = state()
    with playhead.record("r") as run, contextlib.nullcontext() if way in SWALLOWED else pytest.raises(EffectDenied):
        WAYS[way]()
    assert state() == before
    assert Path("out/deep/secret/key").read_text() == Path("out/.env").read_text() == "kept"
    assert [event.data["decision"] for event in playhead.load(run.id).events() if event.kind == "policy.checked"][
        -1
    ] == "deny"


class _Changing(os.PathLike[str]):
    """A path that is another one each time that it is asked for."""

    def __init__(self) -> None:
        self._names = iter(["out/first", "second", "third"])

    def __fspath__(self) -> str:
        return next(self._names)


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    "make",
    [
        lambda path: os.mkfifo(path),  # as it is while the run is open
        lambda path: os.mkfifo(path=path),
        lambda path: readline.write_history_file(path),
    ],
    ids=["mkfifo", "mkfifo by name", "a history"],
)
def test_what_is_done_is_done_under_the_name_that_was_judged(make: Callable[[Any], Any]) -> None:
    with playhead.record("r"):
        make(_Changing())
    assert os.path.lexists("out/first")
    assert not os.path.lexists("second")


@pytest.mark.usefixtures("place")
def test_what_is_allowed_is_let_through() -> None:
    reading, writing = os.pipe()

    def written(form: str) -> None:
        with open("out/a", "r+b") as file:
            open(form.format(number=file.fileno()), "w").close()

    acts: list[Callable[[], Any]] = [
        lambda: open("out/empty/../b", "w").close(),
        lambda: open("door/b", "w").close(),
        lambda: open(f"/dev/fd/{writing}", "w").close(),
        lambda: open("/dev/null", "w").close(),
        lambda: written("/proc/self/fd/{number}"),
        lambda: os.chmod("out/a", 0o600),
        lambda: _in_folder("out", lambda folder: os.close(os.open("c", EMPTY, **{"dir_fd": folder}))),
        lambda: _in_folder("private", lambda folder: Path("d").touch()),
        lambda: sqlite3.connect("file:out/%61.db", uri=True).close(),
        lambda: sqlite3.connect("file:private/key?mode=ro", uri=True).close(),
        lambda: sqlite3.connect("file:private/key?mode=ro", **{"uri": True}).close(),
        lambda: sqlite3.connect(":memory:").execute("VACUUM"),
        lambda: _attached("ATTACH DATABASE 'out/other.db' AS other"),
        lambda: os.rename("out/empty", "out/moved"),
        lambda: os.replace("out/b", "out/leads"),  # the link, and not what it leads to
        lambda: os.unlink("out/away"),
        lambda: os.setxattr("out/a", "user.x", b"1"),
        lambda: shutil.rmtree("out/moved"),
        lambda: os.makedirs("out/x/y/z"),
        lambda: shutil.move("out/x", "out/w"),
        lambda: os.mkfifo("out/pipe"),
    ]  # fmt: skip
    before = state()
    with playhead.record("r") as run:
        for act in acts:
            act()
    os.close(reading)
    os.close(writing)
    assert state() == before
    found = [event.data for event in playhead.load(run.id).events() if event.kind == "policy.checked"]
    assert {one["decision"] for one in found} == {"allow"}
    assert Path("private/key").read_text() == "kept"
    assert not os.path.islink("out/leads")


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("statement", "given"),
    [("ATTACH DATABASE 'other.db' AS other", ()), ("ATTACH DATABASE ? AS other", ("other.db",)),
     ("VACUUM INTO 'other.db'", ()), ("VACUUM INTO ?", ("other.db",)), ("ATTACH 'out/away/../other.db' AS other", ()),
     ("ATTACH 'out/' || '../other.db' AS other", ())],
)  # fmt: skip
def test_a_database_that_is_attached_or_copied_to_is_asked_about(statement: str, given: tuple[str, ...]) -> None:
    with playhead.record("r") as run, pytest.raises(sqlite3.DatabaseError, match="authoriz"):
        _attached(statement, *given)
    assert not os.path.exists("other.db")
    last = [event.data for event in playhead.load(run.id).events() if event.kind == "policy.checked"][-1]
    assert (last["capability"], last["decision"]) == ("fs.write", "deny")


def test_a_link_that_is_denied_is_so_by_its_name_and_by_what_it_leads_to() -> None:
    os.makedirs("real/inner")
    os.mkdir("conf")
    Path("real/key").write_text("kept")
    Path("conf/settings").write_text("kept")
    os.symlink("real", "secrets")
    os.symlink("conf/settings", ".env")
    os.symlink("../real", "conf/hidden")
    deny = 'allow = ["**"]\ndeny = ["secrets/**", ".env", "**/hidden/**"]\n'
    rule(f'[capabilities."fs.write"]\n{deny}[capabilities."fs.delete"]\n{deny}')
    before = state()
    with playhead.record("r"):
        for act in (
            lambda: open("secrets/key", "w").close(),
            lambda: open("real/key", "w").close(),
            lambda: os.remove("real/key"),
            lambda: os.remove("secrets"),
            lambda: os.rename("secrets", "moved"),
            lambda: os.rename("real", "moved"),
            lambda: open(".env", "w").close(),
            lambda: open("conf/settings", "w").close(),
            lambda: os.remove(".env"),
            lambda: os.remove("conf/settings"),
            lambda: os.rename("conf", "moved"),
            lambda: open("conf/hidden/key", "w").close(),
            lambda: os.remove("conf/hidden"),
            lambda: os.symlink("x", "CONF/../secrets/inner/x"),
            lambda: os.rmdir("real/inner"),
        ):
            with pytest.raises(EffectDenied):
                act()
    assert state() == before


def test_a_folder_of_which_all_is_allowed_may_be_made_and_no_other() -> None:
    rule('[capabilities."fs.write"]\nallow = ["out/**", "some/*.txt", "a/b/**"]\n')
    with playhead.record("r"):
        os.makedirs("out")
        os.makedirs("out/a/b")
        for act in (lambda: os.mkdir("some"), lambda: os.makedirs("a/b"), lambda: os.symlink("x", "link")):
            with pytest.raises(EffectDenied):
                act()
    rule('[capabilities."fs.write"]\nallow = ["here/**"]\n')
    with playhead.record("r"):
        for act in (lambda: os.symlink("out", "here"), lambda: open("here", "w").close()):
            with pytest.raises(EffectDenied):
                act()  # which would be no folder


def test_a_folder_of_more_than_can_be_looked_at_is_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    from playhead import _limits

    monkeypatch.setattr(_limits, "POLICY_FOLDER_MAX", 3)
    for folder, count in (("few", 3), ("many", 4)):
        os.mkdir(folder)
        for number in range(count):
            Path(folder, str(number)).touch()
    allowed = 'allow = ["**"]\ndeny = ["**/.env"]\n'
    rule(f'[capabilities."fs.write"]\n{allowed}[capabilities."fs.delete"]\n{allowed}')
    with playhead.record("r"):
        os.rename("few", "moved")
        with pytest.raises(EffectDenied, match="holds more than 3 files"):
            os.rename("many", "more")
    rule('[capabilities."fs.write"]\nallow = "**"\n[capabilities."fs.delete"]\nallow = "**"\n')
    with playhead.record("r"):
        os.rename("many", "more")  # all is allowed: nobody has to look


@pytest.mark.parametrize("mode", ["enforce", "observe"])
def test_what_cannot_be_judged_is_denied_where_it_is_enforced(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise LookupError("the judge is ill")

    rule('[capabilities."fs.write"]\nallow = "**"\n', mode)
    monkeypatch.setattr("playhead.capture.obstacles.look", broken)
    with playhead.record("r") as run:
        monkeypatch.delenv("PYTEST_CURRENT_TEST")  # under pytest a mistake of ours is raised
        if mode == "enforce":
            with pytest.raises(EffectDenied, match="could not be judged: LookupError: the judge is ill"):
                open("a", "w").close()
        else:
            open("a", "w").close()
            assert run.lost == 1
    assert os.path.exists("a") is (mode == "observe")
    found = [event.data for event in playhead.load(run.id).events() if event.kind == "policy.checked"]
    assert [(one["decision"], one["rule"], one["resource"]) for one in found] == (
        [("deny", "unjudged", "a")] if mode == "enforce" else []
    )


def test_a_mistake_of_another_listener_does_not_keep_the_policy_from_being_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from playhead.capture import audit

    def mistaken(args: tuple[Any, ...]) -> None:
        raise LookupError("nobody thought of this")

    rule("")
    audit.listen("os.mkdir", mistaken)
    try:
        monkeypatch.delenv("PYTEST_CURRENT_TEST")  # under pytest a mistake of ours is raised
        with playhead.record("r"), pytest.raises(EffectDenied):
            os.mkdir("a")
    finally:
        audit.unlisten("os.mkdir", mistaken)
    assert not os.path.exists("a")


def test_what_a_handler_of_a_signal_raises_meanwhile_is_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    import signal

    class Late(Exception):
        pass

    def late(*_: Any) -> None:
        raise Late("took too long")

    look = effects_files.obstacles.look

    def looked(*args: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return look(*args, **options)

    rule('[capabilities."fs.write"]\nallow = "**"\n')
    before = signal.signal(signal.SIGUSR1, late)
    try:
        with playhead.record("r"):
            monkeypatch.setattr("playhead.capture.obstacles.look", looked)
            with pytest.raises(Late):
                open("a", "w").close()
            monkeypatch.undo()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not os.path.exists("a")


def test_a_database_of_a_library_of_c_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python is often built without such a library: this one does what that does, and says nothing of it either."""
    library = types.ModuleType("_gdbm")
    library.error = OSError  # type: ignore[attr-defined]
    opened: list[str] = []
    library.open = lambda name, flag="r", mode=0o666: opened.append(name)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "_gdbm", library)
    monkeypatch.delitem(sys.modules, "dbm.gnu", raising=False)
    rule('[capabilities."fs.write"]\nallow = "out/**"\n')
    os.mkdir("out")
    with playhead.record("r"):
        import dbm.gnu

        dbm.gnu.open("out/a", "c")  # noqa: SIM115
        with pytest.raises(EffectDenied):
            dbm.gnu.open("a", "n")  # noqa: SIM115
        dbm.gnu.open("b", "r")  # noqa: SIM115
    assert opened == ["out/a", "b"]
    assert dbm.gnu.open is library.open
    monkeypatch.delitem(sys.modules, "dbm.gnu")


def test_what_stands_in_front_of_os_is_taken_away_again_and_nothing_is_told_of_other_threads() -> None:
    kept = {name: (getattr(os, name), getattr(posix, name)) for name in ("open", "mkfifo", "mknod", "posix_spawn")}
    rule('[capabilities."fs.write"]\nallow = "out/**"\n')
    os.mkdir("out")
    os.mkdir("private")
    with playhead.record("r"):
        assert os.open in os.supports_dir_fd
        folder = _folder("private")
        seen: list[int | None] = []

        def opener(name: Any, flags: int) -> int:
            thread = threading.Thread(target=lambda: seen.append(untold.folder()))
            thread.start()
            thread.join()
            return os.open(name, flags)

        open("out/a", "w", opener=opener).close()
        os.close(folder)
        assert seen == [None]
        assert untold.folder() is None
    assert kept == {name: (getattr(os, name), getattr(posix, name)) for name in kept}
    assert effects._open == 0
