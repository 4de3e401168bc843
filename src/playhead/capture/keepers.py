"""Keep what a function gave back in a pack, in the form that its sort asks for; `_hooks.c` has the same in C."""

from __future__ import annotations

import struct
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

from playhead.capture.hooks import What
from playhead.capture.packs import Pack
from playhead.event.reads import NS

_EPOCH_DAYS = date(1970, 1, 1).toordinal()


def _keep_seconds(of: str, by: str, pack: Pack, span: str | None, result: float) -> None:
    near = round(result * 1e9)
    if near / 1e9 == result:  # mostly
        pack.keep(of, by, NS, near, 8, span)  # as `add_number` does
        return
    for number in (near - 1, near + 1, round(result * 1e9 / 256) * 256):
        if number / 1e9 == result:
            pack.add_number(of, by, number, span)
            return
    pack.add(of, by, result, 20, span)


def _keep_nanoseconds(of: str, by: str, pack: Pack, span: str | None, result: int) -> None:
    pack.keep(of, by, NS, result, 8, span)  # as `add_number` does


def _keep_number(of: str, by: str, pack: Pack, span: str | None, result: int) -> None:
    pack.add_number(of, by, result, span, clock=False)


def keep_raw(of: str, by: str, pack: Pack, span: str | None, result: bytes) -> None:
    """Keep bytes as they are."""
    pack.add_bytes(of, by, result, span)


def _keep_unit(of: str, by: str, pack: Pack, span: str | None, result: float) -> None:
    pack.add_bytes(of, by, struct.pack("<d", result), span)


def _keep_bits(of: str, by: str, pack: Pack, span: str | None, result: int) -> None:
    pack.add_bytes(of, by, result.to_bytes((result.bit_length() + 7) // 8, "little"), span)


def _keep_uuid(of: str, by: str, pack: Pack, span: str | None, result: Any) -> None:
    pack.add_bytes(of, by, result.bytes, span)


def _keep_first(of: str, by: str, pack: Pack, span: str | None, result: tuple[bytes, Any]) -> None:
    pack.add_bytes(of, by, result[0], span)


def _keep_moment(of: str, by: str, pack: Pack, span: str | None, result: date) -> None:
    micro = (result.toordinal() - _EPOCH_DAYS) * 86_400_000_000
    fold = 0
    if isinstance(result, datetime):
        micro += ((result.hour * 60 + result.minute) * 60 + result.second) * 1_000_000 + result.microsecond
        fold = result.fold
        offset = result.utcoffset()
        if result.tzinfo is not None:
            fold = 0
            of = "datetime.datetime.now(tz)" if of == "datetime.datetime.now" else of
            if offset is not None:
                micro -= (offset.days * 86400 + offset.seconds) * 1_000_000 + offset.microseconds
        elif of == "datetime.date.today":
            of = "datetime.datetime.today"
    pack.add_number(of, by, micro * 1000 + fold, span)


KEEPERS: dict[What, Callable[..., None]] = {
    What.SECONDS: _keep_seconds,
    What.NANOSECONDS: _keep_nanoseconds,
    What.MOMENT: _keep_moment,
    What.NUMBER: _keep_number,
    What.RAW: keep_raw,
    What.UNIT: _keep_unit,
    What.BITS: _keep_bits,
    What.UUID: _keep_uuid,
    What.FIRST_RAW: _keep_first,
}
