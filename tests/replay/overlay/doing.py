"""Do a sequence of things to files, in a folder, with the overlay or without; say what came of each, and of all.

Run as a program: `doing.py ROOT SEED STEPS [SCRATCH STORE]`. Prints JSON. What it says does not depend on ROOT.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import sys
import tempfile
from pathlib import Path
from typing import Any

NAMES = ["a", "b", "c", "d.txt", "e.txt", "link", "loop"]


def some_path(chance: random.Random) -> str:
    return "/".join(chance.choice(NAMES) for _ in range(chance.choice([1, 1, 2, 2, 3])))


def write(path: str, mode: str, text: str) -> Any:
    with open(path, mode) as file:
        file.write(text)
        if "+" in mode:
            file.seek(0)
            return [file.name, file.read()]
        return file.name


def by_number(path: str, flags: int, text: bytes) -> Any:
    number = os.open(path, flags, 0o640)
    try:
        if flags & (os.O_WRONLY | os.O_RDWR):
            os.write(number, text)
        return os.fstat(number).st_size
    finally:
        os.close(number)


def in_folder(folder: str, name: str, what: str) -> Any:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if what == "list":
            return sorted(os.listdir(number))
        if what == "scan":
            with os.scandir(number) as entries:
                return sorted((entry.name, entry.path) for entry in entries)
        if what == "stat":
            return facts(os.stat(name, dir_fd=number, follow_symlinks=False))
        if what == "unlink":
            return os.unlink(name, dir_fd=number)
        if what == "mkdir":
            return os.mkdir(name, dir_fd=number)
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=number))
    finally:
        os.close(number)


def facts(found: os.stat_result) -> Any:
    size = 0 if stat.S_ISDIR(found.st_mode) else found.st_size
    return [stat.filemode(found.st_mode), size, 0 if stat.S_ISDIR(found.st_mode) else found.st_nlink]


def scan(path: str) -> Any:
    with os.scandir(path) as entries:
        return sorted([e.name, e.path, e.is_dir(), e.is_file(follow_symlinks=False), e.is_symlink()] for e in entries)


def has_no_end(one: str, other: str) -> bool:
    return os.path.realpath(other).startswith(os.path.realpath(one))


def move(one: str, other: str) -> Any:
    return None if has_no_end(one, other) else shutil.move(one, other)


def copy_tree(one: str, other: str) -> Any:
    return None if has_no_end(one, other) else shutil.copytree(one, other, symlinks=True)


def changed_folder(path: str) -> Any:
    before = os.getcwd()
    os.chdir(path)
    try:
        return [os.getcwd(), sorted(os.listdir()), os.path.exists("d.txt")]
    finally:
        os.chdir(before)


def step(chance: random.Random, number: int) -> Any:
    one, other = some_path(chance), some_path(chance)
    whole = os.path.join(os.getcwd(), one) if chance.random() < 0.3 else one
    text = f"{number}\n" * chance.randrange(3)
    flags = chance.choice([os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_CREAT | os.O_EXCL])
    flags |= chance.choice([0, os.O_APPEND, os.O_TRUNC, os.O_CREAT, os.O_NOFOLLOW])
    mode = chance.choice(["w", "a", "x", "r+", "w+", "a+", "x+"])
    inside = chance.choice(["list", "scan", "stat", "unlink", "mkdir", "open"])
    deeds: list[tuple[Any, ...]] = [
        (write, whole, mode, text),
        (write, whole, mode, text),
        (by_number, one, flags, text.encode()),
        (by_number, one, flags, text.encode()),
        (lambda: Path(whole).read_text(),),
        (lambda: Path(whole).read_bytes().decode(),),
        (os.rename, one, other),
        (os.replace, Path(one), Path(other)),
        (os.unlink, whole),
        (os.remove, whole.encode()),
        (os.mkdir, whole),
        (os.makedirs, one),
        (os.rmdir, one),
        (os.truncate, one, 3),
        (os.symlink, other, one),
        (os.symlink, os.path.join(os.getcwd(), other), one),
        (os.link, one, other),
        (os.chmod, one, 0o700),
        (lambda: os.utime(one, (5, 7)),),
        (lambda: os.stat(one).st_mtime_ns == 7 * 10**9,),
        (lambda: facts(os.stat(one)),),
        (lambda: facts(os.lstat(whole)),),
        (lambda: sorted(os.listdir(whole)),),
        (scan, one),
        (os.readlink, one),
        (lambda: os.access(one, os.R_OK),),
        (os.path.realpath, one),
        (lambda: sorted(map(str, Path().rglob(chance.choice(["*", "*.txt"])))),),
        (changed_folder, one),
        (in_folder, one, chance.choice(NAMES), inside),
        (shutil.copy2, one, other),
        (move, one, other),
        (shutil.rmtree, one),
        (copy_tree, one, other),
        (lambda: Path(one).touch(),),
        (lambda: [sorted(d + f) for _, d, f in os.walk(one)].sort(),),
        (os.removedirs, one),
        (lambda: os.close(os.open(one if os.path.isdir(one) else ".", os.O_TMPFILE | os.O_WRONLY)),),
        (lambda: tempfile.TemporaryDirectory(dir=one).cleanup(),),
        (os.path.samefile, one, other),
        (lambda: facts(os.stat(one + "/")),),
    ]
    deed, *args = chance.choice(deeds)
    name = [
        getattr(deed, "__qualname__", ""),
        *([deed.__code__.co_firstlineno, one, other] if "lambda" in str(deed) else []),
    ]
    try:
        return [name, args, deed(*args)]
    except OSError as problem:
        return [name, args, type(problem).__name__, problem.errno, problem.filename, problem.filename2]
    except shutil.Error as problem:
        return [name, args, str(problem)]


def tree(top: str) -> list[Any]:
    found = []
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = os.path.join(folder, name)
            known = facts(os.lstat(path))
            content = Path(path).read_text() if known[0][0] == "-" else os.readlink(path) if known[0][0] == "l" else ""
            found.append([os.path.relpath(path, top), known, content])
    return sorted(found)


def plain(value: Any, root: str) -> Any:
    return json.loads(
        json.dumps(value, default=lambda one: one.decode() if isinstance(one, bytes) else str(one)).replace(
            root, "ROOT"
        )
    )


def build(root: Path) -> None:
    """Make what is there before."""
    (root / "a" / "b" / "c").mkdir(parents=True)
    (root / "a" / "d.txt").write_text("one\n")
    (root / "a" / "b" / "e.txt").write_text("two\n")
    (root / "d.txt").write_text("three\n")
    (root / "c").mkdir()
    (root / "link").symlink_to("a/b")
    (root / "a" / "link").symlink_to(root / "c")
    (root / "loop").symlink_to("loop")


def main() -> None:
    root, seed, steps, *overlaid = sys.argv[1:]
    if overlaid:
        from playhead.replay import overlay

        overlay.install(Path(overlaid[0]), Path(overlaid[1]))
    os.umask(0o022)
    os.chdir(root)
    chance = random.Random(int(seed))
    tempfile.tempdir = "/nowhere"
    tempfile._name_sequence = iter(f"temp{n}" for n in range(10**6))  # type: ignore[attr-defined]
    done = [step(chance, number) for number in range(int(steps))]
    print(json.dumps(plain({"done": done, "tree": tree(root)}, root)))


if __name__ == "__main__":
    main()
