"""Run the scenarios of a program by name and print what came of them as one JSON document.

    python PROGRAM.py ROOT_URL NAME[,NAME…]

The programs are agents as people write them. None of them, nor this file, knows of Playhead.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

ROOT = sys.argv[1].rstrip("/") if len(sys.argv) > 1 else ""
KEY = "test-not-a-key"
MANY = 20  # calls at once

_scenarios: dict[str, Callable[[list[Any]], Any]] = {}
_raising: set[str] = set()


def scenario(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Register a scenario under its name. It gets a list for what the user sees on the way."""
    _scenarios[function.__name__] = function
    return function


def raising_scenario(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    """Register a scenario that ends with an exception."""
    _raising.add(function.__name__)
    return scenario(function)


def prompt(name: str) -> str:
    """Return what is asked in a scenario; the provider and the test know the scenario by it."""
    return f"case:{name}: how warm is it in Paris, and what is the time in Oslo?"


def main() -> None:
    """Run what is named on the command line."""
    # One loop for all: LangChain keeps its asynchronous client, which cannot move to another loop.
    with asyncio.Runner() as runner:
        outcomes = {name: _outcome(_scenarios[name], runner) for name in sys.argv[2].split(",")}
    print(json.dumps(outcomes, default=repr))


def _outcome(function: Callable[[list[Any]], Any], runner: asyncio.Runner) -> dict[str, Any]:
    seen: list[Any] = []
    outcome: dict[str, Any] = {"raises": function.__name__ in _raising, "seen": seen}
    try:
        if inspect.iscoroutinefunction(function):
            outcome["result"] = runner.run(function(seen))
        else:
            outcome["result"] = function(seen)
    except BaseException as error:
        outcome["error"] = described(error)
        traceback.print_exc()
    return outcome


def described(error: BaseException | None) -> dict[str, Any] | None:
    """Say what a user can tell of an exception: its type, words, status, and what caused it."""
    if error is None:
        return None
    kind = type(error)
    facts: dict[str, Any] = {"type": f"{kind.__module__}.{kind.__qualname__}", "text": str(error)}
    for name in ("status_code", "code", "errno"):
        value = getattr(error, name, None)
        if isinstance(value, int | str):
            facts[name] = value
    if isinstance(error, BaseExceptionGroup):
        facts["inside"] = [described(inner) for inner in error.exceptions]
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    facts["cause"] = described(cause)
    return facts


def weather(city: str) -> str:
    """Say how warm it is in a city."""
    return f"21 degrees in {city}"


def clock(city: str) -> str:
    """Say what time it is in a city."""
    return f"12:30 in {city}"


TOOLS: dict[str, Callable[[str], str]] = {"weather": weather, "clock": clock}
CITY: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
