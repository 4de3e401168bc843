"""Temporary files have the same names in a replay, also those that threads make at the same time."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from tests.replay.again import record

import playhead
from playhead.capture import reads

AT_ONCE = """
    import tempfile
    from concurrent.futures import ThreadPoolExecutor

    def make(number):
        found = []
        for _ in range(4):
            with tempfile.NamedTemporaryFile() as file, tempfile.TemporaryDirectory() as folder:
                found += [file.name, folder]
        return found

    with ThreadPoolExecutor(4) as pool:
        for names in pool.map(make, range(8)):
            print(names)
"""


@pytest.mark.parametrize("pure", [False, True])
def test_threads_that_make_some_at_once_draw_the_same_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pure: bool
) -> None:
    if pure:
        monkeypatch.setenv("PLAYHEAD_PURE", "1")
    recorded = record(tmp_path, AT_ONCE)
    assert len(set(recorded.output.split())) == 64
    recorded.faithful()


def test_they_are_in_the_folder_of_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "own"))
    recorded = record(tmp_path, AT_ONCE)
    assert recorded.output.count(str(tmp_path / "own")) == 64
    monkeypatch.delenv("TMPDIR")
    recorded.faithful()


def test_nothing_is_recorded_of_how_a_folder_is_tried_out(tmp_path: Path) -> None:
    recorded = record(tmp_path, "import tempfile\nprint(tempfile.gettempdir())\n")
    kinds = [event.kind for event in playhead.load(tmp_path / ".playhead" / "runs" / recorded.run).events()]
    assert "effect.observed" not in kinds
    recorded.faithful()


def test_names_of_the_programs_own_stay_what_they_are(tmp_path: Path) -> None:
    program = """
    import os, tempfile
    tempfile._name_sequence = iter(["one", "two"])
    for _ in range(2):
        number, path = tempfile.mkstemp(dir=".")
        os.close(number)
        print(os.path.basename(path))
        os.unlink(path)
    """
    recorded = record(tmp_path, program)
    assert recorded.output == "tmpone\ntmptwo\n"
    recorded.faithful()


def test_what_was_there_is_put_back() -> None:
    names = ("_get_candidate_names", "_get_default_tempdir", "_candidate_tempdir_list")
    before = [getattr(tempfile, name) for name in names]
    reads.install()
    try:
        assert all(getattr(tempfile, name) is not one for name, one in zip(names, before, strict=True))
    finally:
        reads.uninstall()
    assert [getattr(tempfile, name) for name in names] == before
