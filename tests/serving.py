"""Start real servers on stores with runs of every kind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import playhead
from playhead.store.files import FileStore

TRACE = "5b8efff798038103d269b633813fc60c"
_AGENT = """
import pathlib, subprocess, sys, time
import playhead

@playhead.tool(effects=["read"])
def look(path):
    return pathlib.Path(path).read_text()

@playhead.agent("whole-program")
def agent(issue):
    with playhead.step("plan"):
        seen = look("notes.txt")
        pathlib.Path("out.txt").write_text(seen.upper())
    print("done with", issue)
    subprocess.run([sys.executable, "-c", "print('a child')"], check=True)
    return {"issue": issue, "seen": seen}

agent(7)
"""
_CRASHING = """
import os, sys
import playhead
with playhead.record("crashing", store=sys.argv[1]) as run:
    with playhead.step("half"):
        playhead.note("so far")
        os._exit(9)
"""


@dataclass
class Served:
    """A server, and the store that it serves."""

    address: str
    root: Path
    process: subprocess.Popen[bytes]
    runs: dict[str, str] = field(default_factory=dict)  # ids by what is particular to them

    def asked(self, path: str, document: Any = None, media: str = "application/json") -> Any:
        """Ask it something, without any part of Playhead."""
        body = document if isinstance(document, bytes) else None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self.address + path, data=body, headers={"content-type": media})
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")


@contextlib.contextmanager
def serving(root: Path, *options: str) -> Iterator[Served]:
    """Serve a store until the end of the block."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PLAYHEAD_")}
    command = [sys.executable, "-m", "playhead", "serve", "--port", "0", "--json", "--store", str(root), *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=root.parent) as process:
        assert process.stdout is not None
        try:
            told = b""
            for line in process.stdout:
                told += line
                if line.startswith(b"}"):
                    break
            yield Served(json.loads(told)["address"], root, process)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(30)
            finally:
                process.kill()


def key_of(root: Path, *options: str) -> str:
    """Make an API key."""
    command = [sys.executable, "-m", "playhead", "keys", "create", "--json", "--store", str(root), *options]
    told = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return str(told["token"])


def fill(root: Path) -> dict[str, str]:
    """Record runs of many kinds into a store."""
    FileStore(root).make_root()
    runs = {"good": _talk(root, "fix-login", "ok"), "bad": _talk(root, "fix-login", "failed")}
    folder = root.parent / "work"
    folder.mkdir(exist_ok=True)
    (folder / "agent.py").write_text(_AGENT)
    (folder / "notes.txt").write_text("remember the milk\n")
    environment = {**os.environ, "PLAYHEAD_GIT": "0"}
    command = [sys.executable, "-m", "playhead", "record", "--store", str(root), "--", sys.executable, "agent.py"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    subprocess.run([sys.executable, "-c", _CRASHING, str(root)], env=environment, check=False, capture_output=True)
    runs["flipped"], runs["cut"], runs["removed"] = (_short(root, name) for name in ("flipped", "cut", "removed"))
    runs["blob"] = _short(root, "blob", note="a large text " * 10_000)
    playhead.load(_short(root, "withdrawn"), root).invalidate("it was stale", "somebody")
    for run in playhead.runs(store=root):  # so that the index has seen them
        runs.setdefault(run.name, run.id)
    return runs


def damage(root: Path, runs: dict[str, str]) -> None:
    """Alter what was recorded, each run in its own way."""
    flipped = root / "runs" / runs["flipped"] / "timeline.jsonl"
    flipped.write_bytes(flipped.read_bytes().replace(b"the words", b"the w0rds"))
    cut = root / "runs" / runs["cut"] / "timeline.jsonl"
    cut.write_bytes(b"".join(cut.read_bytes().splitlines(keepends=True)[:-1]))
    gone = root / "runs" / runs["removed"]
    (gone / "timeline.jsonl").unlink()


def send_spans(served: Served) -> str:
    """Send a trace to a server, end its run, and return its id."""
    span = {
        "traceId": TRACE, "spanId": "eee19b7ec3c1b174", "name": "chat gpt-5", "kind": 3,
        "startTimeUnixNano": "1760000000000000000", "endTimeUnixNano": "1760000001000000000",
        "attributes": [
            {"key": name, "value": {"stringValue": value}}
            for name, value in (("gen_ai.operation.name", "chat"), ("gen_ai.request.model", "gpt-5"),
                                ("gen_ai.system", "openai"), ("gen_ai.prompt", "where is my refund"))
        ],
    }  # fmt: skip
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]}
    served.asked("/v1/traces", {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]})
    run = str(served.asked("/api/runs?limit=1")["runs"][0]["id"])
    served.asked(f"/api/runs/{run}/finish", {"status": "ok"})
    return run


def _talk(root: Path, name: str, outcome: str) -> str:
    with playhead.record(name, input={"issue": 1842}, store=root, tags={"team": "search"}) as run:
        messages = [{"role": "user", "content": "Please fix the login. " * 30}]
        with playhead.step("plan"):
            with playhead.model_call(provider="openai", model="gpt-5", request={"messages": messages}) as call:
                call.respond({"text": outcome}, usage={"input": 312, "output": 45}, finish="stop")
            playhead.context_pack({"files": ["src/login.py"]})
        playhead.check("repo.write", resource="src/")
        playhead.artifact("logs/patch.diff", f"--- a\n+++ b\n{outcome}\n", role="patch")
        run.output = {"outcome": outcome}
        return run.id


def _short(root: Path, name: str, note: str = "the words") -> str:
    with playhead.record(name, store=root) as run:
        playhead.note(note)
        playhead.note("and more")
        return run.id
