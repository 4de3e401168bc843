"""Remember of each span of a run where it stands, in little space: a trace may have a hundred thousand."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

_PACKED = struct.Struct("<8sBiiqqQ")  # digest, kind, opened, seq, start, end, parent
_KINDS = ("step.started", "model.invoked", "tool.called")
_LETTERS = 16  # of an id, and of a digest, in hex
_HEX = "0123456789abcdef"
_SEQ_MAX = 2**31 - 1


class Known(NamedTuple):
    """What is known of one span: every form in which it came, and where its newest one stands."""

    digests: str  # with spaces between
    opens: str  # the kind of its opening event
    opened: int  # its opening event, or the last revision: where it stands what it asked
    seq: int  # its closing event, or the last revision: where all else that was said of it stands
    parent: str | None
    start_us: int  # by the clock of the run
    end_us: int
    answer: str | None = None  # the id of the answer that it has
    same_as: str | None = None  # the span that tells more of the same call


class SpanTable:
    """Map ids of spans to what is known of them. Most take a hundred bytes, those with more to tell a few hundred."""

    def __init__(self) -> None:
        self._packed: dict[int, bytes] = {}
        self._whole: dict[str, Known] = {}

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.get(id) is not None

    def __iter__(self) -> Iterator[str]:
        yield from (f"{number:016x}" for number in self._packed)
        yield from self._whole

    def __len__(self) -> int:
        return len(self._packed) + len(self._whole)

    def __getitem__(self, id: str) -> Known:
        found = self.get(id)
        if found is None:
            raise KeyError(id)
        return found

    def get(self, id: str) -> Known | None:
        """Return what is known of a span; None where it is not."""
        if self._whole and (known := self._whole.get(id)) is not None:
            return known
        packed = self._packed.get(int(id, 16)) if _is_hex(id) else None
        if packed is None:
            return None
        digest, kind, opened, seq, start_us, end_us, parent = _PACKED.unpack(packed)
        above = f"{parent:016x}" if parent else None
        return Known(digest.hex(), _KINDS[kind], opened, seq, above, start_us, end_us)

    def add(
        self, id: str, digest: str, opens: str, seqs: tuple[int, int], parent: str | None, times: tuple[int, ...]
    ) -> bool:
        """Remember a span that is not known yet; False where what is known of it does not fit into little space."""
        if not (_is_hex(id) and _is_hex(digest) and (parent is None or _is_hex(parent)) and opens in _KINDS):
            return False
        above = 0 if parent is None else int(parent, 16)
        if above == 0 and parent is not None:
            return False
        try:
            packed = _PACKED.pack(bytes.fromhex(digest), _KINDS.index(opens), *seqs, *times, above)
        except struct.error:
            return False
        self._packed[int(id, 16)] = packed
        return True

    def __setitem__(self, id: str, known: Known) -> None:
        if _is_plain(id, known):
            self._whole.pop(id, None)
            self._packed[int(id, 16)] = _PACKED.pack(
                bytes.fromhex(known.digests),
                _KINDS.index(known.opens),
                known.opened,
                known.seq,
                known.start_us,
                known.end_us,
                0 if known.parent is None else int(known.parent, 16),
            )
            return
        if _is_hex(id):
            self._packed.pop(int(id, 16), None)
        self._whole[id] = known


def _is_plain(id: str, known: Known) -> bool:
    """Say whether what is known of a span fits into little space."""
    return (
        known.answer is None
        and known.same_as is None
        and _is_hex(known.digests)
        and _is_hex(id)
        and known.opens in _KINDS
        and max(known.seq, known.opened) <= _SEQ_MAX
        and (known.parent is None or (_is_hex(known.parent) and known.parent.strip("0") != ""))
        and abs(known.start_us) < 2**62
        and abs(known.end_us) < 2**62
    )


def _is_hex(id: str) -> bool:
    return len(id) == _LETTERS and not id.strip(_HEX)
