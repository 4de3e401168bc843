"""Find the run to compare a failed one with: the latest of its name before it that ended well."""

from __future__ import annotations

from playhead._api.stores import is_indexed, open_index
from playhead.errors import PlayheadError
from playhead.store.base import Store


def good_one(store: Store, run: str, name: str) -> str | None:
    """Return its id, from the index; None where there is none, or the index cannot be asked."""
    if not is_indexed(store) or not name:
        return None
    try:
        with open_index(store) as index:
            found = index.list_runs(limit=1, name=name, status="ok", before=run, include_replays=False)
    except (PlayheadError, OSError):
        return None  # a hint is not worth an error
    return str(found[0]["id"]) if found else None
