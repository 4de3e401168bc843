"""Models are asked live for every client that agents use, whole or in a stream, one after the other or at once."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from tests.replay.again import ASKING, record
from tests.replay.going_on import answered

from playhead.testing import ReceivedRequest, ScriptedProvider

OPENAI = """
import openai, sys
client = openai.OpenAI(base_url=sys.argv[1], api_key="sk-1", max_retries=0)
def said(**options):
    return client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "a"}], **options)
print(said().choices[0].message.content)
print("".join(chunk.choices[0].delta.content or "" for chunk in said(stream=True) if chunk.choices))
print(client.responses.create(model="gpt-5", input="b").output_text)
with client.responses.stream(model="gpt-5", input="c") as stream:
    print(stream.get_final_response().output_text)
"""
ANTHROPIC = """
import anthropic, sys
client = anthropic.Anthropic(base_url=sys.argv[1].removesuffix("/v1"), api_key="sk-1", max_retries=0)
asked = {"model": "claude-haiku-4-5", "max_tokens": 99, "messages": [{"role": "user", "content": "a"}]}
print(client.messages.create(**asked).content[0].text)
with client.messages.stream(**asked) as stream:
    print("".join(stream.text_stream))
"""
AT_ONCE = """
import asyncio, openai, sys
client = openai.AsyncOpenAI(base_url=sys.argv[1], api_key="sk-1", max_retries=0)
async def ask(number):
    asked = [{"role": "user", "content": f"number {number}"}]
    answer = await client.chat.completions.create(model="gpt-5", messages=asked)
    return answer.choices[0].message.content
async def main():
    print(await asyncio.gather(*(ask(number) for number in range(4))))
asyncio.run(main())
"""
THREADS = """
import concurrent.futures, requests, sys
def ask(number):
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": f"number {number}"}]}
    return requests.post(f"{sys.argv[1]}/chat/completions", json=body).json()["choices"][0]["message"]["content"]
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    print(list(pool.map(ask, range(4))))
"""
AIOHTTP = """
import aiohttp, asyncio, sys
async def main():
    body = {"model": "gpt-5", "messages": [{"role": "user", "content": "a"}]}
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{sys.argv[1]}/chat/completions", json=body) as answer:
            print((await answer.json())["choices"][0]["message"]["content"])
asyncio.run(main())
"""


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(OPENAI, id="openai"),
        pytest.param(ANTHROPIC, id="anthropic", marks=pytest.mark.hard),  # the client takes seconds to load
        pytest.param(AIOHTTP, id="aiohttp"),
    ],
)
def test_a_second_model_is_asked_in_place_of_the_first(tmp_path: Path, program: str) -> None:
    with ScriptedProvider(lambda request: "first") as first:
        run = record(tmp_path, program, first.base_url)
    with ScriptedProvider(lambda request: "second") as second:
        base = second.root_url if "anthropic" in program else second.base_url
        found = answered(tmp_path, "replay", run.run, "--mode", "model", "--base-url", base, "--model", "other")
        assert {request.json()["model"] for request in second.requests} == {"other"}
        headers = dict(second.requests[0].headers)
    assert not found["deviations"], found
    assert found["live_calls"] == len(run.output.splitlines())
    (printed,) = [one for one in found["outcome"]["differences"] if one["what"] == "stdout"]
    assert printed["now"] == run.output.replace("first", "second")
    assert len(found["answers"]["changed"]) == found["live_calls"]
    if program is not AIOHTTP:
        assert "sk-1" in " ".join(headers.values())  # the key that the program has


@pytest.mark.parametrize("program", [AT_ONCE, THREADS], ids=["asyncio", "threads"])
def test_questions_that_are_asked_at_once_are_asked_at_once(tmp_path: Path, program: str) -> None:
    with ScriptedProvider(_prompt) as first:
        run = record(tmp_path, program, first.base_url)
    meeting = threading.Barrier(4, timeout=20)  # nobody is answered before all have asked

    def together(request: ReceivedRequest) -> str:
        meeting.wait()
        return _prompt(request).replace("number", "NUMBER")

    with ScriptedProvider(together) as second:
        found = answered(tmp_path, "replay", run.run, "--mode", "model", "--base-url", second.base_url)
    assert not found["deviations"], found
    assert found["live_calls"] == 4
    (printed,) = [one for one in found["outcome"]["differences"] if one["what"] == "stdout"]
    assert printed["now"] == run.output.replace("number", "NUMBER")


def _prompt(request: ReceivedRequest) -> str:
    return str(request.json()["messages"][-1]["content"])


def test_an_error_of_the_live_model_is_what_the_program_meets(tmp_path: Path) -> None:
    program = ASKING + (
        "for text in ('a', 'b'):\n"
        "    answer = client.post(f'{URL}/chat/completions', json=body(text))\n"
        "    print(answer.status_code)\n"
    )
    with ScriptedProvider(lambda request: "first") as first:
        run = record(tmp_path, program, first.base_url)
        answers = iter([429, "again"])
    with ScriptedProvider(lambda request: next(answers)) as second:
        found = answered(tmp_path, "replay", run.run, "--mode", "model", "--base-url", second.base_url)
    assert found["outcome"]["differences"][-1]["now"] == "429\n200\n"
    assert found["answers"]["changed"][0]["changes"]


def test_a_model_that_cannot_be_reached_is_said(tmp_path: Path) -> None:
    with ScriptedProvider(lambda request: "first") as first:
        run = record(tmp_path, AIOHTTP, first.base_url)
    found = answered(tmp_path, "replay", run.run, "--mode", "model", "--base-url", "http://127.0.0.1:9/v1")
    assert found["exit_code"] != 0
    assert not found["outcome"]["same"]
