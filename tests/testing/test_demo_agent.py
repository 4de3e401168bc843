"""The demo agent, run for real against the scripted provider."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from playhead.errors import UsageError
from playhead.testing import ScriptedProvider, Text, ToolCall, ToolCalls
from playhead.testing.demo_agent import demo_script, fix_login, run_demo_agent
from playhead.testing.demo_project import PATCH

REPORT = {
    "issue": 1842,
    "fixed": True,
    "summary": "Addresses are compared in lower case, so capitals no longer keep anybody out.",
    "files": ["src/login.py"],
    "tests": {"passed": 4, "failed": 0},
}


def tool_results(provider: ScriptedProvider) -> list[str]:
    """Return what the agent told the model about its tools, in order."""
    messages: list[dict[str, Any]] = provider.requests[-1].json()["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


def test_the_agent_mends_the_bug_and_reports() -> None:
    with ScriptedProvider(demo_script()) as provider:
        assert run_demo_agent(provider.base_url) == REPORT
        assert provider.remaining == 0
        results = tool_results(provider)
    assert "def login" in results[0]
    assert "CASES" in results[1]
    assert results[2].startswith("error: ")
    assert "3 passed, 1 failed" in results[2]
    assert results[3] == "changed src/login.py"
    assert results[4].endswith("4 passed, 0 failed\n")


def test_two_runs_ask_the_same_questions() -> None:
    asked = []
    for _ in range(2):
        with ScriptedProvider(demo_script()) as provider:
            run_demo_agent(provider.base_url)
            asked.append([request.body for request in provider.requests])
    assert asked[0] == asked[1]


def test_called_by_itself_it_brings_its_own_provider() -> None:
    assert fix_login(7) == REPORT | {"issue": 7}


def test_what_the_model_did_wrong_goes_back_to_it() -> None:
    script = demo_script()
    script[3:4] = [
        ToolCalls((ToolCall("apply_patch", {"diff": "nonsense"}), ToolCall("format_disk"))),
        ToolCalls((ToolCall("read_file", {"path": "missing"}), ToolCall("apply_patch", {"diff": PATCH}))),
    ]
    with ScriptedProvider(script) as provider:
        assert run_demo_agent(provider.base_url) == REPORT
        results = tool_results(provider)
    assert results[3].startswith("error: not a line of a unified diff")
    assert results[4] == "error: there is no tool format_disk"
    assert results[5].startswith("error: ")
    assert results[6] == "changed src/login.py"


def test_a_model_that_never_comes_to_an_end_is_stopped() -> None:
    endless = [ToolCalls((ToolCall("read_file", {"path": "src/login.py"}),))] * 50
    with ScriptedProvider(endless) as provider, pytest.raises(RuntimeError, match="without an answer"):
        run_demo_agent(provider.base_url)


def test_a_failure_in_a_parallel_tool_ends_the_agent() -> None:
    broken = ToolCalls((ToolCall("read_file", {"path": "src/login.py"}), ToolCall("read_file", {"nonsense": "x"})))
    with ScriptedProvider([broken, Text("never asked")]) as provider:
        with pytest.raises(TypeError, match="nonsense"):
            run_demo_agent(provider.base_url)
        assert provider.remaining == 1


def test_without_the_openai_client_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(UsageError) as caught:
        run_demo_agent("http://127.0.0.1:1/v1")
    assert caught.value.hint == "pip install openai"
