"""Say what both forms of a cassette have in common: the header, the limits, and what lines refer to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

import msgspec
import orjson

from playhead import _limits
from playhead._ids import is_run_id
from playhead.errors import BadCassette, BadName
from playhead.event import envelope
from playhead.ledger.verify import BLOB
from playhead.store import layout

FORMAT = 1
OPENS = b'{"playhead":"cassette",'  # every header begins with these bytes
ZIP, LINES = ".cassette", ".cassette.jsonl"
_SET_ASIDE = re.compile(rb'"blob":"([0-9a-f]{64})"')  # a torn line, in the gap that tells of it


class Head(msgspec.Struct, frozen=True):
    """Where a timeline is pinned: its last event."""

    seq: int
    hash: str


class Taped(msgspec.Struct, frozen=True):
    """One run of a cassette. `files` are its artifacts and packs, by name, with their digests."""

    run: str
    head: Head
    finished: bool
    files: dict[str, str]


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a cassette says of itself. The first of `runs` is the run, the others are those of programs it started."""

    playhead: str = "cassette"
    format: int = FORMAT
    run: str
    runs: list[Taped]
    contents: int

    def named(self) -> dict[str, list[str]]:
        """Return the names that each digest has as a file of a run."""
        found: dict[str, list[str]] = {}
        for taped in self.runs:
            for name, digest in taped.files.items():
                found.setdefault(digest, []).append(f"{taped.run}/{name}")
        return {digest: sorted(names) for digest, names in found.items()}


class Source(Protocol):
    """What is written into a cassette."""

    digests: list[str]  # in the order in which they are written

    def lines(self, taped: Taped) -> Iterator[bytes]:
        """Yield the lines of a run up to its head, each with its newline."""
        ...

    def content(self, digest: str) -> bytes:
        """Return the bytes of a digest."""
        ...


def batched(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Join small pieces to larger ones: each takes a step of its own to write."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        waiting.append(piece)
        size += len(piece)
        if size >= _limits.READ_CHUNK_BYTES:
            yield b"".join(waiting)
            waiting, size = [], 0
    yield b"".join(waiting)


def form_of(path: Path) -> str | None:
    """Return the form that the name of a file asks for."""
    return next((form for form in (LINES, ZIP) if path.name.endswith(form) and path.name != form), None)


def encoded(header: Header) -> bytes:
    """Return the header as it stands in the file, the same for the same header."""
    return msgspec.json.encode(header) + b"\n"


def read_header(data: bytes, path: Path) -> Header:
    """Read the header and check all that can be checked without the rest."""
    try:
        fields = orjson.loads(data)
    except orjson.JSONDecodeError as problem:
        raise refused(path, f"its header is not JSON ({problem})") from None
    if not isinstance(fields, dict) or fields.get("playhead") != "cassette":
        raise not_one(path)
    found = fields.get("format")
    if isinstance(found, int) and found > FORMAT:
        raise BadCassette(
            f"{path} has format {found}, this Playhead reads up to {FORMAT}",
            hint="Upgrade with `pip install -U playhead`.",
        )
    try:
        header = msgspec.convert(fields, Header)
    except msgspec.ValidationError as problem:
        raise refused(path, f"its header is not one: {problem}") from None
    _check(header, path)
    return header


def _check(header: Header, path: Path) -> None:
    ids = [taped.run for taped in header.runs]
    if header.format != FORMAT or not ids or ids[0] != header.run or len(set(ids)) != len(ids):
        raise refused(path, "its header contradicts itself")
    if ids[1:] != sorted(ids[1:]):
        raise refused(path, "its runs do not stand in order")
    for taped in header.runs:
        if not is_run_id(taped.run):
            raise refused(path, f"{taped.run[:60]!r} is not a run id")
        if taped.head.seq < 0 or not all(map(layout.is_digest, (taped.head.hash, *taped.files.values()))):
            raise refused(path, f"its header names no digest where one belongs, of {taped.run}")
        for name in taped.files:
            check_name(name, path)
            if any(str(folder) in taped.files for folder in PurePosixPath(name).parents):
                raise refused(path, f"{name} of {taped.run} stands below another file")


def check_name(name: str, path: Path) -> None:
    """Refuse a file of a run whose name could lead somewhere else."""
    try:
        if name.startswith("artifacts/"):
            layout.artifact(Path(), name.removeprefix("artifacts/"))
        else:
            layout.pack_name(name)
    except BadName as problem:
        raise refused(path, problem.message) from None


def check_sizes(sizes: Iterable[int], path: Path) -> None:
    """Refuse more than anybody packs."""
    count = total = 0
    for size in sizes:
        count, total = count + 1, total + size
        if size > _limits.CASSETTE_MEMBER_BYTES_MAX:
            raise refused(path, f"a part of it has {size:,} bytes; {_limits.CASSETTE_MEMBER_BYTES_MAX:,} are allowed")
        if count > _limits.CASSETTE_MEMBERS_MAX:
            raise refused(path, f"it has more than {_limits.CASSETTE_MEMBERS_MAX:,} parts")
        if total > _limits.CASSETTE_BYTES_MAX:
            raise refused(path, f"its parts have more than {_limits.CASSETTE_BYTES_MAX:,} bytes")


def not_one(path: Path) -> BadCassette:
    """Say that a file is something else."""
    return BadCassette(f"{path} is not a cassette", hint="`playhead pack RUN -o x.cassette` makes one.")


def refused(path: Path, why: str, hint: str | None = None) -> BadCassette:
    """Say why a file is not read."""
    return BadCassette(f"{path} is refused: {why}", hint=hint, detail={"file": str(path), "reason": why})


class Referred:
    """Gather, line by line, what a run refers to, and whether it has ended."""

    def __init__(self) -> None:
        self.blobs: dict[str, bool] = {}  # digest, and whether it is JSON and may name others
        self.aside: set[str] = set()  # lines that were set aside
        self.artifacts: dict[str, str] = {}  # name and digest
        self.finished = False
        self.packs = {layout.CONTEXT_PACK, layout.POLICY_SNAPSHOT}

    def take(self, line: bytes) -> None:
        """Note what one line refers to."""
        if b'{"$blob":' in line:
            self._note(line)
        kind = line.find(b'"kind":"', 0, 200) + 8
        if line.startswith(b"run.finished", kind):
            self.finished = True
        elif line.startswith(b"run.reopened", kind):
            self.finished = False
        elif line.startswith(b"artifact.created", kind):
            data: Any = envelope.parse(line).data
            if isinstance(data.get("name"), str) and isinstance(data.get("digest"), str):
                self.artifacts[f"artifacts/{data['name']}"] = data["digest"]
        elif line.startswith(b"gap.noted", kind):
            self.aside.update(found.decode() for found in _SET_ASIDE.findall(line))

    def _note(self, data: bytes) -> list[str]:
        """Note the blobs that some bytes name, and return those that are new and may name others."""
        new = []
        for digest, form in ((found.decode(), kind == b"json") for found, kind in BLOB.findall(data)):
            if form and not self.blobs.get(digest):
                new.append(digest)
            self.blobs[digest] = form or self.blobs.get(digest, False)
        return new

    def follow(self, blob: Callable[[str], bytes]) -> None:
        """Note also what blobs name, and what those name."""
        todo = [digest for digest, may_name in self.blobs.items() if may_name]
        while todo:
            todo += self._note(blob(todo.pop()))
