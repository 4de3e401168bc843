"""Real SDKs and frameworks, recorded once and replayed with nobody there to answer: they do what they did."""

from __future__ import annotations

import pytest
from tests.matrix.cases import cases
from tests.matrix.conftest import Runs
from tests.matrix.harness import Entry

# What speaks MCP has servers of its own, and tests of its own.
CASES = [case for case in cases() if case.values[0].program != "mcp_client"]


@pytest.mark.parametrize(("entry", "scenario"), CASES)
def test_a_replayed_agent_does_what_it_did(entry: Entry, scenario: str, runs: Runs) -> None:
    recorded, again = runs.recorded(entry), runs.replayed(entry)
    assert again.outcomes[scenario] == recorded.outcomes[scenario]
    # What asyncio says there of generators that nobody closed is a matter of chance, with places in memory.
    assert [one for one in again.report["deviations"] if one.get("name") != "stderr"] == []
    assert again.report["live_calls"] == 0
