"""Make our own errors again out of what a server said: the same class, message, hint and detail as over there."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import orjson

from playhead.errors import KeyRefused, PlayheadError, ServerError

_ATTRIBUTES = ("expected", "actual", "events", "capability", "resource", "rule", "reason", "target", "reasons")


def refusal(body: bytes, status: int, address: object, *, after_s: float = 1, keyed: bool = True) -> PlayheadError:
    """Return the error that an answer tells of; ServerError where no server of Playhead would answer so."""
    told = _told(body)
    if told is None:
        return not_a_server(address, f"it answered with the status {status} and no error of Playhead's")
    kind = _classes().get(str(told.get("code")))
    message, hint, detail = str(told.get("message")), str(told.get("hint") or ""), told.get("detail")
    if kind is None:
        return ServerError(f"{address}: {message}", hint=hint, detail=detail)
    if kind is KeyRefused and not keyed:
        hint = "Set PLAYHEAD_API_KEY to a key of that server; `playhead keys create` makes one over there."
    return _made(kind, message, hint, detail, after_s)


def error_of(told: dict[str, Any]) -> PlayheadError | None:
    """Return the error of which something is told, as in an answer; None where it is none of ours."""
    kind = _classes().get(str(told.get("code")))
    if kind is None or "message" not in told:
        return None
    return _made(kind, str(told["message"]), str(told.get("hint") or ""), told.get("detail"), 1)


def not_a_server(address: object, why: str) -> ServerError:
    """Return what is said of something that answers, and not as a server of Playhead does."""
    return ServerError(
        f"there is no Playhead server at {address}: {why}",
        hint=f"`curl {address}/health` says `ok` where there is one. Below a proxy its path belongs to the address.",
    )


def _told(body: bytes) -> dict[str, Any] | None:
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    told = document.get("error") if isinstance(document, dict) else None
    return told if isinstance(told, dict) and isinstance(told.get("code"), str) and "message" in told else None


@functools.cache
def _classes() -> dict[str, type[PlayheadError]]:
    return {kind.code: kind for kind in _below(PlayheadError)}


def _below(kind: type[PlayheadError]) -> Iterator[type[PlayheadError]]:
    yield kind
    for derived in kind.__subclasses__():
        yield from _below(derived)


def _made(kind: type[PlayheadError], message: str, hint: str, detail: Any, after_s: float) -> PlayheadError:
    """Make an error without its own way of being made: each class asks for other arguments."""
    error = kind.__new__(kind, message)
    error.args = (message,)
    error.message, error.hint, error.detail = message, hint, detail
    given = detail if isinstance(detail, dict) else {}
    more: dict[str, Any] = {name: given[name] for name in _ATTRIBUTES if name in given}
    match kind.code:
        case "not_replayable":
            more.setdefault("reasons", list(given))
        case "recorded_error":
            more["error"] = given
        case "too_many" | "busy":
            more["after_s"] = int(after_s)
        case "not_allowed":
            more["allowed"] = ()
    for name, value in more.items():
        setattr(error, name, value)
    return error
