"""Find which recorded answers make the difference between a run that went well and one that did not."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from playhead._api.fetching import load_here
from playhead.cli import live_options
from playhead.cli.arguments import add_run
from playhead.cli.output import Output, one_line
from playhead.cli.silence import swallowed
from playhead.errors import UsageError
from playhead.replay.bisecting import BY, Bisection
from playhead.replay.onwards import Again
from playhead.settings import load as load_settings
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.views import text

_SHOWN = 5
_WIDTH = 140


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser, "good", help="the run that went well: id, beginning of one, name, or a path")
    add_run(parser, "bad", help="the run of the same program that did not")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--by", choices=BY, help="tell good from bad by the exit code, or by output and what was printed; "
                     "the default is the exit code, where the two runs differ in it")  # fmt: skip
    how.add_argument("--check", metavar="CMD", help="tell it by the exit code of this command: 0 good, 125 unsure, "
                     "any other bad; what the program printed is its input")  # fmt: skip
    live_options.add_waive(parser)
    parser.usage = "playhead bisect GOOD BAD [--by exit|output | --check CMD] [options] [-- PROGRAM [ARGUMENTS]]"
    parser.epilog = (
        "The program of the bad run is replayed with some of its answers swapped for those of the good one, until no\n"
        "smaller set is left that makes it end well. Only questions that both runs asked can be swapped. Nothing is\n"
        "asked live; where a swap leads to a question that neither run asked, that is counted as a dead end.\n"
        "A check finds PLAYHEAD_RUN, PLAYHEAD_DIR (a store) and PLAYHEAD_EXIT_CODE of the replay in its environment.\n"
        "Exit code: 0 found, 1 not found.\n\n"
        "examples:\n"
        "  playhead bisect run_01jqk3 run_01jqk9\n"
        "  playhead bisect @last~1 @last --check 'grep -q booked'"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Bisect."""
    if sys.platform == "win32":
        raise UsageError("a program is replayed on Linux and macOS, not on Windows", hint="Use WSL.")
    good, bad = load_here(args.good, args.store), load_here(args.bad, args.store)
    if good.id == bad.id:
        raise UsageError("the good and the bad run are the same one", hint="Name two runs of one program.")
    with tempfile.TemporaryDirectory(prefix="playhead-bisect-") as folder, out.progress(None, "replaying") as advance:
        waive = [reason for named in args.waive for reason in named.split(",")]
        again = Again(
            RunReader(bad.store, bad.id), FileStore(Path(folder)), load_settings(), args.program or None, waive
        )
        bisection = Bisection(
            RunReader(good.store, good.id), again, by=args.by, check=args.check, done=lambda count: advance(1)
        )
        if bisection.seem_swapped:
            out.warn(
                f"playhead: {good.id}, the good run, failed, and {bad.id}, the bad one, did not: are they swapped?"
            )
        with swallowed():
            found = bisection.run().as_dict()
    if out.json:
        out.emit(found)
    else:
        _print(found, out)
    return 0 if found["verdict"] == "found" else 1


def _print(found: dict[str, Any], out: Output) -> None:
    counted = f"{text.several(found['replays'], 'replay')}, {text.several(found['live_calls'], 'live call')}"
    if found["verdict"] == "found":
        cause = found["cause"]
        verb, differ = "makes" if len(cause) == 1 else "make", "differs" if found["candidates"] == 1 else "differ"
        out.print(f"{text.several(len(cause), 'answer')} of {found['candidates']} that {differ} {verb} the difference:")
        for one in cause:
            lane = "" if one["lane"] == "0" else f", lane {one['lane']}"
            named = f"{one['kind'].partition('.')[0]} {one_line(one['name'])}"
            out.print(f"  event {one['seq']} ({named}{lane}), good: event {one['good_seq']}")
            for change in one["changes"][:_SHOWN]:
                told = change.get("words") or f"{_side(change, 'left')} → {_side(change, 'right')}"
                out.print(f"    {change['path'][1:] or 'all'}: {text.cut(one_line(told), _WIDTH)}")
        if not found["minimal"]:
            out.print("Perhaps fewer do: what some smaller sets lead to, no tape can answer.")
        out.print(f"With {'it' if len(cause) == 1 else 'them'} from {found['good']}, {found['bad']} ends well.")
    else:
        out.print(f"not found: {one_line(found['text'])}")
    differ = "differs" if found["candidates"] == 1 else "differ"
    out.print(f"{counted}; {text.several(found['candidates'], 'answer')} {differ}; told apart by {found['by']}")
    if found["unresolved"]:
        out.print(f"{text.several(len(found['unresolved']), 'dead end')}, where no tape can answer:")
        for one in found["unresolved"][:_SHOWN]:
            named = ", ".join(map(str, one["swapped"][:_SHOWN])) + ("…" if len(one["swapped"]) > _SHOWN else "")
            out.print(f"  with {named or 'nothing'} swapped: {text.cut(one_line(one['why']), _WIDTH)}")
        if len(found["unresolved"]) > _SHOWN:
            out.print(f"  and {len(found['unresolved']) - _SHOWN} more (--json)")


def _side(change: dict[str, Any], name: str) -> str:
    return text.short(change[name], 60) if name in change else "nothing"
