"""Open the index without the reading side of Playhead, which takes longer to import than most questions to answer."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead.store.index import Index
from playhead.store.index_questions import Questions

if TYPE_CHECKING:
    from playhead.store.remote.address import Address

SHORT_ID_CHARACTERS = 16  # `run_`, the millisecond, and two more: enough unless runs start at the same time
_ID = re.compile(r"\brun_\w{26}\b")


def open_quick_index(root: Path | Address) -> Questions:
    """Return the index of a store. What judges envelopes is imported only when there is a new one to judge."""
    if not isinstance(root, Path):
        from playhead.store.remote.index import RemoteIndex
        from playhead.store.remote.reading import RemoteStore

        return RemoteIndex(RemoteStore(root))
    return open_own_quick_index(root)


def open_own_quick_index(root: Path) -> Index:
    """Return the index of a folder."""
    return Index(root, envelope_matches=lambda data: _envelope_matches(root, data))


def with_short_ids(root: Path | Address, command: str) -> str:
    """Shorten the ids in a command as `ls` does, where that is enough to name their runs: it has to fit a terminal."""
    with open_quick_index(root) as index:
        for id in dict.fromkeys(_ID.findall(command)):
            if index.with_prefix(id[:SHORT_ID_CHARACTERS], 2) == [id]:
                command = command.replace(id, id[:SHORT_ID_CHARACTERS])
    return command


def _envelope_matches(root: Path, data: dict[str, Any]) -> bool | None:
    # Both ways of opening the index must write the same rows, so this is the very same function.
    from playhead._api.stores import envelope_matches, open_folder

    return envelope_matches(open_folder(root), data)
