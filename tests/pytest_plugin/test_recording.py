"""Record once, replay from then on: the modes of vcrpy, what lies where, and what is in it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest
from tests.pytest_plugin.conftest import KEY, Project

from playhead import audit, load

ONE = """
@pytest.mark.cassette
def test_plan():
    assert ask("Plan a fix for issue 1842.") == "answer to Plan a fix for issue 1842."
"""
WHERE = "cassettes/test_agent/test_plan.cassette.jsonl"


def test_a_test_is_recorded_once_and_replayed_with_the_provider_gone(project: Project) -> None:
    project.with_sdks().with_plugins()  # as it is at the users'
    project.test(ONE)
    done = project.record()
    done.stdout.fnmatch_lines([f"recorded {WHERE}"])
    assert project.exchanges == 1
    assert list(project.cassettes()) == [WHERE]
    before = project.cassettes()
    done = project.run()
    done.assert_outcomes(passed=1)
    done.stdout.no_fnmatch_line("*= playhead =*")
    assert project.cassettes() == before


def test_once_and_none_make_no_connection_where_there_is_a_cassette(project: Project) -> None:
    project.test(ONE)
    project.record()
    assert project.run(up=True).ret == 0
    assert project.exchanges == 0
    assert project.run("--playhead=none").ret == 0, "nor need a provider"


def test_the_header_says_the_mode_and_why(project: Project) -> None:
    project.test("def test_nothing(): pass\n")
    project.run().stdout.fnmatch_lines(["playhead: cassettes once (the default): *"])
    project.run(CI="1").stdout.fnmatch_lines(["playhead: cassettes none (CI is set): *"])
    project.run(CI="false").stdout.fnmatch_lines(["playhead: cassettes once (the default): *"])
    project.run("--playhead=all", CI="1").stdout.fnmatch_lines(["playhead: cassettes all (--playhead): *"])
    project.run(PLAYHEAD_CASSETTES="new").stdout.fnmatch_lines(["playhead: cassettes new (the setting *): *"])
    project.pytester.makeini("[pytest]\nplayhead = all\n")
    project.run(PLAYHEAD_CASSETTES="new").stdout.fnmatch_lines(["playhead: cassettes all (the ini file): *"])


def test_a_mode_that_does_not_exist_is_said_before_any_test_runs(project: Project) -> None:
    project.test(ONE)
    done = project.run(PLAYHEAD_CASSETTES="sometimes")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*'sometimes' is no mode for cassettes; there are none, once, new, all*"])


def test_none_without_a_cassette_is_an_error_that_says_what_to_do(project: Project) -> None:
    project.with_sdks()
    project.test(ONE)
    done = project.run("--playhead=none", up=True, keyed=False)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["E   test_agent.py::test_plan has no cassette, and none is recorded: --playhead"])
    done.stdout.fnmatch_lines([f"*--playhead=once, and keep {WHERE} with the tests.*"])
    done.stdout.no_fnmatch_line("*Traceback*")
    done.stdout.no_fnmatch_line("*During handling*")
    assert project.exchanges == 0
    assert not project.cassettes()


def test_all_records_anew(project: Project) -> None:
    project.test(ONE)
    project.record()
    before = project.cassettes()
    assert project.run("--playhead=all", up=True).ret == 0
    assert project.exchanges == 1
    assert project.cassettes().keys() == before.keys()
    assert project.cassettes() != before


def test_new_asks_only_for_what_is_new_and_keeps_both(project: Project) -> None:
    code = "@pytest.mark.cassette\ndef test_plan():\n    {}\n"
    project.test(code.format('assert ask("first") == "answer to first"'))
    project.record()
    project.test(code.format('assert ask("first") + ask("second") == "answer to firstanswer to second"'))
    done = project.record("--playhead=new")
    assert project.exchanges == 1
    done.stdout.fnmatch_lines([f"added to {WHERE}"])
    assert project.run("--playhead=none").ret == 0
    before = project.cassettes()
    assert project.run("--playhead=new").ret == 0, "nothing is new: the provider is not needed"
    assert project.cassettes() == before, "and nothing is written"


def test_new_works_in_an_event_loop_with_timeouts(project: Project) -> None:
    project.with_sdks()
    code = """
import asyncio

@pytest.mark.cassette
def test_plan():
    async def both():
        async with asyncio.timeout(60):
            await asyncio.sleep(0.01)
            return [await ask_async(words) for words in {}]
    assert asyncio.run(both())[0] == "answer to first"
"""
    project.test(code.format(["first"]))
    project.record()
    project.test(code.format(["first", "second"]))
    project.record("--playhead=new")
    assert project.exchanges == 1
    assert project.run("--playhead=none").ret == 0


def test_a_test_that_fails_while_it_is_recorded_leaves_no_cassette(project: Project) -> None:
    project.test(ONE.replace("assert ask", "assert not ask"))
    done = project.run(up=True)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines([f"not recorded {WHERE}, since the test did not pass"])
    assert not project.cassettes()


def test_a_test_that_fails_leaves_the_cassette_it_had(project: Project) -> None:
    project.test(ONE)
    project.record()
    before = project.cassettes()
    project.test(ONE.replace("assert ask", "assert not ask"))
    project.run("--playhead=all", up=True).assert_outcomes(failed=1)
    assert project.cassettes() == before


def test_an_expected_failure_is_recorded_as_any_test(project: Project) -> None:
    project.test("@pytest.mark.xfail(strict=True)" + ONE.replace("assert ask", "assert not ask"))
    project.run(up=True).assert_outcomes(xfailed=1)
    project.run("--playhead=none").assert_outcomes(xfailed=1)


def test_parameters_classes_and_names_have_cassettes_of_their_own(project: Project) -> None:
    project.test("""
@pytest.mark.cassette
@pytest.mark.parametrize("words", ["one", "two words", "a/../b", "x" * 300])
def test_each(words):
    assert ask(words)

@pytest.mark.cassette
class TestClass:
    def test_inside(self):
        assert ask("inside")

@pytest.mark.cassette("planning")
def test_named():
    assert ask("named")

@pytest.mark.cassette("data/mine.cassette")
def test_placed():
    assert ask("placed")
""")
    project.record()
    found = [name.removeprefix("cassettes/") for name in project.cassettes()]
    assert {"planning.cassette.jsonl", "test_agent/TestClass.test_inside.cassette.jsonl"} < set(found)
    assert "test_agent/test_each[one].cassette.jsonl" in found
    assert len(found) == 6
    assert all(len(name) < 200 for name in found)
    assert (project.pytester.path / "data" / "mine.cassette").is_file()
    assert project.run("--playhead=none").ret == 0


def test_two_tests_cannot_have_the_same_cassette(project: Project) -> None:
    project.test("""
@pytest.mark.cassette("planning")
def test_first():
    assert ask("first")

@pytest.mark.cassette("../cassettes/planning")
def test_second():
    assert ask("second")

@pytest.mark.cassette("each")
@pytest.mark.parametrize("word", ["one", "two"])
def test_each(word):
    assert ask(word)
""")
    done = project.run(up=True)
    done.assert_outcomes(passed=2, errors=2)
    done.stdout.fnmatch_lines([
        "test_agent.py::test_second and test_agent.py::test_first have the same cassette, planning.cassette.jsonl: *",
        "*Give each test a name of its own, or none*",
        "test_agent.py::test_each[[]two[]] and test_agent.py::test_each[[]one[]] have the same cassette, each.*",
    ])  # fmt: skip
    assert project.exchanges == 2
    done = project.run("--playhead=none")
    done.assert_outcomes(passed=2, errors=2)


def test_a_cassette_holds_no_secret_and_nothing_of_this_machine(project: Project) -> None:
    project.with_sdks()
    project.test("""
@pytest.mark.cassette
def test_plan(tmp_path):
    (tmp_path / "made").write_text("x")
    assert ask("Plan.") and ask_anthropic("Review.")
""")
    project.record()
    (content,) = project.cassettes().values()
    assert KEY.encode() not in content
    assert str(project.pytester.path).encode() not in content
    # As a word: the name of a machine may be two letters, which any id may have.
    assert re.search(rb"(?<![\w/+=-])%b(?![\w/+=-])" % re.escape(os.uname().nodename.encode()), content) is None
    started = json.loads(content.splitlines()[1])["data"]
    assert started["entrypoint"] == {"test": "test_agent.py::test_plan"}
    assert started["environment"] == {"python": {"version": ".".join(map(str, sys.version_info[:2]))}}
    assert not {"git", "ci"} & set(started)
    kinds = {json.loads(line).get("kind") for line in content.splitlines()}
    assert "effect.observed" not in kinds
    assert len(content) < 15_000


def test_the_fixture_works_without_the_mark_and_says_what_it_does(project: Project) -> None:
    project.test("""
def test_plan(cassette, pytestconfig):
    assert cassette.path.name == "test_plan.cassette.jsonl"
    there = cassette.path.exists()
    assert (cassette.recording, cassette.replaying) == (not there, there)
    assert cassette.mode == "once" and (cassette.run is not None) == there
    assert len(cassette.unused) == there
    assert ask("Plan.")
    assert not cassette.unused
""")
    project.record()
    assert project.run().ret == 0


def test_the_comparison_of_a_replay_is_there_when_the_test_is_over(project: Project) -> None:
    project.test("""
@pytest.fixture(scope="session")
def seen():
    cassettes = []
    yield cassettes
    print("verdicts:", *(one.result and (one.result.faithful, one.result.live_calls) for one in cassettes))

@pytest.fixture(autouse=True)
def keep(request, seen):
    if "cassette" in request.fixturenames:
        seen.append(request.getfixturevalue("cassette"))

@pytest.mark.cassette
def test_plan(cassette):
    assert cassette.result is None
    assert ask("Plan.")

def test_other():
    pass
""")
    project.record("-s").stdout.fnmatch_lines(["*verdicts: None"])
    project.run("-s").stdout.fnmatch_lines(["*verdicts: (True, 0)"])


def test_clocks_and_random_numbers_are_on_the_tape_where_that_is_asked_for(project: Project) -> None:
    project.test("""
import random, time, uuid

@pytest.mark.cassette(ambient=True)
def test_plan():
    assert ask(f"It is {time.time()}, {random.random()}, {uuid.uuid4()}.")
""")
    project.record()
    assert project.run("--playhead=none").ret == 0


def test_what_a_mark_cannot_say_is_told(project: Project) -> None:
    project.test("@pytest.mark.cassette(recrod='once')\ndef test_plan(): pass\n")
    done = project.run()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["@pytest.mark.cassette does not take recrod"])


def test_a_cassette_that_was_altered_is_refused(project: Project) -> None:
    project.test(ONE)
    project.record()
    path = project.pytester.path / WHERE
    path.write_bytes(path.read_bytes().replace(b"answer to", b"another to"))
    done = project.run()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*is refused*event 3 was edited*"])


def test_what_cannot_be_replayed_is_not_written(project: Project) -> None:
    project.test("""
import playhead

class Odd:
    __slots__ = ()

@playhead.tool
def look():
    return Odd()

@pytest.mark.cassette
def test_plan():
    assert look()
""")
    done = project.run()
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(["what was recorded could not be replayed, and no cassette was written: *"])
    done.stdout.fnmatch_lines(["*waive=[[]'unrestorable_value'[]]*"])
    done.stdout.fnmatch_lines(["not recorded *, since it could not be replayed"])
    assert not project.cassettes()


def test_switched_off_everything_is_live(project: Project) -> None:
    project.test(ONE)
    assert project.run(up=True, PLAYHEAD_DISABLED="1").ret == 0
    assert project.exchanges == 1
    assert not project.cassettes()


def test_what_a_test_does_outside_belongs_to_the_run_of_pytest_and_is_held_to_its_policy(project: Project) -> None:
    project.pytester.makepyfile(agent="")
    project.test("""
def write(name):
    with open(name, "w"):
        pass

@pytest.mark.cassette
def test_outside():
    write("allowed.txt")
    with pytest.raises(PermissionError):
        write("denied.txt")
""")
    (project.pytester.path / "playhead.policy.toml").write_text(
        'mode = "enforce"\n[capabilities]\n"fs.write" = { allow = "**", deny = "denied.txt" }\n'
        '"fs.delete" = { allow = "**" }\n"process.exec" = { allow = "*" }\n'
    )
    recording = [sys.executable, "-m", "playhead", "record", "--quiet", "--"]
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_agent.py"]
    done = subprocess.run([*recording, *tests], cwd=project.pytester.path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert not (project.pytester.path / "denied.txt").exists()
    written = [one.target for one in audit(load("@last")).findings if one.rule == "write"]
    assert str(project.pytester.path / "allowed.txt") in written
    (cassette,) = project.cassettes().values()
    assert b"effect.observed" not in cassette


def test_pytest_loads_next_to_nothing_for_a_project_without_cassettes() -> None:
    code = "import sys, pytest, playhead.pytest_plugin as p; p.mode_of(None, ''); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name for name in done.stdout.split() if name.startswith("playhead.")}
    errors = {"errors", "errors.base", "errors.served"}
    ours = {"pytest_plugin", "pytest_plugin.modes", "settings", *errors, "_launched", "_version"}
    assert loaded == {f"playhead.{name}" for name in ours}
