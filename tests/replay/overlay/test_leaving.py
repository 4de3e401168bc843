"""Files that are open in the scratch folder go on in the world, at the same place."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from playhead import _limits
from playhead.replay.overlay.layers import CannotLeave, Layers
from playhead.replay.overlay.leaving import hand_over


@pytest.fixture
def layers(tmp_path: Path) -> Layers:
    return Layers(tmp_path / "scratch", ())


def above(layers: Layers, path: Path) -> Path:
    place = Path(layers.files + str(path))
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


def own(path: str, adds: bool) -> bool:
    """Say that no tool may have written to a file."""
    return True


def test_what_the_world_does_not_have_is_brought(layers: Layers, tmp_path: Path) -> None:
    with open(above(layers, tmp_path / "notes"), "w") as file:
        file.write("one\n")
        file.flush()
        assert hand_over(layers, None, own) == []
        file.write("two\n")
    assert (tmp_path / "notes").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("mode", "left", "said"),
    [("w", "one\n2\n", "was cut back"), ("a", "one\ntwo\n2\n", "may be there twice")],
    ids=["written from its beginning", "added to"],
)
def test_a_trial_cuts_back_only_what_is_its_own(
    layers: Layers, tmp_path: Path, mode: str, left: str, said: str
) -> None:
    (tmp_path / "log").write_text("one\ntwo\n")
    with open(above(layers, tmp_path / "log"), mode) as file:
        file.write("one\n")
        file.flush()
        [note] = hand_over(layers, None, own)
        file.write("2\n")
    assert (tmp_path / "log").read_text() == left
    assert said in note


@pytest.mark.parametrize(("later", "left"), [(0, "one\n2\n"), (2, "one\ntwo\n2\n")])
def test_a_log_that_nobody_else_has_touched_is_cut_back(layers: Layers, tmp_path: Path, later: int, left: str) -> None:
    log, until_us = tmp_path / "log", 1_700_000_000_000_000
    log.write_text("one\ntwo\n")
    touched = (until_us + later * _limits.WRITTEN_AFTER_END_US) * 1000
    os.utime(log, ns=(touched, touched))
    with open(above(layers, log), "a") as file:
        file.write("one\n")
        file.flush()
        assert len(hand_over(layers, until_us, own)) == 1
        file.write("2\n")
    assert log.read_text() == left


def test_what_has_no_name_any_more_stays(layers: Layers, tmp_path: Path) -> None:
    place = above(layers, tmp_path / "passing")
    with open(place, "w+") as file:
        place.unlink()
        file.write("one\n")
        file.flush()
        assert hand_over(layers, None, own) == []
        file.seek(0)
        assert file.read() == "one\n"
    assert [one.name for one in tmp_path.iterdir()] == ["scratch"]


def test_an_open_database_is_not_handed_over(layers: Layers, tmp_path: Path) -> None:
    place = above(layers, tmp_path / "some.db")
    place.write_bytes(b"SQLite format 3\0" + bytes(100))
    with open(place, "r+b"), pytest.raises(CannotLeave, match=r"some\.db"):
        hand_over(layers, None, own)


def test_an_empty_database_is_known_by_who_opened_it(layers: Layers, tmp_path: Path) -> None:
    place = above(layers, tmp_path / "some.db")
    place.touch()
    layers.databases.add(str(place))
    (tmp_path / "some.db").write_bytes(b"rows that tools wrote")
    with open(place, "r+b"), pytest.raises(CannotLeave, match=r"some\.db"):
        hand_over(layers, 0, own)
    assert (tmp_path / "some.db").read_bytes() == b"rows that tools wrote"


def test_what_tools_may_have_written_to_is_gone_on_with_at_its_end(layers: Layers, tmp_path: Path) -> None:
    log, report = tmp_path / "log", tmp_path / "report"
    for path in (log, report):
        path.write_text("one\nof a tool\n")
    with open(above(layers, log), "a") as first, open(above(layers, report), "w") as second:
        for file in (first, second):
            file.write("one\n")
            file.flush()
        notes = hand_over(layers, 0, lambda path, adds: False)
        for file in (first, second):
            file.write("two\n")
    assert log.read_text() == report.read_text() == "one\nof a tool\ntwo\n"
    assert len(notes) == 2


def test_where_something_else_stands_nothing_is_cut(layers: Layers, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("another line\nand one more\n")
    with open(above(layers, tmp_path / "log"), "a") as file:
        file.write("one\n")
        file.flush()
        hand_over(layers, 2**52, own)
    assert (tmp_path / "log").read_text() == "another line\nand one more\n"


def test_what_is_not_there_yet_is_brought(layers: Layers, tmp_path: Path) -> None:
    """As what a task wrote that was past the tape before the others were."""
    (tmp_path / "log").write_text("one\n")
    with open(above(layers, tmp_path / "log"), "a") as file:
        file.write("one\ntwo\n")
        file.flush()
        assert hand_over(layers, 2**52, own) == []
        file.write("three\n")
    assert (tmp_path / "log").read_text() == "one\ntwo\nthree\n"


def test_a_folder_that_the_world_does_not_have_is_made(layers: Layers, tmp_path: Path) -> None:
    with open(above(layers, tmp_path / "a" / "b" / "notes"), "w") as file:
        file.write("one\n")
        file.flush()
        hand_over(layers, None, own)
    assert (tmp_path / "a" / "b" / "notes").read_text() == "one\n"


def test_one_that_cannot_be_handed_over_leaves_all_as_they_are(layers: Layers, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "a").write_text("one\ntwo\n")
    with open(above(layers, tmp_path / "a"), "w") as first, open(above(layers, tmp_path / "b"), "w"):
        with pytest.raises(CannotLeave, match="b is open in the program"):
            hand_over(layers, None, own)
        first.write("three\n")
    assert (tmp_path / "a").read_text() == "one\ntwo\n"


def test_the_program_is_where_it_takes_itself_to_be(
    layers: Layers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    above(layers, tmp_path / "out" / "file").touch()
    monkeypatch.chdir(layers.files + str(tmp_path / "out"))
    hand_over(layers, None, own)
    assert os.getcwd() == str(tmp_path / "out")
