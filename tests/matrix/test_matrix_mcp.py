"""Both generations of the MCP client: the tests of `tests/capture/frameworks`, where mcp is there."""

from __future__ import annotations

import re
import subprocess

import pytest
from tests.matrix.environments import ROOT
from tests.matrix.harness import made

_TIMEOUT_S = 900
TESTS = [f"tests/capture/frameworks/test_mcp_{name}.py" for name in ("client", "messages")]
TESTS.append("tests/replay/test_mcp.py")


@pytest.mark.matrix
@pytest.mark.parametrize("name", ["mcp1", "mcp2"])
def test_the_tests_of_the_mcp_client_hold_with_this_generation(name: str) -> None:
    chosen = made(name)
    command = [str(chosen.python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS]
    done = subprocess.run(
        command, cwd=ROOT, env=chosen.variables(), capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 30, done.stdout
