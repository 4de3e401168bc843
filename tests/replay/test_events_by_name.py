from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import playhead
from playhead._api.reading import Run
from playhead.errors import BrokenLine, UsageError
from playhead.replay.events_by_name import Names
from playhead.store import layout
from playhead.store.files import FileStore
from playhead.store.reader import RunReader


class CountingStore(FileStore):
    """Count the lines that are read."""

    read = 0

    def lines(self, run: str, offset: int = 0) -> Iterator[bytes]:
        for line in super().lines(run, offset):
            self.read += 1
            yield line


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(tmp_path / "store")


def work(calls: int) -> None:
    @playhead.tool
    def poll(number: int) -> int:
        return number

    for _ in range(2):
        with playhead.step("s"):
            for number in range(calls):
                poll(number)


def test_after_the_first_look_nothing_is_read_again_but_what_was_added(store: CountingStore) -> None:
    with playhead.record("r", store=store.root) as run:
        work(20)
        names = Names(RunReader(store, run.id))
        assert names.end_of_step("s") == 42
        read = store.read
        assert [names.end_of_step(name) for name in ("s", "s#2", "43")] == [42, 84, 84]
        assert [names.event(name) for name in ("poll", "poll#40", "s#2", "tool#2", "step")] == [3, 83, 43, 5, 1]
        assert store.read - read < 2 * 85  # where lines begin is learned
        read = store.read
        work(1)
        assert (names.event("poll#41"), names.end_of_step("s#3")) == (87, 88)
        assert store.read - read < 40
        with pytest.raises(UsageError, match="has 42 of poll, and no 43"):
            names.event("poll#43")
        with pytest.raises(UsageError, match="has no step 't'") as told:
            names.end_of_step("t")
        assert told.value.hint == "Its steps are s, s#2, s#3, s#4."


def test_moving_by_name_does_not_read_the_run_again(store: CountingStore) -> None:
    with playhead.record("r", store=store.root) as recorded:
        work(50)
    run = Run(store, recorded.id)
    assert [run.at(step="s#2").seq, run.at("poll#100").seq] == [204, 203]
    read = store.read
    assert [run.at(step="s").seq, run.at("poll#3").seq, run.at("poll#99").seq] == [102, 7, 201]
    assert store.read - read < 10


def test_a_name_is_found_before_a_line_that_cannot_be_read(store: CountingStore) -> None:
    with playhead.record("r", store=store.root) as run:
        work(3)
    path = layout.timeline(store.folder(run.id))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:8], b"{no json\n", *lines[9:]]))
    names = Names(RunReader(store, run.id))
    assert names.event("poll") == 3
    for _ in range(2):
        with pytest.raises(BrokenLine):
            names.event("poll#5")
