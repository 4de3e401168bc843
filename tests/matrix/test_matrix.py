"""Real SDKs against a scripted provider: an agent that is recorded does what it does alone.

`make test` runs the core of it, `make test-matrix` everything. See `environments.toml` for what is installed.
"""

from __future__ import annotations

import pytest
from tests.matrix.cases import cases
from tests.matrix.comparing import asked
from tests.matrix.conftest import Runs
from tests.matrix.harness import Entry

# A mistake in a program must not pass because it is made twice.
MISTAKES = ("TypeError", "AttributeError", "NameError", "ImportError", "ModuleNotFoundError", "AssertionError")


@pytest.mark.parametrize(("entry", "scenario"), cases())
def test_a_recorded_agent_does_what_it_does_alone(entry: Entry, scenario: str, runs: Runs) -> None:
    bare, recorded = runs.bare(entry), runs.recorded(entry)
    outcome = bare.outcomes[scenario]
    assert ("error" in outcome) == outcome["raises"], outcome
    assert not outcome.get("error", {}).get("type", "").endswith(MISTAKES), outcome
    assert recorded.outcomes[scenario] == outcome
    assert asked(recorded.exchanges, scenario) == asked(bare.exchanges, scenario)
