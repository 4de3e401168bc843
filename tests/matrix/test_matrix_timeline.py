"""Real SDKs against a scripted provider: the timeline holds what the provider saw and sent, once and byte for byte."""

from __future__ import annotations

from typing import Any

import pytest
from tests.matrix import comparing, taped
from tests.matrix.cases import cases
from tests.matrix.conftest import Runs
from tests.matrix.harness import Entry

from playhead.testing import ReceivedRequest

# What nobody read to its end need not be there in full: the user gave up, or litellm, which leaves `message_stop` unread.
GIVEN_UP = ("cancelled", "closed_early", "timeout", "stream_claude")


@pytest.mark.parametrize(("entry", "scenario"), [case for case in cases() if case.values[0].program != "mcp_client"])
def test_every_exchange_is_in_the_timeline_once(entry: Entry, scenario: str, runs: Runs) -> None:
    recorded = runs.recorded(entry)
    left = taped.of_scenario(taped.taped(taped.events_of(recorded.store)), scenario)
    for exchange in comparing.of_scenario(recorded.exchanges, scenario):
        asked = exchange.request
        found = next((one for one in left if _is_same(one.request, asked)), None)
        assert found is not None, f"not recorded: {asked.method} {asked.path} {asked.body[:200]!r}"
        left.remove(found)
        assert found.answered, f"without an end: {asked.method} {asked.path}"
        assert _names(found.request.headers) == _names(asked.headers)
        if any(word in scenario for word in GIVEN_UP):
            assert exchange.body.startswith(b"".join(found.chunks))
            continue
        assert found.status == exchange.status
        assert _names(found.headers) == _names(exchange.headers)
        assert b"".join(found.chunks) == exchange.body
        # What a model refuses has failed; what a page answers with 404 has not.
        refused = found.kind == "model.invoked" and (exchange.status or 0) >= 400
        assert (found.error is not None) == (exchange.cut or refused)
        if ("Transfer-Encoding", "chunked") in exchange.headers:
            assert [len(chunk) for chunk in found.chunks] == [len(chunk) for chunk in exchange.chunks]
    # What never reached the provider is there as well, and says why.
    assert all(one.status is None and one.error for one in left), left


def _names(headers: list[tuple[str, Any]]) -> list[str]:
    """Return the names as a receiver may rely on them: without regard to case, those that repeat as often as they do."""
    return sorted(name.lower() for name, _ in headers)


def _is_same(one: ReceivedRequest, other: ReceivedRequest) -> bool:
    return (one.method, one.path, one.body) == (other.method, other.path, other.body)
