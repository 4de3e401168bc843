"""What several tests of capture need."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from playhead.errors import WriteFailed


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Let the disk fail from the n-th line on."""
    from playhead.store.file_log import FileLog

    original, left = FileLog.append, [10**9]

    def append(self: Any, line: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise WriteFailed("no space left on the device")
        original(self, line)

    monkeypatch.setattr(FileLog, "append", append)
    yield lambda lines: left.__setitem__(0, lines)
    left[0] = 10**9


@pytest.fixture(autouse=True)
def nothing_left_watched() -> Iterator[None]:
    """See to it that no test leaves the clocks watched for the next one."""
    yield
    from playhead.capture import reads

    assert reads._installed == 0, "playhead.uninstall() is missing"
