"""What a program is told by clocks, chance, variables and files: under recording and bare, in turns, in one process."""

from __future__ import annotations

import itertools
import os
import random
import statistics
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import samples
import traffic
from table import Row

READS = 10_000
TURN_MAX = 1.3
CLOCK_US_MAX, READS_MS_MAX, CLOCK_BYTES_MAX = 2.0, 30.0, 12.0


def run() -> list[Row]:
    import playhead

    os.environ["PLAYHEAD_GIT"] = "0"
    playhead.install()
    try:
        with tempfile.TemporaryDirectory() as folder, traffic.provider() as base_url:
            return [*_clocks(folder), _mixture(folder), *_sizes(folder), *_turns(base_url, Path(folder))]
    finally:
        playhead.uninstall()


def _clocks(folder: str) -> list[Row]:
    """Read a clock from the agent's code, and from a module that is not recorded."""
    rows = []
    spaces: dict[str, dict[str, Any]] = {
        "the agent": {"__name__": "agent"},
        "a library below it": {"__name__": "asyncio.x"},
    }
    for who, space in spaces.items():
        exec("from time import time\ndef read():\n    for _ in range(2000):\n        time()\n", space)
        bare, recorded = _in_turns(space["read"], folder)
        more = (recorded - bare) / 2000 * 1e6
        told = f"µs more than {bare / 2000 * 1e6:.3f}; at most {CLOCK_US_MAX}"
        rows.append(Row(f"time.time() by {who}", f"{more:.3f}", told, more <= CLOCK_US_MAX))
    return rows


def _mixture(folder: str) -> Row:
    def read() -> None:
        for _ in range(READS // 8):
            time.time()
            time.monotonic()
            time.time()
            time.perf_counter()
            random.random()
            uuid.uuid4()
            os.environ.get("HOME")
            os.urandom(16)

    bare, recorded = _in_turns(read, folder)
    more = (recorded - bare) * 1000
    told = f"ms more than {bare * 1000:.1f}; at most {READS_MS_MAX:.0f}"
    return Row(f"{READS:,} reads of all sorts", f"{more:.1f}", told, more <= READS_MS_MAX)


def _in_turns(work: Callable[[], None], folder: str) -> tuple[float, float]:
    """Return the medians of bare and recorded, in seconds; what sealing takes is part of it."""
    import playhead

    bare, recorded = [], []
    for _ in range(25):
        bare.append(_timed(work))
        with playhead.record("reads", store=folder) as run:
            start = time.perf_counter()
            work()
            run.record("review.requested", {})  # seals what was read
            recorded.append(time.perf_counter() - start)
    return statistics.median(bare), statistics.median(recorded)


def _timed(work: Callable[[], None]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def _sizes(folder: str) -> list[Row]:
    def clock() -> None:
        for _ in range(READS):
            time.time()

    def chance() -> None:
        for _ in range(READS):
            os.urandom(16)

    per_clock, per_chance = _bytes(clock, folder) / READS, _bytes(chance, folder) / READS
    return [
        Row(
            "a clock on the disk",
            f"{per_clock:.1f}",
            f"bytes; at most {CLOCK_BYTES_MAX:.0f}",
            per_clock <= CLOCK_BYTES_MAX,
        ),
        Row("16 random bytes on the disk", f"{per_chance:.1f}", "bytes; at most 32", per_chance <= 32),
    ]


def _bytes(work: Callable[[], None], folder: str) -> int:
    """Return by how much a timeline grows."""
    import playhead

    with playhead.record("size", store=folder) as run:
        run.record("review.requested", {})
        before = _size(run.path)
        work()
        run.record("review.requested", {})
        return _size(run.path) - before


def _size(path: Path | None) -> int:
    assert path is not None
    return (path / "timeline.jsonl").stat().st_size


def _turns(base_url: str, folder: Path) -> list[Row]:
    """Take turns of an agent: a model call, 200 reads of clocks and chance, 20 files that stay the same or change."""
    from openai import OpenAI

    prompts = itertools.cycle([[{"role": "user", "content": samples.text(500)}] for _ in range(997)])
    same = [folder / f"same-{number}.txt" for number in range(20)]
    changing = [folder / f"changing-{number}.txt" for number in range(20)]
    for path in (*same, *changing):
        path.write_text(samples.text(2000))
    time.sleep(0.1)  # so that they are not taken for files that are being written
    with OpenAI(base_url=base_url, api_key="sk-bench-0123456789", max_retries=0) as client:
        create: Any = client.chat.completions.create

        def turn(paths: list[Path]) -> None:
            for _ in range(50):
                time.time()
                time.monotonic()
                random.random()
                time.perf_counter()
            for path in paths:
                with open(path) as file:
                    file.read()
            create(model="gpt-5", messages=next(prompts))

        def turn_with_new() -> None:
            turn(changing)

        rows = []
        ratio, bare, recorded = traffic.compare(lambda: turn(same), 10)
        told = f"of bare; at most {TURN_MAX} ({bare:.2f} → {recorded:.2f} ms)"
        rows.append(Row("a turn: 1 call, 200 reads, 20 files", f"{ratio:.3f} ×", told, ratio <= TURN_MAX))
        stop = threading.Event()
        writer = threading.Thread(target=_rewrite, args=(changing, stop))
        writer.start()
        try:
            ratio, bare, recorded = traffic.compare(turn_with_new, 10)
        finally:
            stop.set()
            writer.join()
        rows.append(
            Row("the same while the files change", f"{ratio:.3f} ×", f"of bare ({bare:.2f} → {recorded:.2f} ms)")
        )
        return rows


def _rewrite(paths: list[Path], stop: threading.Event) -> None:
    while not stop.wait(0.05):
        for path in paths:
            path.write_text(samples.text(2000))
