"""Give the tests of the registry a database in a folder of its own, and a clock that they turn by hand."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from playhead.store.registry.database import Registry


class HandClock:
    """Stand still until told otherwise."""

    def __init__(self) -> None:
        self.now_us = 1_700_000_000_000_000

    def wall_us(self) -> int:
        self.now_us += 1000  # ids of one millisecond have no order
        return self.now_us

    def monotonic_us(self) -> int:
        return self.now_us

    def pass_s(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / ".playhead"


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def registry(root: Path, clock: HandClock) -> Iterator[Registry]:
    with Registry(root, clock) as registry:
        yield registry
