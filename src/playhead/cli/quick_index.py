"""Open the index without the reading side of Playhead, which takes longer to import than most questions to answer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playhead.store.index import Index


def open_quick_index(root: Path) -> Index:
    """Return the index of a store. What judges envelopes is imported only when there is a new one to judge."""
    return Index(root, envelope_matches=lambda data: _envelope_matches(root, data))


def _envelope_matches(root: Path, data: dict[str, Any]) -> bool | None:
    # Both ways of opening the index must write the same rows, so this is the very same function.
    from playhead._api.reading import _envelope_matches, open_store

    return _envelope_matches(open_store(root), data)
