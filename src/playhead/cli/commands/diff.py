"""Compare two runs."""

from __future__ import annotations

import argparse

from playhead import _limits
from playhead._api.comparing import diff
from playhead._api.reading import Run, load
from playhead._api.settling import Settled
from playhead.cli.altered import member_named, warn_if_altered
from playhead.cli.arguments import add_ignore, add_run, store_option
from playhead.cli.diff_text import print_beside, print_children, print_deviations, print_outcome
from playhead.cli.output import Output, one_line
from playhead.errors import UsageError
from playhead.store.reader import RunReader
from playhead.views.diff.children import Child
from playhead.views.diff.comparison import Deviation

_TYPES = ("added", "removed", "changed", "moved")
_CAUSES = ("input_changed", "output_changed", "status_changed", "follows")
_NOUNS = ("run", "step", "model", "tool", "mcp", "http", "process", "policy", "artifact", "note", "output", "ci")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser, "left", help="the run to compare with, such as a good one: named as everywhere")
    add_run(parser, "right", help="the run that is compared")
    parser.add_argument("--only", metavar="WHAT", action="append", default=[],
                        help="only these: a type, a cause, or model, tool, step, …; with commas")  # fmt: skip
    add_ignore(parser)
    parser.add_argument("--durations", action="store_true", help="also what took much longer, or shorter")
    parser.add_argument("--all", action="store_true", help="also the fields of what follows from other deviations")
    parser.add_argument("--limit", type=int, metavar="N", default=_limits.DIFF_ROWS_DEFAULT,
                        help="at most so many deviations, 0 for all (%(default)s; --json: all)")  # fmt: skip
    parser.add_argument("--exit-code", action="store_true", help="exit with 1 where something differs")
    parser.epilog = (
        "Exit code: 0 compared, 3 where something could not be and nothing else differs, or a record was altered;\n"
        "with --exit-code 1 where something differs.\n\n"
        "examples:\n"
        "  playhead diff good bad\n"
        "  playhead diff @last~1 @last --only model,tool\n"
        "  playhead diff baseline.cassette @last --ignore '/output/*/timestamp' --exit-code\n"
        "  playhead diff @last~1 @last --json | jq .headline"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    wanted = _wanted(args.only)
    if args.limit < 0:
        raise UsageError("--limit is a number of deviations, 0 for all")
    runs = [load(name, args.store) for name in (args.left, args.right)]
    problems = [warn_if_altered(found, name, out) for found, name in zip(runs, (args.left, args.right), strict=True)]
    with out.progress(None, "comparing"):
        found = diff(*runs, ignore=args.ignore, durations=args.durations)
        children = found.children
    for child in children:
        for one, id in zip(runs, (child.left, child.right), strict=True):
            if id is not None:
                problems.append(warn_if_altered(Run(one.store, id), id, out))
    chosen = found.only(lambda one: _is_wanted(one, wanted))
    if out.json:
        document = chosen.as_dict()
        document["identical"] = found.identical
        altered = next((problem for problem in problems if problem is not None), None)
        document["problem"] = None if altered is None else altered.as_dict()["error"]
        out.emit(document)
    else:
        for label, one in zip(("left ", "right"), runs, strict=True):
            order = "  (in the order of the times)" if Settled(RunReader(one.store, one.id)).is_imported else ""
            out.styled((f"{label}  ", "dim"), f"{one.id}  {one_line(one.name)}  {one.status}", (order, "dim"))
        print_outcome(found, out)
        print_deviations(chosen, len(found.deviations), args.limit, args.all, out)
        print_beside(found, out)
        print_children(found, lambda child: _command(child, runs, args), out)
    if any(problems) or chosen.identical is None:  # of what was asked for nothing differs, as far as that can be told
        return 3
    return 1 if args.exit_code and chosen else 0


def _command(child: Child, runs: list[Run], args: argparse.Namespace) -> str | None:
    """Return what compares two runs of Pythons alone; None where there is nothing else to compare, or no way to."""
    if child.left is None or child.right is None or child.left == child.right:
        return None
    ids = (child.left, child.right)
    named = [member_named(one, id, args.store) for one, id in zip(runs, ids, strict=True)]
    return None if None in named else f"playhead diff {named[0]} {named[1]}{store_option(args.store)}"


def _wanted(given: list[str]) -> set[str]:
    named = {name.strip() for one in given for name in one.split(",") if name.strip()}
    unknown = sorted(named.difference(_TYPES, _CAUSES, _NOUNS))
    if unknown:
        raise UsageError(
            f"nothing in a diff is called {unknown[0]!r}",
            hint=f"--only takes {', '.join((*_TYPES, *_CAUSES, *_NOUNS))}.",
        )
    return named


def _is_wanted(one: Deviation, wanted: set[str]) -> bool:
    """Say whether a deviation is of what was asked for: of each sort that was named, one must fit."""
    for names, value in ((_TYPES, one.type), (_CAUSES, one.cause or ""), (_NOUNS, one.kind.partition(".")[0])):
        named = wanted.intersection(names)
        if named and value not in named:
            return False
    return True
