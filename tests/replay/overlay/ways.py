"""Write by every way that a program may, in a folder, and check that it reads what it wrote.

Run as a program: `ways.py ROOT SCRATCH STORE`, in a world made by `build`. Prints the changes as JSON.
"""

from __future__ import annotations

import glob
import gzip
import json
import logging
import mmap
import os
import pickle
import shelve
import shutil
import sqlite3
import sys
import tempfile
import threading
import zipfile
from os import rename as renamed_early
from pathlib import Path
from typing import Any


def failed(kind: type[BaseException], act: Any, *args: Any) -> Any:
    """Do what must fail, and return how it did."""
    try:
        act(*args)
    except kind as problem:
        return problem
    raise AssertionError(f"{act} did not fail")


def build(root: Path) -> None:
    """Make the world."""
    (root / "sub" / "deep").mkdir(parents=True)
    for name in ("a.txt", "b.txt", "c.txt", "sub/d.txt", "sub/deep/e.txt"):
        (root / name).write_text(f"old {name}\n")
    (root / "script.sh").write_text("echo\n")
    (root / "script.sh").chmod(0o755)
    (root / "link").symlink_to("sub")
    (root / "dangling").symlink_to("new-by-link.txt")
    with sqlite3.connect(root / "data.db") as database:
        database.execute("create table words (word)")
        database.execute("insert into words values ('old')")
    database.close()


def plain(root: Path) -> None:
    Path("a.txt").write_text("new\n")
    assert Path("a.txt").read_text() == "new\n"
    with open("b.txt", "a") as file:
        file.write("more\n")
        assert file.name == "b.txt"
    assert Path("b.txt").read_text() == "old b.txt\nmore\n"
    with open(root / "c.txt", "r+b") as file:
        file.write(b"NEW")
    assert Path("c.txt").read_bytes() == b"NEW c.txt\n"
    with open("x.txt", "x") as file:
        file.write("made")
    assert failed(FileExistsError, open, "x.txt", "x").filename == "x.txt"
    Path("dangling").write_text("through a link")
    assert Path("new-by-link.txt").read_text() == "through a link"
    Path("link/d.txt").write_text("through a folder's link")
    assert Path("sub/d.txt").read_text() == "through a folder's link"


def by_os(root: Path) -> None:
    number = os.open("by-number", os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    os.write(number, b"numbered")
    os.ftruncate(number, 4)
    assert os.fstat(number).st_size == 4
    assert os.readlink(f"/proc/self/fd/{number}") == str(root / "by-number")
    os.close(number)
    renamed_early("by-number", "renamed")  # the function was there before the overlay was
    assert not os.path.exists("by-number")
    assert Path("renamed").read_bytes() == b"numb"
    os.link("renamed", "linked")
    assert os.stat("linked").st_nlink == 2
    os.symlink("renamed", "symbolic")
    assert os.path.realpath("symbolic") == str(root / "renamed")
    os.truncate("renamed", 2)
    assert Path("linked").read_bytes() == b"nu"
    os.mkfifo("pipe")
    os.chmod("script.sh", 0o700)
    os.utime("script.sh", (1, 2))
    assert os.stat("script.sh").st_mtime == 2
    os.unlink("pipe")
    os.remove("sub/deep/e.txt")
    assert os.listdir("sub/deep") == []
    os.rmdir("sub/deep")
    assert sorted(os.listdir("sub")) == ["d.txt"]
    assert failed(FileNotFoundError, os.stat, "sub/deep").filename == "sub/deep"
    os.makedirs("sub/deep/er")
    assert os.listdir("sub/deep") == ["er"]  # and not what was there before
    os.removedirs("sub/deep/er")
    os.mkdir("sub2")
    os.rename("sub", "sub2/moved")
    assert glob.glob("**/*.txt", root_dir="sub2", recursive=True) == ["moved/d.txt"]
    try:
        os.setxattr("a.txt", "user.playhead", b"1")
        assert os.getxattr("a.txt", "user.playhead") == b"1"
    except OSError:
        pass  # a file system without


def by_folders(root: Path) -> None:
    os.mkdir("work")
    os.chdir("work")
    assert os.getcwd() == str(root / "work")
    Path("here.txt").write_text("here")
    assert (root / "work" / "here.txt").read_text() == "here"
    assert [entry.path for entry in os.scandir()] == ["./here.txt"]
    assert [entry.path for entry in os.scandir(root / "work")] == [str(root / "work" / "here.txt")]
    os.chdir("..")
    folder = os.open("work", os.O_RDONLY)
    assert os.listdir(folder) == ["here.txt"]
    os.close(os.open("by-folder", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
    os.rename("here.txt", "there.txt", src_dir_fd=folder, dst_dir_fd=folder)
    os.close(folder)
    assert sorted(os.listdir("work")) == ["by-folder", "there.txt"]
    shutil.copytree("work", "copied")
    shutil.copy2("script.sh", "copied")
    assert os.access("copied/script.sh", os.X_OK)
    shutil.move("copied", "moved")
    shutil.rmtree("work")
    assert not os.path.exists("work")
    assert sorted(next(names for _, _, names, _ in os.fwalk("moved"))) == ["by-folder", "script.sh", "there.txt"]


def by_libraries(root: Path) -> None:
    handler = logging.FileHandler("agent.log")
    logging.getLogger("agent").addHandler(handler)
    logging.getLogger("agent").warning("told")
    handler.close()
    assert Path("agent.log").read_text() == "told\n"
    with gzip.open("packed.gz", "wt") as packed:
        packed.write("packed")
    with gzip.open("packed.gz", "rt") as packed:
        assert packed.read() == "packed"
    with zipfile.ZipFile("files.zip", "w") as archive:
        archive.write("a.txt")
    with zipfile.ZipFile("files.zip") as archive:
        assert archive.read("a.txt") == b"new\n"
    with shelve.open("shelf") as shelf:
        shelf["one"] = 1
    with shelve.open("shelf") as shelf:
        assert shelf["one"] == 1
    with open("b.txt", "r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:3] = b"MAP"
    assert Path("b.txt").read_text().startswith("MAP")
    with open("object.pickle", "wb") as file:
        pickle.dump([1], file)
    with tempfile.TemporaryDirectory(dir=".") as folder:
        (Path(folder) / "x").write_text("x")
    assert not os.path.exists(folder)
    with tempfile.NamedTemporaryFile("w+") as temporary:
        temporary.write("temporary")
        temporary.flush()
        assert Path(temporary.name).read_text() == "temporary"
    with tempfile.TemporaryFile() as unnamed:
        unnamed.write(b"x")
    kept, name = tempfile.mkstemp()
    os.close(kept)
    assert os.path.exists(name)
    Path("made_module.py").write_text("ANSWER = 42\n")
    sys.path.insert(0, str(root))
    import made_module  # type: ignore[import-not-found]

    assert made_module.ANSWER == 42


def by_databases(root: Path) -> None:
    for name, options in (("data.db", {}), (f"file:{root}/data.db?mode=rw", {"uri": True})):
        database = sqlite3.connect(name, **options)  # type: ignore[arg-type]
        database.execute("pragma journal_mode=wal")
        database.execute("insert into words values (?)", (name,))
        database.commit()
        assert database.execute("select word from words").fetchone() == ("old",)
        database.close()
    database = sqlite3.connect("new.db")
    database.execute("create table t (x)")
    assert "authoriz" in str(failed(sqlite3.DatabaseError, database.execute, "attach 'elsewhere.db' as other"))
    asked: list[int] = []
    database.set_authorizer(lambda action, *_: asked.append(action) or sqlite3.SQLITE_OK)
    assert "authoriz" in str(failed(sqlite3.DatabaseError, database.execute, "vacuum into 'elsewhere.db'"))
    database.execute("select x from t")
    assert sqlite3.SQLITE_SELECT in asked
    database.close()
    failed(sqlite3.OperationalError, sqlite3.connect, "no/folder/new.db")
    assert sqlite3.connect(":memory:").execute("select 1").fetchone() == (1,)


def by_others(root: Path) -> None:
    def write(number: int) -> None:
        folder = Path("threads") / str(number)
        folder.mkdir(parents=True, exist_ok=True)
        for one in range(20):
            (folder / str(one)).write_text(str(one))
            os.replace(folder / str(one), folder / f"{one}.done")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(glob.glob("threads/*/*.done")) == 80
    child = os.fork()
    if child == 0:
        Path("by-child").write_text("child")
        os.remove("a.txt")
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert Path("by-child").read_text() == "child"
    assert not os.path.exists("a.txt")


def refused(root: Path) -> None:
    import io

    assert "scratch" in str(failed(PermissionError, io.FileIO, "by-class", "w"))
    failed(PermissionError, sqlite3.Connection, "by-class.db")


def main() -> None:
    root, scratch, store = map(Path, sys.argv[1:])
    from playhead.replay import overlay

    laid = overlay.install(scratch, store)
    os.chdir(root)
    for way in (plain, by_os, by_folders, by_libraries, by_databases, by_others, refused):
        way(root)
    changes = [list(change) for change in laid.changes() if change.path.startswith(str(root))]
    print(json.dumps({"changes": changes, "blocked": [list(block) for block in laid.blocked()]}))
    overlay.uninstall()
    assert not os.path.exists("x.txt")


if __name__ == "__main__":
    main()
