"""Say what every payload has: a kind, a phase, and fields of which only those that say something are written."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

Phase = Literal["opens", "closes", "point"]
Status = Literal["ok", "error", "cancelled"]


class Payload(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Base of all payloads."""

    KIND: ClassVar[str]
    PHASE: ClassVar[Phase] = "point"


class Usage(msgspec.Struct, omit_defaults=True, kw_only=True):
    """Count tokens."""

    input: int | None = None
    output: int | None = None
    cached: int | None = None
    reasoning: int | None = None


_FIELDS: dict[type, tuple[tuple[str, bool], ...]] = {}


def as_fields(payload: msgspec.Struct) -> dict[str, Any]:
    """Return the fields of a payload that say something: no None, no empty container, no flag that is off."""
    kind = type(payload)
    known = _FIELDS.get(kind)
    if known is None:
        known = _FIELDS[kind] = tuple(
            (field.name, field.default_factory is not msgspec.NODEFAULT or field.default is False)
            for field in msgspec.structs.fields(kind)
        )
    out: dict[str, Any] = {}
    for name, silent_when_empty in known:
        value = getattr(payload, name)
        if value is None or (silent_when_empty and not value):
            continue
        out[name] = as_fields(value) if type(value) is Usage else value
    return out
