"""Replay recorded runs against the code as it is now: recordings of production become tests."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from playhead import _limits
from playhead.cli import junit
from playhead.cli.choosing import add_filters, wanted
from playhead.cli.output import Output
from playhead.cli.retesting import Retested, retest
from playhead.errors import UsageError
from playhead.views import text

STYLES = {
    "faithful": "green",
    "deviated": "bold red",
    "not_replayable": "yellow",
    "could_not_tell": "yellow",
    "left_to_pytest": "dim",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_filters(parser)
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N", help="replay so many at once (%(default)s)")
    parser.add_argument("-x", "--exitfirst", action="store_true", help="stop at the first that is not faithful")
    parser.add_argument("--waive", action="append", default=[], metavar="REASON",
                        help="let a reason against a replay not count; may be repeated")  # fmt: skip
    parser.add_argument("--junit", metavar="FILE", help="write the verdicts as JUnit XML too")
    parser.epilog = (
        "Each recording is replayed exactly: its own command is started again, every answer comes from the tape, no\n"
        "model is asked and nothing is paid. What cannot be replayed is named, with the reason, and is no pass.\n"
        "Exit code: 0 all faithful, 1 something deviated, 3 something could not be told.\n\n"
        "examples:\n"
        "  playhead test tests/recordings -j 4 --junit report.xml\n"
        "  playhead test --name fix-login --status ok --since 7d\n"
        "  playhead test --tag suite=golden --json | jq '.runs[] | select(.verdict != \"faithful\")'"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if sys.platform == "win32":
        raise UsageError("a program is replayed on Linux and macOS, not on Windows", hint="Use WSL.")
    if not 1 <= args.jobs <= _limits.TEST_JOBS_MAX:
        raise UsageError(f"--jobs is a number from 1 to {_limits.TEST_JOBS_MAX}")
    from playhead.replay.ready import known_reasons

    waive = known_reasons(reason for named in args.waive for reason in named.split(","))
    recorded = wanted(args)
    with out.progress(len(recorded), "replaying") as advance:
        found = retest(recorded, at_once=args.jobs, waive=waive, stop=args.exitfirst, done=advance)
    if args.junit is not None:
        junit.write(Path(args.junit), found)
    counts = {verdict: sum(one.verdict == verdict for one in found) for verdict in STYLES}
    if out.json:
        left = len(recorded) - len(found)
        out.emit({"tested": len(found), "left_out": left, **counts, "runs": [one.as_dict() for one in found]})
    else:
        _print(found, counts, len(recorded), out)
    if counts["deviated"]:
        return 1
    passed = counts["faithful"] + counts["left_to_pytest"] == len(recorded) and counts["faithful"]
    return 0 if passed else 3


def _print(found: list[Retested], counts: dict[str, int], wanted: int, out: Output) -> None:
    rows = [
        [
            (one.run, "cyan"),
            (one.verdict.replace("_", " "), STYLES[one.verdict]),
            text.number(one.calls),
            f"{one.seconds:.1f}",
            one.first,
        ]
        for one in found
    ]
    columns = ("run", "verdict", "calls", "seconds", "first difference")
    out.table(columns, rows, right=("calls", "seconds"), whole=columns[:4], below="first difference")
    told = ", ".join(f"{count} {verdict.replace('_', ' ')}" for verdict, count in counts.items() if count)
    left = f"; {wanted - len(found)} not replayed any more (-x)" if wanted > len(found) else ""
    replayed = len(found) - counts["left_to_pytest"]
    out.print(f"\n{text.several(replayed, 'run')} replayed against the code as it is now: {told}{left}")
    for one in found:
        if one.verdict == "deviated" and "\n" in one.text:
            out.print(f"\n{one.run}\n  " + one.text.replace("\n", "\n  "))
