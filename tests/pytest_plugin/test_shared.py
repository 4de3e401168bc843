"""Fixtures that several tests share are on no cassette: what they ask is refused in a replay, and named in a recording."""

from __future__ import annotations

import pytest
from tests.pytest_plugin.conftest import Project, outcomes, sections

ASKS = """
@pytest.fixture(scope="{scope}")
def plan():
    {before}
    yield "plan"
    {after}

@pytest.mark.cassette
def test_plan(plan):
    assert ask("one") == "answer to one"
"""
LIVE = 'ask("shared")'
CAUGHT = """try:
        ask("shared")
    except BaseException:
        pass"""


def asks(project: Project, *, scope: str = "module", before: str = "pass", after: str = "pass", more: str = "") -> None:
    project.test(ASKS.format(scope=scope, before=before, after=after) + more)


def refused(done: pytest.RunResult, title: str, scope: str = "module") -> None:
    """Check what is said of the test with this title."""
    pytest.LineMatcher(sections(done)[title].splitlines()).fnmatch_lines([
        f"E   the fixture `plan` (scope {scope}) asks POST http://127.0.0.1:*/chat/completions: tests share it, so it is*",
        "E *Give the fixture the scope of a function*",
        "E *@pytest.mark.cassette(allow=[[]'127.0.0.1'[]])*",
    ])  # fmt: skip
    done.stdout.no_fnmatch_line("*--playhead=all*")


SCOPES = ("class", "module", "package", "session")
SCOPED = """
class Test_{scope}:
    @pytest.fixture(scope="{scope}")
    def plan(self):
        {before}

    @pytest.mark.cassette
    def test_plan(self, plan):
        assert ask("one") == "answer to one"
"""


def test_what_a_shared_fixture_asks_a_model_is_refused_in_a_replay_whatever_its_scope(project: Project) -> None:
    project.with_sdks()
    project.test("".join(SCOPED.format(scope=scope, before="pass") for scope in SCOPES))
    project.record()
    project.test("".join(SCOPED.format(scope=scope, before=LIVE) for scope in SCOPES))
    done = project.run("-v", up=True, CI="1")
    assert outcomes(done) == {f"Test_{scope}::test_plan": "ERROR" for scope in SCOPES}
    assert project.exchanges == 0
    for scope in SCOPES:
        refused(done, f"ERROR at setup of Test_{scope}.test_plan", scope)


def test_so_it_is_when_the_fixture_ends(project: Project) -> None:
    asks(project)
    project.record()
    asks(project, after=LIVE)
    done = project.run(up=True)
    done.assert_outcomes(passed=1, errors=1)
    assert project.exchanges == 0
    refused(done, "ERROR at teardown of test_plan")


def test_so_it_is_when_the_fixture_catches_everything(project: Project) -> None:
    asks(project)
    project.record()
    asks(project, before=CAUGHT)
    done = project.run(up=True)
    done.assert_outcomes(errors=1)
    assert project.exchanges == 0
    refused(done, "ERROR at setup of test_plan")


def test_so_it_is_with_clients_of_all_kinds(project: Project) -> None:
    code = """
import asyncio, os, urllib.request

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"

def by_urllib():
    urllib.request.urlopen(urllib.request.Request(URL, data=b"{{}}", method="POST"))

def by_requests():
    import requests
    requests.post(URL, json={{}})

def by_aiohttp():
    import aiohttp
    async def post():
        async with aiohttp.ClientSession() as session, session.post(URL, json={{}}):
            pass
    asyncio.run(post())

def by_httpx():
    asyncio.run(ask_async("shared"))

@pytest.fixture(scope="session", params=[{kinds}])
def plan(request):
    {asks}

@pytest.mark.cassette
def test_plan(plan):
    pass
"""
    kinds = ["by_urllib", "by_requests", "by_aiohttp", "by_httpx"]
    project.test(code.format(kinds=", ".join(kinds), asks="pass"))
    project.record()
    project.test(code.format(kinds=", ".join(kinds), asks="request.param()"))
    done = project.run("-v", "--playhead=none", up=True)
    assert outcomes(done) == {f"test_plan[{kind}]": "ERROR" for kind in kinds}
    assert project.exchanges == 0
    for kind in kinds:
        refused(done, f"ERROR at setup of test_plan[{kind}]", "session")


def test_when_it_is_recorded_it_is_asked_and_named(project: Project) -> None:
    asks(project, before=LIVE)
    done = project.record()
    assert project.exchanges == 2
    done.stdout.fnmatch_lines([
        "live, and on no cassette: the fixture `plan` (scope module) asks POST http://127.0.0.1:*/chat/completions",
        "Fixtures that tests share are not recorded*",
    ])  # fmt: skip
    asks(project, after=LIVE, more="\ndef test_last(plan):\n    pass\n")
    done = project.with_plugins("xdist").record("--playhead=all", "-n", "1")
    done.stdout.fnmatch_lines(["live, and on no cassette: the fixture `plan` (scope module) asks POST *"])


def test_hosts_elsewhere_are_refused_whatever_is_asked_of_them(project: Project) -> None:
    code = """
@pytest.fixture(scope="module")
def {name}():
    {before}

@pytest.mark.cassette
def test_{name}({name}):
    assert ask("one") == "answer to one"
"""
    hosts = {
        "by_name": "import socket; socket.getaddrinfo('example.org', 443)",
        "by_number": "import httpx; httpx.get('http://192.0.2.7/')",
    }
    project.test("".join(code.format(name=name, before="pass") for name in hosts))
    project.record()
    project.test("".join(code.format(name=name, before=before) for name, before in hosts.items()))
    done = project.run("-v")
    assert outcomes(done) == {f"test_{name}": "ERROR" for name in hosts}
    for name in hosts:
        told = pytest.LineMatcher(sections(done)[f"ERROR at setup of test_{name}"].splitlines())
        told.fnmatch_lines([f"E   the fixture `{name}` (scope module) * tests share it, so it is on no cassette*"])


def test_a_test_without_a_cassette_is_set_up_as_ever(project: Project) -> None:
    asks(project, more="\ndef test_live(plan):\n    assert plan\n")
    project.record()
    asks(project, before=LIVE, more="\ndef test_live(plan):\n    assert plan\n")
    project.run(up=True, CI="1").assert_outcomes(passed=1, errors=1)
    assert project.exchanges == 1, "the fixture was set up for the test without a cassette"


def test_a_fixture_may_start_a_server_and_look_whether_it_is_there(project: Project) -> None:
    project.test("""
import subprocess, sys, time, urllib.request, urllib.error

SERVER = "import http.server; s = http.server.HTTPServer(('127.0.0.1', 0), http.server.SimpleHTTPRequestHandler);" \\
    "print(s.server_port, flush=True); s.serve_forever()"

@pytest.fixture(scope="session")
def server():
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        address = f"http://127.0.0.1:{int(process.stdout.readline())}/"
        assert urllib.request.urlopen(address).status == 200
        yield address
        assert urllib.request.urlopen(address).status == 200
        process.terminate()

@pytest.mark.cassette(allow="127.0.0.1")
def test_plan(server):
    assert urllib.request.urlopen(server).status == 200

@pytest.mark.cassette
def test_other(server):
    assert ask("one") == "answer to one"
""")
    done = project.record()
    done.stdout.no_fnmatch_line("live, and on no cassette*")
    assert project.run("--playhead=none").ret == 0


def test_what_the_mark_allows_is_allowed_to_its_fixtures(project: Project) -> None:
    code = ASKS.format(scope="module", before=LIVE, after="pass").replace("cassette\n", "cassette(allow='127.0.0.1')\n")
    project.test(code)
    done = project.record()
    done.stdout.no_fnmatch_line("live, and on no cassette*")
    project.run(up=True, CI="1").assert_outcomes(passed=1)


def test_the_fixture_cassette_comes_before_the_tests_own(project: Project) -> None:
    project.test("""
@pytest.fixture
def plan():
    return ask("plan")

@pytest.fixture(autouse=True)
def always():
    ask("always")

def test_plan(plan, cassette):
    assert plan == "answer to plan"
""")
    project.record()
    assert project.run("--playhead=none").ret == 0


def test_a_deviation_in_a_fixture_is_told_of_every_test_that_has_it(project: Project) -> None:
    code = """
@pytest.fixture
def plan():
    return ask("the {} plan")

@pytest.mark.cassette
@pytest.mark.parametrize("n", [1, 2])
def test_plan(plan, n):
    pass
"""
    project.test(code.format("first"))
    project.record()
    project.test(code.format("second"))
    done = project.run()
    done.assert_outcomes(errors=2)
    assert done.stdout.str().count("the [-first-] {+second+} plan") == 2
