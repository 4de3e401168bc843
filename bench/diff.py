"""Compare two runs, against parsing both: nested and flat, with a few differences and with many."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson

import samples
from table import Row

EVENTS = 100_000
ROUNDS = 3
CALLS_IN_A_STEP = 10
RATIO_MAX, GROWTH_MAX = 3.0, 12.0

Calls = list[tuple[int, str, str, str]]  # step, name, question, answer


def run() -> list[Row]:
    """Measure."""
    rows = []
    for name, nested, change in (
        ("1 % differ, in steps", True, _few),
        ("1 % differ, in one list", False, _few),
        ("all differ from the middle on", True, _second_half),
    ):
        ratio, seconds = _measured(EVENTS, nested, change)
        _, small = _measured(EVENTS // 10, nested, change)
        growth = seconds / small
        rows.append(
            Row(
                f"diff, {name}",
                f"{seconds:.2f} s",
                f"{ratio:.2f} times parsing both (max {RATIO_MAX:.0f}); ten times the events cost {growth:.1f} times"
                f" (max {GROWTH_MAX:.0f})",
                ratio <= RATIO_MAX and growth <= GROWTH_MAX,
            )
        )
    return rows


def _measured(events: int, nested: bool, change: Callable[[Calls], Calls]) -> tuple[float, float]:
    """Return how often as long as parsing both runs it takes to compare them, and how many seconds."""
    from playhead._api.comparing import diff
    from playhead._api.reading import load
    from playhead.store.reader import RunReader

    chance = random.Random(3)
    names = ["read", "search", "write"]
    calls = [
        (number // CALLS_IN_A_STEP, chance.choice(names), f"question {number}", samples.text(200))
        for number in range(events // 2)
    ]
    with tempfile.TemporaryDirectory() as folder:
        runs = []
        for name, made in (("run_a", calls), ("run_b", change(calls))):
            _write(Path(folder) / name, name, made, nested)
            runs.append(load(Path(folder) / name))
        ratios, seconds = [], []
        for _ in range(ROUNDS):
            start = time.process_time()
            for one in runs:
                for _event in RunReader(one.store, one.id).events():
                    pass
            middle = time.process_time()
            found = diff(*runs)
            end = time.process_time()
            assert found.deviations
            ratios.append((end - middle) / (middle - start))
            seconds.append(end - middle)
    return statistics.median(ratios), statistics.median(seconds)


def _few(calls: Calls) -> Calls:
    """Change, add, remove or move one call in a hundred."""
    chance = random.Random(5)
    found: Calls = []
    for step, name, question, answer in calls:
        match chance.randrange(400):
            case 0:
                found.append((step, name, question, f"{answer} and more"))
            case 1:
                found += [(step, name, question, answer), (step, name, f"another {question}", answer)]
            case 2:
                pass
            case 3 if found and found[-1][0] == step:
                found.insert(-1, (step, name, question, answer))
            case _:
                found.append((step, name, question, answer))
    return found


def _second_half(calls: Calls) -> Calls:
    half = len(calls) // 2
    return [*calls[:half], *((step, name, f"{asked}?", f"{answer}!") for step, name, asked, answer in calls[half:])]


def _write(folder: Path, name: str, calls: Calls, nested: bool) -> None:
    from playhead._clock import SystemClock
    from playhead.ledger.writer import Ledger
    from playhead.store.memory import MemoryLog

    log = MemoryLog()
    ledger = Ledger(log, name, SystemClock(), lambda torn: "")
    for kind, data, span, parent, key in _lines(calls, nested):
        ledger.append(kind, orjson.dumps(data), span=span, parent=parent, key=key)
    (folder / "artifacts").mkdir(parents=True)
    (folder / "timeline.jsonl").write_bytes(log.buffer)


def _lines(calls: Calls, nested: bool) -> Iterator[tuple[str, object, str | None, str | None, str | None]]:
    from playhead.event.keys import call_key

    yield "run.started", {"name": "bench", "agent": {"name": "bench"}}, "0", None, None
    last = -1
    for number, (step, name, question, answer) in enumerate(calls):
        if nested and step != last:
            if last >= 0:
                yield "step.finished", {"status": "ok"}, f"s{last}", "0", None
            yield "step.started", {"name": "turn"}, f"s{step}", "0", None
            last = step
        parent = f"s{step}" if nested else "0"
        given = {"q": question}
        yield "tool.called", {"name": name, "input": given}, f"t{number}", parent, call_key("tool.called", name, given)
        yield "tool.returned", {"status": "ok", "output": answer}, f"t{number}", parent, None
    yield "run.finished", {"status": "ok"}, "0", None, None
