"""Write answers: JSON, exact bytes, streams; and every error in one shape."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

import msgspec
import orjson

from playhead import errors
from playhead.errors import PlayheadError

JSON = "application/json"
NDJSON = "application/x-ndjson"

# The status of an error, by its code; a class that is not named answers as the one that it is derived from.
STATUSES: dict[type[PlayheadError], int] = {
    errors.UsageError: 422,
    errors.ArtifactNotFound: 404,
    errors.RunNotFound: 404,
    errors.AmbiguousRun: 409,
    errors.MissingContent: 410,
    errors.Altered: 409,
    errors.NotComparable: 409,
    errors.NotReplayable: 409,
    errors.EnvelopeMismatch: 409,
    errors.RecordedError: 409,
    errors.BadCassette: 422,
    errors.BadImport: 422,
    errors.BadBody: 400,
    errors.BrokenLine: 422,
    errors.LedgerError: 503,
    errors.StoreError: 503,
    errors.StoreTooNew: 409,
    errors.Conflict: 409,
    errors.KeyRefused: 401,
    errors.Forbidden: 403,
    errors.NotFound: 404,
    errors.NotThere: 404,
    errors.NotAllowed: 405,
    errors.TooLarge: 413,
    errors.LinesMissing: 416,
    errors.UnknownMedia: 415,
    errors.TooMany: 429,
    errors.Busy: 503,
}


class Answer:
    """What is sent back, whole."""

    def __init__(
        self, body: bytes, *, status: int = 200, media: str = JSON, headers: Mapping[str, str] | None = None
    ) -> None:
        self.body = body
        self.status = status
        self.media = media
        self.headers = dict(headers or {})


class Streamed:
    """What is sent back piece by piece, as it is made."""

    def __init__(
        self,
        pieces: Iterator[bytes] | AsyncIterator[bytes],
        *,
        status: int = 200,
        media: str = NDJSON,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.pieces = pieces
        self.status = status
        self.media = media
        self.headers = dict(headers or {})


def answered(document: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return a document as JSON."""
    return Answer(encoded(document), status=status, headers=headers)


def encoded(document: Any) -> bytes:
    """Return a document as compact JSON; structs of msgspec are welcome."""
    try:
        return orjson.dumps(document, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except orjson.JSONEncodeError:  # a number beyond 64 bits, half of a surrogate pair, or more than 254 levels
        import json

        return json.dumps(document, default=_plain).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def refused(problem: PlayheadError) -> Answer:
    """Return an error in the one shape that all have."""
    headers = {}
    status = status_of(type(problem))
    if status in (429, 503):
        headers["retry-after"] = str(getattr(problem, "after_s", 1))
    if status == 401:
        headers["www-authenticate"] = 'Bearer realm="playhead"'
    if status == 405:
        headers["allow"] = ", ".join(getattr(problem, "allowed", ()))
    return answered(problem.as_dict(), status=status, headers=headers)


def status_of(kind: type[PlayheadError]) -> int:
    """Return the status that an error of this class is answered with."""
    return next((STATUSES[base] for base in kind.__mro__ if base in STATUSES), 500)


def broken() -> Answer:
    """Return what is said of a mistake of ours: nothing of what was going on inside."""
    return answered(
        {
            "error": {
                "code": "internal",
                "message": "the server made a mistake",
                "hint": "Its log says what happened. Nothing that was acknowledged is lost.",
                "detail": None,
            }
        },
        status=500,
    )
