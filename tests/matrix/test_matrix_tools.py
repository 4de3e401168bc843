"""Real SDKs and frameworks: every tool that ran is in the timeline once, tied to the model call that asked for it."""

from __future__ import annotations

import json

import pytest
from tests.matrix import taped
from tests.matrix.answers import tools_asked
from tests.matrix.cases import cases
from tests.matrix.conftest import Runs
from tests.matrix.harness import Entry

# Programs that run their tools themselves: what ran is read off the model traffic.
LOOPS = ("openai_sdk", "anthropic_sdk", "litellm_calls")
# Nobody runs a tool there: the stream is only read; to hand over is no tool of the agent.
NOT_RUN = ("tools_stream", "transfer_to_clerk")
# What a tool of `programs/scenario.py` says; of those that fail, what the exception says.
SAID = {"weather": "21 degrees in Paris", "clock": "12:30 in Oslo"}
SAID_BROKEN = {"weather": "in Paris", "clock": "the clock of Oslo has stopped"}


@pytest.mark.parametrize(
    ("entry", "scenario"),
    [case for case in cases() if tools_asked(case.values[1]) and case.values[1] not in NOT_RUN],
)
def test_every_tool_is_in_the_timeline_once(entry: Entry, scenario: str, runs: Runs) -> None:
    ran = [
        tool
        for tool in taped.tools(taped.events_of(runs.recorded(entry).store))
        if tool.scenario == scenario and tool.name not in NOT_RUN
    ]
    asked = [call for call in tools_asked(scenario) if call.name not in NOT_RUN]
    assert sorted((tool.name, json.dumps(tool.input)) for tool in ran) == sorted(
        (call.name, json.dumps(call.arguments)) for call in asked
    )
    by_hand = entry.program in LOOPS or (entry.program, scenario) == ("google_sdk", "tools")
    said = SAID_BROKEN if scenario.endswith(("broken", "retried_tool")) else SAID
    for tool in ran:
        assert tool.inferred == by_hand
        assert said[tool.name] in json.dumps([tool.output, tool.error])


@pytest.mark.parametrize(("entry", "scenario"), [case for case in cases() if case.values[0].program == "mcp_client"])
def test_every_call_of_an_mcp_tool_is_in_the_timeline_once(entry: Entry, scenario: str, runs: Runs) -> None:
    recorded = runs.recorded(entry)
    events = taped.events_of(recorded.store)
    ran = sorted((tool.name, json.dumps(tool.input)) for tool in taped.tools(events) if tool.name != "telescope")
    assert ran == sorted((name, json.dumps(arguments)) for name, arguments, _ in recorded.calls)
    # What HTTP carried is told by the calls; it is not there a second time.
    assert taped.taped(events) == []
