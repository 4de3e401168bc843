"""Start a real server in a process of its own, and ask it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

SOURCE = Path(__file__).parents[2] / "src"


class Told(NamedTuple):
    """What was answered."""

    status: int
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the body as what its JSON says."""
        return json.loads(self.body)


class Server:
    """A server at work."""

    def __init__(self, address: str, store: Path) -> None:
        self.address = address
        self.store = store
        self.key: str | None = None  # with which it is asked

    def ask(self, path: str, body: bytes | None = None, *, method: str | None = None, **headers: str) -> Told:
        """Send one request; an underscore in the name of a header is a dash."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if self.key is not None:
            named.setdefault("authorization", f"Bearer {self.key}")
        request = urllib.request.Request(self.address + path, body, named, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return Told(answer.status, {k.lower(): v for k, v in answer.headers.items()}, answer.read())
        except urllib.error.HTTPError as refused:
            return Told(refused.code, {k.lower(): v for k, v in refused.headers.items()}, refused.read())

    def runs(self) -> list[dict[str, Any]]:
        """Return the list of runs."""
        found: list[dict[str, Any]] = self.ask("/api/runs").json()["runs"]
        return found

    def events(self, run: str) -> list[dict[str, Any]]:
        """Return every event of a run."""
        found: list[dict[str, Any]] = self.ask(f"/api/runs/{run}/events?limit=5000").json()["events"]
        return found

    def new_key(self, *options: str) -> str:
        """Make a key, as its owner would."""
        done = _playhead("keys", "create", "--store", str(self.store), *options)
        return done.stdout.strip()


def _playhead(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "playhead", *arguments],
        env=variables(), capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip


def variables(**more: str) -> dict[str, str]:
    """Return the environment of a program: no proxy between it and the server, nothing of OpenTelemetry but `more`."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OTEL_", "PLAYHEAD_")) and not name.lower().endswith("_proxy")
    }
    return {**kept, "PYTHONPATH": str(SOURCE), "PLAYHEAD_GIT": "0", **more}


@contextlib.contextmanager
def serving(store: Path, *options: str) -> Iterator[Server]:
    """Serve a store until the block ends."""
    told = store.with_suffix(".json")
    with told.open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "playhead", "serve", "--json", "--port", "0", "--store", str(store), *options],
            env=variables(), stdin=subprocess.DEVNULL, stdout=out,
        )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not told.read_text().rstrip().endswith("}"):
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.02)
        yield Server(json.loads(told.read_text())["address"], store)
    finally:
        process.terminate()
        process.wait(60)
