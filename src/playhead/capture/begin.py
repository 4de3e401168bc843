"""Begin to record a request that goes out, or leave it alone: for the adapters of all clients."""

from __future__ import annotations

from contextvars import ContextVar

from playhead.capture import abandoned, answering, dialects, enforcing, guard, telemetry
from playhead.capture.exchange import Exchange
from playhead.capture.headers import Pairs, texts
from playhead.capture.scope import muted, place, wrapped
from playhead.capture.unrecorded import Unrecorded

# A request begins, for whoever has to know that somebody records it.
begun: ContextVar[list[bool] | None] = ContextVar("playhead_begun", default=None)


def begin(method: str, url: str, headers: Pairs, body: bytes | None, *, tells: bool = False) -> Exchange | None:
    """Record that a request goes out now; None where nothing is to be recorded.

    Without a body it is told piece by piece with `sent`, and the request is recorded when it has left. An adapter that
    `tells` calls `opened` when the last byte has left; then a question to a model is recorded while it is on its way,
    in the time that the provider needs to answer (docs/design/decisions/0014-on-its-way.md).
    """
    seen = begun.get()
    if seen is not None:
        seen.append(True)
    if muted.get():
        _learn(headers, url)
        return None
    abandoned.settle()
    scope = place()
    if scope is None and answering.unrecorded is not None:
        answering.unrecorded(method, url)
    if scope is None or not (scope.recording.captures or wrapped.get()) or answering.is_left_alone(url):
        return None
    enforcing.request(scope, method, url, body)
    try:
        exchange = Exchange(scope, method, url, headers)
        if abandoned.collecting():
            scope.recording.lose("in_finaliser")  # a request that a finaliser makes
            return None
        if telemetry.is_export(method, url, exchange.told()):
            scope.recording.turns.exports += 1
            return Unrecorded(scope, method, url, ())
    except Exception as problem:
        guard.absorb(problem, scope.recording, f"a request to {url}", inside=True)
        return None
    exchange.begun()
    if body is not None:
        if tells and dialects.find(method, url) is not None:
            exchange.sent(body)
        else:
            exchange.opened(body)
    return exchange


def _learn(headers: Pairs, url: str) -> None:
    """Take in the keys of a request that is recorded as what it means: its answer may hold them."""
    scope = place()
    if scope is not None and scope.recording.captures:
        try:
            scope.recording.learn_from_request(texts(headers), url)
        except Exception as problem:
            guard.absorb(problem, scope.recording, f"the keys of a request to {url}", inside=True)
