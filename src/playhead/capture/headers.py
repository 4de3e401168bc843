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
Pairs = Iterable[tuple[bytes, bytes] | tuple[str, str]]
_Encoded = tuple[bytes, dict[str, int]]


class Headers:
    """Clean and encode the headers of one recording."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._generation = -1
        self._known: tuple[dict[Pair, bytes], dict[Pair, bytes]] = ({}, {})  # of answers, of requests
        self._hidden: tuple[dict[Pair, dict[str, int]], ...] = ({}, {})  # those of which something was redacted
        self._harmless: tuple[dict[str, bool], ...] = ({}, {})  # names of which every value may be kept
        self._urls: dict[str, _Encoded] = {}

    def pairs(self, headers: list[Pair], asking: bool, counts: dict[str, int]) -> list[bytes]:
        """Return each pair as JSON; `asking` says that they are those of a request."""
        self._look_at_secrets()
        known = self._known[asking]
        found = [known.get(pair) for pair in headers]
        if None in found:
            self._look_at_new([pair for pair, encoded in zip(headers, found, strict=True) if encoded is None], asking)
            found = [known.get(pair) or self._encode(pair, asking) for pair in headers]
        for pair, redacted in list(self._hidden[asking].items()):
            for _ in range(headers.count(pair)):
                _add(counts, redacted)
        return found  # type: ignore[return-value]  # none of them is missing now

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

    def _look_at_new(self, pairs: list[Pair], asking: bool) -> None:
        """Encode pairs that are new: all at once where nothing in them is suspicious, as with dates and numbers."""
        harmless = [pair for pair in pairs if self._is_harmless(pair[0], asking)]
        encoded = [orjson.dumps(pair) for pair in harmless]
        if len(self._known[asking]) + len(encoded) >= _CACHED_MAX:
            self._forget()
        if encoded and not self._redactor.suspicious_text(b",".join(encoded)):
            self._known[asking].update(zip(harmless, encoded, strict=True))

    def _is_harmless(self, name: str, asking: bool) -> bool:
        known = self._harmless[asking].get(name)
        if known is None:
            known = redact_http.is_harmless(self._redactor, name, asking)
            if len(self._harmless[asking]) < _CACHED_MAX:
                self._harmless[asking][name] = known
        return known

    def _encode(self, pair: Pair, asking: bool) -> bytes:
        redacted: dict[str, int] = {}
        shown = redact_http.request_headers if asking else redact_http.response_headers
        clean = self._redactor.redact(shown(self._redactor, [pair], redacted)[0], redacted)
        encoded = orjson.dumps(clean)
        if len(self._known[asking]) >= _CACHED_MAX:
            self._forget()
        self._known[asking][pair] = encoded
        if redacted:
            self._hidden[asking][pair] = redacted
        return encoded

    def _look_at_secrets(self) -> None:
        if self._generation != self._redactor.generation:
            self._generation = self._redactor.generation
            self._forget()
            self._urls.clear()

    def _forget(self) -> None:
        for known, hidden in zip(self._known, self._hidden, strict=True):
            known.clear()
            hidden.clear()


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

    def after_blob(self, name: str, digest: str, size: int) -> Spliced:
        """Return these members after one more: a text that is kept as a blob already."""
        return self._replace(before=b'"%b":{"$blob":"%b","len":%d,"as":"text"},%b' % (
            name.encode(), digest.encode(), size, self.before))  # fmt: skip

    def join(self, encoded: bytes, held: Held) -> bytes:
        """Return the data of an event with these members at its end."""
        comma = b"," if len(encoded) > 2 else b""
        return b"%b%b%b%b%b}" % (encoded[:-1], comma, self.before, self._array(held), self.after)

    def _array(self, held: Held) -> bytes:
        pairs, last = self.pairs, held.headers.get((self.where, self.asking))
        if last is not None:
            seq, before = last
            if pairs == before:
                return b'{"$same":"%d#%b"}' % (seq, self.where.encode())
            keep = 0
            for ours, theirs in zip(pairs, before, strict=False):
                if ours != theirs:
                    break
                keep += 1
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


def texts(pairs: Pairs) -> list[Pair]:
    """Return headers as text, byte for character."""
    return [
        (
            name if isinstance(name, str) else name.decode("latin-1"),
            value if isinstance(value, str) else value.decode("latin-1"),
        )
        for name, value in pairs
    ]
