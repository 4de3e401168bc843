"""Name what can go wrong between a server and whoever asks it."""

from __future__ import annotations

from typing import Any

from playhead.errors.base import PlayheadError


class BadRequest(PlayheadError):
    """A request over HTTP cannot be answered as it is."""

    code = "bad_request"
    default_hint = "docs/reference/http.md lists every address, and what it is asked."


class NotThere(BadRequest):
    """There is nothing at this address."""

    code = "not_there"


class NotAllowed(BadRequest):
    """Nothing of that kind can be done at this address."""

    code = "not_allowed"

    def __init__(self, message: str, *, allowed: tuple[str, ...] = (), **more: Any) -> None:
        super().__init__(message, **more)
        self.allowed = allowed


class Forbidden(BadRequest):
    """Whoever asks may not."""

    code = "forbidden"
    default_hint = "`playhead keys create --scope …` makes a key that may."


class TooLarge(BadRequest):
    """A request holds more than is taken in at once."""

    code = "too_large"
    default_hint = "Send it in smaller parts."


class UnknownMedia(BadRequest):
    """A request has a form that is not read here."""

    code = "unknown_media"


class TooMany(BadRequest):
    """A key asked more often than it may."""

    code = "too_many"
    default_hint = "Try again after as many seconds as Retry-After says."

    def __init__(self, message: str, *, after_s: int = 1, **more: Any) -> None:
        super().__init__(message, **more)
        self.after_s = after_s


class Busy(BadRequest):
    """The server has too much to do just now, and took nothing in."""

    code = "busy"
    default_hint = "Try again after as many seconds as Retry-After says; an OpenTelemetry exporter does so by itself."

    def __init__(self, message: str, *, after_s: int = 1, **more: Any) -> None:
        super().__init__(message, **more)
        self.after_s = after_s


class LinesMissing(BadRequest):
    """Lines were sent that come after some that are not here."""

    code = "lines_missing"
    default_hint = "Send them from the event that `detail.events` names."

    def __init__(self, message: str, *, events: int = 0, **more: Any) -> None:
        super().__init__(message, **{"detail": {"events": events}, **more})
        self.events = events


class ServerError(PlayheadError):
    """A server did not answer, or not as a server of Playhead does."""

    code = "server"
    default_hint = "Is `playhead serve` running there? `curl ADDRESS/health` says so."
