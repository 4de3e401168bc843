from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from playhead.cli.whole_file import whole_file
from playhead.errors import UsageError


def written(target: Path, data: bytes = b"all") -> None:
    with whole_file(target) as file:
        file.write(data)


def test_what_is_no_file_is_written_into_and_stays_what_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    written(pipe)
    reader.join()
    assert (got, pipe.is_fifo(), os.listdir(tmp_path)) == ([b"all"], True, ["pipe"])


def test_a_link_stays_one_and_a_file_keeps_who_may_read_it(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to("there/file")
    written(link)
    (tmp_path / "there" / "file").chmod(0o600)
    written(link, b"more")
    assert (link.is_symlink(), link.read_bytes(), link.stat().st_mode & 0o777) == (True, b"more", 0o600)


def test_a_failure_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    written(file, b"before")

    def fail() -> None:
        with whole_file(file) as half:
            half.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (file.read_bytes(), os.listdir(tmp_path)) == (b"before", ["file"])


@pytest.mark.parametrize("name", ["", "no/file", "x" * 256])
def test_where_nothing_can_be_written_that_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot write to"):
        written(tmp_path / name)


def test_a_name_may_be_as_long_as_names_are(tmp_path: Path) -> None:
    written(tmp_path / ("x" * 255))
    assert [len(name) for name in os.listdir(tmp_path)] == [255]
