"""Responses of OpenAI."""

from __future__ import annotations

from typing import Any

import pytest
from tests.capture.dialects.wire import answer, read, sse, unchanged

from playhead.capture.dialects import ToolAsked, ToolResult
from playhead.capture.dialects.openai_responses import RESPONSES
from playhead.event.kinds import Usage

PATH = "/v1/responses"
REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "Think"}],
    "encrypted_content": "gAAAA==",
}
FUNCTION = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_a",
    "name": "weather",
    "arguments": '{"city":"Bern"}',
}
CUSTOM = {
    "id": "ctc_1",
    "type": "custom_tool_call",
    "status": "completed",
    "call_id": "call_b",
    "name": "sql",
    "input": "[1]",
}
SEARCH = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"type": "search", "query": "sky"}}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [
    {"type": "output_text", "text": "21 °C", "annotations": [], "logprobs": []}]}  # fmt: skip
USAGE = {
    "input_tokens": 328, "input_tokens_details": {"cached_tokens": 256, "cache_write_tokens": 0},
    "output_tokens": 52, "output_tokens_details": {"reasoning_tokens": 32}, "total_tokens": 380,
}  # fmt: skip


def response(*output: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    return {
        "id": "resp_1", "object": "response", "created_at": 1794700000, "status": status, "model": "gpt-5.4-2026-03-05",
        "output": list(output), "error": None, "incomplete_details": None, "usage": USAGE if status == "completed" else None, **more,
    }  # fmt: skip


def event(kind: str, index: int | None = None, **fields: Any) -> dict[str, Any]:
    where = {} if index is None else {"output_index": index, "item_id": f"item_{index}"}
    return {"type": f"response.{kind}", "sequence_number": 0, **where, **fields}


CREATED = [
    event("created", response=response(status="in_progress")),
    event("in_progress", response=response(status="in_progress")),
]


def test_an_answer_that_is_not_streamed_is_the_body_itself_with_all_its_items() -> None:
    answered = answer(RESPONSES, response(REASONING, SEARCH, FUNCTION, CUSTOM, MESSAGE))
    assert answered.calls == (ToolAsked("call_a", "weather", {"city": "Bern"}), ToolAsked("call_b", "sql", "[1]"))
    assert (answered.model, answered.finish, answered.error) == ("gpt-5.4-2026-03-05", "completed", None)
    assert answered.usage == Usage(input=328, output=52, cached=256, reasoning=32)


def test_the_last_event_of_a_stream_is_the_whole_response() -> None:
    final = response(REASONING, FUNCTION)
    events = [
        *CREATED,
        event("output_item.added", 0, item={**REASONING, "summary": []}),
        event("completed", response=final),
    ]
    answered = RESPONSES.answered(events, True)
    assert answered.response is final
    assert answered.calls == (ToolAsked("call_a", "weather", {"city": "Bern"}),)


def test_a_last_event_without_output_is_completed_from_the_items_that_came() -> None:
    # ChatGPT's own backend, which stores nothing, sends the items only as they are done.
    events = [
        *CREATED, event("output_item.added", 0, item={**REASONING, "summary": []}), event("output_item.done", 0, item=REASONING),
        event("output_item.done", 1, item=FUNCTION), event("completed", response=response()),
    ]  # fmt: skip
    answered = unchanged(RESPONSES.answered, events)
    assert answered.response == response(REASONING, FUNCTION)
    assert [call.id for call in answered.calls] == ["call_a"]


ANNOTATION = {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}
PART = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
DELTAS: list[dict[str, Any]] = [
    *CREATED,
    event("output_item.added", 0, item={"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"}),
    event("reasoning_summary_part.added", 0, summary_index=0, part={"type": "summary_text", "text": ""}),
    event("reasoning_summary_text.delta", 0, summary_index=0, delta="Let "),
    event("reasoning_summary_text.delta", 0, summary_index=0, delta="me"),
    event("reasoning_summary_text.done", 0, summary_index=0, text="Let me"),
    event("reasoning_summary_part.done", 0, summary_index=0, part={"type": "summary_text", "text": "Let me"}),
    event("reasoning_text.delta", 0, content_index=0, delta="raw "),
    event("reasoning_text.delta", 0, content_index=0, delta="thought"),
    event(
        "output_item.added",
        1,
        item={"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": []},
    ),
    event("content_part.added", 1, content_index=0, part=PART),
    event("output_text.delta", 1, content_index=0, delta="21 °C", logprobs=[{"token": "21", "logprob": 0}]),
    event("output_text.delta", 1, content_index=0, delta=" 🌤", logprobs=[]),
    event("output_text.annotation.added", 1, content_index=0, annotation_index=0, annotation=ANNOTATION),
    event("content_part.added", 1, content_index=1, part={"type": "refusal", "refusal": ""}),
    event("refusal.delta", 1, content_index=1, delta="No"),
    event("refusal.done", 1, content_index=1, refusal="No."),
    event("output_item.added", 2, item={**FUNCTION, "arguments": "", "status": "in_progress"}),
    event("function_call_arguments.delta", 2, delta='{"city":'),
    event("function_call_arguments.delta", 2, delta='"Bern"}'),
    event("function_call_arguments.done", 2, arguments='{"city":"Bern"}'),
    event("output_item.done", 2, item=FUNCTION),
    event("function_call_arguments.delta", 2, delta="too late"),
    event("output_item.added", 3, item={**CUSTOM, "input": "", "status": "in_progress"}),
    event("custom_tool_call_input.delta", 3, delta="[1"),
    event(
        "output_item.added",
        4,
        item={"id": "mcp_1", "type": "mcp_call", "server_label": "s", "name": "n", "arguments": ""},
    ),
    event("mcp_call.in_progress", 4),
    event("mcp_call_arguments.delta", 4, delta="{}"),
    event(
        "output_item.added", 5, item={"id": "ci_1", "type": "code_interpreter_call", "code": "", "container_id": "c"}
    ),
    event("code_interpreter_call_code.delta", 5, delta="print("),
    event("code_interpreter_call_code.delta", 5, delta="1)"),
    event(
        "output_item.added",
        6,
        item={"id": "sh_1", "type": "shell_call", "call_id": "call_s", "action": {"commands": []}},
    ),
    event("shell_call_command.added", 6, command_index=0, command=""),
    event("shell_call_command.delta", 6, command_index=0, delta="ls "),
    event("shell_call_command.delta", 6, command_index=0, delta="-l"),
    event("output_item.added", 7, item=SEARCH),
    event("web_search_call.searching", 7),
]


def test_a_stream_that_was_cut_is_put_together_from_its_deltas() -> None:
    answered = read(RESPONSES, sse(*DELTAS, named=True))
    assert answered.response["id"] == "resp_1"
    assert answered.response["output"] == [
        {
            "id": "rs_1", "type": "reasoning", "encrypted_content": "gAAA", "summary": [{"type": "summary_text", "text": "Let me"}],
            "content": [{"type": "reasoning_text", "text": "raw thought"}],
        },
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "in_progress", "content": [
            {"type": "output_text", "text": "21 °C 🌤", "annotations": [ANNOTATION], "logprobs": [{"token": "21", "logprob": 0}]},
            {"type": "refusal", "refusal": "No."},
        ]},
        FUNCTION,
        {**CUSTOM, "input": "[1", "status": "in_progress"},
        {"id": "mcp_1", "type": "mcp_call", "server_label": "s", "name": "n", "arguments": "{}"},
        {"id": "ci_1", "type": "code_interpreter_call", "code": "print(1)", "container_id": "c"},
        {"id": "sh_1", "type": "shell_call", "call_id": "call_s", "action": {"commands": ["ls -l"]}},
        SEARCH,
    ]  # fmt: skip
    assert answered.finish is None
    unchanged(RESPONSES.answered, DELTAS)


def test_a_call_that_was_cut_is_not_listed() -> None:
    assert RESPONSES.answered(DELTAS, True).calls == (ToolAsked("call_a", "weather", {"city": "Bern"}),)


def test_an_incomplete_response_says_why_and_a_failed_one_how() -> None:
    details = {"reason": "max_output_tokens"}
    incomplete = response(MESSAGE, status="incomplete", incomplete_details=details)
    assert read(RESPONSES, sse(*CREATED, event("incomplete", response=incomplete))).finish == "max_output_tokens"
    error = {"code": "server_error", "message": "The model failed"}
    failed = read(RESPONSES, sse(*CREATED, event("failed", response=response(status="failed", error=error))))
    assert (failed.finish, failed.error) == ("failed", error)


@pytest.mark.parametrize(
    ("event", "error"),
    [
        ({"type": "error", "code": "rate", "message": "Slow down", "param": None, "sequence_number": 2}, {"code": "rate", "message": "Slow down", "param": None, "sequence_number": 2}),
        ({"type": "error", "error": {"code": "rate", "message": "Slow down"}}, {"code": "rate", "message": "Slow down"}),
        ({"error": {"message": "Slow down"}}, {"message": "Slow down"}),
    ],
)  # fmt: skip
def test_an_error_event_is_told_beside_what_came(event: dict[str, Any], error: dict[str, Any]) -> None:
    answered = read(RESPONSES, sse(*CREATED, event))
    assert answered.error == error
    assert answered.response["id"] == "resp_1"
    assert read(RESPONSES, sse(event)).response == event


def test_what_the_provider_ran_itself_is_no_call() -> None:
    shell = {"type": "shell_call", "call_id": "call_s", "action": {"commands": ["ls"]}}
    output = {"type": "shell_call_output", "call_id": "call_s", "output": []}
    tools = {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}}
    mcp = {"type": "mcp_call", "id": "mcp_1", "name": "n", "arguments": "{}", "output": "x"}
    assert answer(RESPONSES, response(shell, output, tools, mcp, SEARCH)).calls == ()
    assert answer(RESPONSES, response(shell)).calls == (ToolAsked("call_s", "shell", {"commands": ["ls"]}),)


def test_tools_that_are_built_in_but_run_by_the_client_are_calls() -> None:
    answered = answer(
        RESPONSES,
        response(
            {"type": "local_shell_call", "call_id": "c1", "action": {"type": "exec", "command": ["ls"]}},
            {"type": "apply_patch_call", "call_id": "c2", "operation": {"type": "delete_file", "path": "a"}},
            {"type": "computer_call", "call_id": "c3", "actions": [{"type": "wait"}]},
            {"type": "tool_search_call", "call_id": "c4", "execution": "client", "arguments": {"q": "x"}},
        ),
    )
    assert answered.calls == (
        ToolAsked("c1", "local_shell", {"type": "exec", "command": ["ls"]}),
        ToolAsked("c2", "apply_patch", {"type": "delete_file", "path": "a"}),
        ToolAsked("c3", "computer", [{"type": "wait"}]),
        ToolAsked("c4", "tool_search", {"q": "x"}),
    )


def test_only_results_after_the_last_item_of_the_model_are_new_and_named() -> None:
    body = {"model": "gpt-5.4", "input": [
        {"role": "user", "content": "Weather?"},
        {**FUNCTION, "call_id": "call_0", "name": "old"},
        {"type": "function_call_output", "call_id": "call_0", "output": "old"},
        REASONING, FUNCTION, CUSTOM,
        {"type": "function_call_output", "call_id": "call_a", "output": "21"},
        {"type": "custom_tool_call_output", "call_id": "call_b", "output": [{"type": "input_text", "text": "1"}]},
        {"type": "apply_patch_call_output", "call_id": "call_c", "status": "failed", "output": "no such file"},
        {"type": "message", "role": "user", "content": "Go on"},
    ]}  # fmt: skip
    asked = RESPONSES.asked(body, PATH)
    assert asked.model == "gpt-5.4"
    assert asked.results == (
        ToolResult("call_a", "weather", "21", False),
        ToolResult("call_b", "sql", [{"type": "input_text", "text": "1"}], False),
        ToolResult("call_c", "apply_patch", "no such file", True),
    )


def test_results_that_go_on_from_an_earlier_response_are_new_though_nothing_names_them() -> None:
    body = {
        "previous_response_id": "resp_1",
        "input": [{"type": "function_call_output", "call_id": "call_a", "output": "21"}],
    }
    assert RESPONSES.asked(body, PATH).results == (ToolResult("call_a", None, "21", False),)


def test_a_question_that_is_only_a_text_has_no_results() -> None:
    assert RESPONSES.asked({"model": "gpt-5.4", "input": "Hi"}, PATH).results == ()
