"""Write timelines by hand for the tests of the index, which does not verify the chain."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import orjson

from playhead._clock import utc_text
from playhead._ids import new_run_id
from playhead.store import layout
from playhead.store.index import Index

START_US = 1_700_000_000_000_000


class OneMoment:
    """A clock that stands still."""

    def __init__(self, number: int) -> None:
        self.number = number

    def wall_us(self) -> int:
        return START_US + self.number * 1_000_000

    def monotonic_us(self) -> int:
        return 0


def run_id(number: int) -> str:
    return new_run_id(OneMoment(number), lambda size: number.to_bytes(size, "big"))


def line(run: str, seq: int, kind: str, data: Any, /, **fields: Any) -> bytes:
    """Return one line with its newline; each event comes 1 ms after the one before."""
    event = {
        "v": 1, "run": run, "seq": seq, "time": utc_text(START_US + seq * 1000), "elapsed_us": seq * 1000, "kind": kind,
        "span": None, "parent": None, "lane": "0", "key": None, "data": data, "prev": "0" * 64, **fields,
    }  # fmt: skip
    body = orjson.dumps(event)
    return body[:-1] + b',"hash":"' + hashlib.sha256(body).hexdigest().encode() + b'"}\n'


class Timeline:
    """One run directory, written line by line as a writer would."""

    def __init__(self, root: Path, number: int, **started: Any) -> None:
        self.root = root
        self.id = run_id(number)
        self.directory = layout.run_dir(root, self.id)
        self.directory.mkdir(parents=True)
        self.path = layout.timeline(self.directory)
        self.path.touch()
        self.seq = 0
        self.note("open")
        self.add("run.started", {"name": "agent", **started}, span="root")

    def note(self, what: str) -> None:
        with open(layout.journal(self.root), "a") as file:
            file.write(f"{self.id} {what}\n")

    def append(self, data: bytes) -> None:
        with open(self.path, "ab") as file:
            file.write(data)

    def add(self, kind: str, data: Any = None, **fields: Any) -> Timeline:
        self.append(line(self.id, self.seq, kind, data or {}, **fields))
        self.seq += 1
        return self

    def call(self, opens: str, data: dict[str, Any], closes: str, answer: dict[str, Any], **fields: Any) -> Timeline:
        span = f"s{self.seq}"
        return self.add(opens, data, span=span, **fields).add(closes, answer, span=span)

    def finish(self, status: str = "ok", **data: Any) -> Timeline:
        self.add("run.finished", {"status": status, **data}, span="root")
        self.note("close")
        return self


def rich(root: Path, number: int = 1, **more: Any) -> Timeline:
    """Write a run that has a row in every table; `more` is what else `run.started` says."""
    run = Timeline(
        root, number, name="fix-login", envelope_hash="e" * 64, agent={"name": "fixer", "version": "2.0"},
        git={"commit": "c0ffee12", "branch": "main", "dirty": True}, ci={"provider": "github", "run_id": "77"},
        tags={"team": "red", "who": "ann"}, external_id="trace-9",
        received={"by": "otlp", "rule": "trace", "trace": "trace-9"}, **more,
    )  # fmt: skip
    run.add("step.started", {"name": "plan", "attempt": 2}, span="p", parent="root")
    run.call(
        "model.invoked", {"provider": "openai", "model": "gpt-5"},
        "model.responded", {"status": "ok", "usage": {"input": 100, "output": 7, "cached": 40, "reasoning": 3}},
        parent="p", key="k1:aa",
    )  # fmt: skip
    failed = {"status": "error", "error": {"type": "ValueError", "message": "no"}}
    run.call("tool.called", {"name": "search", "effects": ["read"]}, "tool.returned", failed, parent="p")
    run.add("step.finished", {"status": "ok"}, span="p")
    sent = {"method": "GET", "url": "https://x.test/a?b=1"}
    run.call("http.sent", sent, "http.received", {"outcome": "ok", "status": 404})
    run.call("process.started", {"argv": ["git", "status"]}, "process.exited", {"status": "ok", "exit_code": -9})
    run.add("policy.checked", {"capability": "repo.write", "resource": "src/", "decision": "deny", "rule": "r1"})
    run.add("artifact.created", {"name": "patch.diff", "digest": "d" * 64, "size": 12, "role": "patch"})
    run.add("effect.observed", {"what": "file.written", "target": "/repo/src/login.py", "detail": {"bytes": 5}})
    run.add("git.committed", {"commit": "abc", "files": ["src/login.py", "README.md"]})
    run.add("ci.reported", {"job": "test", "result": "failure", "counts": {"failed": 1}, "ci": {"run_id": "77"}})
    run.add("ambient.read", {
        "packed": [{"of": "time.time", "by": "agent", "at": [1, 2], "ns": [3, 4]}], "order": "a2ba",
        "reads": [{"of": "open", "by": "agent", "values": [{"path": "/repo/in.txt", "size": 2, "digest": "d" * 64}]}],
    })  # fmt: skip
    return run.finish(output="x")


ALL_TABLES = ("runs", "events", "calls", "steps", "policy_checks", "artifacts", "effects", "reads", "commits", "ci_results",
              "progress")  # fmt: skip


def every_row(index: Index) -> dict[str, list[tuple[Any, ...]]]:
    return {table: sorted(index.query(f"SELECT * FROM {table}")[1], key=repr) for table in ALL_TABLES}
