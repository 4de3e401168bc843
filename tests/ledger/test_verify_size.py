"""Verify raises no false alarm, and reads any size in flat memory."""

from __future__ import annotations

import itertools
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.ledger.timelines import RUN, finish, ledger, timeline

from playhead.ledger.verify import verify
from playhead.store.files import read_lines

# No false alarm


def payloads(count: int, seed: int) -> Iterator[bytes]:
    made = random.Random(seed)
    alphabet = [
        "a",
        '"',
        "\\",
        "\n",
        "\r",
        "\x00",
        "é",
        "😀",
        ',"hash":"',
        '"}',
        "{",
        "\u2028",
        '","prev":"',
        "0" * 64,
        "\ud7ff",
        "$blob",
    ]
    for number in range(count):
        text = "".join(made.choices(alphabet, k=made.randrange(30)))
        value: Any = made.choice(
            [text, [text] * 2, {text: text}, made.random() * 10 ** made.randrange(-300, 300), number, None]
        )
        yield orjson.dumps({"n": number, text or "k": value})


def no_false_alarm(count: int, seed: int) -> None:
    writer, log, _ = ledger()
    writer.append("run.started", b'{"name":"t"}', opens=True)
    kinds = itertools.cycle(
        ["note.added", "tool.called", "run.noted", "gap.filled", "artifact.seen", "step.finished", "a.b"]
    )
    for data, kind in zip(payloads(count, seed), kinds, strict=False):
        writer.append(kind, data, span='s"\\\n', parent="é😀", lane="0.1.3", key="k1:x")
    finish(writer)
    *whole, rest = bytes(log.buffer).split(b"\n")
    assert rest == b""
    found = verify(iter([line + b"\n" for line in whole]), RUN, deep=True, check=lambda *_: None)
    assert (found.integrity.verdict, found.completeness.verdict, found.events) == ("intact", "complete", count + 2)


def test_three_thousand_generated_payloads_raise_no_false_alarm() -> None:
    no_false_alarm(3000, 1)


@pytest.mark.hard
def test_a_hundred_thousand_generated_payloads_raise_no_false_alarm() -> None:
    no_false_alarm(100_000, 2)


# Any size


def test_a_large_file_is_verified_in_flat_memory(tmp_path: Path) -> None:
    writer, log, _ = ledger()
    path = tmp_path / "timeline.jsonl"
    data = b'{"text":"%b"}' % (b"x" * 4000)
    with path.open("wb") as file:
        for _ in range(12_000):
            writer.append("note.added", data)
            file.write(log.buffer)
            log.buffer.clear()
            writer._end = 0
            writer._log.end = lambda: 0  # type: ignore[method-assign]
    assert path.stat().st_size > 50_000_000
    tracemalloc.start()
    try:
        found = verify(read_lines(path), RUN, deep=True)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.integrity.verdict, found.events) == ("intact", 12_000)
    assert peak < 4_000_000


def test_a_line_without_end_is_damage_and_does_not_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playhead._limits.LINE_BYTES_MAX", 1_000_000)
    path = tmp_path / "timeline.jsonl"
    path.write_bytes(b"".join(timeline(10)[:3]) + b"\x00" * 30_000_000)
    tracemalloc.start()
    try:
        found = verify(read_lines(path), RUN)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (found.integrity.verdict, found.integrity.at) == ("broken", 3)
    assert peak < 8_000_000
