"""A test that asks something else fails with the words that differ; what is not asked for any more is reported."""

from __future__ import annotations

import pytest
from tests.pytest_plugin.conftest import Project, outcomes, sections

ONE = """
@pytest.mark.cassette
def test_plan():
    ask("Plan a fix for issue {}.")
"""


def test_a_changed_prompt_fails_with_the_changed_words_and_no_traceback(project: Project) -> None:
    project.with_sdks()
    project.test(ONE.format(1842))
    project.record()
    project.test(ONE.format(1843))
    done = project.run(up=True)
    done.assert_outcomes(failed=1)
    assert project.exchanges == 0
    done.stdout.fnmatch_lines([
        '>   ask("Plan a fix for issue 1843.")',
        "test_agent.py:7",
        "E   model gpt-5 was asked something else (recorded event 2)*",
        "E *Plan a fix for issue [[]-1842-[]] {+1843+}.",
        "E   To record it anew: pytest --playhead=all test_agent.py::test_plan",
        "FAILED test_agent.py::test_plan - model gpt-5 was asked something else*",
    ])  # fmt: skip
    done.stdout.no_fnmatch_line("*openai/*")
    done.stdout.no_fnmatch_line("*playhead/*")


def test_a_question_more_is_refused_and_named(project: Project) -> None:
    project.test(ONE.format(1842))
    project.record()
    project.test(ONE.format(1842) + '    ask("And then?")\n')
    done = project.run(up=True)
    done.assert_outcomes(failed=1)
    assert project.exchanges == 0
    done.stdout.fnmatch_lines(["E   model gpt-5 was asked something that is not on the tape*", "E *And then?*"])


def test_a_question_less_is_reported_and_fails_where_that_is_asked_for(project: Project) -> None:
    project.test(ONE.format(1842) + '    ask("And then?")\n')
    project.record()
    project.test(ONE.format(1842))
    done = project.run()
    done.assert_outcomes(passed=1)
    done.stdout.fnmatch_lines(["unused answers in cassettes/test_agent/test_plan.cassette.jsonl*", "*And then?*"])
    done = project.run("--playhead-strict-unused")
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.no_fnmatch_line("unused answers*")
    done.stdout.fnmatch_lines(["E   1 of the answers on the cassette were not asked for", "E *And then?*"])
    project.pytester.makeini("[pytest]\nplayhead_strict_unused = true\n")
    project.run().assert_outcomes(passed=1, errors=1)


def test_the_order_of_questions_of_different_lanes_does_not_matter(project: Project) -> None:
    project.test(ONE.format(1) + '    ask("second")\n')
    project.record()
    project.test('@pytest.mark.cassette\ndef test_plan():\n    ask("second")\n    ask("Plan a fix for issue 1.")\n')
    project.run().assert_outcomes(passed=1)


UNSEEN = """
import threading

@pytest.mark.cassette
def test_caught():
    try:
        ask("{}")
    except BaseException:
        pass

@pytest.mark.cassette
def test_in_a_thread():
    one = threading.Thread(target=ask, args=("{}",))
    one.start()
    one.join()
"""


def test_a_deviation_that_nobody_sees_fails_the_test_all_the_same(project: Project) -> None:
    project.test(UNSEEN.replace("{}", "Review the plan."))
    project.record()
    project.test(UNSEEN.replace("{}", "Review the new plan."))
    done = project.run("-v", "-p", "no:threadexception")
    names = ("test_caught", "test_in_a_thread")
    assert outcomes(done) == dict.fromkeys(names, "FAILED")
    for name in names:
        pytest.LineMatcher(sections(done)[name].splitlines()).fnmatch_lines(["E *Review the {+new +}plan."])


def test_a_deviation_in_a_task_group_is_told_by_itself(project: Project) -> None:
    code = """
import asyncio

@pytest.mark.cassette
def test_plan():
    async def both():
        async with asyncio.TaskGroup() as group:
            group.create_task(ask_async("one"))
            group.create_task(ask_async("{}"))
    asyncio.run(both())
"""
    project.with_sdks()
    project.test(code.format("the second question"))
    project.record()
    project.test(code.format("the last question"))
    done = project.run()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E *the [[]-second-[]] {+last+} question"])
    done.stdout.no_fnmatch_line("*ExceptionGroup*")


def test_the_nearest_answer_is_given_where_the_mark_says_so(project: Project) -> None:
    code = "@pytest.mark.cassette(on_deviation='nearest')\ndef test_plan():\n    assert 'issue 1' in ask('Plan issue {}.')\n"
    project.test(code.format(1))
    project.record()
    project.test(code.format(2))
    project.run().assert_outcomes(passed=1)


def test_the_network_is_refused_with_words_that_say_what_to_do(project: Project) -> None:
    project.test("""
import os, socket

@pytest.mark.cassette
def test_plan():
    if os.environ.get("CONNECT"):
        socket.create_connection(("127.0.0.1", 9))

@pytest.mark.cassette
def test_name():
    if os.environ.get("CONNECT"):
        socket.getaddrinfo("example.org", 443)
""")
    project.record()
    done = project.run(CONNECT="1")
    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines([
        '>   socket.create_connection(("127.0.0.1", 9))',
        "E   the test wants to connect to 127.0.0.1:9, and is answered from its cassette: the network is refused",
        "E *@pytest.mark.cassette(allow=[[]'127.0.0.1'[]])*",
        "E   the test wants to connect to example.org:443,*",
    ])  # fmt: skip


def test_after_a_test_with_a_cassette_the_network_is_there_again(project: Project) -> None:
    project.test(ONE.format(1) + '\ndef test_live():\n    assert ask("live")\n')
    project.record()
    project.run(up=True).assert_outcomes(passed=2)
    assert project.exchanges == 1


_WAITING = """
import asyncio, queue, threading
import playhead._limits
playhead._limits.STUCK_S = 1.0

@pytest.mark.cassette
def test_thread():
    done = queue.Queue()
    threading.Thread(target=lambda: done.put(ask("Plan a fix for issue {0}.")), daemon=True).start()
    assert "{0}" in done.get()

@pytest.mark.cassette
@pytest.mark.asyncio
async def test_task():
    done = asyncio.Queue()
    async def work():
        await done.put(await ask_async("Plan a fix for issue {0}."))
    task = asyncio.create_task(work())
    assert "{0}" in await done.get()

@pytest.mark.cassette
def test_after():
    assert ask("Say hello.") == "answer to Say hello."
"""


def test_a_test_that_waits_for_one_who_deviated_fails_and_does_not_hang(project: Project) -> None:
    project.with_plugins("asyncio")
    project.test(_WAITING.format(1842))
    project.record()
    project.test(_WAITING.format(1843))
    done = project.run()
    done.assert_outcomes(failed=2, passed=1)
    done.stdout.fnmatch_lines(["E *Plan a fix for issue [[]-1842-[]] {+1843+}."])
