"""What was acknowledged is there, once, whatever becomes of the server."""

from __future__ import annotations

import http.client
import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.otlp import JSON, PROTOBUF, as_protobuf, export, exported, model_span, span, span_id, trace_id
from tests.server.serving import Client, Server, until, verified

_TRACES = 20
_BATCH = 50
_CALLS_OF = 4  # every fourth span asks a model


def _requests(spans: int, seed: int) -> list[tuple[bytes, dict[str, str]]]:
    """Return requests whose spans are of many traces each, children before their parents."""
    chance = random.Random(seed)
    each = spans // _TRACES
    found: list[list[tuple[float, dict[str, Any]]]] = []
    for number in range(_TRACES):
        trace, root = trace_id(f"{seed}-{number}"), span_id(f"{seed}-{number}-0")
        rows = []
        for place in range(each - 1, 0, -1):
            id, parent = span_id(f"{seed}-{number}-{place}"), span_id(f"{seed}-{number}-{place // 3}")
            made = model_span(trace, id, parent, place) if place % _CALLS_OF == 0 else span(trace, id, parent, at=place)
            rows.append((each - place + chance.random() * 20, made))
        rows.append((each + 30.0, span(trace, root, None, f"agent {number}")))
        found.append(rows)
    every = [one for _, one in sorted((row for rows in found for row in rows), key=lambda row: row[0])]
    batches = [every[at : at + _BATCH] for at in range(0, len(every), _BATCH)]
    return [
        (exported(batch), JSON) if number % 2 else (as_protobuf(export(batch)), PROTOBUF)
        for number, batch in enumerate(batches)
    ]


class _Sending:
    """Several threads, each of which sends a request again until it is acknowledged."""

    def __init__(self, server: Server, requests: list[tuple[bytes, dict[str, str]]], threads: int = 4) -> None:
        self._server = server
        self._left = list(enumerate(requests))
        self._lock = threading.Lock()
        self.acknowledged = 0
        self.sent = Counter[int]()
        self.problems: list[str] = []
        self._threads = [threading.Thread(target=self._send, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        client: Client | None = None
        address = ""
        while True:
            with self._lock:
                if not self._left:
                    return
                number, (body, headers) = self._left.pop(0)
            while True:
                if client is None or address != self._server.address:
                    address = self._server.address
                    client = self._server.client(timeout_s=20)
                self.sent[number] += 1
                try:
                    told = client.ask("POST", "/v1/traces", body, headers)
                except (OSError, http.client.HTTPException):
                    client.close()
                    client = None
                    time.sleep(0.02)
                    continue
                if told.status == 200:
                    break
                if told.status not in (503, 429):
                    self.problems.append(f"{told.status} {told.body[:300]!r}")
                    return
                time.sleep(0.05)
            with self._lock:
                self.acknowledged += 1

    @property
    def alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def wait(self) -> None:
        for thread in self._threads:
            thread.join(300)
        assert not self.alive
        assert self.problems == []


def _ended(client: Client, count: int) -> list[dict[str, Any]]:
    def all_over() -> list[dict[str, Any]]:
        runs: list[dict[str, Any]] = client.found("/api/runs", limit=1000)["runs"]
        return runs if len(runs) >= count and all(run["status"] == "ok" for run in runs) else []

    return until(all_over, wait_s=60)


def _check_whole(client: Client, spans: int) -> None:
    """Make sure that every span is there once, that all runs verify, and that what was asked is counted right."""
    runs = _ended(client, _TRACES)
    assert len(runs) == _TRACES, [run["external_id"] for run in runs]
    each = spans // _TRACES
    verified(client, [run["id"] for run in runs], torn=True)
    calls = len([place for place in range(1, each) if place % _CALLS_OF == 0])
    assert {run["model_calls"] for run in runs} == {calls}
    assert {(run["tokens_in"], run["tokens_out"]) for run in runs} == {(11 * calls, 7 * calls)}
    for run in runs:
        lines = client.get(f"/api/runs/{run['id']}/lines").body.splitlines()
        events = [json.loads(line) for line in lines]
        closed = Counter(event["span"] for event in events if "otlp" in event["data"])
        opened = Counter(event["span"] for event in events if event["kind"] in ("step.started", "model.invoked"))
        assert len(closed) == each
        assert set(closed.values()) == {1}, closed.most_common(3)
        assert set(opened.values()) == {1}, opened.most_common(3)


def _disturbed(
    store: Path, spans: int, times: int, disturb: Callable[[Server, random.Random], None], seed: int
) -> None:
    chance = random.Random(seed)
    with Server(store, "--quiet", "0.3") as server:
        requests = _requests(spans, seed)
        sending = _Sending(server, requests)
        for number in range(times):
            wanted = len(requests) * (number + 1) // (times + 2)
            until(lambda wanted=wanted: sending.acknowledged >= wanted, wait_s=120, every_s=0.002)
            time.sleep(chance.random() * 0.03)
            disturb(server, chance)
            server.start()
        sending.wait()
        assert sending.acknowledged == len(requests)
        if disturb is not _stop:  # who is told to stop finishes what is under way, and may be in nobody's way
            assert sum(sending.sent.values()) > len(requests), "nothing was in the way"
        client = server.client()
        _check_whole(client, spans)
        assert "Traceback" not in server.log(), server.log()


def _stop(server: Server, chance: random.Random) -> None:
    began = time.monotonic()
    assert server.stop(signal.SIGTERM) == 0
    assert time.monotonic() - began < 15


def _kill(server: Server, chance: random.Random) -> None:
    server.kill()


def _kill_and_tear(server: Server, chance: random.Random) -> None:
    """Leave half a line behind, as a write that the power cut."""
    server.kill()
    timelines = sorted((server.store / "runs").glob("*/timeline.jsonl"))
    for timeline in chance.sample(timelines, min(3, len(timelines))):
        with timeline.open("ab") as file:
            file.write(b'{"v":1,"run":"' + timeline.parent.name.encode() + b'","seq":9')


def test_what_was_acknowledged_is_there_once_after_kills(store: Path) -> None:
    _disturbed(store, 2000, 4, _kill, seed=1)


@pytest.mark.hard
@pytest.mark.timeout(1800)
def test_ten_thousand_spans_survive_twenty_kills(store: Path) -> None:
    _disturbed(store, 10_000, 20, _kill, seed=2)


def test_a_torn_last_line_is_set_aside_and_nothing_else_is_lost(store: Path) -> None:
    _disturbed(store, 400, 2, _kill_and_tear, seed=3)


def test_a_server_that_is_told_to_stop_finishes_what_it_accepted(store: Path) -> None:
    _disturbed(store, 1000, 2, _stop, seed=4)


def test_a_span_of_which_only_the_beginning_was_written_is_completed_and_not_written_twice(store: Path) -> None:
    trace = trace_id("half")
    model = model_span(trace, span_id("half model"), span_id("half"), 1)
    body, rest = exported([model]), exported([span(trace, span_id("half"))])
    with Server(store, "--quiet", "0.3") as server:
        assert server.client().ask("POST", "/v1/traces", body, JSON).status == 200
        server.kill()
        (timeline,) = (store / "runs").glob("*/timeline.jsonl")
        lines = timeline.read_bytes().splitlines(keepends=True)
        assert b'"kind":"model.responded"' in lines[-1]
        kinds = [json.loads(line)["kind"] for line in lines]
        timeline.write_bytes(b"".join(lines[: kinds.index("model.invoked") + 1]))
        server.start()
        client = server.client()
        assert client.ask("POST", "/v1/traces", body, JSON).status == 200
        assert client.ask("POST", "/v1/traces", rest, JSON).status == 200
        (run,) = _ended(client, 1)
        assert run["model_calls"] == 1
        assert (run["tokens_in"], run["tokens_out"]) == (11, 7)
        verified(client, [run["id"]])
        found = [json.loads(line)["kind"] for line in client.get(f"/api/runs/{run['id']}/lines").body.splitlines()]
        assert found.count("model.invoked") == found.count("model.responded") == 1


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_a_run_of_which_only_the_beginning_was_written_is_one_run(store: Path, kept: int) -> None:
    trace = trace_id("begun")
    body = exported([span(trace, span_id("begun"))], **{"session.id": "s-1"})
    with Server(store, "--quiet", "0.3") as server:
        assert server.client().ask("POST", "/v1/traces", body, JSON).status == 200
        server.kill()
        (timeline,) = (store / "runs").glob("*/timeline.jsonl")
        timeline.write_bytes(b"".join(timeline.read_bytes().splitlines(keepends=True)[:kept]))
        server.start()
        client = server.client()
        assert client.ask("POST", "/v1/traces", body, JSON).status == 200
        runs = until(lambda: [run for run in client.found("/api/runs")["runs"] if run["status"] == "ok"])
        assert len(runs) == 1
        assert len(client.found("/api/runs")["runs"]) == 1
        verified(client, [runs[0]["id"]])


def test_a_run_is_ended_by_the_server_that_comes_after_the_one_that_was_killed(store: Path) -> None:
    with Server(store, "--quiet", "1") as server:
        body = exported([span(trace_id("later"), span_id("later"))])
        assert server.client().ask("POST", "/v1/traces", body, JSON).status == 200
        server.kill()
        server.start()
        verified(server.client(), [_ended(server.client(), 1)[0]["id"]])
