"""How long the command line takes to start, against the bare interpreter; and what `import playhead` loads."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

from table import Row

ROUNDS = 15
FORBIDDEN = (
    "rich",
    "httpx",
    "httpx2",
    "openai",
    "requests",
    "aiohttp",
    "starlette",
    "asyncio",
    "sqlite3",
    "http.client",
)


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            "PLAYHEAD_GIT": "0",
        }
        record = "import playhead\nfor n in range(30):\n    with playhead.record('a') as run: playhead.note('x')"
        subprocess.run([sys.executable, "-c", record], cwd=folder, env=environment, check=True)
        commands = {
            "bare": [sys.executable, "-c", "pass"],
            "version": [sys.executable, "-m", "playhead", "--version"],
            "ls": [sys.executable, "-m", "playhead", "ls"],
            "import": [sys.executable, "-c", "import playhead"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(ROUNDS):
            for name, command in commands.items():
                start = time.perf_counter()
                subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
                times[name].append((time.perf_counter() - start) * 1000)
        middle = {name: statistics.median(values) for name, values in times.items()}
        code = f"import sys, playhead; print([name for name in {FORBIDDEN!r} if name in sys.modules])"
        loaded = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
    bare = middle["bare"]
    return [
        Row("python -c pass", f"{bare:.0f} ms", ""),
        Row(
            "playhead --version",
            f"{middle['version']:.0f} ms",
            f"{middle['version'] / bare:.1f} × (max 3)",
            middle["version"] <= 3 * bare,
        ),
        Row(
            "playhead ls, 30 runs",
            f"{middle['ls']:.0f} ms",
            f"{middle['ls'] / bare:.1f} × (max 8)",
            middle["ls"] <= 8 * bare,
        ),
        Row(
            "import playhead",
            f"{middle['import']:.0f} ms",
            f"loads of {len(FORBIDDEN)} heavy modules: {loaded.stdout.strip()}",
            loaded.stdout.strip() == "[]",
        ),
    ]


if __name__ == "__main__":
    for row in run():
        print(*row, sep="\t")
