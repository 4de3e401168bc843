"""Searching for words over 100,000 events, and reading them for that; asking whether a key is good."""

from __future__ import annotations

import itertools
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson

from table import Row

RUNS, EVENTS = 100, 1000
FIND_MS_MAX = 2.0
READ_EVENTS_PER_S_MIN = 17_000
KEY_US_MAX = 100.0
ROUNDS = 50


def run() -> list[Row]:
    from playhead.store.registry.database import Registry
    from playhead.store.registry.keys import Keys
    from playhead.store.search import TextIndex

    with tempfile.TemporaryDirectory() as folder:
        words = _filled(Path(folder))
        size = sum(path.stat().st_size for path in Path(folder).rglob("timeline.jsonl"))
        with TextIndex(Path(folder)) as index:
            start = time.perf_counter()
            index.catch_up()
            rate = RUNS * EVENTS / (time.perf_counter() - start)
            common, rare, phrase = words[0], words[5000], f'"{words[0]} {words[1]}"'
            took = {query: _median_us(lambda query=query: index.find(query, 20)) for query in (common, rare, phrase)}
        share = (Path(folder) / "search.db").stat().st_size / size
    with tempfile.TemporaryDirectory() as folder, Registry(Path(folder) / "store") as registry:
        keys = Keys(registry)
        token = keys.create("default", ["read"]).token
        key = _median_us(lambda: keys.authenticate(token))
    slowest = max(took.values()) / 1000
    return [
        Row(
            "search of 100,000 events, page of 20",
            f"{slowest:.2f} ms",
            f"slowest of a common word, a rare one, a phrase (max {FIND_MS_MAX:.0f} ms)",
            slowest <= FIND_MS_MAX,
        ),
        Row(
            "reading events for the search",
            f"{rate:,.0f}/s",
            f"min {READ_EVENTS_PER_S_MIN:,}; the file has {share:.0%} of the timelines' size",
            rate >= READ_EVENTS_PER_S_MIN,
        ),
        Row("asking whether a key is good", f"{key:.0f} µs", f"max {KEY_US_MAX:.0f}", key <= KEY_US_MAX),
    ]


def _median_us(ask: Callable[[], Any]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter_ns()
        ask()
        times.append(time.perf_counter_ns() - start)
    return statistics.median(times) / 1000


def _filled(root: Path) -> list[str]:
    """Write timelines whose words are as frequent as those of a language; return the words, the most frequent first."""
    made = random.Random(1)
    words = ["".join(made.choices("abcdefghijklmnopqrstuvwxyz", k=made.randint(3, 10))) for _ in range(30_000)]
    weights = list(itertools.accumulate(1 / (place + 1) for place in range(len(words))))
    said = made.choices(words, cum_weights=weights, k=1_000_000)
    at = 0
    for number in range(RUNS):
        id = f"run_{number:026d}"
        lines = []
        for seq in range(EVENTS):
            at = (at + 40) % (len(said) - 40)
            data = {"name": said[at], "input": {"path": f"src/{said[at + 1]}.py"}, "text": " ".join(said[at : at + 35])}
            event = {"v": 1, "run": id, "seq": seq, "kind": "note.added", "data": data, "hash": "0" * 64}
            lines.append(orjson.dumps(event) + b"\n")
        (root / "runs" / id).mkdir(parents=True)
        (root / "runs" / id / "timeline.jsonl").write_bytes(b"".join(lines))
    return words
