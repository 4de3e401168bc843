"""Answer from a server as from any other store. Nothing is written to it."""

from __future__ import annotations

import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from playhead import _limits
from playhead.errors import (
    Altered,
    ArtifactNotFound,
    BadName,
    MissingContent,
    NotThere,
    RunNotFound,
    ServerError,
    StoreError,
)
from playhead.ledger.writer import Ledger
from playhead.store import layout
from playhead.store.remote.address import Address, part, read_address
from playhead.store.remote.connection import Connection, connection_to, was_lost
from playhead.store.remote.refusals import not_a_server

_BYTES = "application/octet-stream"
_NDJSON = "application/x-ndjson"


class Standing(NamedTuple):
    """How a run stands over there."""

    run: str
    timeline: bool  # there is one; else only what was left of the run
    held: bool  # somebody is writing it
    head: tuple[int, str] | None  # the last line that the index has seen


class Known(NamedTuple):
    """A run that the index over there has seen, or that is there."""

    run: str
    head: tuple[int, str] | None
    there: bool


class RemoteStore:
    """Read the runs of a server. What was read of a run is kept for a while: most questions read it more than once."""

    def __init__(self, url: str | Address, key: str | None = None, *, connection: Connection | None = None) -> None:
        if connection is None:
            connection = connection_to(url if isinstance(url, Address) else read_address(url), key)
        self.connection = connection
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._lock = threading.Lock()

    @property
    def root(self) -> Address:
        """Return where it is."""
        return self.connection.address

    def lines(self, run: str, start: int = 0) -> Iterator[bytes]:
        kept = self._keeping(run, start)
        at = start
        while (line := kept.line(at)) is not None:
            at += len(line)
            yield line
        most = _limits.REMOTE_PAGE_BYTES
        while True:
            page, ended = self._page(run, at, most)
            self._keep(run, kept, at, page)
            for line in BytesIO(page):
                at += len(line)
                yield line
            if ended or not page:
                return
            most = min(most * 4, _limits.REMOTE_PAGE_BYTES_MAX)

    def _page(self, run: str, at: int, most: int) -> tuple[bytes, bool]:
        """Return whole lines from a byte on, and whether they go on to the end."""
        reply = self.connection.get(f"/api/runs/{part(run)}/lines", {"start": at, "most": most}, accept=_NDJSON)
        if reply.headers.get("x-playhead-run") is None:
            raise not_a_server(self.root, "its answer is no timeline")
        return reply.body, reply.headers.get("x-playhead-end") != "false"

    def _keeping(self, run: str, start: int) -> _Kept:
        """Return what is kept of a run; what is read from its beginning again after a while is asked for anew."""
        with self._lock:
            kept = self._kept.get(run)
            if kept is None or (not start and time.monotonic() - kept.since_s > _limits.REMOTE_LINES_KEPT_S):
                kept = self._kept[run] = _Kept()
            self._kept.move_to_end(run)
            return kept

    def _keep(self, run: str, kept: _Kept, at: int, page: bytes) -> None:
        """Keep lines that follow those that are kept, as long as there is room."""
        with self._lock:
            kept.add(at, page)
            size = sum(len(one.data) for one in self._kept.values())
            while size > _limits.REMOTE_LINES_BYTES_MAX and len(self._kept) > 1:
                size -= len(self._kept.popitem(last=False)[1].data)

    def runs(self) -> Iterator[str]:
        yield from sorted(known.run for known in self.known() if known.there)

    def known(self) -> Iterator[Known]:
        """Yield every run that is there, or that the index has seen: of those that were removed, too."""
        for left in range(_limits.REMOTE_TRIES_MAX - 1, -1, -1):
            try:
                with self.connection.stream("/api/heads", accept=_NDJSON) as pieces:
                    told = list(_documents(pieces, self.root))
                break
            except ServerError as problem:
                if not left or not was_lost(problem):
                    raise
        for one in told:
            yield Known(str(one["run"]), _head(one.get("head")), bool(one.get("there")))

    def version(self) -> int:
        """Return the format of the store over there."""
        return int(self.connection.json("/api/store")["format"])

    def standing(self, run: str) -> Standing:
        """Say how a run stands; RunNotFound where it is not there."""
        told = self.connection.json(f"/api/runs/{part(run)}/standing")
        try:
            return Standing(str(told["run"]), bool(told["timeline"]), bool(told["held"]), _head(told["head"]))
        except (KeyError, TypeError):
            raise not_a_server(self.root, "it does not say how a run stands") from None

    def has(self, run: str) -> bool:
        """Say whether a run is there, with its timeline."""
        try:
            return self.standing(run).timeline
        except RunNotFound:
            return False

    def is_held(self, run: str) -> bool:
        """Say whether somebody is writing a run."""
        return self.standing(run).held

    def head(self, run: str) -> tuple[int, str] | None:
        """Return seq and hash of the last line that the index over there has seen of a run."""
        return self.standing(run).head

    def blob(self, digest: str) -> bytes:
        if not layout.is_digest(digest):
            raise BadName(f"not a digest: {digest!r}", hint="A digest is 64 lower-case hex digits.")
        content = self.connection.get(f"/api/blobs/{digest}", accept=_BYTES).body
        if hashlib.sha256(content).hexdigest() != digest:
            raise Altered(f"{self.root} handed out other bytes than those of {digest}")
        return content

    def file(self, run: str, name: str) -> bytes:
        layout.file(Path(), name)  # which refuses a name that no file of a run can have
        path = "/".join(map(part, name.split("/")))
        try:
            return self.connection.get(f"/api/runs/{part(run)}/files/{path}", accept=_BYTES).body
        except (ArtifactNotFound, NotThere):
            raise MissingContent(f"{run}: {name} is not in this store") from None

    def invalidate(self, run: str, why: str, by: str | None) -> None:
        """Declare that a run must not be played back."""
        told: dict[str, Any] = {"why": why, **({"by": by} if by else {})}
        self.connection.send("POST", f"/api/runs/{part(run)}/invalidate", told)

    def address_of(self, run: str) -> str:
        """Return where the lines of a run can be had."""
        return f"{self.root}/api/runs/{part(run)}/lines"

    def ledger(self, run: str, *, create: bool = False) -> Ledger:
        self._refuse()

    def put_blob(self, data: bytes, digest: str | None = None) -> str:
        self._refuse()

    def put_file(self, run: str, name: str, data: bytes) -> str:
        self._refuse()

    def delete(self, run: str) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StoreError(
            f"{self.root} is a server: its runs are not written from here yet",
            hint="Record into a folder: `--store DIR`, or PLAYHEAD_DIR.",
        )


class _Kept:
    """The beginning of a timeline, as far as it was read and there was room."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.since_s = time.monotonic()

    def line(self, at: int) -> bytes | None:
        """Return the line that begins at a byte; None where it is not kept."""
        end = self.data.find(b"\n", at) + 1
        return bytes(self.data[at:end]) if end else None

    def add(self, at: int, page: bytes) -> None:
        """Add whole lines, where they go on from what there is."""
        whole = page.rfind(b"\n") + 1
        if at == len(self.data) and at + whole <= _limits.REMOTE_LINES_BYTES_MAX:
            self.data += page[:whole]


def _head(told: Any) -> tuple[int, str] | None:
    return None if told is None else (int(told["seq"]), str(told["hash"]))


def _documents(pieces: Iterator[bytes], address: Address) -> Iterator[dict[str, Any]]:
    """Yield what stands in each line; the last one must say that it is the last: else the answer was cut."""
    import orjson

    rest = b""
    for piece in pieces:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            try:
                told = orjson.loads(line)
            except orjson.JSONDecodeError:
                raise not_a_server(address, "its answer is no JSON") from None
            if not isinstance(told, dict):
                raise not_a_server(address, "its answer has another form")
            if told.get("end"):
                return
            yield told
    raise ServerError(f"the answer of {address} was cut off")
