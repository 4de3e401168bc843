from __future__ import annotations

from typing import Any

import pytest
from tests.replay.questions import chat, model, prompt, says, tool

from playhead.replay.cause import cause, causes
from playhead.replay.question import Question, question
from playhead.views.difference import changes

CALL = {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "grep"}}]}
SCHEMA = {"type": "function", "function": {"name": "grep", "parameters": {"type": "object", "properties": {}}}}


def codes(recorded: Question, asked: Question) -> list[str]:
    return [one.code for one in causes(changes(recorded.input, asked.input), recorded, asked)]


def told(recorded: Question, asked: Question) -> str:
    found = cause(changes(recorded.input, asked.input), recorded, asked)
    assert found is not None
    return found


def responses(text: str, **more: Any) -> Question:
    return model("responses", {"model": "gpt-5", "instructions": "Be brief.", "input": [says(text)], **more})


def claude(*blocks: Any, system: str = "Be brief.", **more: Any) -> Question:
    request = {"model": "claude-opus-5", "system": system, "max_tokens": 100, "messages": [{"role": "user", "content": list(blocks)}]}  # fmt: skip
    return model("messages", {**request, **more})


def gemini(*parts: Any, **more: Any) -> Question:
    return model("generate_content", {"contents": [{"role": "user", "parts": list(parts)}], **more})


def result(call: str, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": text}


def output(call: str, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call, "output": text}


DATES = "Today is 2025-11-14. Plan.", "Today is 2026-11-15. Plan."


@pytest.mark.parametrize(
    ("recorded", "asked"),
    [
        (prompt(DATES[0]), prompt(DATES[1])),
        (responses(DATES[0]), responses(DATES[1])),
        (claude({"type": "text", "text": "Plan."}, system=DATES[0]), claude({"type": "text", "text": "Plan."}, system=DATES[1])),
        (gemini({"text": DATES[0]}), gemini({"text": DATES[1]})),
        (tool("log", line=DATES[0]), tool("log", line=DATES[1])),
        (
            question(1, "process.started", "0", {"argv": ["git", "log", "--since=2025-11-14"]}),
            question(1, "process.started", "0", {"argv": ["git", "log", "--since=2026-11-15"]}),
        ),
        (
            question(1, "http.sent", "0", {"method": "GET", "url": "https://x/?day=2025-11-14"}),
            question(1, "http.sent", "0", {"method": "GET", "url": "https://x/?day=2026-11-15"}),
        ),
    ],
)  # fmt: skip
def test_a_date_is_named_with_both_of_its_values_and_what_to_do(recorded: Question, asked: Question) -> None:
    assert codes(recorded, asked) == ["volatile"]
    said = told(recorded, asked)
    assert said.startswith("a date in /")
    assert "2025-11-14 was recorded, 2026-11-15 is asked" in said
    assert "--suggest" in said


def test_several_sorts_of_volatile_things_are_all_named() -> None:
    left = "At 2025-11-14T10:00:00Z in /tmp/tmpab12cd34 as pid 4711"
    right = "At 2026-11-15T11:00:00Z in /tmp/tmpxy12cd34 as pid 815"
    assert told(prompt(left), prompt(right)).startswith("a timestamp, a temporary path and a process id in /messages/1")


@pytest.mark.parametrize(
    ("recorded", "asked", "code"),
    [
        (prompt("You are careful."), prompt("You are careless."), "template"),
        (responses("hi"), responses("hello"), "template"),
        (responses("hi"), responses("hi", instructions="Be long."), "template"),
        (claude({"type": "text", "text": "x"}), claude({"type": "text", "text": "y"}), "template"),
        (gemini({"text": "a"}), gemini({"text": "b"}), "template"),
        (gemini({"text": "a"}, system_instruction={"parts": [{"text": "a"}]}), gemini({"text": "a"}, system_instruction={"parts": [{"text": "b"}]}), "template"),
        (prompt("Files: a.py, b.py, c.py"), prompt("Files: c.py, a.py, b.py"), "order"),
        (tool("rm", paths=["a", "b", "c"]), tool("rm", paths=["c", "b", "a"]), "order"),
        (tool("f", x="{'b', 'a'}"), tool("f", x="{'a', 'b'}"), "order"),
        (prompt("hi"), prompt("hi", model="gpt-4"), "model"),
        (prompt("hi", tools=[SCHEMA]), prompt("hi", tools=[]), "tools"),
        (prompt("hi", response_format={"type": "json"}), prompt("hi"), "tools"),
        (gemini({"text": "x"}, generationConfig={"responseSchema": {"a": 1}}), gemini({"text": "x"}, generationConfig={"responseSchema": {"a": 2}}), "tools"),
        (prompt("hi"), prompt("hi", store=False, service_tier="auto"), "sdk"),
        (tool("f", headers={"user-agent": "lib one"}), tool("f", headers={"user-agent": "lib two"}), "sdk"),
        (prompt("hi", temperature=0.5), prompt("hi", temperature=0.7), "parameter"),
        (prompt("hi"), prompt("hi", temperature=0.7), "parameter"),
        (prompt("score 0.30000000000000004"), prompt("score 0.3"), "float"),
        (tool("f", x=0.1 + 0.2), tool("f", x=0.3), "float"),
        (prompt("a\n\n b"), prompt("a b\n"), "whitespace"),
        (tool("f", x="one"), tool("f", x="two"), "argument"),
        (tool("f", x=1), tool("f", x=None), "argument"),
        (chat(says("a")), chat(says("a"), says("b")), "conversation"),
        (chat(CALL, {"role": "tool", "tool_call_id": "call_1", "content": "left"}), chat(CALL, {"role": "tool", "tool_call_id": "call_1", "content": "right"}), "tool_result"),
        (claude(result("toolu_1", "left")), claude(result("toolu_1", "right")), "tool_result"),
        (claude(result("toolu_1", "a"), result("toolu_2", "b")), claude(result("toolu_2", "b"), result("toolu_1", "a")), "tool_results_order"),
        (gemini({"functionResponse": {"name": "grep", "response": {"x": 1}}}), gemini({"functionResponse": {"name": "grep", "response": {"x": 2}}}), "tool_result"),
        (model("responses", {"input": [output("call_1", "a")]}), model("responses", {"input": [output("call_1", "b")]}), "tool_result"),
        (model("responses", {"input": [output("call_1", "a"), output("call_2", "b")]}), model("responses", {"input": [output("call_2", "b"), output("call_1", "a")]}), "tool_results_order"),
    ],
)  # fmt: skip
def test_the_usual_causes_are_told_apart(recorded: Question, asked: Question, code: str) -> None:
    assert set(codes(recorded, asked)) == {code}
    assert told(recorded, asked).count(". ") >= 1, "says what to do"


def test_the_call_whose_result_changed_is_named() -> None:
    assert "call toolu_1 " in told(claude(result("toolu_1", "left")), claude(result("toolu_1", "right")))


def test_what_others_may_follow_from_is_told_first() -> None:
    recorded, asked = prompt(DATES[0], temperature=1), prompt(DATES[1], temperature=0, model="gpt-4")
    said = told(recorded, asked)
    assert said.startswith(
        "another model is asked: gpt-4, recorded was gpt-5; besides, other parameters, something vol"
    )


def test_no_change_has_no_cause() -> None:
    assert cause([], prompt("x"), prompt("x")) is None


def test_a_sign_more_is_no_other_order() -> None:
    assert codes(chat(says("Fix the login, please")), chat(says("Fix the login, please!"))) == ["template"]
    assert codes(chat(says("Use a, b")), chat(says("Use b, a"))) == ["order"]
