"""Write headers fast: they come with every exchange, are nearly the same each time, and must be clean.

Each pair is redacted and encoded once for as long as the same secrets are known. A list of pairs that begins like the
one written last is a reference to it, as everywhere in a timeline.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import orjson

from playhead.capture import redact_http
from playhead.capture.redact import Redactor
from playhead.event.references import Held

_CACHED_MAX = 4096
_KEPT_MIN = 4  # pairs that a list must share with the one before to be worth a reference

Pair = tuple[str, str]
_Encoded = tuple[bytes, dict[str, int]]


class Headers:
    """Clean and encode the headers of one recording."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._generation = -1
        self._known: dict[tuple[bool, Pair], _Encoded] = {}
        self._urls: dict[str, _Encoded] = {}

    def pairs(self, headers: Iterable[Pair], asking: bool, counts: dict[str, int]) -> list[bytes]:
        """Return each pair as JSON; `asking` says that they are those of a request."""
        self._look_at_secrets()
        out = []
        for pair in headers:
            found = self._known.get((asking, pair))
            if found is None:
                found = self._encode(pair, asking)
                if len(self._known) < _CACHED_MAX:
                    self._known[asking, pair] = found
            encoded, redacted = found
            out.append(encoded)
            if redacted:
                _add(counts, redacted)
        return out

    def url(self, text: str, counts: dict[str, int]) -> bytes:
        """Return a URL as JSON."""
        self._look_at_secrets()
        found = self._urls.get(text)
        if found is None:
            redacted: dict[str, int] = {}
            clean = redact_http.url(self._redactor, text, redacted)
            found = orjson.dumps(clean), redacted
            if len(self._urls) < _CACHED_MAX:
                self._urls[text] = found
        _add(counts, found[1])
        return found[0]

    def _encode(self, pair: Pair, asking: bool) -> _Encoded:
        redacted: dict[str, int] = {}
        shown = redact_http.request_headers if asking else redact_http.response_headers
        clean = self._redactor.redact(shown(self._redactor, [pair], redacted)[0], redacted)
        return orjson.dumps(clean), redacted

    def _look_at_secrets(self) -> None:
        if self._generation != self._redactor.generation:
            self._generation = self._redactor.generation
            self._known.clear()
            self._urls.clear()


class Spliced(NamedTuple):
    """Members that are added to the data of an event after it is shaped: encoded and clean already.

    `before`, the array of pairs and `after` make up the members; `where` is the pointer to the array. Requests and
    answers have theirs in the same place: `asking` tells them apart, since each resembles only its own.
    """

    before: bytes
    pairs: list[bytes]
    after: bytes
    where: str
    asking: bool

    def join(self, encoded: bytes, held: Held) -> bytes:
        """Return the data of an event with these members at its end."""
        comma = b"," if len(encoded) > 2 else b""
        return b"%b%b%b%b%b}" % (encoded[:-1], comma, self.before, self._array(held), self.after)

    def _array(self, held: Held) -> bytes:
        pairs, last = self.pairs, held.headers.get((self.where, self.asking))
        if last is not None:
            seq, before = last
            keep = 0
            for ours, theirs in zip(pairs, before, strict=False):
                if ours != theirs:
                    break
                keep += 1
            if keep == len(pairs) == len(before):
                return b'{"$same":"%d#%b"}' % (seq, self.where.encode())
            if keep >= _KEPT_MIN:
                then = b",".join(pairs[keep:])
                return b'{"$extends":"%d#%b","keep":%d,"then":[%b]}' % (seq, self.where.encode(), keep, then)
        return b"[%b]" % b",".join(pairs)

    def wrote(self, seq: int, held: Held) -> None:
        """Note that line `seq` holds these pairs, unless one before it does nearly."""
        last = held.headers.get((self.where, self.asking))
        if last is None or self.pairs[:_KEPT_MIN] != last[1][:_KEPT_MIN]:
            held.headers[self.where, self.asking] = (seq, self.pairs)


def _add(counts: dict[str, int], more: dict[str, int]) -> None:
    for rule, count in more.items():
        counts[rule] = counts.get(rule, 0) + count
