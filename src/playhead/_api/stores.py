"""Open a store by what people call it: the folder that it is, or the address of a server, and the index of either."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeGuard

import orjson

from playhead import settings as settings_module
from playhead.capture.request import hash_of
from playhead.errors import PlayheadError, UsageError
from playhead.settings import is_address
from playhead.store import layout
from playhead.store.base import Store
from playhead.store.cassettes.reading import Cassette
from playhead.store.files import FileStore
from playhead.store.index import Index
from playhead.store.index_questions import Questions
from playhead.store.remote.index import RemoteIndex
from playhead.store.remote.reading import RemoteStore

Named = str | Path | FileStore | RemoteStore | None  # what a store is named by; None for the one in force


def open_store(named: Named = None) -> FileStore | RemoteStore:
    """Return the store at a path, or of a server, or the one that the settings name."""
    if isinstance(named, (FileStore, RemoteStore)):
        return named
    if named is None:
        named = settings_module.load().dir
        if not is_address(named):
            return FileStore(settings_module.load().store_root())
    return RemoteStore(named) if isinstance(named, str) and is_address(named) else FileStore(Path(named))


def open_folder(named: str | Path | None = None) -> FileStore:
    """Return the store at a path, or the one that the settings name; UsageError where that is a server."""
    store = open_store(named)
    if isinstance(store, RemoteStore):
        raise UsageError(f"{store.root} is a server, and this needs a folder", hint="`--store DIR` names one.")
    return store


def is_indexed(store: Store) -> TypeGuard[FileStore | RemoteStore]:
    """Say whether a store has an index: a folder does, and a server; no cassette, and no run by itself."""
    return type(store) is FileStore or isinstance(store, RemoteStore)


def open_index(store: FileStore | RemoteStore) -> Questions:
    """Return the index of a store."""
    return RemoteIndex(store) if isinstance(store, RemoteStore) else open_own_index(store)


def open_own_index(store: FileStore, *, version: Callable[[], int] | None = None) -> Index:
    """Return the index of a folder, able to judge envelopes."""
    return Index(store.root, envelope_matches=lambda data: envelope_matches(store, data), version=version)


def known_head(store: Store, run: str) -> tuple[int, str] | None:
    """Ask the index what head it saw, or a cassette what it is pinned to; None where there is neither."""
    if isinstance(store, (Cassette, RemoteStore)):
        return store.head(run)
    if type(store) is not FileStore or not layout.index(store.root).is_file():
        return None
    with open_index(store) as index:
        return index.head(run)


def envelope_matches(store: FileStore, data: Any) -> bool | None:
    """Compare a stored envelope with its hash; None where there is nothing to compare."""
    expected = data.get("envelope_hash")
    if expected is None:
        return None
    try:
        recorded = _load_blobs(store, data.get("input"))
    except (PlayheadError, orjson.JSONDecodeError):
        return False
    return isinstance(recorded, dict) and hash_of(recorded) == expected


def _load_blobs(store: FileStore, value: Any) -> Any:
    """Resolve blobs; a request stands in a writer's first line, which has nothing else to refer to."""
    from playhead.event.resolve import Resolver

    return Resolver(lambda seq: {}, store.blob).resolve(value)
