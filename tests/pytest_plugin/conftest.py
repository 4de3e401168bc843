"""Run pytest in a project of its own, with a provider that may be gone afterwards."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Collection

import pytest
from tests import warm

from playhead.testing import ReceivedRequest, ScriptedProvider

_NOBODY = "http://127.0.0.1:9/v1"  # where nobody listens
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY")
KEY = "sk-of-the-author-1234567890abcdef"
# An agent that loads next to nothing: an SDK takes a second or two, which most of these tests have no need for.
PLAIN = """
import os, httpx

URL = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
PLAINLY = {"timeout": 600, "verify": False}  # there is no TLS, and reading all certificates takes its time

def request(words):
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    return {"json": {"model": "gpt-5", "messages": [{"role": "user", "content": words}]}, "headers": headers}

def content(answer):
    return answer.raise_for_status().json()["choices"][0]["message"]["content"]

def ask(words):
    return content(httpx.post(URL, **PLAINLY, **request(words)))

async def ask_async(words):
    async with httpx.AsyncClient(**PLAINLY) as client:
        return content(await client.post(URL, **request(words)))
"""
SDKS = """
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
# Plugins of the environment that take half a second to load, and that only few of these tests need.
PLUGINS = ("schemathesis", "anyio", "asyncio", "hypothesispytest", "timeout", "xdist", "xdist.looponfail")
_HEADING = re.compile(r"^(?:_+|=+) ([^_=\s].*?) (?:_+|=+)$", re.MULTILINE)
_OUTCOME = re.compile(r"^test_agent\.py::(.+?) (PASSED|FAILED|ERROR)\b", re.MULTILINE)


class Project:
    """A folder with an agent and tests, and the provider that the agent asks."""

    def __init__(self, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pytester, self._monkeypatch = pytester, monkeypatch
        self.provider: ScriptedProvider | None = None
        self.prompts: list[str] = []
        self._plugins: Collection[str] = ()
        self._loads_sdks = False
        self.pytester.makepyfile(agent=PLAIN)

    @property
    def exchanges(self) -> int:
        """Return how often the provider was asked in the last session."""
        return len(self.prompts)

    def with_sdks(self) -> Project:
        """Let the agent ask with the SDKs of the providers."""
        self.pytester.makepyfile(agent=SDKS)
        self._loads_sdks = True
        return self

    def with_plugins(self, *names: str) -> Project:
        """Have these of the other plugins in the sessions; all of them where none is named."""
        self._plugins = names or PLUGINS
        return self

    def test(self, code: str) -> None:
        """Write the tests."""
        # Python takes a file of the same size and the same second for the one that it has compiled.
        shutil.rmtree(self.pytester.path / "__pycache__", ignore_errors=True)
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
            # Blocked by their names, so that ours is found as any other: by its entry point.
            blocked = [f"-pno:{name}" for name in ("cacheprovider", *PLUGINS) if name not in self._plugins]
            done = self._session(*blocked, "-W", "ignore", *options)
            self.prompts = [one.request.prompt for one in provider.exchanges]
        for name in variables:
            self._monkeypatch.delenv(name)
        return done

    def _session(self, *options: str) -> pytest.RunResult:
        if self._plugins or self._loads_sdks:
            return self.pytester.runpytest_subprocess(*options)
        began = time.monotonic()
        done = warm.pytest(self.pytester.path, *options)
        print(done.stdout, done.stderr)
        out, errors = done.stdout.splitlines(), done.stderr.splitlines()
        return pytest.RunResult(done.returncode, out, errors, time.monotonic() - began)

    def record(self, *options: str) -> pytest.RunResult:
        """Run the tests with the provider there; all must pass."""
        done = self.run(*options, up=True)
        assert done.ret == 0, done.outlines
        return done

    def cassettes(self) -> dict[str, bytes]:
        """Return every cassette by its path."""
        found = sorted(self.pytester.path.rglob("*.cassette.jsonl"))
        return {path.relative_to(self.pytester.path).as_posix(): path.read_bytes() for path in found}


def sections(done: pytest.RunResult) -> dict[str, str]:
    """Return what pytest says below each of its headings, such as the name of a test that failed."""
    _, *parts = _HEADING.split(done.stdout.str())
    return dict(zip(parts[::2], parts[1::2], strict=True))


def outcomes(done: pytest.RunResult) -> dict[str, str]:
    """Return what became of each test; only a session with `-v` says so."""
    return dict(_OUTCOME.findall(done.stdout.str()))


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project of its own."""
    monkeypatch.delenv("CI", raising=False)
    # Else each session compiles all of Playhead anew, since pytest has a form of its own for what comes with a plugin.
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    return Project(pytester, monkeypatch)
