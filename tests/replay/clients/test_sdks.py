"""SDKs of providers, answered from the tape: retries, streams, cuts, timeouts, many questions at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay.clients.replaying import record, same

from playhead.testing import Failure, ReceivedRequest, ScriptedProvider, Text, Wire

BEGIN = """
import asyncio, random, sys, threading
from concurrent.futures import ThreadPoolExecutor, as_completed
import anthropic, openai

URL = sys.argv[1]

def openai_client(kind=openai.OpenAI, **more):
    return kind(base_url=URL + "/v1", api_key="none", **more)

def say(client, text, **more):
    return client.chat.completions.create(model="m", messages=[{"role": "user", "content": text}], **more)

async def hear(stream):
    return [chunk.choices[0].delta.content for chunk in [chunk async for chunk in stream] if chunk.choices]

def trail(error):
    found = []
    while error is not None:
        found.append((type(error).__module__, type(error).__name__, str(error)))
        error = error.__cause__ or error.__context__
    return found
"""

# Each lets the SDK try again, as often as it does, after what the provider did.
RETRYING = (
    BEGIN
    + """
def attempts(name, ask):
    try:
        print(name, ask(), flush=True)
    except Exception as error:
        print(name, trail(error)[:4], flush=True)

patient = openai_client(max_retries=2, timeout=0.4)
for name in ("busy", "down", "gone", "late", "never"):
    attempts(name, lambda: say(patient, name).choices[0].message.content)
claude = anthropic.Anthropic(base_url=URL, api_key="none", max_retries=2, timeout=0.4)
for name in ("busy", "down", "gone", "late", "never"):
    attempts(name, lambda: claude.messages.create(
        model="c", max_tokens=9, messages=[{"role": "user", "content": name}]).content[0].text)

async def main(kind):
    async with openai_client(openai.AsyncOpenAI, max_retries=2, timeout=0.4, **kind) as client:
        for name in ("busy", "down", "gone", "late", "never"):
            try:
                print(name, (await say(client, name)).choices[0].message.content)
            except Exception as error:
                print(name, trail(error)[:1])

asyncio.run(main({}))
asyncio.run(main({"http_client": openai.DefaultAioHttpClient()}))
"""
)


def retried() -> object:
    """Return a script in which each question meets a problem first, and `never` always does."""
    problems = {
        "busy": Failure(429, "too many", retry_after_ms=5),
        "down": Failure(500, "ill", retry_after_ms=5),
        "gone": Text("x", wire=Wire(cut="before-head")),
        "late": Text("x", wire=Wire(delay_s=0.8)),
    }
    asked: dict[str, int] = {}

    def script(request: ReceivedRequest) -> object:
        name = next(name for name in (*problems, "never") if name in request.prompt)
        asked[name] = asked.get(name, 0) + 1
        if name == "never":
            return Failure(503, "closed", retry_after_ms=5)
        return problems[name] if asked[name] % 2 else Text(f"{name}: {asked[name]}")

    return script


@pytest.mark.hard  # three SDKs, and the time between their tries
def test_sdks_try_again_as_often_as_they_did(tmp_path: Path) -> None:
    with ScriptedProvider(retried()) as provider:  # type: ignore[arg-type]
        recorded = record(tmp_path, RETRYING, provider.root_url)
    assert recorded.output.count("busy: ") == 4, "each of the clients had an answer in the end"
    same(recorded)


STREAMING = (
    BEGIN
    + """
async def main():
    for more in ({}, {"http_client": openai.DefaultAioHttpClient()}):
        async with openai_client(openai.AsyncOpenAI, max_retries=0, **more) as client:
            for name in ("plain", "torn", "gzip", "cut"):
                try:
                    print(name, await hear(await say(client, name, stream=True)))
                except Exception as error:
                    print(name, trail(error)[:4])
            try:
                async with asyncio.timeout(0.3):
                    async for chunk in await say(client, "slow", stream=True):
                        print("slow", chunk.choices[0].delta.content if chunk.choices else None, flush=True)
            except TimeoutError as error:
                print("slow", trail(error)[:1])
            task = asyncio.create_task(say(client, "late"))
            await asyncio.sleep(0.2)
            task.cancel()
            print("cancelled", await asyncio.gather(task, return_exceptions=True))
            stream = await say(client, "slow", stream=True)
            async for chunk in stream:
                print("left", chunk.choices[0].delta.content)
                break
            await stream.close()

asyncio.run(main())
for name in ("plain", "torn", "gzip", "cut"):
    seen = []
    try:
        for chunk in say(openai_client(max_retries=0), name, stream=True):
            seen.append(chunk.choices[0].delta.content if chunk.choices else None)
        print(name, seen)
    except Exception as error:
        print(name, seen, trail(error)[:4])
"""
)
WORDS = "Grüße aus Paris, 是十二点半 🕧. " * 4


def test_streams_come_again_piece_by_piece_and_break_where_they_broke(tmp_path: Path) -> None:
    answers = {
        "plain": Text(WORDS),
        "torn": Text(WORDS, wire=Wire(split="torn")),
        "gzip": Text(WORDS, wire=Wire(encoding="gzip")),
        "cut": Text(WORDS, wire=Wire(cut=4)),
        "slow": Text(WORDS, wire=Wire(chunk_delay_s=0.1)),
        "late": Text(WORDS, wire=Wire(delay_s=5)),
    }
    with ScriptedProvider(by_prompt=answers) as provider:
        recorded = record(tmp_path, STREAMING, provider.root_url)
    same(recorded)


CONCURRENT = (
    BEGIN
    + """
async def main(**more):
    async with openai_client(openai.AsyncOpenAI, **more) as client:
        async def ask(number):
            return number, (await say(client, "the same")).choices[0].message.content
        print(await asyncio.gather(*map(ask, range(8))))
        for done in asyncio.as_completed([ask(number) for number in range(8)]):
            print(await done)

asyncio.run(main())
asyncio.run(main(http_client=openai.DefaultAioHttpClient()))

import requests
def post(number):
    body = {"model": "m", "messages": [{"role": "user", "content": "the same"}]}
    answer = requests.post(URL + "/v1/chat/completions", json=body)
    return number, answer.json()["choices"][0]["message"]["content"]
client = openai_client()
def ask(number):
    return number, say(client, "the same").choices[0].message.content
for asking in (ask, post):
    with ThreadPoolExecutor(8) as pool:
        print(list(pool.map(asking, range(8))))
        for done in as_completed([pool.submit(asking, number) for number in range(8)]):
            print(done.result())
"""
)


def test_the_same_question_asked_by_many_at_once_is_answered_to_each_as_before(tmp_path: Path) -> None:
    asked = 0

    def script(request: ReceivedRequest) -> Text:
        nonlocal asked
        asked += 1
        return Text(f"answer {asked}", wire=Wire(delay_s=(asked * 7 % 8) / 50))

    with ScriptedProvider(script) as provider:
        recorded = record(tmp_path, CONCURRENT, provider.root_url)
    same(recorded)
