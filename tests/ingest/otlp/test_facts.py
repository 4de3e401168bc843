"""What spans are, of each convention; and what is known to mislead."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ingest.otlp.bodies import OTHER, SPAN, TRACE, message, request, sample, span

from playhead.event.kinds import PAYLOADS
from playhead.ingest.otlp.conventions import NUMBERED, TABLE, genai
from playhead.ingest.otlp.decoding import read_traces
from playhead.ingest.otlp.facts import Facts, facts, step_of
from playhead.ingest.otlp.spans import LogRecord


def of(name: str = "a span", **attributes: Any) -> Facts:
    """Return what a span with these attributes is; `__` stands for a dot."""
    return facts(span(name, attributes={key.replace("__", "."): value for key, value in attributes.items()}))


def chat(**attributes: Any) -> Facts:
    return of(gen_ai__operation__name="chat", gen_ai__request__model="m", **attributes)


def asked(found: Facts) -> list[dict[str, Any]]:
    return found.asked["request"]["messages"]  # type: ignore[no-any-return]


def said(found: Facts) -> dict[str, Any]:
    return found.answered["response"]["choices"][0]["message"]  # type: ignore[no-any-return]


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}


class TestGenAi:
    @pytest.mark.parametrize("key", ["response", "result"])
    def test_a_result_of_a_tool_is_called_response_or_result(self, key: str) -> None:
        parts = [{"type": "tool_call_response", "id": "c1", key: "21C"}]
        found = chat(gen_ai__input__messages=json.dumps([{"role": "tool", "parts": parts}]))
        assert asked(found) == [{"role": "tool", "content": "21C", "tool_call_id": "c1"}]

    @pytest.mark.parametrize("arguments", [{"a": 1}, '{"a":1}'])
    def test_arguments_are_a_text_or_an_object(self, arguments: Any) -> None:
        parts = [{"type": "tool_call", "id": "c1", "name": "f", "arguments": arguments}]
        assert said(chat(gen_ai__output__messages=json.dumps([{"role": "assistant", "parts": parts}])))[
            "tool_calls"
        ] == [CALL]

    def test_results_that_a_user_gave_with_a_text_are_messages_of_their_own(self) -> None:
        parts = [{"type": "tool_call_response", "id": "c1", "result": {"t": 21}}, {"type": "text", "content": "and?"}]
        found = chat(gen_ai__input__messages=json.dumps([{"role": "user", "parts": parts}]))
        assert asked(found) == [
            {"role": "tool", "content": '{"t":21}', "tool_call_id": "c1"},
            {"role": "user", "content": "and?"},
        ]

    def test_instructions_come_first_and_once(self) -> None:
        instructions = json.dumps([{"type": "text", "content": "Be brief."}])
        told = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Hi"}]}])
        found = chat(gen_ai__system_instructions=instructions, gen_ai__input__messages=told)
        assert asked(found) == [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}]

    def test_what_was_thought_is_beside_what_was_said(self) -> None:
        parts = [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": "Yes."}]
        found = chat(
            gen_ai__output__messages=json.dumps([{"role": "assistant", "parts": parts, "finish_reason": "stop"}])
        )
        assert said(found) == {"role": "assistant", "content": "Yes.", "reasoning_content": "Hm."}
        assert found.answered["finish"] == "stop"

    def test_parameters_and_tokens(self) -> None:
        found = chat(
            gen_ai__request__temperature=0.5, gen_ai__request__max_tokens=9, gen_ai__request__stop_sequences=["x"],
            gen_ai__request__stream=False, gen_ai__usage__input_tokens=10, gen_ai__usage__output_tokens="4",
            gen_ai__usage__cache_read__input_tokens=3, gen_ai__usage__reasoning__output_tokens=1,
        )  # fmt: skip
        assert found.asked["request"] == {"model": "m", "temperature": 0.5, "max_tokens": 9, "stop": ["x"]}
        assert found.answered["usage"] == {"input": 10, "output": 4, "cached": 3, "reasoning": 1}

    @pytest.mark.parametrize(
        ("said_reasons", "finish"),
        [
            (["stop"], "stop"),
            ('["tool_calls"]', "tool_calls"),
            ("stop, stop", "stop"),
            (["tool_call"], "tool_calls"),
            ([], None),
        ],
    )
    def test_why_it_ended_is_a_list_a_text_or_a_text_of_a_list(self, said_reasons: Any, finish: str | None) -> None:
        assert chat(gen_ai__response__finish_reasons=said_reasons).answered.get("finish") == finish

    def test_a_stream_without_usage_has_no_tokens_and_they_are_not_zero(self) -> None:
        assert "usage" not in sample("genai_openai")[2][1].answered

    def test_events_of_the_span_may_have_the_messages(self) -> None:
        events = [
            {"name": "gen_ai.user.message", "time_unix_nano": "1", "attributes": {"content": "Hi"}},
            {"name": "gen_ai.assistant.message", "time_unix_nano": "2", "attributes": {"gen_ai.event.content": json.dumps({"tool_calls": [CALL]})}},
            {"name": "gen_ai.choice", "time_unix_nano": "3", "attributes": {"index": 0, "finish_reason": "stop", "message": '{"content":"Yes"}'}},
        ]  # fmt: skip
        found = facts(span(attributes={"gen_ai.operation.name": "chat"}, events=events))
        assert [one["role"] for one in asked(found)] == ["user", "assistant"]
        assert (asked(found)[1]["tool_calls"], said(found)["content"], found.answered["finish"]) == (
            [CALL],
            "Yes",
            "stop",
        )
        oldest = [
            {"name": genai.PROMPT, "time_unix_nano": "1", "attributes": {"gen_ai.prompt": '[{"role":"user","content":"Hi"}]'}},
            {"name": genai.COMPLETION, "time_unix_nano": "1", "attributes": {"gen_ai.completion": '[{"role":"assistant","content":"Yes"}]'}},
        ]  # fmt: skip
        found = facts(span(attributes={"gen_ai.operation.name": "chat"}, events=oldest))
        assert (asked(found)[0]["content"], said(found)["content"]) == ("Hi", "Yes")

    def test_several_choices_stand_by_their_number(self) -> None:
        logs = [
            LogRecord(
                attributes={"event.name": "gen_ai.choice"},
                time_ns=n,
                body={"index": index, "message": {"content": str(index)}},
            )
            for n, index in enumerate((1, 0))
        ]
        found = facts(span(attributes={"gen_ai.operation.name": "chat"}), logs)
        assert [one["message"]["content"] for one in found.answered["response"]["choices"]] == ["0", "1"]

    def test_a_span_of_mcp_without_arguments_is_a_tool_of_which_they_are_not_known(self) -> None:
        found = of(
            "tools/call f",
            mcp__method__name="tools/call",
            gen_ai__tool__name="f",
            gen_ai__operation__name="execute_tool",
        )
        assert (found.opens, found.asked, found.answered) == ("tool.called", {"name": "f"}, {"status": "ok"})

    def test_an_operation_that_nobody_knows_is_a_step(self) -> None:
        assert of(gen_ai__operation__name="plan", gen_ai__request__model="m").opens == "step.started"


class TestOthers:
    def test_numbered_messages_may_begin_at_one(self) -> None:
        attributes = {"openinference.span.kind": "LLM", "llm.model_name": "m", "llm.input_messages.10.message.content": "c",
                      "llm.input_messages.10.message.role": "user", "llm.input_messages.9.message.role": "system",
                      "llm.input_messages.9.message.content": "b"}  # fmt: skip
        assert [one["content"] for one in asked(facts(span(attributes=attributes)))] == ["b", "c"]

    def test_the_model_that_openinference_names_is_who_answered_and_the_body_says_who_was_asked(self) -> None:
        found = next(one for _, one in sample("openinference_langchain") if one.model_call)
        assert (found.asked["model"], found.answered["model"]) == ("fake", "fake-2026-01-01")

    def test_a_bare_value_as_the_arguments_of_a_tool_stays_what_it_is(self) -> None:
        assert of(openinference__span__kind="TOOL", tool__name="f", input__value="Oslo").asked["input"] == "Oslo"

    @pytest.mark.parametrize(
        ("given", "read"),
        [
            ("{'city': 'Zürich', 'days': [1, None, True]}", {"city": "Zürich", "days": [1, None, True]}),
            ('{"city": "Oslo"}', {"city": "Oslo"}),
            ("{'a': __import__('os')}", "{'a': __import__('os')}"),
            ("{'a': {1, 2}}", "{'a': {1, 2}}"),
            ("{" * 5000, "{" * 5000),
            ("(" * 19 + "-" * 9000, "(" * 19 + "-" * 9000),
            ("21", "21"),
            (7, 7),
        ],
    )
    def test_arguments_as_python_wrote_them_are_read_and_never_run(self, given: Any, read: Any) -> None:
        assert of(openinference__span__kind="TOOL", tool__name="f", input__value=given).asked["input"] == read

    def test_arguments_of_traceloop_without_the_object_are_read_from_its_text(self) -> None:
        given = json.dumps({"input_str": "{'city': 'Oslo'}", "tags": [], "metadata": {}})
        assert of(traceloop__span__kind="tool", traceloop__entity__name="f", traceloop__entity__input=given).asked[
            "input"
        ] == {"city": "Oslo"}
        given = json.dumps({"args": [], "kwargs": {"city": "Oslo"}})
        assert of(traceloop__span__kind="tool", traceloop__entity__input=given).asked["input"] == {"city": "Oslo"}

    def test_a_tool_that_langchain_says_failed(self) -> None:
        output = json.dumps(
            {"type": "tool", "data": {"content": "no such city", "status": "error", "tool_call_id": "c1"}}
        )
        found = of(openinference__span__kind="TOOL", tool__name="f", output__value=output)
        assert found.answered == {
            "status": "error",
            "output": "no such city",
            "error": {"type": "ToolError", "message": "no such city"},
        }
        assert found.asked["call"] == "c1"

    def test_traceloops_older_numbered_attributes(self) -> None:
        attributes = {
            "llm.request.type": "chat", "gen_ai.system": "OpenAI", "gen_ai.request.model": "m",
            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": '[{"type": "text", "text": "Hi"}]',
            "gen_ai.prompt.1.role": "assistant", "gen_ai.prompt.1.tool_calls.0.id": "c1",
            "gen_ai.prompt.1.tool_calls.0.name": "f", "gen_ai.prompt.1.tool_calls.0.arguments": '{"a":1}',
            "gen_ai.prompt.2.role": "tool", "gen_ai.prompt.2.content": "21C", "gen_ai.prompt.2.tool_call_id": "c1",
            "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Done", "gen_ai.completion.0.finish_reason": "stop",
            "llm.request.functions.0.name": "f", "llm.request.functions.0.parameters": '{"type": "object"}',
            "gen_ai.usage.prompt_tokens": 11, "gen_ai.usage.completion_tokens": 8, "llm.usage.total_tokens": 18,
        }  # fmt: skip
        found = facts(span(attributes=attributes))
        assert asked(found) == [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "content": "21C", "tool_call_id": "c1"},
        ]
        assert found.asked["request"]["tools"] == [
            {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
        ]
        assert (said(found)["content"], found.answered["finish"], found.asked["provider"]) == ("Done", "stop", "openai")
        # What a stream is said to have taken was counted by the instrumentation, and is one too many: it is told as it
        # is said, and the sum that does not agree is kept.
        assert found.answered["usage"] == {"input": 11, "output": 8}
        assert span(attributes=attributes).kept()["attributes"]["llm.usage.total_tokens"] == 18

    def test_logfires_older_form_has_the_whole_answer(self) -> None:
        found = of(
            gen_ai__system="openai", gen_ai__request__model="m",
            request_data=json.dumps({"messages": [{"role": "user", "content": "Hi"}], "model": "m", "temperature": 0}),
            response_data=json.dumps({"message": {"role": "assistant", "content": "Yes"}, "usage": {"prompt_tokens": 3, "completion_tokens": 1}}),
        )  # fmt: skip
        assert found.asked["request"] == {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "temperature": 0,
        }
        assert (said(found)["content"], found.answered["usage"]) == ("Yes", {"input": 3, "output": 1})

    def test_pydantic_ais_older_forms(self) -> None:
        events = json.dumps([
            {"event.name": "gen_ai.user.message", "content": "Hi", "role": "user", "gen_ai.message.index": 0},
            {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "Yes"}},
        ])  # fmt: skip
        found = of(gen_ai__operation__name="chat", gen_ai__request__model="m", events=events)
        assert (asked(found)[0]["content"], said(found)["content"]) == ("Hi", "Yes")
        tool = of(
            "running tool",
            gen_ai__tool__name="f",
            gen_ai__tool__call__id="c1",
            tool_arguments='{"a":1}',
            tool_response="21C",
        )
        assert (tool.asked, tool.answered["output"]) == ({"name": "f", "input": {"a": 1}, "call": "c1"}, "21C")

    def test_what_an_agent_was_asked_is_not_what_it_said_itself(self) -> None:
        found = sample("pydantic_ai")[1][1]
        assert found.asked["attributes"]["input"] == [{"role": "user", "content": "Weather?"}]
        assert found.answered["output"] == "It is 21°C in Zürich 🌤 — done."

    @pytest.mark.parametrize(
        ("provider", "known"),
        [("OpenAI", "openai"), ("gcp.gemini", "google"), ("gcp.vertex_ai", "google"), ("aws.bedrock", "aws.bedrock")],
    )
    def test_a_provider_has_the_name_that_recorded_runs_give_it(self, provider: str, known: str) -> None:
        assert chat(gen_ai__provider__name=provider).asked["provider"] == known


class TestBodies:
    """Requests and answers as they were sent, in `input.value` and `output.value`."""

    def read(self, given: Any, output: Any) -> Facts:
        return of(
            openinference__span__kind="LLM",
            llm__model_name="m",
            input__value=json.dumps(given),
            output__value=json.dumps(output),
        )

    def test_messages_of_anthropic(self) -> None:
        given = {"model": "m", "system": "Be brief.", "max_tokens": 5, "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Hi"}, {"type": "image", "source": {"type": "url"}}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": [{"type": "text", "text": "21C"}]}]},
        ]}  # fmt: skip
        output = {"id": "i", "model": "m2", "role": "assistant", "content": [{"type": "text", "text": "Yes"}], "stop_reason": "end_turn",
                  "usage": {"input_tokens": 5, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1, "output_tokens": 3}}  # fmt: skip
        found = self.read(given, output)
        assert [one["role"] for one in asked(found)] == ["system", "user", "assistant", "tool"]
        assert asked(found)[2] == {
            "role": "assistant",
            "content": None,
            "reasoning_content": "Hm.",
            "tool_calls": [CALL],
        }
        assert asked(found)[3] == {"role": "tool", "content": "21C", "tool_call_id": "c1"}
        assert asked(found)[1]["content"][1] == {"type": "image", "source": {"type": "url"}}
        assert (found.response_id, said(found)["content"], found.answered["finish"]) == ("i", "Yes", "end_turn")
        assert found.answered["usage"] == {"input": 8, "output": 3, "cached": 2}

    def test_items_of_responses(self) -> None:
        given = {"model": "m", "instructions": "Be brief.", "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "21C"},
        ]}  # fmt: skip
        output = {"id": "r", "object": "response", "model": "m", "output": [
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes"}]},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a":1}'},
        ]}  # fmt: skip
        found = self.read(given, output)
        assert asked(found) == [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "reasoning_content": "Hm.", "tool_calls": [CALL]},
            {"role": "tool", "content": "21C", "tool_call_id": "c1"},
        ]
        assert said(found) == {"role": "assistant", "content": "Yes", "tool_calls": [CALL]}

    def test_contents_of_gemini(self) -> None:
        given = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"a": 1}}}]},
                              {"role": "user", "parts": [{"functionResponse": {"name": "f", "response": {"t": 21}}}]}],
                 "systemInstruction": {"parts": [{"text": "Be brief."}]}}  # fmt: skip
        output = {"candidates": [{"content": {"role": "model", "parts": [{"text": "Yes"}]}, "finishReason": "STOP"}], "responseId": "g",
                  "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 1}}  # fmt: skip
        found = self.read(given, output)
        assert [one["role"] for one in asked(found)] == ["system", "user", "assistant", "tool"]
        assert asked(found)[2]["tool_calls"][0]["function"] == {"name": "f", "arguments": '{"a":1}'}
        assert (said(found)["content"], found.response_id, found.answered["usage"]) == (
            "Yes",
            "g",
            {"input": 3, "output": 1},
        )

    def test_a_chat_completion_stays_as_it_is(self) -> None:
        given = {
            "model": "m",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {}}]}
            ],
            "seed": 1,
        }
        output = {
            "id": "x",
            "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes"}, "finish_reason": "stop"}],
            "created": 5,
        }
        found = self.read(given, output)
        assert found.asked["request"] == given
        assert found.answered["response"] == output

    def test_plain_texts(self) -> None:
        found = of(openinference__span__kind="LLM", llm__model_name="m", input__value="Hi", output__value="Yes")
        assert (asked(found), said(found)["content"]) == ([{"role": "user", "content": "Hi"}], "Yes")


RAISED = [
    {
        "name": "exception",
        "time_unix_nano": "1",
        "attributes": {
            "exception.type": "app.Timeout",
            "exception.message": "late",
            "exception.stacktrace": "Traceback",
        },
    }
]


class TestHowItEnded:
    def test_what_was_raised(self) -> None:
        found = facts(span(status_code=2, status_message="Timeout: late", events=RAISED))
        assert found.answered["status"] == "error"
        assert found.answered["error"] == {
            "type": "app.Timeout",
            "message": "late",
            "stacktrace": "Traceback",
            "status": "Timeout: late",
        }

    def test_an_exception_that_was_handled_is_no_failure(self) -> None:
        assert facts(span(status_code=1, events=RAISED)).answered["status"] == "ok"
        assert facts(span(events=RAISED)).answered["status"] == "ok"
        escaped = [{**RAISED[0], "attributes": {**RAISED[0]["attributes"], "exception.escaped": True}}]  # type: ignore[dict-item]
        assert facts(span(events=escaped)).answered["status"] == "error"

    def test_one_that_was_cancelled(self) -> None:
        cancelled = [
            {
                "name": "exception",
                "time_unix_nano": "1",
                "attributes": {"exception.type": "asyncio.exceptions.CancelledError"},
            }
        ]
        assert facts(span(status_code=2, events=cancelled)).answered["status"] == "cancelled"

    def test_a_failure_without_a_word(self) -> None:
        assert facts(span(status_code=2)).answered["error"] == {"type": "error", "message": ""}
        assert of(error__type="429").answered["error"] == {"type": "429", "message": ""}


class TestSteps:
    def test_a_span_of_no_convention_is_a_step_with_what_it_says(self) -> None:
        found = of(
            "GET /x", http__request__method="GET", url__full="http://h/x", http__response__status_code=200, thread__id=5
        )
        assert (found.opens, found.asked["name"]) == ("step.started", "GET /x")
        assert found.asked["attributes"] == {"http.request.method": "GET", "url.full": "http://h/x"}

    def test_the_same_step_of_another_run_asks_the_same(self) -> None:
        def step(id: str, output: str, duration: int) -> Any:
            given = json.dumps({"city": "Oslo", "id": id, "page": 2})
            return of(
                "plan",
                openinference__span__kind="CHAIN",
                input__value=given,
                output__value=output,
                duration=duration,
                request_id=id,
            ).question

        one = step("d3cb19b7-091a-4902-bdab-0f7e8b412d96", "a", 5)
        assert one == step("8c0f9ab1-6a67-4cd2-a46f-7f1f9b3a5ac9", "b", 6)
        assert one == ("plan", {"openinference.span.kind": "CHAIN", "input": {"city": "Oslo", "page": 2}})
        assert step("order-17", "a", 5) != step("order-18", "a", 5), "an id that people gave is part of what is asked"

    def test_calls_have_no_question_of_their_own_and_can_be_told_as_steps(self) -> None:
        one, found = sample("genai_openai")[0]
        assert found.question is None
        again = step_of(one)
        assert (again.opens, again.model_call, again.question is not None) == ("step.started", False, True)


ROLES = {
    "gen_ai.operation.name": "chat",
    "openinference.span.kind": "LLM",
    "langsmith.span.kind": "tool",
    "ai.operationId": "ai.toolCall",
}
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6) | st.binary(max_size=4)
    | st.sampled_from(["assistant", "tool", "text", "tool_call", "constructor", "human", "{'a': 1}", "data", "message"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["role", "content", "parts", "type", "tool_calls", "function", "name", "arguments", "id", "kwargs", "data", "message",
                         "choices", "generations", "candidates", "output", "messages", "usage", "input", "text", "index", "finish_reason",
                         "function_call", "tool_call", "system", "tools", "response", "additional_kwargs", "input_str", "status", "key"]),
        inner, max_size=5),
    max_leaves=20,
)  # fmt: skip
SAYS = st.one_of(ANY, ANY.map(lambda value: json.dumps(value, default=str)))
NUMBERED_NAMES = st.builds(
    lambda begin, path: begin + ".".join(path),
    st.sampled_from(sorted(NUMBERED)),
    st.lists(
        st.sampled_from(["0", "1", "message", "role", "content", "tool_calls", "tool_call", "function", "name", "x"]),
        min_size=1,
        max_size=5,
    ),
)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([*ROLES, None]),
    st.dictionaries(st.sampled_from(sorted(TABLE)) | NUMBERED_NAMES, SAYS, max_size=6),
    st.lists(st.tuples(st.sampled_from(genai.CONVENTION.events), SAYS), max_size=2),
)
def test_whatever_attributes_say_it_becomes_something_that_a_timeline_takes(
    role: str | None, attributes: Any, events: Any
) -> None:
    given = {**({role: ROLES[role]} if role else {}), **attributes}
    noted = [
        {"name": name, "time_unix_nano": "1", "attributes": {"content": said, "message": said}} for name, said in events
    ]
    logs = [LogRecord(event_name=name, body=said, attributes={"gen_ai.input.messages": said}) for name, said in events]
    one = span(attributes=given, events=noted)
    before = repr(one.kept())
    found = facts(one, logs)
    assert found.opens in PAYLOADS
    assert found.closes in PAYLOADS
    PAYLOADS[found.opens](**found.asked)
    assert found.answered["status"] in ("ok", "error", "cancelled")
    assert repr(facts(one, logs[::-1])) == repr(found)
    assert repr(one.kept()) == before, "what was read is not changed"


def test_a_whole_request_becomes_facts() -> None:
    body = request(
        message(attributes=[{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]), message(spanId=OTHER)
    )
    assert [facts(one).opens for one in read_traces(body, "json").spans] == ["model.invoked", "step.started"]
    assert TRACE != SPAN
