"""`stats` over 100,000 indexed runs, against the bare SQL that it stands on."""

from __future__ import annotations

import io
import random
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from playhead.store import layout
from table import Row

RUNS = 100_000  # each with 4 calls of models, 3 of tools and 3 steps; every 20th is an exact replay
ROUNDS = 3
BY = ("model", "day")
_START_US = 1_790_000_000_000_000
_MODELS = (("openai", "gpt-5"), ("openai", "gpt-5-mini"), ("anthropic", "claude-sonnet-4-5"), ("ollama", "llama3"))


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / ".playhead"
        layout.runs_dir(root).mkdir(parents=True)
        _fill(root)
        _command(root, "model")  # prices are looked up once, and then kept
        return [_compared(root, by) for by in BY]


def _compared(root: Path, by: str) -> Row:
    asked = _statements(root, by)
    whole, bare = _paired(lambda: _command(root, by), lambda: _bare(root, asked))
    return Row(
        f"stats of 100,000 runs, by {by}",
        f"{whole:.1f} s",
        f"{whole / bare:.2f} × its {len(asked)} bare queries (max 2)",
        whole <= 2 * bare,
    )


def _command(root: Path, by: str) -> None:
    """Answer as the command does, from the arguments to the JSON."""
    from playhead.cli.commands.stats import run as answer
    from playhead.cli.main import parser_of
    from playhead.cli.output import Output

    said = io.StringIO()
    args = parser_of("stats").parse_args(["--by", by, "--store", str(root), "--json"])
    assert answer(args, Output(json=True, stdout=said)) == 0
    assert '"count": 95000' in said.getvalue()


def _statements(root: Path, by: str) -> list[str]:
    """Return the questions that are asked of the index, as SQLite is asked them."""
    from playhead._api.metrics import stats_of
    from playhead.store.index import Index
    from playhead.store.index_filter import RunFilter
    from playhead.store.price_list import PriceList

    found: list[str] = []

    class Traced(Index):
        def read(self, ask: Callable[[sqlite3.Connection], Any]) -> Any:
            def traced(connection: sqlite3.Connection) -> Any:
                connection.set_trace_callback(found.append)
                return ask(connection)

            return super().read(traced)

    with Traced(root) as index:
        stats_of(index, by, RunFilter(), PriceList(root=root))
    return [sql for sql in found if not sql.startswith("--")]


def _bare(root: Path, asked: list[str]) -> None:
    with sqlite3.connect(root / "playhead.db") as database:
        for sql in asked:
            database.execute(sql).fetchall()


def _paired(left: Callable[[], Any], right: Callable[[], Any]) -> tuple[float, float]:
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for work, kept in zip((left, right), times, strict=True):
            start = time.perf_counter()
            work()
            kept.append(time.perf_counter() - start)
    return statistics.median(times[0]), statistics.median(times[1])


def _fill(root: Path) -> None:
    from playhead.store.index import Index

    with Index(root) as index:
        index.catch_up()
    with sqlite3.connect(root / "playhead.db") as database:
        for table, rows in (("runs", _runs(database)), ("calls", _calls()), ("steps", _steps())):
            first = next(rows)
            sql = f"INSERT INTO {table} ({', '.join(first)}) VALUES ({', '.join(f':{name}' for name in first)})"
            database.execute(sql, first)
            database.executemany(sql, rows)


def _id(number: int) -> str:
    return f"run_{number:026d}"


def _runs(database: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    from playhead._clock import utc_text

    facts = database.execute("PRAGMA table_info(runs)").fetchall()
    zeros = {name: 0 for _, name, kind, needed, *_ in facts if needed and kind == "INTEGER"}
    for number in range(RUNS):
        at_us = _START_US + number * 60_000_000
        origin = f'{{"run":"{_id(number - 1)}","mode":"exact"}}' if _is_replay(number) else None
        yield zeros | {
            "id": _id(number), "name": f"agent-{number % 7}", "agent": f"agent-{number % 7}", "status": "ok",
            "started": utc_text(at_us), "started_us": at_us, "finished": utc_text(at_us), "duration_us": 9_000_000,
            "reasons": "[]", "tags": "{}", "origin": origin,
        }  # fmt: skip


def _calls() -> Iterator[dict[str, Any]]:
    chance = random.Random(7)
    for number in range(RUNS):
        for place in range(7):
            is_model, seq = place % 2 == 0, 10 + 2 * place
            provider, model = _MODELS[(number + place) % 4] if is_model else (None, None)
            yield {
                "run": _id(number), "span": str(seq), "seq": seq, "end_seq": seq + 1, "parent": str(2 + place % 3),
                "kind": "model" if is_model else "tool", "name": model or f"tool-{(number + place) % 12}",
                "provider": provider, "model": model, "elapsed_us": place * 1000, "key": f"k1:{number:064x}",
                "tokens_in": chance.randrange(20_000) if is_model else None, "tokens_cached": 100 if is_model else None,
                "tokens_out": chance.randrange(900) if is_model else None, "tokens_reasoning": 5 if is_model else None,
                "latency_us": chance.randrange(10_000_000), "status": "ok" if chance.random() < 0.97 else "error",
                "attempt": 1, "taped": 1 if _is_replay(number) else None,
            }  # fmt: skip


def _steps() -> Iterator[dict[str, Any]]:
    chance = random.Random(8)
    for number in range(RUNS):
        for place in range(3):
            yield {
                "run": _id(number), "span": str(2 + place), "seq": 2 + place, "end_seq": 90 + place, "parent": "0",
                "name": f"step-{place // 2}", "attempt": 1 + place % 2, "elapsed_us": place,
                "duration_us": chance.randrange(10_000_000), "status": "ok" if chance.random() < 0.9 else "error",
            }  # fmt: skip


def _is_replay(number: int) -> bool:
    return number % 20 == 19


if __name__ == "__main__":
    for row in run():
        print(*row, sep="\t")
