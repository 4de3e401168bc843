"""A test that is answered from its cassette needs no key; one that asks the world gets none from us."""

from __future__ import annotations

import os

import pytest
from tests.pytest_plugin.conftest import Project, outcomes

from playhead.pytest_plugin import keys

ALL = """
import os

@pytest.fixture(scope="session")
def client():
    return OpenAI()

@pytest.mark.cassette
def test_plan():
    assert "one" in ask("one") and "two" in ask_anthropic("two")

@pytest.mark.cassette
def test_client_of_a_shared_fixture(client):
    assert ask("one", client)

def test_after():
    assert not {"OPENAI_API_KEY", "ANTHROPIC_API_KEY"} & set(os.environ) or "KEYED" in os.environ
"""


def test_clients_are_made_without_a_key_in_a_replay_also_by_shared_fixtures(project: Project) -> None:
    project.with_sdks().test(ALL)
    names = ("test_plan", "test_client_of_a_shared_fixture", "test_after")
    assert outcomes(project.run("-v", up=True, KEYED="1")) == dict.fromkeys(names, "PASSED")
    assert outcomes(project.run("-v", keyed=False, CI="1")) == dict.fromkeys(names, "PASSED")


def test_a_key_that_is_set_stays_what_it_is(project: Project) -> None:
    project.test("""
import os

@pytest.mark.cassette
def test_plan():
    assert os.environ["OPENAI_API_KEY"].startswith("sk-of-the-author")
    assert ask("one")
    os.environ["OPENAI_API_KEY"] = "sk-of-the-test"

def test_after():
    assert os.environ["OPENAI_API_KEY"] == "sk-of-the-test"
""")
    project.record()
    project.run("--playhead=none").assert_outcomes(passed=2)


def test_a_recording_needs_its_key(project: Project) -> None:
    project.with_sdks()
    project.test("@pytest.mark.cassette\ndef test_plan():\n    ask('one')\n")
    done = project.run(up=True, keyed=False)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*OPENAI_API_KEY*"])
    project.record()
    project.test("@pytest.mark.cassette\ndef test_plan():\n    ask('one')\n    ask('two')\n")
    done = project.run("--playhead=new", up=True, keyed=False)
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["*OPENAI_API_KEY*"])


@pytest.mark.parametrize(
    ("provider", "there", "given"),
    [
        ("deepseek", "", "DEEPSEEK_API_KEY"),
        ("google", "", "GOOGLE_API_KEY"),
        ("google", "GEMINI_API_KEY", None),
        ("ollama", "", None),
    ],
)
def test_one_variable_is_set_for_each_provider(
    provider: str, there: str, given: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DEEPSEEK_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    if there:
        monkeypatch.setenv(there, "x")
    before = dict(os.environ)
    with keys.placeholders([provider, provider]):
        assert {name: os.environ[name] for name in os.environ if name not in before} == (
            {given: keys.PLACEHOLDER} if given else {}
        )
    assert dict(os.environ) == before
