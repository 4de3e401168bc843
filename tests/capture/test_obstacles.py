"""What can be seen to fail is left out, and nothing else: whoever is not asked about it is not kept from it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from playhead.capture import obstacles

NOBODY = 65534


@pytest.fixture
def place() -> Iterator[Path]:
    """Make a folder for whoever has no rights of root."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        yield Path(folder)


def as_nobody(question: Callable[[], bool]) -> bool:
    """Ask in a process that has no rights of root: root may do everything."""
    if (child := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.seteuid(NOBODY)
            os._exit(int(question()))
        finally:
            os._exit(2)
    return bool([False, True][os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])])


def test_a_file_can_be_made_through_a_link_in_a_folder_that_cannot_be_written(place: Path) -> None:
    (place / "closed").mkdir()
    (place / "closed/link").symlink_to("../new")
    (place / "closed").chmod(0o555)
    for flags, can in ((os.O_CREAT | os.O_WRONLY, True), (os.O_WRONLY, False)):
        assert as_nobody(lambda: obstacles.can_write(str(place / "closed/link"), None, flags)) is can  # noqa: B023
    (place / "closed").chmod(0o755)


def test_a_folder_that_cannot_be_read_can_be_deleted_and_replaced(place: Path) -> None:
    for name in ("closed", "other"):
        (place / name).mkdir()
    (place / "closed").chmod(0o300)
    assert as_nobody(lambda: obstacles.can_delete_folder(str(place / "closed")))
    assert as_nobody(lambda: obstacles.can_rename(str(place / "other"), str(place / "closed")))
    (place / "closed").chmod(0o755)


def test_a_link_to_nothing_can_have_another_name(place: Path) -> None:
    (place / "link").symlink_to("nothing")
    assert obstacles.can_link(str(place / "link"), str(place / "new"))
    assert not obstacles.can_link(str(place / "nothing"), str(place / "new"))
