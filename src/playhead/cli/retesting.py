"""Replay many recordings exactly, each in a process of its own, and say of each how it went."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import orjson

from playhead._api.reading import load
from playhead.cli.choosing import Recorded
from playhead.errors import PlayheadError
from playhead.store.reader import RunReader

Verdict = Literal["faithful", "deviated", "not_replayable", "could_not_tell", "left_to_pytest"]


@dataclass
class Retested:
    """How its replay went."""

    name: str
    run: str
    place: str
    verdict: Verdict
    calls: int = 0
    seconds: float = 0.0
    first: str = ""  # of what differs, or why it could not be told; in one line
    text: str = ""
    reasons: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def retest(
    recorded: Sequence[Recorded], *, at_once: int, waive: Sequence[str], stop: bool, done: Callable[[int], None]
) -> list[Retested]:
    """Replay them all, some at once, in the order given; with `stop`, none is begun after the first that deviates."""
    found: dict[int, Retested] = {}
    with tempfile.TemporaryDirectory(prefix="playhead-test-") as scratch, ThreadPoolExecutor(at_once) as pool:
        waiting = list(enumerate(recorded))
        running: dict[Future[Retested], int] = {}
        while waiting or running:
            while waiting and len(running) < at_once:
                number, one = waiting.pop(0)
                running[pool.submit(_replay, one, scratch, waive)] = number
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                number = running.pop(future)
                found[number] = future.result()
                done(1)
                if stop and found[number].verdict not in ("faithful", "left_to_pytest"):
                    waiting.clear()
    return [found[number] for number in sorted(found)]


def _replay(one: Recorded, scratch: str, waive: Sequence[str]) -> Retested:
    result = Retested(name=one.name, run=one.shown, place=one.place, verdict="could_not_tell")
    try:
        run = load(one.place)
        started = next(iter(RunReader(run.store, run.id).resolved()), None)
    except PlayheadError as problem:
        return _told(result, "not_replayable", str(problem.message), [problem.code])
    entry = (started.data.get("entrypoint") if started is not None else None) or {}
    if entry.get("test"):
        return _told(result, "left_to_pytest", f"recorded by a test, which replays it: pytest {entry['test']}")
    argv = [sys.executable, "-m", "playhead", "replay", one.place, "--mode", "exact", "--json", "--store", scratch]
    began = time.monotonic()
    ended = subprocess.run(
        [*argv, *(f"--waive={reason}" for reason in waive)], capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    result.seconds = round(time.monotonic() - began, 3)
    try:
        answer = orjson.loads(ended.stdout)
    except orjson.JSONDecodeError:
        told = ended.stderr.decode(errors="replace").strip()
        return _told(result, "could_not_tell", told or f"the replay ended with exit code {ended.returncode}")
    if "fidelity" not in answer:
        error = answer["error"]
        refused = error["code"] in ("not_replayable", "usage")
        reasons = list((error.get("detail") or {}).get("reasons") or [error["code"]])
        return _told(result, "not_replayable" if refused else "could_not_tell", error["message"], reasons)
    result.calls = answer["surface"]["calls"]
    verdict, first = answer["fidelity"]["verdict"], answer["fidelity"]["first"]
    if verdict == "not_compared":
        return _told(result, "could_not_tell", "the program did not come to its end")
    return _told(result, verdict, "" if first is None else str(first["text"]))


def _told(result: Retested, verdict: Verdict, text: str, reasons: Sequence[str] = ()) -> Retested:
    result.verdict, result.text, result.reasons = verdict, text, list(reasons)
    result.first = text.splitlines()[0] if text else ""
    return result
