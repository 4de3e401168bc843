"""Name what a place for runs must do. `tests/store/contract.py` says it in tests; there is no shared base class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from playhead.ledger.verify import ContentCheck
from playhead.ledger.writer import Ledger
from playhead.store import layout


class Store(Protocol):
    """Keep runs, their files, and the blobs they share."""

    def ledger(self, run: str, *, create: bool = False) -> Ledger:
        """Open a run for writing; RunNotFound when it is not there, StoreError when `create` finds it there."""
        ...

    def lines(self, run: str, start: int = 0) -> Iterator[bytes]:
        """Yield the lines of a run from byte `start`, each with its newline; a torn last one without."""
        ...

    def runs(self) -> Iterator[str]:
        """Yield the ids of all runs, oldest first."""
        ...

    def put_blob(self, data: bytes, digest: str | None = None) -> str:
        """Keep bytes under their digest, which is returned; it is given where it is known already."""
        ...

    def blob(self, digest: str) -> bytes:
        """Return the bytes of a digest; MissingContent when they are not there."""
        ...

    def put_file(self, run: str, name: str, data: bytes) -> str:
        """Keep a named file of a run, and return the name it got.

        `context_pack.json` and `policy_snapshot.json` are replaced. `artifacts/…` never: a name that is taken by other
        bytes gets a number.
        """
        ...

    def file(self, run: str, name: str) -> bytes:
        """Return a named file of a run; MissingContent when it is not there."""
        ...

    def delete(self, run: str) -> None:
        """Remove a run with its files; blobs stay, since other runs may hold them."""
        ...


def content_check(store: Store, run: str) -> ContentCheck:
    """Return the function by which verify asks about blobs, artifacts and packs."""
    import hashlib
    from functools import lru_cache

    from playhead.errors import Altered, BadName, MissingContent
    from playhead.ledger.verify import BLOB

    names = {"context_pack": layout.CONTEXT_PACK, "policy_snapshot": layout.POLICY_SNAPSHOT}

    @lru_cache(maxsize=1024)  # a large text that an agent sends again and again is named by many lines
    def check(kind: str, digest: str, name: str | None) -> object:
        try:
            data = store.blob(digest) if kind == "blob" else store.file(run, names.get(kind) or f"artifacts/{name}")
        except (MissingContent, BadName):
            return "missing"
        except Altered:  # a server compares before it hands out
            return "altered"
        if hashlib.sha256(data).hexdigest() != digest:
            return "altered"
        if kind == "blob" and name == "json":  # it may name other blobs
            inner = (check("blob", found.decode(), form.decode()) for found, form in BLOB.findall(data))
            return next((problem for problem in inner if problem), None)
        return None

    return check  # type: ignore[return-value]
