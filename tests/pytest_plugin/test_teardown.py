"""What the fixtures of a test do when they end is judged as what the test does itself."""

from __future__ import annotations

from tests.pytest_plugin.conftest import Project

ENDS = """
import asyncio, threading, time

@pytest.fixture
def caught():
    yield
    try:
        ask("caught {0}")
    except BaseException:
        pass

@pytest.mark.cassette
def test_caught(caught):
    ask("Plan.")

@pytest.fixture
def thread():
    made = threading.Thread(target=lambda: (time.sleep(0.2), ask("joined {0}")))
    yield made
    made.join()

@pytest.mark.cassette
def test_joined(thread):
    thread.start()

@pytest.fixture
def gathered():
    yield
    async def log():
        await asyncio.gather(ask_async("gathered {0}"), return_exceptions=True)
    asyncio.run(log())

@pytest.mark.cassette
def test_gathered(gathered):
    pass

@pytest.mark.cassette
class TestClass:
    def teardown_method(self):
        try:
            ask("method {0}")
        except BaseException:
            pass

    def test_inside(self):
        ask("Plan.")

@pytest.fixture
def plain():
    yield
    ask("plain {0}")

@pytest.mark.cassette
def test_plain(plain):
    ask("Plan.")
"""


def test_a_deviation_in_the_teardown_is_an_error_also_where_nobody_sees_it(project: Project) -> None:
    project.test(ENDS.format("then"))
    project.record()
    done = project.run("--playhead-strict-unused")
    done.assert_outcomes(passed=5)
    project.test(ENDS.format("now"))
    done = project.run("-p", "no:threadexception")
    done.assert_outcomes(passed=5, errors=5)
    done.stdout.no_fnmatch_line("unused answers*")
    for who in ("caught", "joined", "gathered", "method", "plain"):
        done.stdout.fnmatch_lines([f"E *{who} [[]-then-[]] {{+now+}}*"])


def test_a_deviation_is_told_once(project: Project) -> None:
    code = """
@pytest.fixture
def caught():
    yield
    try:
        ask("end {0}")
    except BaseException:
        pass

@pytest.mark.cassette
def test_plan(caught):
    ask("Plan {0}.")
"""
    project.test(code.format("then"))
    project.record()
    project.test(code.format("now"))
    project.run().assert_outcomes(failed=1)


def test_a_test_that_fails_in_its_teardown_writes_no_cassette_and_keeps_the_one_it_had(project: Project) -> None:
    project.test("""
import os

@pytest.fixture
def checked():
    yield
    assert not os.environ.get("BAD")

@pytest.mark.cassette
def test_plan(checked):
    assert ask("Plan.")
""")
    done = project.run(up=True, BAD="1")
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(["not recorded cassettes/*, since the test did not pass"])
    assert not project.cassettes()
    project.record()
    before = project.cassettes()
    project.run("--playhead=all", up=True, BAD="1").assert_outcomes(passed=1, errors=1)
    assert project.cassettes() == before


def test_a_test_that_is_skipped_in_its_body_needs_no_cassette(project: Project) -> None:
    project.test("""
import os

@pytest.fixture
def asking():
    return ask("set up") if os.environ.get("SETUP") else None

@pytest.mark.cassette
def test_skipped(asking):
    pytest.skip("not today")

@pytest.mark.cassette
def test_nothing():
    pass
""")
    project.run("-k", "skipped", up=True).assert_outcomes(skipped=1)
    assert not project.cassettes()
    done = project.run("--playhead=none")
    done.assert_outcomes(skipped=1, failed=1)
    done.stdout.fnmatch_lines(["E   test_agent.py::test_nothing has no cassette, *"])
    done = project.run("--playhead=none", "-k", "skipped", SETUP="1")
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["E   test_agent.py::test_skipped has no cassette, *"])
