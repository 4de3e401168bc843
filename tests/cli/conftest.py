"""Give the tests of the command line a store with runs, and two ways to call a command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.cli.main import main

HOSTILE = "boo \x1b[31mred\x1b[0m \u202edesrever \x9b2J [bold]not markup[/bold]"


@dataclass
class Answer:
    """What a command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@playhead.tool(effects=["read"])
def read_file(path: str) -> str:
    return "def normalise(address):\n    return address.strip()\n"


@playhead.tool
def failing(text: str) -> str:
    raise ValueError(f"no such thing: {text}")


def record_sample(store: Path, name: str = "fix-login", issue: int = 1842, **options: Any) -> str:
    """Record one run with a bit of everything, and return its id."""
    with playhead.record(name, input={"issue": issue}, store=store, **options) as run:
        messages = [{"role": "user", "content": "Please fix the login. " * 30}]
        with playhead.step("plan", depth=2):
            with playhead.model_call(provider="openai", model="gpt-5", request={"messages": messages}) as call:
                call.respond({"text": "look"}, usage={"input": 312, "output": 45}, finish="tool_calls")
            read_file("src/login.py")
            playhead.context_pack({"files": ["src/login.py"]})
        playhead.check("repo.write", resource="src/")
        with playhead.step("edit"):
            messages = [*messages, {"role": "assistant", "content": "look"}]
            with playhead.model_call(provider="openai", model="gpt-5", request={"messages": messages}) as call:
                call.respond({"text": "done"}, usage={"input": 600, "output": 5}, finish="stop")
            with pytest.raises(ValueError, match="no such thing"):
                failing(HOSTILE)
            playhead.artifact("patch.diff", "--- a\n+++ b\n", role="patch")
            playhead.note(f"hello {HOSTILE}")
        run.output = {"fixed": True, "issue": issue}
        return run.id


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give the path of a store that is in force, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PLAYHEAD_GIT", "0")
    monkeypatch.setenv("PLAYHEAD_DIR", str(tmp_path / ".playhead"))
    return tmp_path / ".playhead"


@pytest.fixture
def sample(store: Path) -> str:
    """Record one run and give its id."""
    return record_sample(store)


@pytest.fixture
def ask(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Answer]:
    """Call a command inside this process."""

    def call(*arguments: str) -> Answer:
        capfdbinary.readouterr()
        code = main(list(arguments))
        sys.stdout.flush()
        said = capfdbinary.readouterr()
        return Answer(code, said.out.decode(), said.err.decode())

    return call


@pytest.fixture
def shell(store: Path) -> Callable[..., Answer]:
    """Call a command as a process of its own."""

    def call(*arguments: str, **options: Any) -> Answer:
        environment = {**os.environ, **options.pop("env", {})}
        done = subprocess.run(
            [sys.executable, "-m", "playhead", *arguments],
            capture_output=True,
            env=environment,
            timeout=60,
            check=False,
            **options,
        )
        return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())

    return call


@pytest.fixture
def record() -> Callable[..., str]:
    """Give the function that records one more run."""
    return record_sample
