"""Whatever an attribute holds comes back as it was sent, and its record verifies: no byte is lost, and no alarm is false."""

from __future__ import annotations

import json
import math
import random
import re
import struct
from pathlib import Path
from typing import Any

import pytest
from tests.server.otlp import JSON, PROTOBUF, as_protobuf, export, pairs, span, span_id, trace_id
from tests.server.serving import Client, Server, playhead, until

from playhead._api.receiving.reading_back import ReadingBack
from playhead._api.receiving.standing import Standing
from playhead._clock import parse_utc
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

_PLANES = ((0x20, 0x7E), (0, 0x1F), (0x7F, 0x9F), (0xA0, 0x2FF), (0x600, 0x6FF), (0x2000, 0x206F), (0x4E00, 0x9FFF),
           (0xE000, 0xFFFF), (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF), (0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))  # fmt: skip
_TEXTS = ("", " ", "\0", "null", "NaN", "-Infinity", "{}", "[]", '{"a": 1}', '{"a":1,"a":2}', "[1, 2.0, 1e2, -0.0]", '["\\ud800"]',
          "[" * 200 + "]" * 200, '{"$same":"0#/name"}', "$bytes", "\r\n", "\u2028\u2029", "\ufeff", "\x1b[31m", "0" * 300,
          "=1+1", "</script>", "12345678901234567890", "1e400", "[NaN]", '{"b":[{"c":null}]} ', "x" * 40_000, "é" * 300)  # fmt: skip
_FLOATS = (
    0.0,
    -0.0,
    1.0,
    1e22,
    1e-7,
    5e-324,
    1.7976931348623157e308,
    math.nan,
    math.inf,
    -math.inf,
    0.1,
    2.0**53,
    1e16,
)
_INTEGERS = (0, 1, -1, 2**31, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63))
_NAMES = (
    "a",
    "note",
    "",
    "$same",
    "$blob",
    "$bytes",
    "$int",
    "x.y",
    "x/y",
    "x~1",
    "0",
    "\0",
    "été",
    "😀",
    "gen_ai.note",
    "json",
)


class _Made:
    """Make up spans, the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def text(self) -> str:
        chance = self._chance
        if chance.random() < 0.3:
            return chance.choice(_TEXTS)
        low, high = chance.choice(_PLANES)
        made = "".join(chr(chance.randint(low, high)) for _ in range(chance.choice((1, 3, 12, 60, 300))))
        return re.sub(r"[A-Za-z0-9+/=_-]{12,}", "word", made)  # what could be taken for a secret is redacted: not here

    def value(self, depth: int = 0) -> Any:
        chance = self._chance
        match chance.randint(0, 9 if depth < 5 else 6):
            case 0:
                return None if depth else ""
            case 1:
                return chance.random() < 0.5
            case 2 | 3:
                return self.text()
            case 4:
                return chance.choice(_INTEGERS) if chance.random() < 0.6 else chance.randint(-(2**63), 2**63 - 1)
            case 5:
                odd = chance.choice(_FLOATS)
                any_ = struct.unpack("<d", chance.randbytes(8))[0]
                return odd if chance.random() < 0.5 or math.isnan(any_) else any_
            case 6:
                return chance.randbytes(chance.choice((0, 1, 16, 400)))
            case 7 | 8:
                return [self.value(depth + 1) for _ in range(chance.choice((0, 1, 2, 5)))]
        return self.attributes(chance.choice((0, 1, 3)), depth + 1)

    def attributes(self, count: int, depth: int = 0) -> dict[str, Any]:
        chance = self._chance
        return {
            chance.choice(_NAMES) if chance.random() < 0.5 else f"k{chance.randint(0, 99)}": self.value(depth)
            for _ in range(count)
        }

    def span(self, trace: str, id: str, parent: str | None, at: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return a span, and its attributes as they are in Python."""
        chance = self._chance
        attributes = self.attributes(chance.choice((0, 1, 2, 5)))
        made = span(trace, id, parent, self.text()[:200], at)
        made["attributes"] = pairs(attributes)
        made["kind"] = chance.randint(0, 5)
        made["endTimeUnixNano"] = str(int(made["startTimeUnixNano"]) + chance.randint(0, 10**9))
        if chance.random() < 0.2:
            made["status"] = {"code": chance.randint(0, 2), "message": self.text()}
            made["traceState"], made["flags"] = "a=b", 1
        if chance.random() < 0.2:
            made["events"] = [{"name": self.text(), "timeUnixNano": made["startTimeUnixNano"], "attributes": pairs(self.attributes(2))}]  # fmt: skip
        if chance.random() < 0.1:
            made["links"] = [{"traceId": trace, "spanId": span_id("link"), "attributes": pairs(self.attributes(1))}]
        return made, attributes


def _same(left: Any, right: Any) -> bool:
    """Say whether two values are one to the last bit."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float):
        return (math.isnan(left) and math.isnan(right)) or struct.pack("<d", left) == struct.pack("<d", right)
    if isinstance(left, dict):
        return list(left) == list(right) and all(_same(left[name], right[name]) for name in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    return bool(left == right)


_BATCH = 100


def _send(
    client: Client, count: int, seed: int, each: int
) -> dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]]:
    """Send spans of traces with `each` of them, and return them by trace and id."""
    made = _Made(seed)
    sent: dict[str, dict[str, tuple[dict[str, Any], dict[str, Any]]]] = {}
    for number in range(count // each):
        trace = trace_id(f"payload {seed} {number}")
        spans = {}
        for place in range(each):
            id, parent = span_id(f"{seed} {number} {place}"), span_id(f"{seed} {number} 0") if place else None
            spans[id] = made.span(trace, id, parent, place)
        sent[trace] = spans
        every = [one for one, _ in spans.values()]
        for at in range(0, len(every), _BATCH):
            document = export(every[at : at + _BATCH])
            as_json = (at // _BATCH + number) % 2
            body = json.dumps(document).encode() if as_json else as_protobuf(document)
            told = client.ask("POST", "/v1/traces", body, JSON if as_json else PROTOBUF)
            assert (told.status, told.body) in ((200, b"{}"), (200, b"")), told
    return sent


def _rebuilt(store: Path, run: str) -> ReadingBack:
    files, standing = FileStore(store), Standing()
    reader = RunReader(files, run)
    standing.take_all(reader.lines())
    first = reader.first()
    return ReadingBack(files, run, standing, parse_utc(first.time) - first.elapsed_us)


def _check(server: Server, client: Client, trace: str, spans: dict[str, tuple[dict[str, Any], dict[str, Any]]]) -> None:
    run = client.found(f"/api/runs/{trace}")["run"]["id"]
    until(lambda: client.found(f"/api/runs/{run}")["run"]["status"] in ("ok", "error"))
    exported = client.get(f"/api/runs/{run}/events", {"Accept": "application/x-ndjson"}).body
    timeline = server.store / "runs" / run / "timeline.jsonl"
    assert exported == timeline.read_bytes() == client.get(f"/api/runs/{run}/lines").body
    found = client.found(f"/api/runs/{run}/verify", deep="true")
    assert (found["integrity"]["verdict"], found["completeness"]["verdict"]) == ("intact", "complete"), found
    back = _rebuilt(server.store, run)
    for id, (sent, attributes) in spans.items():
        got = back.span(id)
        kept = {name: got.attributes[name] for name in attributes if name in got.attributes}
        assert _same(kept, attributes), (sent, got.attributes)  # the attributes of a span have no order
        assert len(got.attributes) == len(attributes)
        assert (got.name, got.kind, got.parent) == (sent["name"], sent["kind"], sent.get("parentSpanId"))
        assert (str(got.start_ns), str(got.end_ns)) == (sent["startTimeUnixNano"], sent["endTimeUnixNano"])
        status = sent.get("status", {"code": 0, "message": ""})
        assert (got.status_code, got.status_message) == (status["code"], status["message"])
        assert [one["name"] for one in got.events] == [one["name"] for one in sent.get("events", [])]
        for rows, one in ((got.events, sent.get("events", [])), (got.links, sent.get("links", []))):
            assert [pairs(row.get("attributes", {})) for row in rows] == [row["attributes"] for row in one]
    for path in ("events?limit=5000", "state", "stats", "audit"):
        client.get(f"/api/runs/{run}/{path}").json()


def _round_trip(store: Path, count: int, seed: int, each: int) -> None:
    with Server(store, "--quiet", "0.3") as server:
        client = server.client()
        for trace, spans in _send(client, count, seed, each).items():
            _check(server, client, trace, spans)
        assert "Traceback" not in server.log(), server.log()
    code, document = playhead("verify", "--all", "--store", str(store))
    assert code == 0, document


def test_payloads_come_back_as_they_were_sent_and_verify(store: Path) -> None:
    _round_trip(store, 3000, 1, 300)


@pytest.mark.hard
@pytest.mark.timeout(3600)
def test_a_hundred_thousand_payloads_come_back_as_they_were_sent_and_verify(store: Path) -> None:
    _round_trip(store, 100_000, 2, 2000)
