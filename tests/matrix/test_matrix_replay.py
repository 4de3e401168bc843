"""Real SDKs and frameworks, recorded once and replayed with nobody there to answer: they do what they did."""

from __future__ import annotations

import pytest
from tests.matrix.cases import cases
from tests.matrix.conftest import Runs
from tests.matrix.harness import Entry

# What speaks MCP has servers of its own, and tests of its own.
CASES = [case for case in cases() if case.values[0].program != "mcp_client"]


def _ran(seen: object) -> bool:
    """Return whether this is what the body of a tool that an SDK calls left behind: in a replay it does not run."""
    return isinstance(seen, dict) and "ran" in seen


@pytest.mark.parametrize(("entry", "scenario"), CASES)
def test_a_replayed_agent_does_what_it_did(entry: Entry, scenario: str, runs: Runs) -> None:
    recorded, again = runs.recorded(entry), runs.replayed(entry)
    then, now = recorded.outcomes[scenario], again.outcomes[scenario]
    assert now == {**then, "seen": [one for one in then["seen"] if not _ran(one)]}
    # What asyncio says there of generators that nobody closed is a matter of chance, with places in memory. The outcomes
    # are what it prints: where bodies of tools left something behind, that differs, and all else is compared above.
    ran = any(_ran(one) for outcome in recorded.outcomes.values() for one in outcome["seen"])
    not_judged = {"stderr", "stdout"} if ran else {"stderr"}
    assert [one for one in again.report["deviations"] if one.get("name") not in not_judged] == []
    assert again.report["live_calls"] == 0
