"""Calls of a real client to a provider in a process of its own, which answers at once: recorded and bare in turns."""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import samples
from table import Row

ROUNDS = 60
STREAMED = "as a stream, please"
LIMITS = {"call": 1.15, "stream": 1.10, "large": 1.25}


def run() -> list[Row]:
    os.environ["PLAYHEAD_GIT"] = "0"
    with provider() as base_url:
        return _measured(base_url)


@contextmanager
def provider() -> Iterator[str]:
    """Start a provider in a process of its own; yield its address."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "script.json"
        # Texts of 300 characters for calls, and one that is streamed in 200 chunks; all of them new to the recorder.
        answers = [samples.text(300) for _ in range(1499)]
        script.write_text(json.dumps({"script": answers, "by_prompt": {STREAMED: samples.text(2400)}, "repeat": True}))
        server = subprocess.Popen(
            [sys.executable, "-m", "playhead.testing.provider", str(script)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            yield json.loads(server.stdout.readline())["base_url"]
        finally:
            server.stdin.close()
            server.wait()


def _measured(base_url: str) -> list[Row]:
    from openai import OpenAI

    large = [{"role": "user" if n % 2 else "assistant", "content": samples.text(1000)} for n in range(500)]
    prompts = itertools.cycle([[{"role": "user", "content": samples.text(500)}] for _ in range(997)])
    with OpenAI(base_url=base_url, api_key="sk-bench-0123456789", max_retries=0) as client:
        create: Any = client.chat.completions.create

        def call() -> None:
            create(model="gpt-5", messages=next(prompts))

        def stream() -> None:
            asked = [*next(prompts), {"role": "user", "content": STREAMED}]
            for _ in create(model="gpt-5", messages=asked, stream=True):
                pass

        def send_large() -> None:
            large[-1] = next(prompts)[0]
            create(model="gpt-5", messages=large)

        return [
            _row("an openai call", "call", *compare(call, 20)),
            _row("a stream of 200 chunks", "stream", *compare(stream, 3)),
            _row("a request of 500 kB", "large", *compare(send_large, 4)),
        ]


def compare(work: Callable[[], None], times: int) -> tuple[float, float, float]:
    """Return the median ratio of recorded to bare, and the best of each in milliseconds; block by block in turns."""
    import playhead

    ratios, bare_ms, recorded_ms = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for number in range(ROUNDS + 3):
            bare = _block(work, times)
            with playhead.record("traffic", store=folder):
                work()  # the patches are in place, the store is warm
                recorded = _block(work, times)
            if number >= 3:
                ratios.append(recorded / bare)
                bare_ms.append(bare / times)
                recorded_ms.append(recorded / times)
    return statistics.median(ratios), min(bare_ms), min(recorded_ms)


def _block(work: Callable[[], None], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) * 1000


def _row(name: str, limit: str, ratio: float, bare: float, recorded: float) -> Row:
    against = f"of bare; at most {LIMITS[limit]} ({bare:.2f} → {recorded:.2f} ms)"
    return Row(name, f"{ratio:.3f} ×", against, ratio <= LIMITS[limit])
