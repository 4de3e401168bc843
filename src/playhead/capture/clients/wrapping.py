"""Capture one client only: what it sends is recorded in a run that captures nothing else."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any, TypeVar

from playhead.capture.scope import wrapped
from playhead.errors import UsageError

C = TypeVar("C")

# By the library that a class comes from: the method through which every request of an instance goes.
_SENDERS = {"httpx": "send", "httpx2": "send", "requests": "send", "aiohttp": "_request"}
# Where clients of providers keep the client that sends for them.
_INNER = (
    "_client",
    "_api_client",
    "client",
    "async_client",
)
_GOOGLE = ("_request_once", "_async_request_once")
_DEPTH_MAX = 3


def wrap(client: C) -> C:
    """Record what this client sends, in runs opened with `capture=False`; return the client itself.

    It takes clients of OpenAI, Anthropic and google-genai, and those of httpx, httpx2, aiohttp and requests. In any
    other run the traffic of all clients is recorded, and this one's once, as always.
    """
    senders = list(_senders(client, 0, set()))
    if not senders:
        raise UsageError(
            f"there is no HTTP client in a {type(client).__module__}.{type(client).__qualname__}",
            hint="Give it a client of OpenAI, Anthropic or google-genai, or one of httpx, aiohttp or requests.",
        )
    for owner, name in senders:
        if not hasattr(owner.__dict__.get(name), "playhead_original"):
            owner.__dict__[name] = _wanted(getattr(owner, name))
    return client


def unwrap(client: C) -> C:
    """Take back what `wrap` did; return the client itself."""
    for owner, name in _senders(client, 0, set()):
        if hasattr(owner.__dict__.get(name), "playhead_original"):
            del owner.__dict__[name]
    return client


def _senders(client: Any, depth: int, seen: set[int]) -> Iterator[tuple[Any, str]]:
    if client is None or id(client) in seen or not hasattr(client, "__dict__"):
        return
    seen.add(id(client))
    for kind in type(client).__mro__:
        name = _SENDERS.get(kind.__module__.partition(".")[0])
        if name is not None and name in kind.__dict__:
            yield client, name
            return
    # google-genai makes a session for each event loop when it first needs one; all that it sends goes through these.
    if all(hasattr(type(client), name) for name in _GOOGLE):
        yield from ((client, name) for name in _GOOGLE)
        return
    if depth < _DEPTH_MAX:
        for inner in _INNER:
            yield from _senders(client.__dict__.get(inner), depth + 1, seen)


def _wanted(send: Any) -> Any:
    if inspect.iscoroutinefunction(send):

        @functools.wraps(send)
        async def asynchronous(*args: Any, **kwargs: Any) -> Any:
            token = wrapped.set(True)
            try:
                return await send(*args, **kwargs)
            finally:
                wrapped.reset(token)

        asynchronous.playhead_original = send  # type: ignore[attr-defined]
        return asynchronous

    @functools.wraps(send)
    def plain(*args: Any, **kwargs: Any) -> Any:
        token = wrapped.set(True)
        try:
            return send(*args, **kwargs)
        finally:
            wrapped.reset(token)

    plain.playhead_original = send  # type: ignore[attr-defined]
    return plain
