"""Verify against raw SHA-256 over the same file, and its memory at a million events."""

from __future__ import annotations

import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import orjson

import samples
from table import Row

LINES = 20_000
ROUNDS = 7
MILLION = 1_000_000


def run() -> list[Row]:
    from playhead._clock import SystemClock
    from playhead.ledger.verify import verify
    from playhead.ledger.writer import Ledger
    from playhead.store.files import read_lines
    from playhead.store.memory import MemoryLog

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "timeline.jsonl"
        log = MemoryLog()
        ledger = Ledger(log, "run_bench", SystemClock(), lambda torn: "")
        data = [orjson.dumps(samples.model_request(3700)) for _ in range(64)]
        for number in range(LINES):
            ledger.append("model.invoked", data[number % 64])
        path.write_bytes(log.buffer)
        ratios, speeds = [], []
        for _ in range(ROUNDS):
            start = time.process_time_ns()
            with path.open("rb") as file:
                raw = hashlib.sha256()
                while piece := file.read(1 << 20):
                    raw.update(piece)
            middle = time.process_time_ns()
            result = verify(read_lines(path), "run_bench", check=lambda kind, digest, name: None)
            end = time.process_time_ns()
            assert result.integrity.verdict == "intact"
            assert result.events == LINES
            ratios.append((middle - start) / (end - middle))
            speeds.append(path.stat().st_size / ((end - middle) / 1e9) / 1e6)
        ratio = statistics.median(ratios)
        size = path.stat().st_size // LINES
    peak_small, peak_large = _memory(10_000), _memory(MILLION)
    return [
        Row(
            f"verify, {size} B a line",
            f"{statistics.median(speeds):.0f} MB/s",
            f"{ratio:.0%} of raw SHA-256 (min 45 %, aim 55 %)",
            ratio >= 0.45,
        ),
        Row(
            "verify, memory at a million events",
            f"{peak_large:.1f} MB",
            f"{peak_large - peak_small:+.1f} MB against 10,000 events (max +4)",
            peak_large - peak_small <= 4,
        ),
    ]


def _memory(lines: int) -> float:
    """Return the peak resident memory of a process that verifies a run of so many lines."""
    code = f"""
import re, tempfile
from playhead._clock import FakeClock
from playhead.ledger.verify import verify
from playhead.ledger.writer import Ledger
from playhead.store.disk import Disk
from playhead.store.file_log import FileLog
from playhead.store.files import read_lines
from pathlib import Path
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "t"
    ledger = Ledger(FileLog(path, Disk(), create=True), "run_bench", FakeClock(), lambda torn: "")
    for number in range({lines}):
        ledger.append("note.added", b'{{"text":"a"}}')
    assert verify(read_lines(path), "run_bench").events == {lines}
    print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) / 1024)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


if __name__ == "__main__":
    for row in run():
        print(*row, sep="\t")
