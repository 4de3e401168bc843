"""Replay through a real HTTP client, side by side with the client's own mock, and with vcrpy on the same calls."""

from __future__ import annotations

import functools
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import orjson

import playhead
import samples
from playhead.event.envelope import parse
from playhead.replay.session import Session
from playhead.replay.tape import Tape
from playhead.store.memory import MemoryStore
from playhead.store.reader import RunReader
from table import Row

URL = "https://provider.test/v1/chat/completions"
ROUNDS, TURNS = 5, 20
SMALL, LARGE, HUGE = 10, 1000, 100_000


def run() -> list[Row]:
    os.environ["PLAYHEAD_GIT"] = "0"
    return [*_calls(), *_look_up(), *_building()]


@functools.cache
def question(number: int) -> dict[str, Any]:
    return {"model": "gpt-5", "messages": [{"role": "user", "content": f"{number}: {samples.text(2000)}"}]}


@functools.cache
def answer(number: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": samples.text(1200)}
    return {
        "id": f"chatcmpl-{number}",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "gpt-5",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 500, "completion_tokens": 300, "total_tokens": 800},
    }


def recorded(count: int) -> RunReader:
    """Record calls of a client whose provider is a mock below the part that is recorded."""
    store = MemoryStore()

    def handle(self: Any, request: httpx.Request) -> httpx.Response:
        number = int(json.loads(request.content)["messages"][0]["content"].partition(":")[0])
        body = orjson.dumps(answer(number))
        headers = {"content-type": "application/json", "content-length": str(len(body))}
        return httpx.Response(200, headers=headers, stream=httpx.ByteStream(body))

    original, httpx.HTTPTransport.handle_request = httpx.HTTPTransport.handle_request, handle  # type: ignore[method-assign]
    try:
        with playhead.record("bench", store=store), httpx.Client() as client:
            for number in range(count):
                client.post(URL, json=question(number))
    finally:
        httpx.HTTPTransport.handle_request = original  # type: ignore[method-assign]
    (run_id,) = store.runs()
    return RunReader(store, run_id)


def _timed(call: Callable[[int], object], numbers: range) -> float:
    times = []
    for number in numbers:
        before = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - before)
    return statistics.median(times)


def _calls() -> list[Row]:
    questions = {number: question(number) for number in range(LARGE)}
    tapes = {count: recorded(count) for count in (SMALL, LARGE)}
    mock, replayed, few, whole = [], [], [], []
    # In turns, and short ones: a machine may be busy for a second.
    for _ in range(TURNS):
        mock.append(_mocked(questions, range(100)))
        replayed.append(_replayed(tapes[LARGE], questions, range(100)))
        few.append(statistics.median(_replayed(tapes[SMALL], questions, range(SMALL)) for _ in range(10)))
        whole.append(_recorded_too(tapes[LARGE], questions, range(100)))
    with tempfile.TemporaryDirectory() as folder:
        cassette = _vcr_cassette(Path(folder))
        theirs = _vcr(cassette, questions, range(20))
        opening = _opening(cassette)
    base, ours, ours_few = (min(found) for found in (mock, replayed, few))
    told = f"{ours / base:.2f} of a mock transport ({base * 1e6:.0f} µs), limit 1.5"
    slower = f"{theirs * 1e3:.0f} ms; at least 100 times faster"
    return [
        Row("a replayed call, 1,000 on the tape", f"{ours * 1e6:.0f} µs", told, ours <= 1.5 * base),
        Row(
            "  and its recording, written later",
            f"{min(whole) * 1e6:.0f} µs",
            "on average, with its end; no limit",
            True,
        ),
        Row("  against 10 on the tape", f"{ours / ours_few:.2f}", "limit 1.2", ours <= 1.2 * ours_few),
        Row("  against vcrpy, matched by body", f"{theirs / ours:.0f} times", slower, theirs >= 100 * ours),
        opening,
    ]


def _mocked(questions: dict[int, Any], numbers: range) -> float:
    constant = orjson.dumps(answer(0))
    with httpx.Client(transport=httpx.MockTransport(lambda _: httpx.Response(200, content=constant))) as client:
        return _timed(lambda n: client.post(URL, json=questions[n]).json(), numbers)


def _replayed(reader: RunReader, questions: dict[int, Any], numbers: range) -> float:
    with Session(reader, store=MemoryStore(), waive=["not_captured"]), httpx.Client() as client:
        return _timed(lambda n: client.post(URL, json=questions[n]).json(), numbers)


def _recorded_too(reader: RunReader, questions: dict[int, Any], numbers: range) -> float:
    """Return the mean time of a call, with everything that is written of it while the replay goes on and at its end."""
    with Session(reader, store=MemoryStore(), waive=["not_captured"]) as session, httpx.Client() as client:
        before = time.perf_counter()
        for number in numbers:
            client.post(URL, json=questions[number]).json()
        assert session.record is not None
        session.record.recording.later.settle()
        return (time.perf_counter() - before) / len(numbers)


def _vcr_cassette(folder: Path) -> Path:
    import yaml

    path = folder / "calls.yaml"
    interactions = [
        {
            "request": {"method": "POST", "uri": URL, "body": json.dumps(question(n), separators=(",", ":")),
                        "headers": {"content-type": ["application/json"]}},
            "response": {"status": {"code": 200, "message": "OK"}, "headers": {"content-type": ["application/json"]},
                         "body": {"string": json.dumps(answer(n))}},
        }
        for n in range(LARGE)
    ]  # fmt: skip
    path.write_text(
        yaml.dump({"version": 1, "interactions": interactions}, Dumper=getattr(yaml, "CDumper", yaml.Dumper))
    )
    return path


def _vcr(cassette: Path, questions: dict[int, Any], numbers: range) -> float:
    import vcr

    recorder = vcr.VCR(record_mode="none", match_on=["method", "uri", "body"])
    with recorder.use_cassette(str(cassette), allow_playback_repeats=True), httpx.Client() as client:
        client.post(URL, json=questions[0])
        # From the middle on: a scan goes half of the way on average.
        return _timed(lambda n: client.post(URL, json=questions[LARGE // 2 + n]).json(), numbers)


def _opening(cassette: Path) -> Row:
    import vcr.cassette

    reader = recorded(LARGE)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        for _ in range(5):
            before = time.perf_counter()
            Tape(RunReader(reader.store, reader.id))
            ours.append(time.perf_counter() - before)
        before = time.perf_counter()
        vcr.cassette.Cassette.load(path=str(cassette))
        theirs.append(time.perf_counter() - before)
    ratio = min(theirs) / min(ours)
    told = f"{ratio:.0f} times faster than vcrpy's YAML, at least 20"
    return Row("opening a tape of 1,000 calls", f"{min(ours) * 1e3:.1f} ms", told, ratio >= 20)


def _look_up() -> list[Row]:
    times = {}
    for count in (SMALL, HUGE):
        tape = Tape(_tools(count))
        calls = tape.calls[:: max(1, count // 1000)][:1000]
        before = time.perf_counter()
        for call in calls:
            tape.take(call.lane, call.key)
        times[count] = (time.perf_counter() - before) / len(calls)
    ratio = times[HUGE] / times[SMALL]
    return [
        Row(
            "look-up, 100,000 calls against 10",
            f"{ratio:.2f}",
            f"{times[HUGE] * 1e6:.2f} µs, flat: limit 3",
            ratio <= 3,
        )
    ]


_tapes: dict[int, RunReader] = {}


def _tools(count: int) -> RunReader:
    """Record calls of a tool, none like another."""
    if count not in _tapes:

        @playhead.tool
        def double(number: int) -> int:
            return number * 2

        store = MemoryStore()
        with playhead.record("bench", store=store):
            for number in range(count):
                double(number)
        (run_id,) = store.runs()
        _tapes[count] = RunReader(store, run_id)
    return _tapes[count]


def _building() -> list[Row]:
    reader = _tools(HUGE // 2)  # two events for each call
    lines = list(reader.lines())
    built, parsed = [], []
    for _ in range(3):
        before = time.perf_counter()
        for line in lines:
            parse(line)
        parsed.append(time.perf_counter() - before)
        before = time.perf_counter()
        Tape(RunReader(reader.store, reader.id))
        built.append(time.perf_counter() - before)
    ratio = min(built) / min(parsed)
    told = f"of parsing its lines ({min(parsed) * 1e3:.0f} ms), limit 3"
    return [Row(f"building a tape of {len(lines):,} events", f"{ratio:.2f}", told, ratio <= 3)]


if __name__ == "__main__":
    for row in run():
        print(row)
    sys.exit(0)
