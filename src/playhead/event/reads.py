"""Write what a lane read, packed, as the data of one `ambient.read`, and read it again.

Reads of one source by one module make a group. Numbers and random bytes go into `packed`, where a clock costs a few
bytes: `at` is the first, in seconds and nanoseconds, `ns` each other one as the difference to the one before it;
`values` are whole numbers; `bytes` are all bytes in base64, `sizes` says how many each read had, one number where all
had the same. What holds text goes into `reads`, with its `values` as they are. `order` says in which order the groups
were read from, a letter for each group, those of `packed` first, and how often in a row: `a12ba`; without it there is
one group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from playhead.errors import BrokenLine

# What else is needed is imported where it is: a program that has nothing to record shall not load it for us.

NS, INT, BYTES, VALUES = range(4)  # how a group is kept while it grows
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

# Of, by, form, count, content (text of numbers, raw bytes, or a list), and for bytes their sizes.
Group = tuple[str, str, int, int, Any, Any]


class Read(NamedTuple):
    """One value, as near to what the program got as can be told."""

    of: str  # the source: `time.time`, `os.urandom`, `os.environ`
    by: str  # the module that read
    via: str  # the function of the standard library that it called, where it was not the source itself: `uuid.uuid4`
    value: Any


def written(order: str, groups: list[Group]) -> tuple[dict[str, Any], bytes]:
    """Return the fields to be redacted and recorded, and members to be added to them as they are."""
    packed = [index for index, group in enumerate(groups) if group[2] != VALUES]
    texts = [index for index, group in enumerate(groups) if group[2] == VALUES]
    fields: dict[str, Any] = {}
    if texts:
        fields["reads"] = [{**_named(groups[index]), "values": groups[index][4]} for index in texts]
    if order and texts and packed:
        order = order.translate({ord(LETTERS[was]): LETTERS[now] for now, was in enumerate(packed + texts)})
    members = []
    if packed:
        members.append(b'"packed":[%b]' % b",".join(_packed(groups[index]) for index in packed))
    members.append(b'"count":%d' % sum(group[3] for group in groups))
    if order:
        members.append(b'"order":"%b"' % order.encode())
    return fields, b",".join(members)


def _named(group: Group) -> dict[str, str]:
    via, _, of = group[0].rpartition(":")
    named = {"of": of, "by": group[1]}
    return {**named, "via": via} if via else named


def _packed(group: Group) -> bytes:
    from binascii import b2a_base64

    import orjson

    head = orjson.dumps(_named(group))[:-1]
    _, _, form, _, content, sizes = group
    if form == BYTES:
        told = b"%d" % sizes if isinstance(sizes, int) else b"[%b]" % sizes
        return b'%b,"bytes":"%b","sizes":%b}' % (head, b2a_base64(content, newline=False), told)
    if form == NS:
        first, _, rest = content.partition(b",")
        return b'%b,"at":[%d,%d],"ns":[%b]}' % (head, *divmod(int(first), 10**9), rest)
    return b'%b,"values":[%b]}' % (head, content)


def read(data: Mapping[str, Any], *, raw: bool = False) -> list[Read]:
    """Return everything that was read, in order; BrokenLine where it cannot be told.

    Where it is `raw`, clocks are in nanoseconds and what chance gave is in bytes, as they were kept.
    """
    import re

    try:
        groups = [iter(_values(group, raw)) for group in (*data.get("packed", ()), *data.get("reads", ()))]
        if "order" not in data:
            return [one for group in groups for one in group]
        out = []
        for letter, times in re.findall("([a-zA-Z])([0-9]*)", data["order"]):
            group = groups[LETTERS.index(letter)]
            out += [next(group) for _ in range(int(times or 1))]
        return out
    except (KeyError, IndexError, ValueError, TypeError, StopIteration, AttributeError) as problem:
        raise BrokenLine(f"what was read cannot be told: {type(problem).__name__}: {problem}") from problem


def count(data: Mapping[str, Any]) -> int:
    """Say how many reads there are, as far as can be told."""
    if type(data.get("count")) is int:
        return int(data["count"])
    total = 0
    groups = [data.get(name) for name in ("packed", "reads")]
    for group in (one for several in groups if isinstance(several, list) for one in several):
        match group:
            case {"ns": [*steps]}:
                total += 1 + len(steps)
            case {"bytes": str(encoded), "sizes": int(size)} if size > 0:
                total += max(1, len(encoded.rstrip("=")) * 3 // 4 // size)
            case {"sizes": [*each]} | {"values": [*each]}:
                total += len(each)
            case _:
                total += 1
    return total


def _values(group: Mapping[str, Any] | list[Any], raw: bool) -> Iterator[Read]:
    if isinstance(group, list):  # as they were written before there were groups
        yield Read(group[0], "", "", group[1])
        return
    of, by, via = group["of"], group["by"], group.get("via", "")
    if "ns" in group:
        now = group["at"][0] * 10**9 + group["at"][1]
        for step in (0, *group["ns"]):
            now += step
            yield Read(of, by, via, now if raw else _moment(of, now))
    elif "bytes" in group:
        from base64 import b64decode

        content, at = b64decode(group["bytes"], validate=True), 0
        sizes = group["sizes"]
        for size in [sizes] * (len(content) // sizes) if isinstance(sizes, int) and sizes else sizes or []:
            piece = content[at : at + size]
            yield Read(of, by, via, piece if raw else _chance(of, via, piece))
            at += size
    else:
        for value in group["values"]:
            yield Read(of, by, via, value)


def _moment(of: str, ns: int) -> Any:
    """Return a clock's answer: seconds, nanoseconds, or the text of a date."""
    if of.startswith("datetime."):
        from datetime import UTC, datetime, timedelta

        zone = UTC if of.endswith("(tz)") else None
        moment = (datetime(1970, 1, 1) + timedelta(microseconds=ns // 1000)).replace(tzinfo=zone, fold=ns % 1000)
        return moment.date().isoformat() if of == "datetime.date.today" else moment.isoformat()
    return ns if of.endswith("_ns") else ns / 1e9


def _chance(of: str, via: str, content: bytes) -> Any:
    """Return what was made of random bytes, where nothing else went into it."""
    import struct
    import uuid

    match via or of:
        case "uuid.uuid4":
            return str(uuid.UUID(bytes=content, version=4))
        case "secrets.token_hex":
            return content.hex()
        case "random.random" if len(content) == 8:
            return struct.unpack("<d", content)[0]
        case "random.getrandbits":
            return int.from_bytes(content, "little")
    if of.startswith("uuid_utils") and of.endswith("_int"):
        return str(uuid.UUID(int=int.from_bytes(content, "little")))
    if of.startswith("uuid_utils") or of == "uuid.uuid1":
        return str(uuid.UUID(bytes=content))
    if of == "random.random" and len(content) == 8:
        return struct.unpack("<d", content)[0]
    if of == "random.getrandbits":
        return int.from_bytes(content, "little")
    return content
