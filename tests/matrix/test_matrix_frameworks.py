"""The tests of tests/capture/frameworks, run where the frameworks are: today's releases and those before."""

from __future__ import annotations

import subprocess

import pytest
from tests.matrix.environments import ROOT
from tests.matrix.harness import made

FRAMEWORKS = ("frameworks", "frameworks_old")
TESTS = ("langchain", "pydantic_ai", "openai_agents", "google_genai", "seams")
_TIMEOUT_S = 1200


@pytest.mark.matrix
@pytest.mark.parametrize("environment", FRAMEWORKS)
@pytest.mark.parametrize("name", TESTS)
def test_tools_and_steps_of_a_framework_are_told(name: str, environment: str) -> None:
    _run_tests(f"tests/capture/frameworks/test_{name}.py", environment)


@pytest.mark.matrix
@pytest.mark.parametrize("environment", FRAMEWORKS)
def test_agents_of_a_framework_are_replayed(environment: str) -> None:
    _run_tests("tests/replay/test_frameworks.py", environment)


def _run_tests(file: str, environment: str) -> None:
    chosen = made(environment)
    # The frameworks warn of their own plans; a plugin that they brought along is none of these tests.
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:anyio", "-p", "no:asyncio", "-o", "filterwarnings=ignore"]
    done = subprocess.run(
        [str(chosen.python), "-m", "pytest", *options, file],
        cwd=ROOT,
        env=chosen.variables(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert " skipped" not in done.stdout, done.stdout[-2000:]
