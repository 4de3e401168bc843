"""Timelines of this format are written the same and read the same, in every release."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest
from tests.vectors import make

from playhead.event import kinds
from playhead.event.envelope import genesis, parse
from playhead.event.keys import call_key
from playhead.event.resolve import Resolver
from playhead.ledger.merkle import Tree
from playhead.ledger.verify import verify

V1 = Path(__file__).resolve().parents[1] / "vectors" / "v1"
RECEIVED = V1.parent / "v1-received"


@pytest.fixture
def expected() -> dict[str, Any]:
    return orjson.loads((V1 / "expected.json").read_bytes())


def lines() -> Iterator[bytes]:
    return iter((V1 / "timeline.jsonl").read_bytes().splitlines(keepends=True))


def test_this_release_writes_the_same_bytes(tmp_path: Path) -> None:
    make.save(tmp_path)
    for path in sorted(V1.rglob("*")):
        if path.is_file() and path.suffix != ".md":
            assert (tmp_path / path.relative_to(V1)).read_bytes() == path.read_bytes(), path.name
    assert len(list(tmp_path.rglob("*"))) == len(list(V1.rglob("*"))) - 1


def test_the_golden_timeline_verifies(expected: dict[str, Any]) -> None:
    found = verify(lines(), expected["run"], deep=True)
    assert found.integrity.verdict == "intact"
    assert found.root_checked
    assert (found.events, found.head) == (expected["events"], expected["head"])
    assert found.gaps == {"write_failed": 2}
    assert found.erased == 1


def test_the_golden_hashes_follow_from_the_bytes_alone(expected: dict[str, Any]) -> None:
    """Check the format with nothing of Playhead: what DESIGN says, in ten lines."""
    prev = hashlib.sha256(b"playhead/run/v1\0" + expected["run"].encode()).hexdigest()
    assert prev == expected["genesis"] == genesis(expected["run"])
    for seq, line in enumerate(lines()):
        body, end = line[:-76], line[-76:]
        digest = hashlib.sha256(body).hexdigest()
        assert end == b',"hash":"' + digest.encode() + b'"}\n'
        fields = orjson.loads(line)
        assert list(fields) == [
            "v",
            "run",
            "seq",
            "time",
            "elapsed_us",
            "kind",
            "span",
            "parent",
            "lane",
            "key",
            "data",
            "prev",
            "hash",
        ]
        assert (fields["v"], fields["run"], fields["seq"], fields["prev"]) == (1, expected["run"], seq, prev)
        assert digest == expected["hashes"][seq]
        prev = digest


def test_the_golden_roots_are_over_the_lines_before_them(expected: dict[str, Any]) -> None:
    tree, roots = Tree(), []
    for line in lines():
        if parse(line).kind == "run.finished":
            roots.append(tree.root())
        tree.add(line[:-1])
    assert roots == expected["roots"]


def test_the_golden_values_resolve_as_they_were(expected: dict[str, Any]) -> None:
    events = [parse(line) for line in lines()]
    resolver = Resolver(lambda seq: events[seq].data, lambda digest: (V1 / "blobs" / digest).read_bytes())
    resolved = [resolver.resolve(event.data) for event in events]
    assert [hashlib.sha256(orjson.dumps(data)).hexdigest() for data in resolved] == expected["resolved"]
    for seq, key in expected["keys"].items():
        event, data = events[int(seq)], resolved[int(seq)]
        assert event.key == key == call_key(event.kind, data["model"], data["request"])
    raw = b"".join(lines())
    assert all(
        name in raw for name in (b'"$same"', b'"$extends"', b'"$blob"', b'"as":"text"', b'"as":"bytes"', b'"$bytes"')
    )


def test_the_golden_payloads_are_of_their_types(expected: dict[str, Any]) -> None:
    events = [parse(line) for line in lines()]
    resolver = Resolver(lambda seq: events[seq].data, lambda digest: (V1 / "blobs" / digest).read_bytes())
    for event in events:
        payload = msgspec.convert(resolver.resolve(event.data), kinds.PAYLOADS[event.kind])
        assert event.kind == payload.KIND
    assert [event.kind for event in events] == expected["kinds"]
    more = orjson.loads((RECEIVED / "expected.json").read_bytes())["kinds"]
    assert {*expected["kinds"], *more} == set(kinds.PAYLOADS), "the golden timelines hold every kind"


def test_a_run_that_came_from_outside_is_written_and_read_the_same(tmp_path: Path) -> None:
    make.save(tmp_path, make.write_received())
    for name in ("timeline.jsonl", "expected.json"):
        assert (tmp_path / name).read_bytes() == (RECEIVED / name).read_bytes()
    told = orjson.loads((RECEIVED / "expected.json").read_bytes())
    raw = (RECEIVED / "timeline.jsonl").read_bytes().splitlines(keepends=True)
    found = verify(iter(raw), told["run"], deep=True)
    assert (found.integrity.verdict, found.events, found.head) == ("intact", told["events"], told["head"])
    events = [parse(line) for line in raw]
    resolver = Resolver(lambda seq: events[seq].data, lambda digest: (RECEIVED / "blobs" / digest).read_bytes())
    resolved = [resolver.resolve(event.data) for event in events]
    assert [hashlib.sha256(orjson.dumps(data)).hexdigest() for data in resolved] == told["resolved"]
    for event, data in zip(events, resolved, strict=True):
        msgspec.convert(data, kinds.PAYLOADS[event.kind])
