"""Bring the requests of two runs into a form in which they can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tests.matrix.answers import case_of

from playhead.testing import Exchange, ReceivedRequest

# Of two bare runs: each connection and each signature has its own.
_VARYING_HEADERS = {
    "host", "cookie", "traceparent", "mcp-session-id", "authorization", "x-amz-date", "amz-sdk-invocation-id",
}  # fmt: skip
_BOUNDARY = re.compile(rb"boundary=\"?([^\";\s]+)")
_CLIENT_ID = re.compile(rb"pyd_ai_[0-9a-f]{32}")  # pydantic-ai names the calls that Gemini leaves without an id


def asked(exchanges: Iterable[Exchange], scenario: str) -> list[tuple[Any, ...]]:
    """Return the requests of a scenario, without what differs between any two runs; those made at once are sorted."""
    requests = [exchange.request for exchange in of_scenario(exchanges, scenario)]
    return [_settled(request) for request in sorted(requests, key=lambda request: int(case_of(request)[1] or 0))]


def of_scenario(exchanges: Iterable[Exchange], scenario: str) -> list[Exchange]:
    """Return what a scenario exchanged with the provider, in the order of arrival."""
    return [exchange for exchange in exchanges if case_of(exchange.request)[0] == scenario]


def _settled(request: ReceivedRequest) -> tuple[Any, ...]:
    body = _CLIENT_ID.sub(b"pyd_ai", request.body)
    headers = [(name, value) for name, value in request.headers if name.lower() not in _VARYING_HEADERS]
    boundary = next((found[1] for _, value in headers if (found := _BOUNDARY.search(value.encode()))), None)
    if boundary is not None:
        body = body.replace(boundary, b"BOUNDARY")
        headers = [(name, value.replace(boundary.decode(), "BOUNDARY")) for name, value in headers]
    return request.method, request.path, headers, body
