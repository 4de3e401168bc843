"""Read and write a cassette as lines: the header, the exact lines of the timelines, one line for each content, the end.

It can be read in a review, searched with `grep` and compared with `diff`. Opening it reads it once, and parses only the
header and the end.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import orjson

from playhead import _limits
from playhead.errors import BadCassette
from playhead.event import envelope
from playhead.store import layout
from playhead.store.cassettes import form
from playhead.store.cassettes.form import Header, batched, refused

_STRING = rb'"(?:[^"\\]|\\.)*"'
_OPENS_CONTENT, _OPENS_END = b'{"content":"', b'{"end":'
_CONTENT = re.compile(
    rb'\{"content":"([0-9a-f]{64})","size":(\d{1,12})(?:,"names":(\[%b(?:,%b)*\]))?,"(text|json|base64)":'
    % (_STRING, _STRING)
)
_END = re.compile(rb'\{"end":"cassette","lines":(\d{1,12})\}\n')
_CONTROLS = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_CRLF_HINT = "Git may have changed its line ends: write `*.cassette.jsonl -text` into .gitattributes."


class _Section(NamedTuple):
    """Where the lines of one run stand."""

    start: int
    end: int
    line: int  # lines before the first


class LinedContents:
    """Read a cassette of lines. The file is opened for each read: nothing stays open in a program that is replayed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._sections: dict[str, _Section] = {}
        self._places: dict[str, int] = {}  # first byte of the line of each content
        with path.open("rb", buffering=_limits.READ_CHUNK_BYTES) as file:
            first = file.readline(_limits.CASSETTE_HEADER_BYTES_MAX)
            if not first.startswith(form.OPENS):
                raise form.not_one(path)
            if not first.endswith(b"\n"):
                raise refused(path, "its header does not end, or is larger than any")
            if first.endswith(b"\r\n"):
                raise refused(path, "its lines end in CR LF, which they were not sealed with", hint=_CRLF_HINT)
            self.header = form.read_header(first, path)
            self._read_through(file, len(first))
        self.digests = list(self._places)
        if len(self.digests) != self.header.contents:
            raise refused(path, f"it declares {self.header.contents:,} contents and has {len(self.digests):,}")

    def _read_through(self, file: BinaryIO, at: int) -> None:
        """Find where everything stands. Before the first content each line belongs to a timeline, whatever it is like:
        `verify` says what is wrong with it."""
        runs = [taped.run for taped in self.header.runs]
        names = self.header.named()
        current, started, began_line = 0, at, 1
        mark = _begins(runs, 1)
        in_timelines, number = True, 1
        sizes: list[int] = []
        end = None
        while line := file.readline(_limits.LINE_BYTES_MAX):
            if end is not None:
                raise refused(self.path, "something stands after its end")
            if line.startswith((_OPENS_CONTENT, _OPENS_END)):
                if in_timelines:
                    self._sections[runs[current]] = _Section(started, at, began_line)
                    in_timelines = False
                if line.startswith(_OPENS_CONTENT):
                    sizes.append(self._note(line, at, names))
                else:
                    end = _END.fullmatch(line)
                    if end is None or int(end[1]) != number:
                        raise refused(
                            self.path, f"its end is damaged, or does not count the {number:,} lines before it"
                        )
            elif not in_timelines:
                raise refused(self.path, f"its line {number + 1:,} is neither a content nor the end")
            elif mark is not None and line.startswith(mark):
                self._sections[runs[current]] = _Section(started, at, began_line)
                current, started, began_line = current + 1, at, number
                mark = _begins(runs, current + 1)
            at, number = at + len(line), number + 1
        if end is None:
            raise refused(self.path, "it is cut: its end is missing", hint="Was it copied to its end?")
        if current + 1 != len(runs):
            raise refused(self.path, f"it has no line of {runs[current + 1]}")
        form.check_sizes([*sizes, *(section.end - section.start for section in self._sections.values())], self.path)

    def _note(self, line: bytes, at: int, names: dict[str, list[str]]) -> int:
        found = _CONTENT.match(line)
        if found is None or not line.endswith(b"}\n"):
            raise refused(self.path, f"a content is not written as one: {line[:100]!r}")
        digest = found[1].decode()
        if digest in self._places:
            raise refused(self.path, f"content {digest} is there twice")
        if (_names(found[3], self.path) if found[3] else []) != names.get(digest, []):
            raise refused(self.path, f"content {digest} does not have the names that the header gives it")
        if len(self._places) > _limits.CASSETTE_MEMBERS_MAX:
            raise refused(self.path, f"it has more than {_limits.CASSETTE_MEMBERS_MAX:,} contents")
        self._places[digest] = at
        return int(found[2])

    def lines(self, run: str, start: int = 0) -> Iterator[bytes]:
        section = self._sections[run]
        at = section.start + start
        with self.path.open("rb", buffering=_limits.READ_CHUNK_BYTES if not start else -1) as file:
            file.seek(at)
            while at < section.end and (line := file.readline(_limits.LINE_BYTES_MAX)):
                at += len(line)
                yield line

    def content(self, digest: str) -> bytes | None:
        place = self._places.get(digest)
        if place is None:
            return None
        with self.path.open("rb") as file:
            file.seek(place)
            line = file.readline(_limits.LINE_BYTES_MAX)
        found = _CONTENT.match(line)
        if found is None:
            raise refused(self.path, f"content {digest} is no longer where it was: the file was changed meanwhile")
        data = _decoded(line, found, self.path)
        if len(data) != int(found[2]):
            raise refused(self.path, f"content {digest} has {len(data):,} bytes and declares {int(found[2]):,}")
        return data

    def place(self, run: str) -> tuple[int, str]:
        return self._sections[run].line, self.path.name


def _begins(runs: list[str], number: int) -> bytes | None:
    """Return what the first line of a run begins with; None where there is no such run."""
    return envelope.prefix(runs[number], 0) if number < len(runs) else None


def _names(data: bytes, path: Path) -> list[str]:
    try:
        found: list[str] = orjson.loads(data)
    except orjson.JSONDecodeError as problem:
        raise refused(path, f"the names of a content are not JSON ({problem})") from None
    return found


def _decoded(line: bytes, found: re.Match[bytes], path: Path) -> bytes:
    raw = line[found.end() : -2]
    try:
        value = orjson.loads(raw)
        if found[4] == b"json":
            return raw
        if isinstance(value, str):
            return value.encode() if found[4] == b"text" else base64.b64decode(value, validate=True)
    except (orjson.JSONDecodeError, binascii.Error, ValueError) as problem:
        raise refused(path, f"content {found[1].decode()} cannot be read ({problem})") from None
    raise refused(path, f"content {found[1].decode()} is no text")


def write(file: BinaryIO, header: Header, source: form.Source) -> None:
    """Write the lines, the same for the same run."""
    names = header.named()
    count = 1
    file.write(form.encoded(header))
    for taped in header.runs:
        count += taped.head.seq + 1
        for lines in batched(source.lines(taped)):
            file.write(lines)
    for digest in source.digests:
        line = _encoded(digest, source.content(digest), names.get(digest, []))
        if len(line) >= _limits.LINE_BYTES_MAX:
            raise BadCassette(
                f"content {digest} of {header.run} is too large for a line",
                hint=f"Pack it as a zip: name the file x{form.ZIP}.",
            )
        file.write(line)
        count += 1
    file.write(b'{"end":"cassette","lines":%d}\n' % count)


def _encoded(digest: str, data: bytes, names: list[str]) -> bytes:
    """Return the line of one content: JSON as it is, text as text, everything else as base64."""
    assert layout.is_digest(digest)
    told = b',"names":%b' % orjson.dumps(names) if names else b""
    kind, written = _readable(data) or (b"base64", b'"%b"' % base64.b64encode(data))
    return b'{"content":"%b","size":%d%b,"%b":%b}\n' % (digest.encode(), len(data), told, kind, written)


def _readable(data: bytes) -> tuple[bytes, bytes] | None:
    """Return JSON as it is and text as JSON writes it; None for what nobody can read."""
    if data[:1] in (b"{", b"[") and b"\n" not in data:
        try:
            orjson.loads(data)
            return b"json", data
        except orjson.JSONDecodeError:
            pass  # it only begins like JSON
    if _CONTROLS.search(data):
        return None
    try:
        return b"text", orjson.dumps(data.decode())
    except UnicodeDecodeError:
        return None
