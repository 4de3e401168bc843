"""Know every route: what it is asked, who may ask, what it answers. The API reference is made of the same table."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

if TYPE_CHECKING:
    from playhead.server.asking import Ask

Method = Literal["GET", "POST", "DELETE", "PUT"]
Scope = Literal["open", "ingest", "read", "admin"]
Handler = Callable[["Ask"], Any]


class Query(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """What may stand behind the question mark of an address."""


class Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a request may hold as JSON."""


class Route(NamedTuple):
    """One address, and one thing that can be done there."""

    method: Method
    path: str
    handler: Handler
    scope: Scope
    about: str  # the first line of what the handler says of itself
    more: str  # the rest of it
    group: str
    query: type[Query] | None
    body: type[Body] | None  # of JSON; a route that takes something else says so in `takes`
    takes: tuple[str, ...]
    answers: dict[int, Any]  # by status: a type, an example, or None for nothing
    media: tuple[str, ...]
    runs: Literal["reading", "writing", "loop"]  # among the threads that read, those that write, or on the loop
    limited: bool  # counts against the rate of a key
    spelled: str  # the name of the operation


ROUTES: list[Route] = []


def route(
    method: Method,
    path: str,
    *,
    scope: Scope = "read",
    group: str,
    query: type[Query] | None = None,
    body: type[Body] | None = None,
    takes: tuple[str, ...] = (),
    answers: dict[int, Any] | None = None,
    media: tuple[str, ...] = ("application/json",),
    runs: Literal["reading", "writing", "loop"] = "reading",
    limited: bool = True,
) -> Callable[[Handler], Handler]:
    """Add a route; what its handler says of itself is what the API reference says."""

    def add(handler: Handler) -> Handler:
        about, _, more = (handler.__doc__ or "").partition("\n")
        told = "\n".join(line.strip() for line in more.strip().splitlines())
        accepted = takes or (("application/json",) if body is not None else ())
        ROUTES.append(
            Route(
                method, path, handler, scope, about.strip(), told, group, query, body, accepted,
                answers or {200: None}, media, runs, limited, handler.__name__,
            )
        )  # fmt: skip
        return handler

    return add


def load() -> list[Route]:
    """Return every route there is."""
    from playhead.server.routes import EVERY  # noqa: F401 - each adds its own

    return ROUTES
