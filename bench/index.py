"""Looking up a request among 100 and among 100,000 runs, and the first page of `ls`."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from table import Row

FEW, MANY = 100, 100_000
ROUNDS = 300
_START_US = 1_700_000_000_000_000


def run() -> list[Row]:
    from playhead.store.index import Index

    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        few, many = _filled(Path(one), FEW), _filled(Path(other), MANY)
        with Index(few) as small, Index(many) as large:
            look = _paired(lambda: small.find_envelope("e1:x50"), lambda: large.find_envelope("e1:x50"))
            page = _paired(lambda: small.list_runs(limit=50), lambda: large.list_runs(limit=50))
            assert large.find_envelope("e1:x50") is not None
            assert len(large.list_runs(limit=50)) == 50
    return [
        Row(
            "find(envelope) among 100,000 runs",
            f"{look[1]:.0f} µs",
            f"{look[1] / look[0]:.2f} × among 100 (max 2)",
            look[1] <= 2 * look[0],
        ),
        Row(
            "first page of ls, 100,000 runs",
            f"{page[1]:.0f} µs",
            f"{page[1] / page[0]:.2f} × of 100 (max 2); reads no timeline",
            page[1] <= 2 * page[0],
        ),
    ]


def _paired(left: Callable[[], Any], right: Callable[[], Any]) -> tuple[float, float]:
    times: tuple[list[int], list[int]] = ([], [])
    for _ in range(ROUNDS):
        for work, kept in zip((left, right), times, strict=True):
            start = time.perf_counter_ns()
            work()
            kept.append(time.perf_counter_ns() - start)
    return statistics.median(times[0]) / 1000, statistics.median(times[1]) / 1000


def _filled(root: Path, count: int) -> Path:
    """Make an index of so many finished runs; only the few that are asked for have a directory."""
    from playhead._clock import utc_text
    from playhead.store.index import Index

    ids = [f"run_{number:026d}" for number in range(count)]
    (root / "runs" / ids[50]).mkdir(parents=True)
    (root / "runs" / ids[50] / "timeline.jsonl").touch()
    with Index(root) as index:
        index.catch_up()
    with sqlite3.connect(root / "playhead.db") as database:
        numbers = [
            row[1]
            for row in database.execute("PRAGMA table_info(runs)")
            if row[2] == "INTEGER" and row[3] and row[1] != "replayable"
        ]
        columns = [
            "id",
            "name",
            "status",
            "started",
            "started_us",
            "duration_us",
            "reasons",
            "tags",
            "replayable",
            "envelope_hash",
        ]
        places = ", ".join("?" for _ in columns) + ", 1" * len(numbers)
        database.executemany(
            f"INSERT INTO runs ({', '.join(columns + numbers)}) VALUES ({places})",
            (
                (
                    run,
                    f"agent-{number % 7}",
                    "ok",
                    utc_text(_START_US + number),
                    _START_US + number,
                    1000,
                    "[]",
                    "{}",
                    1,
                    f"e1:x{number}",
                )
                for number, run in enumerate(ids)
            ),
        )
    return root


if __name__ == "__main__":
    for row in run():
        print(*row, sep="\t")
