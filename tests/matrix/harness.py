"""Run the programs of the matrix, bare and recorded, each against a fresh provider, and keep what both sides saw.

A program runs once for all of its scenarios that were chosen, because importing an SDK costs seconds. What it did is
kept in a folder that the workers of one test run share.
"""

from __future__ import annotations

import ast
import contextlib
import fcntl
import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.matrix.answers import Answers
from tests.matrix.environments import Environment, Unavailable, environment
from tests.replay.clients.replaying import replay

from playhead.testing import Exchange, ScriptedProvider, read_log

HERE = Path(__file__).parent
_PROGRAM_TIMEOUT_S = 240
_DECORATORS = {"scenario", "raising_scenario"}
# What differs between two bare runs, in what a program prints: addresses in memory, and how long litellm waited.
_VARYING = re.compile(r"\b0x[0-9a-f]{6,}|(?<=time taken=)[0-9.]+")


@dataclass(frozen=True)
class Entry:
    """One program in one environment."""

    program: str
    environment: str

    @property
    def path(self) -> Path:
        """Return the file of the program."""
        return HERE / "programs" / f"{self.program}.py"

    def scenarios(self) -> list[str]:
        """Read the names of the scenarios from the program, which cannot be imported here."""
        return [
            node.name
            for node in ast.parse(self.path.read_text("utf-8")).body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and any(isinstance(mark, ast.Name) and mark.id in _DECORATORS for mark in node.decorator_list)
        ]


@dataclass(frozen=True)
class Ran:
    """What came of one run of a program: what it printed, what the other side saw, and where the recording lies."""

    outcomes: dict[str, dict[str, Any]]
    exchanges: list[Exchange]  # of the scripted provider
    calls: list[list[Any]]  # of the MCP server: name, arguments, outcome
    store: Path


def made(name: str) -> Environment:
    """Return an environment that is ready; skip where its packages cannot be fetched, but in CI fail."""
    chosen = environment(name)
    try:
        chosen.make()
    except Unavailable as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(error))
    return chosen


def ran(entry: Entry, scenarios: Sequence[str], recorded: bool, folder: Path) -> Ran:
    """Run a program, or return what came of it when another test has run it."""
    place = folder / f"{entry.program}-{entry.environment}-{'recorded' if recorded else 'bare'}"
    place.mkdir(parents=True, exist_ok=True)
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "outcomes.json").exists():
            chosen = made(entry.environment)
            run = _run_with_server if entry.program == "mcp_client" else _run_with_provider
            run(entry, chosen, scenarios, recorded, place)
    calls = place / "calls.jsonl"
    return Ran(
        json.loads((place / "outcomes.json").read_text("utf-8")),
        read_log(place / "exchanges.jsonl") if (place / "exchanges.jsonl").exists() else [],
        [json.loads(line) for line in calls.read_text("utf-8").splitlines()] if calls.exists() else [],
        place / ".playhead",
    )


def _run_with_provider(
    entry: Entry, chosen: Environment, scenarios: Sequence[str], recorded: bool, place: Path
) -> None:
    with ScriptedProvider(Answers(), log=place / "exchanges.jsonl") as provider:
        printed = _printed(entry, chosen, provider.root_url, scenarios, recorded, place)
    (place / "outcomes.json").write_text(printed, "utf-8")


def _run_with_server(entry: Entry, chosen: Environment, scenarios: Sequence[str], recorded: bool, place: Path) -> None:
    with _mcp_server(chosen, place / "calls.jsonl") as root:
        printed = _printed(entry, chosen, root, scenarios, recorded, place)
    (place / "outcomes.json").write_text(printed, "utf-8")


def _printed(
    entry: Entry, chosen: Environment, root: str, scenarios: Sequence[str], recorded: bool, place: Path
) -> str:
    """Run a program to its end and return what it printed, without what differs between any two runs."""
    python = str(chosen.python)
    launcher = [python, "-m", "playhead", "record", "--name", "matrix", "--"] if recorded else []
    (place / "root").write_text(root)
    done = subprocess.run(
        [*launcher, python, str(entry.path), root, ",".join(scenarios)],
        cwd=place,
        env=_variables(chosen, place),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PROGRAM_TIMEOUT_S,
        check=False,
    )
    (place / "stderr").write_text(done.stderr, "utf-8")
    if done.returncode != 0:
        raise AssertionError(f"{entry.program} ended with {done.returncode}:\n{done.stderr[-4000:]}")
    return _constant(done.stdout, root)


def _variables(chosen: Environment, place: Path) -> dict[str, str]:
    return chosen.variables() | {"PLAYHEAD_DIR": str(place / ".playhead"), "MCP_LOG": str(place / "calls.jsonl")}


def _constant(printed: str, root: str) -> str:
    port = root.rpartition(":")[2]
    return re.sub(rf"\b{port}\b", "PORT", _VARYING.sub("…", printed))


@dataclass(frozen=True)
class Replayed:
    """What came of the replay of a program, with nobody there to answer it."""

    outcomes: dict[str, dict[str, Any]]
    report: dict[str, Any]


def replayed(entry: Entry, scenarios: Sequence[str], folder: Path) -> Replayed:
    """Replay what was recorded of a program, or return what came of it when another test has done so."""
    ran(entry, scenarios, True, folder)
    place = folder / f"{entry.program}-{entry.environment}-recorded"
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (place / "replayed.json").exists():
            chosen = made(entry.environment)
            found = replay(place, chosen.python, _variables(chosen, place))
            (place / "report.json").write_text(json.dumps(found.report), "utf-8")
            (place / "replayed.json").write_text(_constant(found.output, (place / "root").read_text()), "utf-8")
    return Replayed(
        json.loads((place / "replayed.json").read_text("utf-8")), json.loads((place / "report.json").read_text("utf-8"))
    )


@contextlib.contextmanager
def _mcp_server(chosen: Environment, log: Path) -> Iterator[str]:
    command = [str(chosen.python), str(HERE / "programs" / "mcp_server.py"), "http", str(log)]
    server = subprocess.Popen(command, env=chosen.variables(), stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        root = server.stdout.readline().strip()
        assert root, "the MCP server did not start"
        yield root
    finally:
        server.kill()
        server.communicate()
