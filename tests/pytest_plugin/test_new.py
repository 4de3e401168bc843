"""The mode `new` with clients of all kinds: what is on the cassette is answered, the rest is asked and added."""

from __future__ import annotations

import pytest
from tests.pytest_plugin.conftest import Project, outcomes, sections

CLIENTS = """
import asyncio, json, os, urllib.request
import aiohttp, requests

def body(words):
    return json.dumps({"model": "gpt-5", "messages": [{"role": "user", "content": words}]}).encode()

def pieces(words):
    yield body(words)[:10]
    yield body(words)[10:]

async def pieces_async(words):
    for piece in pieces(words):
        await asyncio.sleep(0)
        yield piece

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
JSON = {"content-type": "application/json"}

def by_urllib(questions, made=body):
    for words in questions:
        request = urllib.request.Request(URL, data=made(words), headers=JSON, method="POST")
        with urllib.request.urlopen(request) as answer:
            yield json.load(answer)

def by_requests(questions, made=body):
    with requests.Session() as session:
        for words in questions:
            yield session.post(URL, data=made(words), headers=JSON).json()

def by_aiohttp(questions, made=body):
    async def ask_all():
        found = []
        async with aiohttp.ClientSession() as session:
            for words in questions:
                async with session.post(URL, data=made(words), headers=JSON) as answer:
                    found.append(await answer.json())
        return found
    return asyncio.run(ask_all())

KINDS = {
    "urllib": lambda questions: by_urllib(questions),
    "urllib, in pieces": lambda questions: by_urllib(questions, pieces),
    "requests": lambda questions: by_requests(questions),
    "requests, in pieces": lambda questions: by_requests(questions, pieces),
    "aiohttp": lambda questions: by_aiohttp(questions),
    "aiohttp, in pieces": lambda questions: by_aiohttp(questions, pieces_async),
}

@pytest.mark.cassette
@pytest.mark.parametrize("kind", {kinds})
def test_plan(kind):
    questions = [f"{words} by {kind}" for words in {questions}]
    found = [one["choices"][0]["message"]["content"] for one in KINDS[kind](questions)]
    assert found == [f"answer to {words}" for words in questions]
"""
KINDS = ["urllib", "urllib, in pieces", "requests", "requests, in pieces", "aiohttp", "aiohttp, in pieces"]


def _asks(project: Project, kinds: list[str], *questions: str) -> None:
    """Write a test for each kind of client, all in one project: what takes long is to start a session."""
    project.test(CLIENTS.replace("{questions}", repr(questions)).replace("{kinds}", repr(kinds)))


def test_what_is_new_is_asked_live_and_added_with_clients_of_all_kinds(project: Project) -> None:
    _asks(project, KINDS, "first", "third")
    project.record()
    _asks(project, KINDS, "first", "second", "third", "fourth")
    done = project.record("--playhead=new")
    new = [f"{words} by {kind}" for kind in KINDS for words in ("second", "fourth")]
    assert project.prompts == new, "the others are on the cassettes"
    added = [line.removeprefix("added to ") for line in done.outlines if line.startswith("added to ")]
    assert sorted(added) == list(project.cassettes())
    assert len(added) == len(KINDS)
    assert outcomes(project.run("-v", "--playhead=none")) == {f"test_plan[{kind}]": "PASSED" for kind in KINDS}


def test_a_provider_that_is_gone_is_an_error_of_the_client(project: Project) -> None:
    kinds = ["requests", "aiohttp"]
    _asks(project, kinds, "first")
    project.record()
    _asks(project, kinds, "first", "second")
    done = project.run("-v", "--playhead=new")
    assert outcomes(done) == {f"test_plan[{kind}]": "FAILED" for kind in kinds}
    for kind in kinds:
        pytest.LineMatcher(sections(done)[f"test_plan[{kind}]"].splitlines()).fnmatch_lines(["E *Connect*"])


def test_clients_that_were_answered_ask_the_world_again_in_a_test_without_a_cassette(project: Project) -> None:
    pytest.importorskip("pytest_asyncio")
    project.with_plugins("asyncio")
    code = CLIENTS[: CLIENTS.index("def by_urllib")]
    project.test(
        code
        + """
import pytest_asyncio

@pytest.fixture(scope="session")
def requesting():
    with requests.Session() as session:
        yield session

@pytest_asyncio.fixture(scope="session")
async def session():
    async with aiohttp.ClientSession() as made:
        yield made

async def ask_both(requesting, session):
    assert requesting.post(URL, data=body("one"), headers=JSON).status_code == 200
    async with session.post(URL, data=body("two"), headers=JSON) as answer:
        assert answer.status == 200
        await answer.read()

@pytest.mark.cassette
async def test_taped(requesting, session):
    await ask_both(requesting, session)

async def test_live(requesting, session):
    await ask_both(requesting, session)

@pytest.mark.cassette
async def test_taped_again(requesting, session):
    await ask_both(requesting, session)
"""
    )
    options = ["-o", "asyncio_mode=auto"]
    options += ["-o", "asyncio_default_test_loop_scope=session", "-o", "asyncio_default_fixture_loop_scope=session"]
    project.record(*options)
    assert project.exchanges == 6
    project.run(*options, up=True).assert_outcomes(passed=3)
    assert project.exchanges == 2
