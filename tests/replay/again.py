"""Record a program for real, with a provider that is gone afterwards, and replay it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import warm

from playhead.testing import ScriptedProvider, Text


@dataclass(frozen=True)
class Replay:
    """What a replay printed, and its report."""

    output: str
    errors: str
    report: dict[str, Any]
    exit_code: int

    @property
    def first(self) -> dict[str, Any]:
        """Return the first difference."""
        found: dict[str, Any] = self.report["fidelity"]["first"]
        return found


@dataclass(frozen=True)
class Recorded:
    """A recorded program: what it printed, and where."""

    folder: Path
    output: str
    run: str

    def replay(self, *options: str, program: Sequence[str] = ()) -> Replay:
        """Replay it, nothing live; the output is what passes through, the report what `--json` says."""
        after = ["--", *program] if program else []
        report = self.folder / ".playhead" / "report.json"
        report.unlink(missing_ok=True)
        plain = playhead(self.folder, "replay", self.run, "--mode", "exact", *options, *after, report=report)
        assert report.exists(), f"no report: {plain.stdout}{plain.stderr}"
        return Replay(plain.stdout, plain.stderr, json.loads(report.read_text()), plain.returncode)

    def report(self, *options: str, program: Sequence[str] = ()) -> dict[str, Any]:
        """Replay it and return the report alone."""
        after = ["--", *program] if program else []
        done = playhead(self.folder, "replay", self.run, "--mode", "exact", "--json", *options, *after)
        try:
            found: dict[str, Any] = json.loads(done.stdout)
        except ValueError:
            raise AssertionError(f"no report: {done.stdout}{done.stderr}") from None
        return found

    def faithful(self, *options: str) -> Replay:
        """Replay it, and expect everything to be the same."""
        found = self.replay(*options)
        assert found.report["fidelity"]["verdict"] == "faithful", (found.report["deviations"], found.errors)
        assert found.report["live_calls"] == 0
        assert found.output == self.output
        assert found.exit_code == 0
        return found


def playhead(
    folder: Path, *arguments: str, stdin: str = "", report: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Call the command line."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return warm.playhead(folder, *arguments, variables=clean, stdin=stdin, report=report)


def record(
    folder: Path, program: str, *arguments: str, answers: Sequence[Any] = (), stdin: str = "", succeeds: bool = True
) -> Recorded:
    """Record a program, with a provider whose address is its first argument where it has answers to give."""
    (folder / "program.py").write_text(textwrap.dedent(program))
    if not answers:
        return _record(folder, arguments, stdin, succeeds)
    with ScriptedProvider([Text(one) if isinstance(one, str) else one for one in answers]) as provider:
        return _record(folder, (provider.base_url, *arguments), stdin, succeeds)


def _record(folder: Path, arguments: Sequence[str], stdin: str, succeeds: bool) -> Recorded:
    command = [sys.executable, "program.py", *arguments]
    done = playhead(folder, "record", "--quiet", "--", *command, stdin=stdin)
    assert (done.returncode == 0) is succeeds, done.stderr
    listed = json.loads(playhead(folder, "ls", "--json").stdout)
    runs = [run["id"] for run in listed if not run["origin"]]
    return Recorded(folder, done.stdout, runs[0])


# Asks a model over plain httpx, which is loaded faster than any SDK.
ASKING = """
import sys, httpx
URL = sys.argv[1]
client = httpx.Client()
def body(text):
    return {"model": "gpt-5", "messages": [{"role": "user", "content": text}]}
def ask(text):
    answer = client.post(f"{URL}/chat/completions", json=body(text), timeout=30)
    return answer.json()["choices"][0]["message"]["content"]
"""
