"""Real SDKs and frameworks, recorded once and replayed with nobody there to answer: they do what they did."""

from __future__ import annotations

import pytest
from tests.matrix.cases import cases
from tests.matrix.conftest import Runs
from tests.matrix.harness import Entry

# What speaks MCP has servers of its own, and tests of its own.
CASES = [case for case in cases() if case.values[0].program != "mcp_client"]
# What the bodies of tools that an SDK calls left behind in the program: in a replay they do not run.
_LEFT_BEHIND = "seen"


@pytest.mark.parametrize(("entry", "scenario"), CASES)
def test_a_replayed_agent_does_what_it_did(entry: Entry, scenario: str, runs: Runs) -> None:
    recorded, again = runs.recorded(entry), runs.replayed(entry)
    left_behind = any(one.get(_LEFT_BEHIND) for one in recorded.outcomes.values())
    then, now = (
        {name: value for name, value in run.outcomes[scenario].items() if name != _LEFT_BEHIND}
        for run in (recorded, again)
    )
    assert now == then
    # What asyncio says there of generators that nobody closed is a matter of chance, with places in memory; and all that
    # is printed is compared above, but for what is left out.
    not_judged = {"stderr", "stdout"} if left_behind else {"stderr"}
    assert [one for one in again.report["deviations"] if one.get("name") not in not_judged] == []
    assert again.report["live_calls"] == 0
