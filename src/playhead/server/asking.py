"""Read requests: the body as it comes, counted while it is inflated, and parameters in the form a route expects."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import orjson

from playhead import _limits
from playhead.errors import BadBody, TooLarge, UnknownMedia, UsageError
from playhead.server.inflating import inflater, too_large

if TYPE_CHECKING:
    from playhead.server.access import Caller
    from playhead.server.application import Application
    from playhead.server.projects import Project
    from playhead.server.routing import Route

Receive = Callable[[], Awaitable[Mapping[str, Any]]]
T = TypeVar("T")


class Gone(Exception):
    """Whoever asked has left in the middle of it."""


class Ask:
    """One request, read, as a handler is given it."""

    def __init__(
        self,
        route: Route,
        path: dict[str, str],
        query: Any,
        headers: Mapping[str, str],
        body: bytes,
        caller: Caller,
        project: Project,
        base: str,
        server: Application,
    ) -> None:
        self.route = route
        self.path = path
        self.query = query
        self.headers = headers
        self.body = body
        self.caller = caller
        self.project = project
        self.base = base  # the address of this server, as whoever asks wrote it
        self.server = server

    @property
    def media(self) -> str:
        """Return the form of the body, without its parameters."""
        return media_of(self.headers)

    def json(self) -> Any:
        """Return the body as the route describes it."""
        assert self.route.body is not None
        return read_json(self.body or b"{}", self.route.body)

    def wants(self, media: str) -> bool:
        """Say whether this form was asked for by its name."""
        return media in self.headers.get("accept", "")


def media_of(headers: Mapping[str, str]) -> str:
    """Return the form of a body, without its parameters."""
    return headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(
    receive: Receive, headers: Mapping[str, str], most: int, hold: Callable[[int], None] = lambda size: None
) -> bytes:
    """Read a body and inflate it, no further than to the limit. `hold` is told how much of it is in memory."""
    length = headers.get("content-length")
    if length is not None and length.isdecimal() and int(length[:20]) > most:
        raise too_large(most)
    took = inflater(headers.get("content-encoding", ""), most)
    while True:
        try:
            message = await asyncio.wait_for(receive(), _limits.BODY_WAIT_S)
        except TimeoutError:
            raise BadBody(f"nothing of the body came in {_limits.BODY_WAIT_S:g} s", hint="Send it again.") from None
        if message["type"] == "http.disconnect":
            raise Gone
        if piece := message.get("body", b""):
            took.take(piece)
            hold(took.held_bytes)
        if not message.get("more_body", False):
            body = took.whole()
            hold(len(body))
            return body


def check_media(route: Route, headers: Mapping[str, str], body: bytes) -> None:
    """Refuse a form that a route does not take."""
    if not route.takes or (not body and route.body is not None):
        return
    given = media_of(headers)
    if given not in route.takes:
        named = f"{given!r}" if given else "a body without a Content-Type"
        raise UnknownMedia(f"{named} is not read here", hint=f"Content-Type is {' or '.join(route.takes)}.")


def read_json(body: bytes, form: type[T]) -> T:
    """Read JSON strictly, in the form that is expected."""
    value = strict_json(body)
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as problem:
        raise UsageError(f"the body is not as expected: {problem}", hint=_REFERENCE) from None


def strict_json(body: bytes) -> Any:
    """Return what JSON says: no NaN, no name twice in one object, not nested without end."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as problem:
        raise BadBody(f"the body is not JSON: {problem}") from None
    if len(body) > _limits.JSON_BODY_BYTES_MAX:
        raise TooLarge(f"a JSON body has at most {_limits.JSON_BODY_BYTES_MAX:,} bytes here")
    _check_depth(value)
    _check_names(body)
    return value


def _check_depth(value: Any) -> None:
    layer, depth = [value], 0
    while layer:
        depth += 1
        if depth > _limits.JSON_BODY_DEPTH_MAX:
            raise BadBody(f"the body is nested more than {_limits.JSON_BODY_DEPTH_MAX} levels deep")
        layer = [
            inner
            for one in layer
            if isinstance(one, (dict, list))
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]


def _check_names(body: bytes) -> None:
    import json

    def once(pairs: list[tuple[str, Any]]) -> None:
        if len({name for name, _ in pairs}) != len(pairs):
            raise BadBody("the body says something twice: an object has the same name more than once")

    json.loads(body, object_pairs_hook=once, parse_int=str)


def read_query(items: list[tuple[str, str]], form: type[T] | None) -> T | None:
    """Read what stands behind the question mark of an address; nothing that is not expected may be there."""
    told = dict(items)
    if len(told) != len(items):
        raise UsageError("a parameter is given twice", hint=_REFERENCE)
    if form is None:
        if told:
            raise UsageError(f"there is no parameter {next(iter(told))[:60]!r} here", hint=_REFERENCE)
        return None
    if any("\0" in value or not _is_text(value) for value in told.values()):
        raise UsageError("a parameter is no text")
    try:
        return msgspec.convert(told, form, strict=False)
    except msgspec.ValidationError as problem:
        raise UsageError(f"a parameter is not as expected: {problem}", hint=_REFERENCE) from None


def _is_text(value: str) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in value)


_REFERENCE = "docs/reference/http.md lists every address and its parameters; so does /docs of this server."
