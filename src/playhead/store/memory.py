"""Keep runs in memory: for tests, for documentation, and as the plainest reading of the store's promises."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Iterator

from playhead._clock import Clock, SystemClock
from playhead.errors import MissingContent, RunNotFound, StoreError
from playhead.ledger.writer import Ledger
from playhead.store import layout


class MemoryLog:
    """A growing buffer behind a lock."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self._lock = threading.RLock()

    def acquire(self) -> int:
        self._lock.acquire()
        return self.end()

    def release(self) -> None:
        with contextlib.suppress(RuntimeError):  # not held by us
            self._lock.release()

    def end(self) -> int:
        return len(self.buffer)

    def read(self, start: int, count: int) -> bytes:
        return bytes(self.buffer[start : start + count])

    def append(self, data: bytes) -> None:
        self.buffer += data

    def truncate(self, size: int) -> None:
        del self.buffer[size:]

    def sync(self) -> None:
        """Memory has nothing to bring anywhere."""

    def reopen(self) -> None:
        """A forked child has its own copy: it writes a run of its own."""
        self._lock = threading.RLock()

    def close(self) -> None:
        """The buffer stays readable."""


class MemoryStore:
    """Hold everything in dictionaries."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._logs: dict[str, MemoryLog] = {}
        self._blobs: dict[str, bytes] = {}
        self._files: dict[tuple[str, str], bytes] = {}

    def ledger(self, run: str, *, create: bool = False) -> Ledger:
        if create:
            if run in self._logs:
                raise StoreError(f"{run} exists already")
            self._logs[run] = MemoryLog()
            self._files[run, layout.CONTEXT_PACK] = self._files[run, layout.POLICY_SNAPSHOT] = b"{}\n"
        return Ledger(self._log(run), run, self._clock, self.put_blob)

    def _log(self, run: str) -> MemoryLog:
        try:
            return self._logs[run]
        except KeyError:
            raise RunNotFound(f"no run {run} in this store") from None

    def lines(self, run: str, start: int = 0) -> Iterator[bytes]:
        buffer = self._log(run).buffer
        end = len(buffer)  # what comes meanwhile is for the next one
        while start < end:
            stop = buffer.find(b"\n", start, end) + 1 or end
            yield bytes(buffer[start:stop])
            start = stop

    def runs(self) -> Iterator[str]:
        yield from sorted(self._logs)

    def put_blob(self, data: bytes, digest: str | None = None) -> str:
        digest = digest or hashlib.sha256(data).hexdigest()
        self._blobs[digest] = data
        return digest

    def blob(self, digest: str) -> bytes:
        try:
            return self._blobs[digest]
        except KeyError:
            raise MissingContent(f"blob {digest} is not in this store") from None

    def put_file(self, run: str, name: str, data: bytes) -> str:
        self._log(run)
        if not name.startswith("artifacts/"):
            self._files[run, layout.pack_name(name)] = data
            return name
        for candidate in layout.numbered(str(layout.artifact_name(name.removeprefix("artifacts/")))):
            path = f"artifacts/{candidate}"
            if self._files.setdefault((run, path), data) == data:
                return path
        raise AssertionError("numbered names never end")

    def file(self, run: str, name: str) -> bytes:
        self._log(run)
        if name.startswith("artifacts/"):
            layout.artifact_name(name.removeprefix("artifacts/"), bytes_max=len(name) * 4)
        else:
            layout.pack_name(name)
        try:
            return self._files[run, name]
        except KeyError:
            raise MissingContent(f"{run} has no file {name}") from None

    def delete(self, run: str) -> None:
        self._log(run)
        del self._logs[run]
        for key in [key for key in self._files if key[0] == run]:
            del self._files[key]
