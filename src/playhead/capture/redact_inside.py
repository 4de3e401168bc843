"""Look inside what is compressed: a secret in it is as readable as any, to whoever opens it.

Nothing is opened beyond `OPENED_BYTES_MAX`, so that a small answer cannot fill the memory.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from playhead import _limits
from playhead.capture.redact_rules import Rule, starting

GZIP = b"\x1f\x8b\x08"
_SLICE_BYTES = 64 * 1024
_EITHER, _RAW = 47, -15  # window bits of zlib: gzip or zlib by their first bytes; deflate without either


class Unopened(Exception):
    """Say that nobody knows what is inside these bytes; `reason` is a word for a gap."""

    def __init__(self, reason: str, encoding: str) -> None:
        super().__init__(f"{encoding}: {reason}")
        self.reason = reason
        self.encoding = encoding


def opened(data: bytes, encoding: str) -> bytes:
    """Return what a value of `content-encoding` was put on, which may name several; as far as it goes if it was cut.

    Raises `Unopened`: `no_decoder` where the library for it is not installed, `too_large`, `damaged`.
    """
    for name in reversed([part.strip().lower() for part in encoding.split(",")]):
        if name in ("", "identity", "aws-chunked"):
            continue
        opener = _OPENERS.get(name)
        if opener is None:
            raise Unopened("no_decoder", name)
        data = b"".join(_bounded(opener(data), name))
    return data


def opened_by_magic(data: bytes) -> bytes | None:
    """Return what is inside gzip or zlib data, known by its first bytes; None for anything else, and what is damaged.

    Raises `Unopened` where it is more than may be looked at.
    """
    if not (data.startswith(GZIP) or _is_zlib(data)):
        return None
    try:
        return b"".join(_bounded(_inflated(data), "gzip"))
    except Unopened as problem:
        if problem.reason == "damaged":
            return None
        raise


def packed_rule(holds_secret: Callable[[bytes], bool]) -> Rule:
    """Return the rule for gzip or zlib data in base64 that has a secret inside; it is known by how it begins."""

    def check(match: re.Match[str]) -> bool:
        text = match[0].rstrip("=").translate(_STANDARD)
        text = text[:-1] if len(text) % 4 == 1 else text
        try:
            inner = opened_by_magic(base64.b64decode(text + "=" * (-len(text) % 4)))
        except (binascii.Error, Unopened):
            return False
        return inner is not None and holds_secret(inner)

    needles = ("H4sI", *(f"e{two}" for two in re.findall("..", "JwJxJyJzNoNpNqNrAEAFAGAHF4F5F6F7")))
    pattern = rf"(?:{starting('H4sI')}|{starting('e(?:J[w-z]|N[o-r]|A[E-H]|F[4-7])')})[A-Za-z0-9+/_-]{{16,}}+=*+"
    return Rule("packed", pattern, needles, in_run=True, leading=True, check=check)


_STANDARD = str.maketrans("-_", "+/")


def _is_zlib(data: bytes) -> bool:
    return len(data) > 8 and data[0] == 0x78 and (data[0] << 8 | data[1]) % 31 == 0 and not data[1] & 0x20


def _bounded(parts: Iterator[bytes], name: str) -> Iterator[bytes]:
    total = 0
    for part in parts:
        total += len(part)
        if total > _limits.OPENED_BYTES_MAX:
            raise Unopened("too_large", name)
        yield part


def _inflated(data: bytes) -> Iterator[bytes]:
    """Open gzip, of one member or several, or zlib; anything else is what it says it is not, and stays."""
    if not (data.startswith(b"\x1f\x8b") or _is_zlib(data)):
        yield data
        return
    while data:
        machine = zlib.decompressobj(_EITHER)
        yield from _stepwise(data, machine)
        data = machine.unused_data if machine.unused_data.startswith(b"\x1f\x8b") else b""


def _deflated(data: bytes) -> Iterator[bytes]:
    """Open what is called deflate: zlib, or, as some servers send it, without the header of zlib."""
    if _is_zlib(data):
        yield from _inflated(data)
        return
    machine = zlib.decompressobj(_RAW)
    yield from _stepwise(data, machine)


def _stepwise(data: bytes, machine: Any) -> Iterator[bytes]:
    try:
        while data and not machine.eof:
            yield machine.decompress(data, _SLICE_BYTES)
            data = machine.unconsumed_tail
    except zlib.error:
        raise Unopened("damaged", "gzip") from None


def _brotli(data: bytes) -> Iterator[bytes]:
    module = _library("brotli", "brotlicffi")
    if module is None:
        raise Unopened("no_decoder", "br")
    machine = module.Decompressor()
    process = machine.process if hasattr(machine, "process") else machine.decompress
    try:
        for at in range(0, len(data), 64):  # few at a time: there are versions that cannot be told how much to give out
            yield process(data[at : at + 64])
    except module.error:
        raise Unopened("damaged", "br") from None


def _zstd(data: bytes) -> Iterator[bytes]:
    module = _library("compression.zstd", "zstandard", "backports.zstd")
    if module is None:
        raise Unopened("no_decoder", "zstd")
    if hasattr(module, "ZstdCompressionReader"):  # the package zstandard
        reader = module.ZstdDecompressor().stream_reader(data, read_across_frames=True)
        try:
            while part := reader.read(_SLICE_BYTES):
                yield part
        except module.ZstdError:
            raise Unopened("damaged", "zstd") from None
        return
    try:
        while data:
            machine = module.ZstdDecompressor()
            yield machine.decompress(data, _SLICE_BYTES)
            while not machine.eof and not machine.needs_input:
                yield machine.decompress(b"", _SLICE_BYTES)
            data = machine.unused_data
    except module.ZstdError:
        raise Unopened("damaged", "zstd") from None


def _library(*names: str) -> Any:
    """Return the first of these that is installed. Who asked for such an answer has most often loaded one."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None


_OPENERS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    "gzip": _inflated,
    "x-gzip": _inflated,
    "deflate": _deflated,
    "br": _brotli,
    "zstd": _zstd,
}
