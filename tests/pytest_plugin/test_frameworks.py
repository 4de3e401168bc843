"""Cassettes with the plugins that run tests in other ways: event loops, workers, unittest, fixtures of all scopes."""

from __future__ import annotations

import pytest
from tests.pytest_plugin.conftest import Project

pytest.importorskip("pytest_asyncio")

GATHERED = """
import asyncio

@pytest.mark.cassette
{mark}
async def test_both():
    answers = await asyncio.gather(*(ask_async(f"question {{n}}") for n in range(4)))
    assert answers == [f"answer to question {{n}}" for n in range(4)]

@pytest.mark.cassette
{mark}
async def test_other():
    assert await ask_async("other") == "answer to other"
"""


def replays(project: Project, *options: str, number: int) -> None:
    done = project.run("--playhead=none", *options)
    done.assert_outcomes(passed=number)
    done.stdout.no_fnmatch_line("*unused*")


def test_with_pytest_asyncio_in_strict_mode(project: Project) -> None:
    project.with_sdks().with_plugins()
    project.test(GATHERED.format(mark="@pytest.mark.asyncio"))
    project.record("-o", "asyncio_mode=strict")
    replays(project, "-o", "asyncio_mode=strict", number=2)


def test_with_pytest_asyncio_in_auto_mode_and_a_loop_for_the_whole_session(project: Project) -> None:
    project.with_sdks().with_plugins("asyncio")
    options = ("-o", "asyncio_mode=auto", "-o", "asyncio_default_test_loop_scope=session")
    options += ("-o", "asyncio_default_fixture_loop_scope=session")
    project.test(
        """
import pytest_asyncio

@pytest_asyncio.fixture(scope="session")
async def client():
    async with AsyncOpenAI() as made:
        yield made

@pytest.mark.cassette
async def test_shared(client):
    for words in ("one", "two"):
        messages = [{"role": "user", "content": words}]
        assert await client.chat.completions.create(model="gpt-5", messages=messages)
"""
        + GATHERED.format(mark="")
    )
    project.record(*options)
    replays(project, *options, number=3)
    replays(project, *options, "-k", "test_both", number=1)


def test_with_anyio_on_asyncio_and_trio(project: Project) -> None:
    project.with_sdks().with_plugins("anyio", "asyncio")
    project.test("""
@pytest.fixture
async def made():
    return await ask_async("in a fixture")

@pytest.mark.cassette
@pytest.mark.anyio
async def test_one(made):
    assert await ask_async("one") == "answer to one" and made == "answer to in a fixture"
""")
    project.record("-o", "asyncio_mode=strict")
    assert len(project.cassettes()) == 2
    replays(project, "-o", "asyncio_mode=strict", number=2)


def test_with_workers_of_xdist(project: Project) -> None:
    project.with_plugins("xdist")
    project.test("""
@pytest.mark.cassette
@pytest.mark.parametrize("n", range(4))
def test_each(n):
    assert ask(f"question {n}") == f"answer to question {n}"
""")
    done = project.record("-n", "2")
    assert project.exchanges == 4
    done.stdout.fnmatch_lines(["recorded cassettes/test_agent/test_each*"])
    replays(project, "-n", "2", number=4)


def test_a_deviation_and_unused_answers_in_a_worker_are_told(project: Project) -> None:
    project.with_plugins("xdist")
    code = '@pytest.mark.cassette\ndef test_plan():\n    ask("the {} plan")\n\n@pytest.mark.cassette\ndef test_rest():\n    {}\n'
    project.test(code.format("first", 'ask("rest")'))
    project.record()
    project.test(code.format("second", "pass"))
    done = project.run("-n", "2")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["E *the [[]-first-[]] {+second+} plan"])
    done.stdout.fnmatch_lines(["unused answers in *test_rest*"])


def test_with_unittest(project: Project) -> None:
    project.test("""
import unittest

@pytest.mark.cassette
class TestPlain(unittest.TestCase):
    def test_one(self):
        self.assertEqual(ask("one"), "answer to one")

@pytest.mark.cassette
class TestAsync(unittest.IsolatedAsyncioTestCase):
    async def test_two(self):
        self.assertEqual(await ask_async("two"), "answer to two")
""")
    project.record()
    replays(project, number=2)


def test_with_clients_and_pools_that_were_there_before(project: Project) -> None:
    project.with_sdks()
    project.test("""
from concurrent.futures import ThreadPoolExecutor

@pytest.fixture(scope="session")
def client():
    return OpenAI()

@pytest.fixture(scope="module")
def pool():
    with ThreadPoolExecutor(2) as made:
        made.submit(int).result()
        yield made

@pytest.fixture
def plan(client):
    return ask("plan", client)

@pytest.mark.cassette
@pytest.mark.parametrize("n", [1, 2])
def test_each(n, plan, pool, client):
    answers = list(pool.map(lambda k: ask(f"question {k}", client), range(n, n + 3)))
    assert answers == [f"answer to question {k}" for k in range(n, n + 3)] and plan == "answer to plan"
""")
    project.record()
    replays(project, number=2)
    replays(project, "-k", "2", number=1)


def test_the_agents_own_decorators_are_steps_of_the_run_of_the_test(project: Project) -> None:
    project.test("""
import playhead

@playhead.agent("fix-login")
def fix_login(issue):
    with playhead.step("plan"):
        return ask(f"Plan {issue}.")

@pytest.mark.cassette
def test_plan():
    assert fix_login(1842) == "answer to Plan 1842."
""")
    project.record()
    replays(project, number=1)
    assert not (project.pytester.path / ".playhead").exists()
