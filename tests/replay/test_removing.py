"""Folders are removed in a replay as they were, whatever the world has put into them since."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.replay.again import record

PROGRAM = """
import os, shutil, tempfile
print(sorted(os.listdir("old")))
shutil.rmtree("old")
os.makedirs("out/x/y")
open("out/x/y/f", "w").write("1")
shutil.rmtree("out")
with tempfile.TemporaryDirectory() as folder:
    os.makedirs(os.path.join(folder, "a", "b"))
os.makedirs("old")
print(os.path.exists("out"), os.listdir("old"))
os.rmdir("old")
for act in (lambda: os.rmdir("kept"), lambda: os.rmdir("nowhere"), lambda: os.utime("nowhere")):
    try:
        act()
    except OSError as problem:
        print(problem)
"""


def _as_it_was(folder: Path) -> None:
    pass


def _with_more(folder: Path) -> None:
    for name in ("old/new", "out/z", "out/x/z"):
        (folder / name).mkdir(parents=True)
        (folder / name / "file").write_text("new")
    (folder / "old" / "file").write_text("new")


def _without(folder: Path) -> None:
    shutil.rmtree(folder / "old", ignore_errors=True)


@pytest.mark.parametrize("change", [_as_it_was, _with_more, _without])
@pytest.mark.parametrize("back", [True, False])
def test_a_folder_with_folders_in_it_is_removed_as_it_was(
    tmp_path: Path, change: Callable[[Path], None], back: bool
) -> None:
    _old(tmp_path)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("kept")
    recorded = record(tmp_path, PROGRAM)
    if back:
        _old(tmp_path)
    change(tmp_path)
    before = sorted(tmp_path.rglob("*/*"))
    recorded.faithful()
    assert sorted(path for path in tmp_path.rglob("*/*") if path in before) == before


def _old(folder: Path) -> None:
    (folder / "old" / "inner").mkdir(parents=True)
    for name in ("a", "b", "inner/c"):
        (folder / "old" / name).write_text(name)
