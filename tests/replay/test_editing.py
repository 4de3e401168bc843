"""Another answer is made of a recorded one, whole or streamed, and the program reads it as it would any other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.replay.again import playhead, record
from tests.replay.going_on import PLAINLY, events

from playhead.capture import dialects
from playhead.replay.restream import streamed
from playhead.testing import ScriptedProvider, ToolCall, ToolCalls

CHAT = """
import openai, sys
client = openai.OpenAI(base_url=sys.argv[1], api_key="sk-1", max_retries=0)
asked = {"model": "gpt-5", "messages": [{"role": "user", "content": "a"}]}
said = "".join(chunk.choices[0].delta.content or "" for chunk in client.chat.completions.create(**asked, stream=True) if chunk.choices)
print(said)
print(client.chat.completions.create(**asked).choices[0].message.content)
"""
RESPONSES = """
import openai, sys
client = openai.OpenAI(base_url=sys.argv[1], api_key="sk-1", max_retries=0)
with client.responses.stream(model="gpt-5", input="c") as stream:
    print("".join(event.delta for event in stream if event.type == "response.output_text.delta"))
"""
ANTHROPIC = """
import anthropic, sys
client = anthropic.Anthropic(base_url=sys.argv[1].removesuffix("/v1"), api_key="sk-1", max_retries=0)
asked = {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": [{"role": "user", "content": "a"}]}
with client.messages.stream(**asked) as stream:
    print("".join(stream.text_stream))
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(CHAT, id="chat"),
        pytest.param(RESPONSES, id="responses", marks=pytest.mark.hard),  # the client takes seconds to load
        pytest.param(ANTHROPIC, id="anthropic", marks=pytest.mark.hard),
    ],
)
def test_a_streamed_answer_says_something_else(tmp_path: Path, program: str) -> None:
    with ScriptedProvider(lambda request: "Yes, of course.") as provider:
        run = record(tmp_path, program, provider.base_url)
        at = next(event["seq"] for event in events(tmp_path, run.run) if event["kind"] == "model.responded")
        done = playhead(tmp_path, "fork", run.run, "--at", str(at), "--set", 'text={"no": [1]}')
    assert done.stdout.splitlines()[0] == '{"no": [1]}', done.stderr  # as text, though it is JSON
    assert done.stdout.splitlines()[1:] == run.output.splitlines()[1:]


def test_the_whole_answer_of_a_tool_is_given_in_a_file(tmp_path: Path) -> None:
    program = """
    import playhead
    @playhead.tool
    def look():
        return {"a": 1}
    try:
        print(look())
    except TimeoutError as error:
        print("failed", error)
    """
    run = record(tmp_path, program).run
    at = str(next(event["seq"] for event in events(tmp_path, run) if event["kind"] == "tool.called"))
    (tmp_path / "answer.json").write_text('{"b": [2]}')
    assert playhead(tmp_path, "fork", run, "--at", at, "--edit", "answer.json").stdout == "{'b': [2]}\n"
    told = '{"status": "error", "error": {"type": "builtins.TimeoutError", "message": "late", "args": ["late"]}}'
    assert playhead(tmp_path, "fork", run, "--at", at, "--edit", "-", stdin=told).stdout == "failed late\n"


def test_an_answer_takes_the_place_of_an_error_and_an_error_that_of_an_answer(tmp_path: Path) -> None:
    program = """
    import playhead
    @playhead.tool
    def fails():
        raise KeyError("no")
    @playhead.tool
    def looks():
        return 1
    for each in (fails, looks):
        try:
            print(each())
        except Exception as error:
            print(type(error).__name__, error)
    """
    run = record(tmp_path, program).run
    late = 'error={"type": "builtins.TimeoutError", "message": "late", "args": ["late"]}'
    for at, given, printed in (
        ("fails", ("--set", "output=5"), "5\n1\n"),
        ("fails", ("--edit", "-"), "7\n1\n"),
        ("looks", ("--set", late), "KeyError 'no'\nTimeoutError late\n"),
    ):
        done = playhead(tmp_path, "fork", run, "--at", at, *given, stdin="7")
        assert done.stdout == printed, done.stderr
    for given, said in (
        (("--set", "output=1"), "changes nothing"),
        (("--set", "status=error"), "does not say with what"),
        (("--set", "status=bogus"), "not how a call ends"),
    ):
        done = playhead(tmp_path, "fork", run, "--at", "looks", *given)
        assert done.returncode == 2
        assert said in done.stderr


def test_a_model_that_failed_answers(tmp_path: Path) -> None:
    program = PLAINLY + "try:\n    print(ask('a'))\nexcept Exception as error:\n    print(type(error).__name__)\n"
    answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": "Yes."}}]})
    with ScriptedProvider(lambda request: 500) as provider:
        runs = [record(tmp_path, program, url).run for url in (provider.base_url, "http://127.0.0.1:9/v1")]
    for run in runs:
        done = playhead(tmp_path, "fork", run, "--at", "model", "--edit", "-", stdin=answer)
        assert done.stdout == "Yes.\n", done.stderr
    refused = playhead(tmp_path, "fork", runs[0], "--at", "model", "--set", "http.status=abc")
    assert "not a status of HTTP" in refused.stderr


ANSWERS: dict[str, Any] = {
    "openai.chat": {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi", "tool_calls": [
            {"id": "t1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
    },
    "anthropic.messages": {
        "id": "m1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "text", "text": "Hi"},
                    {"type": "tool_use", "id": "t1", "name": "look", "input": {"a": 1}}],
        "stop_reason": "tool_use", "stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 2},
    },
    "google.generate": {
        "candidates": [{"content": {"parts": [{"text": "Hi"}], "role": "model"}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 2}, "modelVersion": "m",
    },
    "openai.responses": {
        "id": "r1", "object": "response", "status": "completed", "model": "m",
        "output": [{"type": "message", "id": "o1", "role": "assistant", "status": "completed",
                    "content": [{"type": "output_text", "text": "Hi", "annotations": []}]},
                   {"type": "function_call", "id": "f1", "call_id": "t1", "name": "look", "arguments": "{}", "status": "completed"}],
        "usage": {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ANSWERS)
def test_a_stream_reads_as_the_answer_that_it_was_made_of(name: str) -> None:
    dialect = next(one for one in dialects.DIALECTS if one.name == name)
    made = streamed(name, ANSWERS[name])
    assert made is not None
    documents = dialects.documents(made.encode(), "text/event-stream")
    assert documents is not None
    found = dialect.answered(*documents)
    assert found.response == ANSWERS[name]
    assert found.calls == dialect.answered([ANSWERS[name]], False).calls


def test_other_protocols_are_not_guessed() -> None:
    assert streamed("openai.embeddings", {}) is None
    assert streamed("openai.chat", "no answer") is None


def test_an_answer_that_asks_for_tools_has_no_text(tmp_path: Path) -> None:
    program = CHAT.rpartition("print(client")[0].replace("print(said)", "print(repr(said))")
    with ScriptedProvider([ToolCalls((ToolCall("look", {}),))], repeat=True) as provider:
        run = record(tmp_path, program, provider.base_url)
    at = next(event["seq"] for event in events(tmp_path, run.run) if event["kind"] == "model.responded")
    done = playhead(tmp_path, "fork", run.run, "--at", str(at), "--set", "text=No")
    assert done.returncode == 2
    assert "has no text" in done.stderr
