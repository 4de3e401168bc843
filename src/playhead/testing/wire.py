"""Say how an answer goes over the wire, and what goes wrong there: slowly, encoded, in odd pieces, cut off.

Pure functions but for the compressors; the same answer gives the same chunks.
"""

from __future__ import annotations

import importlib
import itertools
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Encoding = Literal["gzip", "br", "zstd"]
Cut = Literal["before-head", "after-head", "mid-body"] | int
Split = Literal["torn"] | int | tuple[int, ...]

_GZIP_WINDOW = 31  # of zlib: a gzip header, and no time in it
_MODULES = {"br": ("brotli",), "zstd": ("compression.zstd", "backports.zstd", "zstandard")}  # the first that is there
_PACKAGES = {"br": "brotli", "zstd": "zstandard"}  # what to install, where none is
_CUTS = ("before-head", "after-head", "mid-body")


@dataclass(frozen=True)
class Wire:
    """Say how one answer is sent.

    `cut` ends the connection early: before the head, after the head, in the middle of the body, or after so many
    chunks. `split` sets the chunks: a size, a tuple of sizes (the rest is one more), or "torn", which ends chunks in
    the middle of characters and of the lines of a stream. Sizes count the bytes as sent; "torn" tears before encoding.
    """

    delay_s: float = 0.0  # before the head
    chunk_delay_s: float = 0.0  # before each chunk but the first
    cut: Cut | None = None
    encoding: Encoding | None = None
    split: Split | None = None
    pretty: bool = False  # a whole answer is indented by two, as api.openai.com does it
    chunked: bool = False  # a whole answer comes without Content-Length as well
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = ()  # more of them: Set-Cookie, x-request-id, …

    def __post_init__(self) -> None:
        if isinstance(self.cut, str) and self.cut not in _CUTS:
            raise ValueError(f"cut is a number of chunks or one of {', '.join(_CUTS)}, not {self.cut!r}")
        if isinstance(self.split, str) and self.split != "torn":
            raise ValueError(f'split is a size, a tuple of sizes or "torn", not {self.split!r}')
        if any(size < 1 for size in _sizes(self.split)):
            raise ValueError(f"a chunk has at least one byte: {self.split!r}")
        if self.encoding is not None:
            _check_encoding(self.encoding)

    @property
    def header_pairs(self) -> list[tuple[str, str]]:
        """Return the headers as ordered pairs."""
        return [*(self.headers.items() if isinstance(self.headers, Mapping) else self.headers)]

    def chunks(self, pieces: Sequence[bytes]) -> list[bytes]:
        """Return the chunks of a whole or streamed body as they are sent, if nothing cuts them."""
        parts = [piece for piece in pieces if piece]
        if self.split == "torn":
            parts = _torn(parts)
        if self.encoding is not None:
            parts = _encoded(self.encoding, parts)
        if isinstance(self.split, int):
            parts = list(_cut_into(b"".join(parts), repeat=self.split))
        elif isinstance(self.split, tuple):
            parts = list(_cut_into(b"".join(parts), self.split))
        return [part for part in parts if part]

    def kept(self, chunks: list[bytes]) -> list[bytes]:
        """Return what of the chunks is sent before the connection is cut."""
        if self.cut is None:
            return chunks
        if isinstance(self.cut, int):
            return chunks[: self.cut]
        if self.cut != "mid-body":
            return []
        return _first(chunks, sum(map(len, chunks)) // 2)


def _sizes(split: Split | None) -> tuple[int, ...]:
    return split if isinstance(split, tuple) else (split,) if isinstance(split, int) else ()


def _first(chunks: Sequence[bytes], size: int) -> list[bytes]:
    out = []
    for chunk in chunks:
        if size <= 0:
            break
        out.append(chunk[:size])
        size -= len(chunk)
    return out


def _cut_into(data: bytes, sizes: Sequence[int] = (), repeat: int | None = None) -> Iterator[bytes]:
    """Yield pieces of the given sizes, then pieces of one size or all the rest."""
    at = 0
    for size in sizes:
        if at < len(data):
            yield data[at : at + size]
        at += size
    step = repeat or max(1, len(data) - at)
    for start in range(at, len(data), step):
        yield data[start : start + step]


def _torn(parts: Sequence[bytes]) -> list[bytes]:
    """Move every boundary to where a reader does not expect it.

    A chunk ends after the first byte of each character of several bytes, in the middle of each part, and either inside
    its first word (`da|ta:`) or between its last two bytes, which in a stream are the newlines that end an event.
    """
    data = b"".join(parts)
    ends = {at + 1 for at, byte in enumerate(data) if byte >= 0xC0}
    start = 0
    for number, part in enumerate(parts):
        ends.add(start + len(part) // 2)
        ends.add(start + min(2, len(part)) if number % 2 == 0 else start + len(part) - 1)
        start += len(part)
    points = [0, *sorted(ends - {0, len(data)}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(points) if a < b]


def _check_encoding(encoding: str) -> None:
    if encoding not in ("gzip", "br", "zstd"):
        raise ValueError(f"encoding is gzip, br or zstd, not {encoding!r}")
    if encoding != "gzip" and _module_of(encoding) is None:
        package = _PACKAGES[encoding]
        raise RuntimeError(
            f"to send {encoding} the scripted provider needs the package {package}: pip install {package}"
        )


def _module_of(encoding: str) -> Any:
    for name in _MODULES[encoding]:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue  # the next may be there
    return None


def _encoded(encoding: Encoding, parts: Sequence[bytes]) -> list[bytes]:
    """Encode each part so that it can be decoded when it arrives; the end of the encoding goes with the last one."""
    encode, finish = _encoder(encoding)
    out = [encode(part) for part in parts]
    end = finish()
    if out:
        out[-1] += end
        return out
    return [end]


def _encoder(encoding: Encoding) -> tuple[Callable[[bytes], bytes], Callable[[], bytes]]:
    """Return a function that encodes one part and flushes it, and one that ends the encoding."""
    if encoding == "gzip":
        deflate = zlib.compressobj(wbits=_GZIP_WINDOW)
        return lambda part: deflate.compress(part) + deflate.flush(zlib.Z_SYNC_FLUSH), deflate.flush
    module = _module_of(encoding)
    if encoding == "br":
        brotli = module.Compressor()
        return lambda part: bytes(brotli.process(part) + brotli.flush()), brotli.finish
    if module.__name__ == "zstandard":
        zstd = module.ZstdCompressor().compressobj()
        return lambda part: bytes(zstd.compress(part) + zstd.flush(module.COMPRESSOBJ_FLUSH_BLOCK)), zstd.flush
    standard = module.ZstdCompressor()
    return lambda part: bytes(standard.compress(part, standard.FLUSH_BLOCK)), standard.flush
