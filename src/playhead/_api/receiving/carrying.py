"""Carry spans and logs from one process of a server to another, as MessagePack."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from playhead._api.receiving.open_runs import Piece
from playhead.ingest.otlp.grouping import Group
from playhead.ingest.otlp.spans import Emitter, LogRecord, Span

# What is found out about a span is no part of it, and its emitter is carried once for all.
_FOUND_OUT = frozenset({"texts", "items", "named", "known", "told", "rest", "emitter"})
_OF_SPAN = tuple(name for name in Span.__struct_fields__ if name not in _FOUND_OUT)
_OF_LOG = tuple(name for name in LogRecord.__struct_fields__ if name not in _FOUND_OUT)
_LARGE = 1  # what stands for an integer of more than 64 bits
_span_values, _log_values = attrgetter(*_OF_SPAN), attrgetter(*_OF_LOG)


def carried(pieces: Sequence[Piece]) -> bytes:
    """Return pieces as bytes."""
    emitters: dict[int, int] = {}
    known: list[Any] = []

    def place(emitter: Emitter) -> int:
        number = emitters.get(id(emitter))
        if number is None:
            number = emitters[id(emitter)] = len(known)
            known.append((emitter.resource, emitter.scope))
        return number

    parts = [
        (
            piece.run, piece.is_new, tuple(piece.group), piece.trace,
            [(place(span.emitter), _span_values(span)) for span in piece.spans],
            [(place(log.emitter), _log_values(log)) for log in piece.logs],
        )
        for piece in pieces
    ]  # fmt: skip
    return encoded((parts, known))


def encoded(message: Any) -> bytes:
    """Return what one process says to another."""
    try:
        return msgspec.msgpack.encode(message)
    except OverflowError:
        return msgspec.msgpack.encode(_with_large(message))


def decoded(data: bytes) -> Any:
    """Return what another process has said; what was a tuple is a list."""
    return msgspec.msgpack.decode(data, ext_hook=_large)


def _with_large(value: Any) -> Any:
    """Put something in the place of integers that MessagePack has no form for."""
    if type(value) is int and not -(2**63) <= value < 2**64:
        return msgspec.msgpack.Ext(_LARGE, hex(value).encode())
    if isinstance(value, dict):
        return {key: _with_large(item) for key, item in value.items()}
    return [_with_large(item) for item in value] if isinstance(value, list | tuple) else value


def _large(kind: int, data: memoryview) -> int:
    assert kind == _LARGE
    return int(bytes(data), 16)


def unpacked(data: bytes) -> list[Piece]:
    """Return the pieces again."""
    parts, known = decoded(data)
    emitters = [Emitter(resource, scope) for resource, scope in known]
    return [
        Piece(
            run, is_new, Group(*group), trace,
            [Span(emitter=emitters[place], **dict(zip(_OF_SPAN, values, strict=True))) for place, values in spans],
            [LogRecord(emitter=emitters[place], **dict(zip(_OF_LOG, values, strict=True))) for place, values in logs],
        )
        for run, is_new, group, trace, spans, logs in parts
    ]  # fmt: skip
