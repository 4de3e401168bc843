"""Run a program again with its models live, once or many times, or ask its questions alone; and say what changed."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from playhead import _limits
from playhead._api.fetching import load_here
from playhead.cli import onward
from playhead.cli.arguments import recording_root
from playhead.cli.output import Output, one_line
from playhead.cli.silence import swallowed
from playhead.errors import UsageError
from playhead.replay.models.isolated import ask_alone
from playhead.replay.models.times import Times
from playhead.replay.onwards import rerun
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.views import prices, text

_INTERRUPTED = 130  # a program that whoever sits there has ended, with us


def run_models(args: argparse.Namespace, out: Output) -> int:
    """Answer `playhead replay --mode model`."""
    if not 1 <= args.times <= _limits.TIMES_MAX:
        raise UsageError(f"--times is a number from 1 to {_limits.TIMES_MAX}")
    if args.isolated:
        return _alone(args, out)
    if args.header:
        raise UsageError("--header is for `--isolated`: else the program sends its own")
    if sys.platform == "win32":
        raise UsageError("a program is replayed on Linux and macOS, not on Windows", hint="Use WSL, or `--isolated`.")
    again, asker = onward.again_of(args, load_here(args.run, args.store)), onward.asker_of(args)
    if args.times > 1:
        return _often(args, out, again, asker)
    with swallowed(out.json):
        found = rerun(again, asker, unknown=args.unknown)
    onward.tell(found, out)
    if found.surface["unreached"]:
        return 3
    return 0 if found.same else 1


def _often(args: argparse.Namespace, out: Output, again: Any, asker: Any) -> int:
    times = Times(again.reader)
    with out.progress(args.times, "asking the models again") as advance:
        for _ in range(args.times):
            with swallowed():
                went = rerun(again, asker, unknown=args.unknown)
            if went.exit_code == _INTERRUPTED:
                raise KeyboardInterrupt
            if asker.refused:
                break  # it was cut by the budget, and says nothing of the model
            times.add(went)
            advance(1)
    found = times.sum(args.times, asker).as_dict()
    if out.json:
        out.emit(found)
    else:
        for line in _times_lines(found):
            out.print(line)
    return 0 if found["changed"] == 0 and not found["left_out"] else 1


def _times_lines(found: dict[str, Any]) -> list[str]:
    done = found["times"]
    out = [f"{found['origin']['run']} asked again {text.several(done, 'time')}:"]
    out[0] += f" the outcome was the same {found['same']}×, another {found['changed']}×"
    for one in found["outcomes"]:
        told = "as recorded" if one["same"] else one_line(text.cut(str(one["told"]), 120))
        out.append(f"  {one['count']:>3} × {told}  ({', '.join(one['runs'][:3])}{'…' if len(one['runs']) > 3 else ''})")
    if found["answers"]:
        out.append("  where answers of models changed:")
        for one in found["answers"]:
            first = f", the first to change {one['first']}×" if one["first"] else ""
            out.append(f"    event {one['seq']}: {one['changed']} of {done}{first}")
    if found["left_out"]:
        out.append(f"  {found['left_out']} not run any more: the budget is spent")
    out.append(f"  what the live models cost: {prices.told(found['cost'], found['unpriced']) or 'nothing'}")
    return out


def _alone(args: argparse.Namespace, out: Output) -> int:
    """Ask each question alone."""
    for name, given in (
        ("--times", args.times != 1),
        ("--unknown", args.unknown != "refuse"),
        ("-- PROGRAM", args.program),
    ):
        if given:
            raise UsageError(f"{name} means nothing with `--isolated`: no code of the agent runs")
    headers = onward.headers_of(args)
    recorded, asker = load_here(args.run, args.store), onward.asker_of(args)
    reader = RunReader(recorded.store, recorded.id)
    count = sum(event.kind == "model.invoked" for event in reader.events())
    with out.progress(count, "asking the models again") as advance:
        store = FileStore(recording_root(args.store))
        alone = ask_alone(reader, store, asker, headers=headers, at_once=args.at_once, done=lambda: advance(1))
    found = alone.as_dict()
    if out.json:
        out.emit(found)
    else:
        _print_alone(found, out)
    return 3 if found["failed"] else 1 if found["changed"] else 0


def _print_alone(found: dict[str, Any], out: Output) -> None:
    rows = []
    for one in found["questions"]:
        verdict, style = ("same", "green") if one["same"] else ("changed", "yellow")
        if one["problem"]:
            verdict, style = "failed", "bold red"
        now = one["problem"] or one["now"] or ""
        rows.append([text.number(one["seq"]), (verdict, style), one_line(str(one["then"] or "")), one_line(str(now))])
    out.table(("event", "answer", "then", "now"), rows, right=("event",), whole=("event", "answer"))
    told = f"{found['same']} the same, {found['changed']} changed, {found['failed']} failed"
    cost = prices.told(found["cost"], found["unpriced"]) or "nothing"
    out.print(f"\n{text.several(len(rows), 'question')} of {found['origin']['run']} asked alone: {told}; cost {cost}")
