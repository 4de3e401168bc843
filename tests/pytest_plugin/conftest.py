"""Run pytest in a project of its own, with a provider that may be gone afterwards."""

from __future__ import annotations

import pytest

from playhead.testing import ReceivedRequest, ScriptedProvider

_NOBODY = "http://127.0.0.1:9/v1"  # where nobody listens
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
KEY = "sk-of-the-author-1234567890abcdef"
AGENT = """
from openai import AsyncOpenAI, OpenAI

def ask(words, client=None):
    messages = [{"role": "user", "content": words}]
    answer = (client or OpenAI()).chat.completions.create(model="gpt-5", messages=messages)
    return answer.choices[0].message.content

async def ask_async(words):
    messages = [{"role": "user", "content": words}]
    async with AsyncOpenAI() as client:
        answer = await client.chat.completions.create(model="gpt-5", messages=messages)
    return answer.choices[0].message.content

def ask_anthropic(words):
    from anthropic import Anthropic

    messages = [{"role": "user", "content": words}]
    return Anthropic().messages.create(model="claude", max_tokens=10, messages=messages).content[0].text
"""


class Project:
    """A folder with an agent and tests, and the provider that the agent asks."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pytester, self._monkeypatch = pytester, monkeypatch
        self.provider: ScriptedProvider | None = None
        self.exchanges = 0
        self.pytester.makepyfile(agent=AGENT)

    def test(self, code: str) -> None:
        """Write the tests."""
        self.pytester.makepyfile(test_agent=f"import pytest\nfrom agent import *\n\n{code}")

    def run(self, *options: str, up: bool = False, keyed: bool = True, **variables: str) -> pytest.RunResult:
        """Run pytest in a process of its own; `up` says whether there is a provider, `keyed` whether keys are set."""
        for name, value in variables.items():
            self._monkeypatch.setenv(name, value)

        def answer(request: ReceivedRequest) -> str:
            return f"answer to {request.prompt}"

        with ScriptedProvider(answer) as provider:
            self._monkeypatch.setenv("OPENAI_BASE_URL", provider.base_url if up else _NOBODY)
            self._monkeypatch.setenv("ANTHROPIC_BASE_URL", provider.anthropic_url if up else _NOBODY)
            for name in KEYS:
                if keyed:
                    self._monkeypatch.setenv(name, KEY)
                else:
                    self._monkeypatch.delenv(name, raising=False)
            done = self.pytester.runpytest_subprocess("-p", "no:cacheprovider", "-W", "ignore", *options)
            self.exchanges = len(provider.exchanges)
        for name in variables:
            self._monkeypatch.delenv(name)
        return done

    def record(self, *options: str) -> pytest.RunResult:
        """Run the tests with the provider there; all must pass."""
        done = self.run(*options, up=True)
        assert done.ret == 0, done.outlines
        return done

    def cassettes(self) -> dict[str, bytes]:
        """Return every cassette by its path."""
        found = sorted(self.pytester.path.rglob("*.cassette.jsonl"))
        return {path.relative_to(self.pytester.path).as_posix(): path.read_bytes() for path in found}


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project of its own."""
    monkeypatch.delenv("CI", raising=False)
    return Project(pytester, monkeypatch)
