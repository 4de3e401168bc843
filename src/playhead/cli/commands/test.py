"""Replay recorded runs against the code as it is now: recordings of production become tests."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from playhead import _limits
from playhead._api.reading import looks_like_path
from playhead.cli import junit
from playhead.cli.arguments import moment_us, store_root
from playhead.cli.output import Output
from playhead.cli.quick_index import open_quick_index
from playhead.cli.retesting import Recorded, Retested, cassettes_in, retest
from playhead.errors import UsageError
from playhead.store import layout
from playhead.store.index import STATUSES
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
    parser.add_argument("what", nargs="?", metavar="DIR|TEXT",
                        help="a folder with cassettes, one cassette, or a part of the name of runs")  # fmt: skip
    parser.add_argument("--name", help="only runs of exactly this name")
    parser.add_argument("--status", choices=STATUSES, help="only runs with this status")
    parser.add_argument("--agent", metavar="NAME", help="only runs of this agent")
    parser.add_argument("--tag", metavar="KEY[=VALUE]", help="only runs with this tag")
    parser.add_argument("--since", metavar="WHEN", help="started at or after: 30m, 2h, 3d, or a date and time")
    parser.add_argument("--until", metavar="WHEN", help="started before")
    parser.add_argument(
        "-n", "--limit", type=int, default=0, metavar="N", help="at most so many, the newest; 0 for all"
    )
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
    recorded = _wanted(args)
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


def _wanted(args: argparse.Namespace) -> list[Recorded]:
    """Return what is to be replayed: cassettes where a path was given, else runs of the store."""
    filters = ("name", "status", "agent", "tag", "since", "until")
    path = None if args.what is None else Path(args.what)
    if path is not None and path.exists():
        if any(getattr(args, name) is not None for name in filters):
            raise UsageError("cassettes are chosen by their folder", hint="Filters are for the runs of a store.")
        files = cassettes_in(path) if path.is_dir() else [path]
        if not files:
            raise UsageError(f"there is no cassette in {path}", hint="`playhead pack RUN -o x.cassette` makes one.")
        return [Recorded(file.name.partition(".cassette")[0], str(file), str(file)) for file in files]
    if path is not None and looks_like_path(args.what):
        raise UsageError(f"there is no {args.what}", hint="A path is a folder of cassettes, or one cassette.")
    root = store_root(args.store)
    with open_quick_index(root) as index:
        runs = index.list_runs(
            limit=args.limit or -1,
            name=args.name,
            status=args.status,
            since_us=None if args.since is None else moment_us(args.since),
            until_us=None if args.until is None else moment_us(args.until),
            agent=args.agent,
            tag=args.tag,
            text=args.what,
            include_replays=False,
        )
    found = [one for one in runs if not isinstance(one["origin"], dict)]  # not what programs of other runs made
    if not found:
        hint = "`playhead ls` with the same filters lists them; a folder of cassettes is named by its path."
        raise UsageError(f"no run in {root} matches", hint=hint)
    return [Recorded(one["name"] or "", one["id"], str(layout.run_dir(root, one["id"]))) for one in found]


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
