"""Find the test data that lies beside the project, or skip."""

from __future__ import annotations

from pathlib import Path

import pytest

_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def shared(name: str) -> Path:
    """Return a folder of the shared data; skip the test where it is absent, as in a plain clone."""
    path = _DATA / name
    if not path.is_dir():
        pytest.skip(f"the shared test data is not beside this clone: ../shared/data/{name}")
    return path
