"""What a replayed program writes goes to the scratch folder, where it finds it; the world stays as it is."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.replay.overlay import doing, ways

from playhead.capture import answering, hooks, reads
from playhead.errors import PlayheadError, WriteRefused
from playhead.replay import overlay
from playhead.replay.overlay import Overlay

HERE = Path(__file__).parent
PURE = pytest.mark.parametrize("pure", ["0", "1"])
OTHER_DISK = Path("/dev/shm")


def ran(program: str, *args: str | Path, pure: str = "0") -> Any:
    command = [sys.executable, str(HERE / program), *map(str, args)]
    environment = {**os.environ, "PLAYHEAD_PURE": pure}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def look(top: Path) -> list[Any]:
    """Return all that is in a folder, with what would tell that it was touched."""
    found = []
    for path in sorted([top, *top.rglob("*")]):
        facts = path.lstat()
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found.append(
            (str(path), facts.st_mode, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns, content)
        )
    return found


@pytest.fixture
def world(tmp_path: Path) -> Path:
    folder = tmp_path / "world"
    folder.mkdir()
    ways.build(folder)
    return folder


@pytest.fixture
def laid(tmp_path: Path, world: Path) -> Iterator[Overlay]:
    """Lay an overlay in this process, over a world that is there."""
    reads.uninstall_once()  # what lies below must be there first
    found = overlay.install(tmp_path / "scratch", tmp_path / "store")
    try:
        yield found
    finally:
        found.close()


@PURE
def test_every_way_of_writing_is_turned_to_the_scratch_folder_and_seen_there(
    tmp_path: Path, world: Path, pure: str
) -> None:
    before = look(world)
    told = ran("ways.py", world, tmp_path / "scratch", tmp_path / "store", pure=pure)
    assert look(world) == before
    changes = dict(told["changes"])
    expected = {"a.txt": "deleted", "b.txt": "written", "x.txt": "created", "sub": "deleted", "script.sh": "written"}
    assert {name: changes[str(world / name)] for name in expected} == expected
    assert str(world / "link") not in changes
    assert [(what, Path(target).name) for what, target, _ in told["blocked"]] == [
        ("sqlite3 ATTACH", "elsewhere.db"),
        ("sqlite3 ATTACH", "elsewhere.db"),
        ("open", "by-class"),
        ("sqlite3.connect", "by-class.db"),
    ]
    assert all(at.startswith(str(HERE / "ways.py:")) for _, _, at in told["blocked"])


@PURE
@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_deeds_has_the_results_and_errors_that_it_has_without_the_overlay(
    tmp_path: Path, seed: int, pure: str
) -> None:
    for name in ("real", "over"):
        (tmp_path / name).mkdir()
        doing.build(tmp_path / name)
    before = look(tmp_path / "over")
    steps = "80"
    real = ran("doing.py", tmp_path / "real", str(seed), steps)
    over = ran("doing.py", tmp_path / "over", str(seed), steps, tmp_path / "scratch", tmp_path / "store", pure=pure)
    for one, other in zip(real["done"], over["done"], strict=True):
        assert other == one
    assert over["tree"] == real["tree"]
    assert look(tmp_path / "over") == before


@pytest.mark.skipif(not OTHER_DISK.is_dir(), reason="no second file system here")
def test_a_scratch_folder_on_another_disk_changes_no_result(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=OTHER_DISK) as scratch:
        for name in ("real", "over"):
            (tmp_path / name).mkdir()
            doing.build(tmp_path / name)
        real = ran("doing.py", tmp_path / "real", "7", "150")
        over = ran("doing.py", tmp_path / "over", "7", "150", scratch, tmp_path / "store")
        assert over == real


@PURE
def test_the_recorder_keeps_the_same_of_a_program_whether_its_writes_are_redirected_or_not(
    tmp_path: Path, world: Path, pure: str
) -> None:
    over = ran("told.py", world, tmp_path / "store", tmp_path / "scratch", pure=pure)  # first: it leaves no trace
    real = ran("told.py", world, tmp_path / "store", pure=pure)
    assert len(real["effects"]) > 20
    assert over == real


# In this process.


def test_it_can_be_laid_and_taken_away_many_times(tmp_path: Path, world: Path) -> None:
    before = look(world)
    reads.uninstall_once()
    functions = (os.open, os.stat, os.rename)
    for number in range(3):
        found = overlay.install(tmp_path / f"scratch{number}", tmp_path / "store")
        try:
            assert (world / "a.txt").read_text() == "old a.txt\n"
            (world / "a.txt").write_text(str(number))
            (world / "new.txt").write_text("new")
            assert (world / "a.txt").read_text() == str(number)
            assert sorted(os.path.basename(change.path) for change in found.changes()) == ["a.txt", "new.txt"]
        finally:
            found.close()
        assert look(world) == before
        assert (os.open, os.stat, os.rename) == functions
        assert os.stat in os.supports_dir_fd
        assert not (tmp_path / f"scratch{number}").exists()


def test_a_second_overlay_is_refused(laid: Overlay, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        overlay.install(tmp_path / "other", tmp_path / "store")


def test_processes_share_a_scratch_folder(tmp_path: Path, world: Path) -> None:
    scratch = tmp_path / "shared"
    code = f"""
import os, sys
from pathlib import Path
from playhead.replay import overlay
overlay.install(Path({str(scratch)!r}), Path({str(tmp_path / "store")!r}))
world = Path({str(world)!r})
if sys.argv[1] == "1":
    (world / "a.txt").unlink()
    (world / "mine.txt").write_text("mine")
else:
    print((world / "mine.txt").read_text(), (world / "a.txt").exists(), sorted(os.listdir(world))[:2])
"""
    said = [
        subprocess.run([sys.executable, "-c", code, number], capture_output=True, text=True, check=True).stdout
        for number in "12"
    ]
    assert said == ["", "mine False ['b.txt', 'c.txt']\n"]
    assert (world / "a.txt").exists()


def test_the_interpreter_opens_a_program_by_itself_where_no_code_of_python_runs(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        f"from pathlib import Path\nfrom playhead.replay import overlay\n"
        f"overlay.install(Path({str(tmp_path / 'scratch')!r}), Path({str(tmp_path / 'store')!r}))\n"
    )
    (tmp_path / "program.py").write_text("print('ran')\n")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}  # where a mistake of ours is told, as under pytest
    command = [sys.executable, str(tmp_path / "program.py")]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("ran\n", "")


def test_the_store_is_not_redirected(laid: Overlay, tmp_path: Path) -> None:
    (tmp_path / "store" / "runs").mkdir(parents=True)
    (tmp_path / "store" / "runs" / "one").write_text("kept")
    os.rename(tmp_path / "store" / "runs", tmp_path / "store" / "moved")
    with pytest.raises(OSError, match="cross-device"):
        os.rename(tmp_path / "world" / "a.txt", tmp_path / "store" / "a.txt")
    overlay.uninstall()
    assert (tmp_path / "store" / "moved" / "one").read_text() == "kept"


def test_devices_are_written_to(laid: Overlay) -> None:
    with open(os.devnull, "w") as file:
        file.write("nothing")


def test_what_the_recorded_run_made_itself_is_not_there_when_it_begins_again(laid: Overlay, world: Path) -> None:
    absent = [str(world / name) for name in ("a.txt", "sub", "never")]
    laid.expect(overlay.Before(absent, [str(world / "out" / "x")], [str(world / "b.txt"), str(world / "lost")], [], {}))
    assert (world / "b.txt").read_text() == "old b.txt\n"
    os.unlink(world / "lost")  # as the recorded run did
    assert not (world / "a.txt").exists()
    with open(world / "a.txt", "x") as file:
        file.write("again")
    os.mkdir(world / "sub")
    assert os.listdir(world / "sub") == []
    (world / "out" / "x" / "file").write_text("")
    changes = {os.path.relpath(change.path, world): change.what for change in laid.changes()}
    assert changes == {"a.txt": "created", "sub": "created", "out/x/file": "created"}


def test_errors_carry_the_path_that_was_given(laid: Overlay, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(world)
    os.unlink("a.txt")
    for act in (open, os.stat, os.listdir, os.scandir, os.unlink, os.chdir, os.readlink):
        with pytest.raises(FileNotFoundError) as caught:
            act("a.txt")
        assert caught.value.filename == "a.txt"
    with pytest.raises(FileNotFoundError) as caught:
        os.rename(b"a.txt", b"b.txt")
    assert (caught.value.filename, caught.value.filename2) == (b"a.txt", b"b.txt")
    with pytest.raises(TypeError):
        os.stat(1.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="null"):
        Path("a\0b").read_text()


def test_what_cannot_be_redirected_is_refused_and_told(laid: Overlay, world: Path) -> None:
    import io

    (world / "b.txt").write_text("new")
    with pytest.raises(WriteRefused) as caught:
        io.FileIO(world / "a.txt", "r+")
    assert isinstance(caught.value, PermissionError)
    assert isinstance(caught.value, PlayheadError)
    assert caught.value.errno == errno.EACCES
    with pytest.raises(WriteRefused):
        io.FileIO(world / "b.txt")  # it would see what the world has
    with io.FileIO(world / "a.txt") as unchanged:
        assert unchanged.read() == b"old a.txt\n"
    assert [Path(block.target).name for block in laid.blocked()] == ["a.txt", "b.txt"]
    assert all(Path(__file__).name in block.at for block in laid.blocked())


def test_a_pipe_of_the_world_is_not_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reads.uninstall_once()
    found = overlay.install(tmp_path / "scratch", tmp_path / "store")
    try:
        with pytest.raises(WriteRefused):
            (tmp_path / "pipe").write_text("x")
    finally:
        found.close()


# What the tape tells.


class Player:
    """Answers for files, as a tape does."""

    def __init__(self, told: dict[str, dict[str, Any]]) -> None:
        self.own: set[str] = set()
        self._told = told
        self.identities: dict[str, tuple[int, int]] = {}
        self.asked: list[tuple[str, str, str, str]] = []

    def file(self, of: str, by: str, lane: str, path: str, *, sure: bool = True) -> dict[str, Any] | None:
        self.asked.append((of, by, lane, os.path.basename(path)))
        return self._told.get(path)

    def is_in_world(self) -> bool:
        return False

    def wrote(self, path: str, *, after: int | None) -> None:
        self.own.add(path)

    def is_own(self, path: str) -> bool:
        return path in self.own

    def wrote_other(self, path: str, own: bytes, recorded: bytes) -> bool:
        return own != recorded

    def identity(self, path: str) -> tuple[int, int] | None:
        return self.identities.get(path)


class Pack:
    """What a lane reads goes here; nobody looks."""

    lane = "0"


@pytest.fixture
def tape(monkeypatch: pytest.MonkeyPatch) -> Player:
    player = Player({})
    monkeypatch.setattr(answering, "player", player)

    def here(of: str, frame: Any) -> Any:
        name = frame.f_globals["__name__"]
        return (of, name, Pack, None) if not name.startswith("playhead") else None

    monkeypatch.setattr(hooks, "here", here)
    return player


def test_the_tape_wins_over_the_world_and_the_programs_own_writes_until_something_else_may_have_written(
    laid: Overlay, world: Path, tape: Player
) -> None:
    path = str(world / "a.txt")
    tape._told[path] = {"content": b"as recorded"}
    with open(path) as file:
        assert file.read() == "as recorded"
        assert file.name == path
    with open(path, "w") as file:
        file.write("mine")
    with open(path) as file:
        assert file.read() == "mine", "nothing else can have changed it"
    tape.own.clear()  # a tool or a process was answered, which may have
    number = os.open(path, os.O_RDONLY)
    assert os.read(number, 100) == b"as recorded"
    os.close(number)
    assert laid.changes() == []  # what is there is what was told
    assert tape.asked == [("open", __name__, "0", "a.txt")] * 3


def test_a_file_that_the_world_has_lost_is_found_again_with_the_way_to_it(
    laid: Overlay, world: Path, tape: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(world)
    tape._told[str(world / "lost" / "far" / "file")] = {"content": b"found"}
    tape._told[str(world / "a.txt" / "below")] = {"content": b"in what is no folder any more"}
    with open("lost/far/file", "rb") as file:
        assert file.read() == b"found"
    with open("./a.txt/below", "rb") as file:
        assert file.read() == b"in what is no folder any more"
    with open("lost/far/file", "a") as file:
        file.write(" and longer")
    tape._told.clear()
    with open("lost/far/file") as file:
        assert file.read() == "found and longer"


def test_a_file_that_was_not_there_is_not_there(laid: Overlay, world: Path, tape: Player) -> None:
    path = str(world / "a.txt")
    tape._told[path] = {"error": "ENOENT"}
    with pytest.raises(FileNotFoundError) as caught:
        Path(path).read_text()
    assert caught.value.filename == path
    with open(path, "a+") as file:  # which makes it
        assert file.tell() == 0
    tape._told[path] = {"error": "EACCES"}
    with pytest.raises(PermissionError):
        Path(path).read_text()
    tape._told[path] = {"error": "EISDIR"}
    with pytest.raises(IsADirectoryError):
        Path(path).read_text()


def test_a_file_is_the_same_by_its_path_and_by_its_number_whatever_the_tape_told_of_it(
    laid: Overlay, world: Path, tape: Player
) -> None:
    tape.identities[str(world / "a.txt")] = (12345, 6)
    with open(world / "a.txt") as file:
        facts = os.fstat(file.fileno())
    assert (facts.st_ino, facts.st_dev, facts.st_size) == (12345, 6, 10)
    assert os.path.samestat(facts, os.stat(world / "a.txt"))
    (world / "a.txt").write_text("other")
    assert os.stat(world / "a.txt").st_ino == 12345


def test_files_of_the_system_are_as_they_were_when_the_tape_knows_them(laid: Overlay, tape: Player) -> None:
    tape._told["/proc/self/comm"] = {"content": b"another\n"}
    with open("/proc/self/comm") as file:
        assert file.read() == "another\n"
    tape._told.clear()
    with open("/proc/self/comm") as file:
        assert file.read() != "another\n"


def test_a_database_is_as_the_tape_tells(laid: Overlay, world: Path, tape: Player, tmp_path: Path) -> None:
    import sqlite3

    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("create table words (word)")
    other.execute("insert into words values ('recorded')")
    other.commit()
    other.close()
    with open(tmp_path / "other.db", "rb") as file:
        content = file.read()
    tape._told[str(world / "data.db")] = {"content": content}
    database = sqlite3.connect(f"file:{world}/data.db?mode=ro", uri=True)
    assert database.execute("select word from words").fetchall() == [("recorded",)]
    database.close()


def test_the_first_that_is_done_to_a_path_tells_what_was_there_before() -> None:
    effects: list[dict[str, Any]] = [
        {"what": "directory.created", "target": "/w/out"},
        {"what": "file.written", "target": "/w/out/a", "detail": {"mode": "w", "created": True}},
        {"what": "file.renamed", "target": "/w/out/a", "detail": {"to": "/w/b"}},
        {"what": "file.deleted", "target": "/w/b"},
        {"what": "file.deleted", "target": "/w/old"},
        {"what": "file.deleted", "target": "/w/folder/in"},
        {"what": "directory.deleted", "target": "/w/folder"},
        {"what": "directory.deleted", "target": "/w/out"},
        {"what": "file.written", "target": "/w/log", "detail": {"mode": "a"}},
        {"what": "mode.changed", "target": "/w/script", "detail": {"mode": "0700"}},
        {"what": "mode.changed", "target": "/w/log", "detail": {"mode": "0600"}},
        {"what": "process.started", "target": "/bin/true", "detail": {"argv": ["true"]}},
        {"what": "socket.connected", "target": "host:443"},
    ]
    assert overlay.before(effects) == overlay.Before(
        absent=["/w/out", "/w/out/a", "/w/b"],
        folders=["/w", "/w/folder"],
        files=["/w/old", "/w/folder/in", "/w/log"],
        modes=[("/w/script", 0o700), ("/w/log", 0o600)],
        only={"/w/folder": {"/w/folder/in"}},
    )
