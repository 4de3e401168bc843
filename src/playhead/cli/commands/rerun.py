"""Ask the models of many recorded runs again, and say which of them come out differently."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from playhead import _limits
from playhead.cli import live_options, onward
from playhead.cli.choosing import add_filters, wanted
from playhead.cli.output import Output
from playhead.cli.rerunning import Reran, rerun_all
from playhead.errors import UsageError
from playhead.views import prices, text

STYLES = {"same": "green", "changed": "yellow", "failed": "bold red", "left_out": "dim"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_filters(parser)
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="rerun so many at once (%(default)s)")
    parser.add_argument("--isolated", action="store_true",
                        help="ask each recorded question alone; no code of the agent runs")  # fmt: skip
    parser.add_argument("--header", action="append", default=[], metavar="NAME=VALUE",
                        help="with --isolated: send this, as for a key; @FILE reads it; may be repeated")  # fmt: skip
    parser.add_argument("--waive", action="append", default=[], metavar="REASON",
                        help="let a reason against a replay not count; may be repeated")  # fmt: skip
    live_options.add_unknown(parser)
    live_options.add_overrides(parser)
    parser.epilog = (
        "Each run is replayed with live models and the rest from the tape, as `playhead replay --mode model` does;\n"
        "the new runs are kept, and say what they were made from. What was itself made from a run is left out.\n"
        "With --budget no more is asked once the answers of all of them cost that much.\n"
        "Exit code: 0 all came out the same, 1 some did not, 3 some could not be told.\n\n"
        "examples:\n"
        "  playhead rerun --name fix-login --since 7d --model gpt-5-mini --budget 2\n"
        "  playhead rerun tests/recordings --model claude-haiku-4-5 -j 4 --json"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if sys.platform == "win32" and not args.isolated:
        raise UsageError("a program is replayed on Linux and macOS, not on Windows", hint="Use WSL, or `--isolated`.")
    if not 1 <= args.jobs <= _limits.TEST_JOBS_MAX:
        raise UsageError(f"--jobs is a number from 1 to {_limits.TEST_JOBS_MAX}")
    onward.asker_of(args), onward.headers_of(args)  # they say what is wrong with what is to be different
    if args.header and not args.isolated:
        raise UsageError("--header is for `--isolated`: else the programs send their own")
    recorded = wanted(args)
    with out.progress(len(recorded), "asking the models again") as advance:

        def done(so_far: float | None) -> None:
            advance(1, "" if so_far is None else f"({prices.money(so_far)} so far)")

        found = rerun_all(recorded, args, done)
    counts = {verdict: sum(one.verdict == verdict for one in found) for verdict in STYLES}
    cost = _sum(one.cost for one in found)
    if out.json:
        out.emit({"reran": len(found), **counts, "cost": cost, "runs": [one.as_dict() for one in found]})
    else:
        _print(found, counts, cost, out)
    if counts["failed"] or counts["left_out"]:
        return 3
    return 1 if counts["changed"] else 0


def _sum(costs: Any) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known else None


def _print(found: list[Reran], counts: dict[str, int], cost: float | None, out: Output) -> None:
    rows = [
        [
            (one.run, "cyan"),
            one.name,
            (one.verdict.replace("_", " "), STYLES[one.verdict]),
            f"{one.answers_changed} of {one.answers}",
            "" if one.cost is None else prices.money(one.cost),
            one.text,
        ]
        for one in found
    ]
    columns = ("run", "name", "outcome", "answers changed", "cost", "what changed first")
    out.table(columns, rows, right=("answers changed", "cost"), whole=columns[:5], below="what changed first")
    told = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items() if count)
    spent = prices.told(cost, sorted({model for one in found for model in one.unpriced})) or "nothing"
    out.print(f"\n{text.several(len(found), 'run')} asked again: {told}; cost {spent}")
