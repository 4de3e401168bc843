"""Read and write a cassette as a zip.

The reader is its own, and strict: members must stand one after the other from the first byte on, each described alike
in both places, without extras. So no two programs see different things in one file, and nothing hides between members.
No name of a member is ever used as a path.
"""

from __future__ import annotations

import re
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from playhead import _limits
from playhead.errors import BadCassette
from playhead.store.cassettes import form
from playhead.store.cassettes.form import Header, batched, refused

MAGIC = b"PK\x03\x04"
HEADER = "cassette.json"
_END = struct.Struct("<4s4H2LH")
_ENTRY = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_STORED, _DEFLATED = 0, 8
_REGULAR = 0o100644 << 16
_ENCRYPTED, _SIZES_FOLLOW = 0x1, 0x8
_NAME = re.compile(r"cassette\.json|timelines/(run_[0-9a-z]{26})\.jsonl|contents/([0-9a-f]{64})")
_FIXED_TIME = (1980, 1, 1, 0, 0, 0)  # the first that a zip can tell


class Member(NamedTuple):
    """Where one member lies in the file."""

    start: int
    packed: int  # bytes in the file
    size: int
    method: int


class ZippedContents:
    """Read the members of one zip. The file is opened for each read: nothing stays open in a program that is replayed.

    A timeline is unpacked when it is first asked for and kept in memory, since its lines refer to each other.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._members = _directory(path)
        form.check_sizes((member.size for member in self._members.values()), path)
        _refuse_bombs(self._members, path)
        if self._members[HEADER].size > _limits.CASSETTE_HEADER_BYTES_MAX:
            raise refused(path, f"its header has more than {_limits.CASSETTE_HEADER_BYTES_MAX:,} bytes")
        self.header = form.read_header(self._read(HEADER), path)
        timelines = {taped.run for taped in self.header.runs}
        found = [_NAME.fullmatch(name) for name in self._members]
        self.digests = [one[2] for one in found if one is not None and one[2]]
        there = {one[1] for one in found if one is not None and one[1]}
        if there != timelines:
            raise refused(path, f"its timelines are not those of its header: {', '.join(sorted(there ^ timelines))}")
        if len(self.digests) != self.header.contents:
            raise refused(path, f"it declares {self.header.contents:,} contents and has {len(self.digests):,}")
        self._timelines: dict[str, bytes] = {}

    def lines(self, run: str, start: int = 0) -> Iterator[bytes]:
        data = self._timelines.get(run)
        if data is None:
            data = self._timelines[run] = self._read(_timeline(run))
        while start < len(data):
            end = data.find(b"\n", start) + 1 or len(data)
            end = min(end, start + _limits.LINE_BYTES_MAX)
            yield data[start:end]
            start = end

    def content(self, digest: str) -> bytes | None:
        name = _content(digest)
        return self._read(name) if name in self._members else None

    def place(self, run: str) -> tuple[int, str]:
        return 0, _timeline(run)

    def _read(self, name: str) -> bytes:
        member = self._members[name]
        with self.path.open("rb") as file:
            file.seek(member.start)
            packed = file.read(member.packed)
        if len(packed) != member.packed:
            raise refused(self.path, "it is cut")
        return packed if member.method == _STORED else _inflated(packed, member.size, name, self.path)


def _inflated(packed: bytes, size: int, name: str, path: Path) -> bytes:
    unpacking = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        data = unpacking.decompress(packed, size + 1)  # never more than was declared, whatever is inside
    except zlib.error as problem:
        raise refused(path, f"{name} cannot be decompressed ({problem})") from None
    if len(data) != size or not unpacking.eof or unpacking.unused_data:
        raise refused(path, f"{name} does not hold the {size:,} bytes that it declares")
    return data


def _directory(path: Path) -> dict[str, Member]:
    """Read the list of members, and compare it with what stands at the head of each."""
    total = path.stat().st_size
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise form.not_one(path)
        file.seek(max(0, total - _END.size))
        end = file.read(_END.size)
        if len(end) < _END.size or not end.startswith(b"PK\x05\x06"):
            raise refused(path, "its end is missing, or something was added to it", hint="Was it copied to its end?")
        _, disk, first_disk, here, count, size, start, comment = _END.unpack(end)
        if 0xFFFF in (here, count) or 0xFFFFFFFF in (size, start):
            raise refused(path, "it is a zip64, which no cassette is")
        if disk or first_disk or here != count or comment or start + size + _END.size != total:
            raise refused(path, "its list of members is not where it says")
        if count > _limits.CASSETTE_MEMBERS_MAX:
            raise refused(path, f"it has more than {_limits.CASSETTE_MEMBERS_MAX:,} members")
        file.seek(start)
        return _members(file, file.read(size), count, start, path)


def _members(file: BinaryIO, entries: bytes, count: int, end: int, path: Path) -> dict[str, Member]:
    found: dict[str, Member] = {}
    at = place = 0
    for number in range(count):
        if len(entries) < at + _ENTRY.size:
            raise refused(path, "its list of members is cut")
        (signature, made_by, _, flags, method, time, date, crc, packed, size, named, extra, told, disk, _, mode,
         start) = _ENTRY.unpack_from(entries, at)  # fmt: skip
        raw = entries[at + _ENTRY.size : at + _ENTRY.size + named]
        at += _ENTRY.size + named
        name = raw.decode("ascii", "backslashreplace")
        if signature != b"PK\x01\x02" or disk:
            raise refused(path, "its list of members is damaged")
        _check_entry(name, flags, method, extra or told, made_by, mode, path)
        if name in found:
            raise refused(path, f"it has two members {name}")
        if (number == 0) != (name == HEADER):
            raise refused(path, f"its first member is not {HEADER}") if number == 0 else refused(path, "two headers")
        file.seek(place)
        local = (MAGIC, flags, method, time, date, crc, packed, size, named, 0)
        seen = file.read(_LOCAL.size + named)
        if start != place or len(seen) < _LOCAL.size + named or not _same(seen, local, raw):
            raise refused(path, f"{name} does not stand where its list says, or is another one there")
        if method == _STORED and packed != size:
            raise refused(path, f"{name} has two sizes")
        found[name] = Member(place + _LOCAL.size + named, packed, size, method)
        place += _LOCAL.size + named + packed
    if at != len(entries) or place != end:
        raise refused(path, "something stands between its members")
    if HEADER not in found:
        raise form.not_one(path)
    return found


def _same(seen: bytes, local: tuple[object, ...], name: bytes) -> bool:
    signature, _, *rest = _LOCAL.unpack_from(seen)
    return (signature, *rest) == local and seen[_LOCAL.size :] == name


def _check_entry(name: str, flags: int, method: int, extras: int, made_by: int, mode: int, path: Path) -> None:
    if not _NAME.fullmatch(name):
        raise refused(path, f"no cassette has a member {name[:100]!r}", hint="It is a zip, but not one of ours.")
    if flags & _ENCRYPTED:
        raise refused(path, f"{name} is encrypted")
    if stat.S_IFMT(mode >> 16) not in (0, stat.S_IFREG):
        raise refused(path, f"{name} is not a plain file")
    foreign = made_by >> 8 != 3 or mode != _REGULAR or method not in (_STORED, _DEFLATED)
    if flags & _SIZES_FOLLOW or flags or extras or foreign:
        raise refused(path, f"{name} is written in a way that `pack` does not use")


def _refuse_bombs(members: dict[str, Member], path: Path) -> None:
    sizes = [(member.packed, member.size) for member in members.values()]
    if not bearable(sum(packed for packed, _ in sizes), sum(size for _, size in sizes)):
        raise refused(path, f"it would become more than {_limits.CASSETTE_RATIO_MAX} times as large as it is")


def bearable(packed: int, size: int) -> bool:
    """Say whether unpacking gives no more than one may expect of recorded text."""
    return size <= max(_limits.CASSETTE_RATIO_BYTES_MIN, packed * _limits.CASSETTE_RATIO_MAX)


def _timeline(run: str) -> str:
    return f"timelines/{run}.jsonl"


def _content(digest: str) -> str:
    return f"contents/{digest}"


def write(file: BinaryIO, header: Header, source: form.Source) -> None:
    """Write a zip, the same for the same run (and the same zlib).

    What compresses better than a reader believes, such as a file of zeros, is not compressed.
    """
    for method in (_DEFLATED, _STORED):
        file.seek(0)
        file.truncate()
        packed, size = _write(file, header, source, method)
        if bearable(packed, size):
            return


def _write(file: BinaryIO, header: Header, source: form.Source, method: int) -> tuple[int, int]:
    import zipfile

    def member(name: str, pieces: Iterable[bytes]) -> None:
        info = zipfile.ZipInfo(name, _FIXED_TIME)
        info.create_system, info.external_attr, info.compress_type = 3, _REGULAR, method
        with archive.open(info, "w") as out:
            for lines in batched(pieces):
                out.write(lines)

    try:
        with zipfile.ZipFile(file, "w", method, allowZip64=False) as archive:
            member(HEADER, [form.encoded(header)])
            for taped in header.runs:
                member(_timeline(taped.run), source.lines(taped))
            for digest in source.digests:
                member(_content(digest), [source.content(digest)])
            infos = archive.infolist()
    except zipfile.LargeZipFile as problem:
        raise BadCassette(f"{header.run} is too large for one file: {problem}") from None
    return sum(info.compress_size for info in infos), sum(info.file_size for info in infos)
