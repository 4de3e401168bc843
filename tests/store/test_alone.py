from __future__ import annotations

from pathlib import Path

import pytest

from playhead.errors import StoreError
from playhead.store.alone import alone


def busy(error: Exception) -> StoreError:
    return StoreError(f"kept by another ({error})")


def test_a_folder_is_held_by_one_at_a_time_and_let_go_of_even_when_it_fails(tmp_path: Path) -> None:
    with alone(tmp_path, 5.0, busy), pytest.raises(StoreError, match="kept by another"), alone(tmp_path, 0.0, busy):
        pytest.fail("held twice")
    with pytest.raises(ZeroDivisionError), alone(tmp_path, 0.0, busy):
        raise ZeroDivisionError
    with alone(tmp_path, 0.0, busy):
        pass
