"""Write and read the line: thirteen fields in one order, the hash last.

A line ends in exactly 75 bytes, `,"hash":"` + 64 hex digits + `"}`. The hash is SHA-256 over the bytes before them, as
written. So a line can be checked with no JSON parser and no canonical form, and `prev` stands at a fixed place too.
"""

# No deferred annotations here: `playhead.Event` says that it lives in `playhead`, and msgspec would look them up there.

import re
from hashlib import sha256
from typing import Any

import msgspec
import orjson

from playhead.errors import BrokenLine

FORMAT = 1
FIELDS = ("v", "run", "seq", "time", "elapsed_us", "kind", "span", "parent", "lane", "key", "data", "prev", "hash")

HASH_OPENS = b',"hash":"'
SUFFIX_LENGTH = 75
# `,"prev":"` + 64 hex digits + `"` before the suffix.
PREV_AT = slice(-SUFFIX_LENGTH - 65, -SUFFIX_LENGTH - 1)
PREV_OPENS_AT = slice(-SUFFIX_LENGTH - 74, -SUFFIX_LENGTH - 65)
HASH_AT = slice(-66, -2)

KIND_FORM = re.compile(r"[a-z][a-z0-9_]{0,40}\.[a-z][a-z0-9_]{0,40}")


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """One sealed fact, as read. `data` is unresolved: views resolve references where they need to."""

    v: int
    run: str
    seq: int
    time: str
    elapsed_us: int
    kind: str
    span: str | None = None
    parent: str | None = None
    lane: str = "0"
    key: str | None = None
    data: dict[str, Any]
    prev: str
    hash: str


# Looks up its annotations now, in this module: the public surface renames the class to `playhead.Event`.
msgspec.json.Decoder(Event)


def genesis(run: str) -> str:
    """Return the `prev` of seq 0, which binds the chain to the run's id."""
    return sha256(b"playhead/run/v1\0" + run.encode()).hexdigest()


def quoted(text: str) -> str:
    """Return JSON for a text that may come from outside."""
    plain = text.isascii() and (text.isalnum() or (text[:3] == "k1:" and text[3:].isalnum()))  # a key, too
    return f'"{text}"' if plain else orjson.dumps(text).decode()


def seal(head: bytes, data: bytes, prev: bytes) -> tuple[bytes, bytes]:
    """Return the line with its newline, and its hash in hex.

    `head` is everything up to `"data":`, as `head_of` makes it; `data` is JSON. Proves that these bytes are what was
    sealed; says nothing about whether they are true.
    """
    body = b"".join((head, data, b',"prev":"', prev, b'"'))
    digest = sha256(body).hexdigest().encode()
    return b"".join((body, HASH_OPENS, digest, b'"}\n')), digest


def head_of(
    run: str,
    seq: int,
    time: str,
    elapsed_us: int,
    kind: str,
    span: str | None,
    parent: str | None,
    lane: str,
    key: str | None,
) -> bytes:
    """Return the first ten fields of a line. `kind` and `lane` have been checked; span ids may come from outside."""
    return (
        f'{{"v":1,"run":"{run}","seq":{seq},"time":"{time}","elapsed_us":{elapsed_us},"kind":"{kind}",'
        f'"span":{"null" if span is None else quoted(span)},"parent":{"null" if parent is None else quoted(parent)},'
        f'"lane":"{lane}","key":{"null" if key is None else quoted(key)},"data":'
    ).encode()


def prefix(run: str, seq: int) -> bytes:
    """Return the bytes that line `seq` of a run must begin with."""
    return b'{"v":%d,"run":"%b","seq":%d,"time":"' % (FORMAT, run.encode(), seq)


def sound(line: bytes) -> bool:
    """Say whether a line, without its newline, carries the hash of its own bytes."""
    return (
        len(line) > SUFFIX_LENGTH
        and line[-SUFFIX_LENGTH:-66] == HASH_OPENS
        and line[-2:] == b'"}'
        and sha256(line[:-SUFFIX_LENGTH]).hexdigest().encode() == line[HASH_AT]
    )


def seq_of(line: bytes) -> int | None:
    """Read the seq from the head of a line without parsing it; None where there is none."""
    found = re.match(rb'\{"v":\d+,"run":"[^"\\]{1,200}","seq":(\d{1,18}),', line)
    return int(found.group(1)) if found else None


def elapsed_of(line: bytes) -> int:
    """Read the elapsed time from the head of a line without parsing it; 0 where there is none."""
    found = re.match(rb'\{"v":\d+,"run":"[^"\\]{1,200}","seq":\d+,"time":"[^"\\]*","elapsed_us":(-?\d{1,18}),', line)
    return int(found.group(1)) if found else 0


def run_of(line: bytes) -> str | None:
    """Read the run id from the head of a line without parsing it."""
    found = re.match(rb'\{"v":\d+,"run":"([^"\\]{1,200})",', line)
    return found.group(1).decode("utf-8", "replace") if found else None


def kind_of(line: bytes) -> str | None:
    """Read the kind from the head of a line without parsing it."""
    found = re.match(
        rb'\{"v":\d+,"run":"[^"\\]{1,200}","seq":\d+,"time":"[^"\\]*","elapsed_us":-?\d+,"kind":"([^"\\]*)"', line
    )
    return found.group(1).decode("utf-8", "replace") if found else None


def parse(line: bytes) -> Event:
    """Read one line and upcast what an older release wrote. Unknown fields are ignored here and survive in the line."""
    from playhead.event.upcast import upcast

    try:
        fields = orjson.loads(line)
    except orjson.JSONDecodeError as problem:
        raise BrokenLine(f"a line is not JSON: {problem}") from None
    if not isinstance(fields, dict):
        raise BrokenLine("a line is not an object")
    try:
        return msgspec.convert(upcast(fields), Event)
    except msgspec.ValidationError as problem:
        raise BrokenLine(f"a line has a field of the wrong form: {problem}") from None
