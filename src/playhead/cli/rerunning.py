"""Rerun many recordings with their models live, some at once, within one budget."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from typing import Any

import orjson

from playhead.cli.choosing import Recorded
from playhead.cli.onward import changed_answer

_PASSED_ON = {"model": "--model", "base_url": "--base-url", "system": "--system", "unknown": "--unknown"}


@dataclass
class Reran:
    """What came of one."""

    name: str
    run: str
    verdict: str  # same, changed, failed, left_out: the budget was spent
    new_run: str | None = None
    answers: int = 0
    answers_changed: int = 0
    live_calls: int = 0
    cost: float | None = None
    unpriced: list[str] = field(default_factory=list)
    text: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def rerun_all(
    recorded: Sequence[Recorded], args: argparse.Namespace, done: Callable[[float | None], None]
) -> list[Reran]:
    """Rerun them, `args.jobs` at once; each gets an equal part of what is left of the budget."""
    found: dict[int, Reran] = {}
    waiting = list(enumerate(recorded))
    running: dict[Future[Reran], tuple[int, float]] = {}
    spent = 0.0
    with ThreadPoolExecutor(max_workers=args.jobs) as pool:
        while waiting or running:
            while waiting and len(running) < args.jobs:
                number, one = waiting.pop(0)
                free = min(args.jobs - len(running), len(waiting) + 1)
                left = None if args.budget is None else args.budget - spent - sum(part for _, part in running.values())
                share = None if left is None else left / free
                if share is not None and share <= 0:
                    found[number] = Reran(one.name, one.shown, "left_out", text="the budget is spent")
                    done(spent)
                    continue
                running[pool.submit(_rerun, one, args, share)] = number, share or 0.0
            for future in wait(running, return_when=FIRST_COMPLETED).done if running else ():
                number, _ = running.pop(future)
                found[number] = future.result()
                spent += found[number].cost or 0.0
                done(spent)
    return [found[number] for number in sorted(found)]


def _rerun(one: Recorded, args: argparse.Namespace, budget: float | None) -> Reran:
    """Rerun one, in a process of its own: whoever starts programs must have one for itself."""
    argv = [sys.executable, "-m", "playhead", "replay", one.place, "--mode", "model", "--json"]
    for name, option in _PASSED_ON.items():
        value = getattr(args, name)
        if value is not None and not (name == "unknown" and args.isolated):
            argv.append(f"{option}={value}")
    argv += [f"--param={param}" for param in args.param] + [f"--at-once={args.at_once}"]
    argv += [] if budget is None else [f"--budget={budget:.12f}"]
    argv += ["--isolated"] if args.isolated else [f"--waive={reason}" for reason in args.waive]
    argv += [f"--header={header}" for header in args.header] + ([f"--store={args.store}"] if args.store else [])
    ended = subprocess.run(argv, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    result = Reran(one.name, one.shown, "failed")
    try:
        answer = orjson.loads(ended.stdout)
    except orjson.JSONDecodeError:
        told = ended.stderr.decode(errors="replace").strip()
        result.text = told.partition("\n")[0] or f"it ended with exit code {ended.returncode}"
        return result
    if "error" in answer and "run" not in answer:
        result.text = str(answer["error"].get("message"))
        return result
    result.new_run, result.cost, result.unpriced = answer["run"], answer["cost"], answer["unpriced"]
    return _alone(result, answer) if args.isolated else _judged(result, answer)


def _judged(result: Reran, answer: dict[str, Any]) -> Reran:
    changed = answer["answers"]["changed"]
    result.answers = answer["answers"]["same"] + len(changed)
    result.answers_changed, result.live_calls = len(changed), answer["live_calls"]
    result.verdict = "same" if answer["outcome"]["same"] else "changed"
    if answer["surface"]["unreached"]:
        result.verdict, result.text = "failed", "the model was not reached"
    elif answer["deviations"]:
        result.verdict, result.text = "failed", str(answer["deviations"][0]["text"]).partition("\n")[0]
    elif changed:
        result.text = changed_answer(changed[0])
    return result


def _alone(result: Reran, answer: dict[str, Any]) -> Reran:
    questions = answer["questions"]
    result.answers, result.answers_changed = len(questions), answer["changed"]
    result.live_calls = answer["asked"]
    result.verdict = "failed" if answer["failed"] else "changed" if answer["changed"] else "same"
    first = next((one for one in questions if not one["same"]), None)
    if first is not None:
        told = first["problem"] or f"{first['then']} → {first['now']}"
        result.text = f"event {first['seq']}: {told}"
    return result
