"""Add up what runs took, cost and saved: one exactly, from its events, or many, from the index."""

from __future__ import annotations

import argparse
import io
from typing import TYPE_CHECKING, Any

from playhead import _limits
from playhead._api.metrics import QUESTIONS, stats_of
from playhead.cli import filters, stats_text
from playhead.cli.arguments import add_run, store_place
from playhead.cli.chart import draw
from playhead.cli.output import Output
from playhead.cli.quick_index import open_quick_index
from playhead.errors import Altered, RunNotFound, UsageError
from playhead.store.index_filter import RunFilter
from playhead.store.price_list import INSTALL, PriceList, price_list_at
from playhead.views import text
from playhead.views.sums import BY, Metrics
from playhead.views.tally import new_group

if TYPE_CHECKING:
    from playhead._api.reading import Run

_DRAW = "what matters most"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser, nargs="?", help="one run, added up exactly; else all runs that the filters choose")
    filters.add_filters(parser)
    parser.add_argument("--by", choices=BY, default="model", help="what a row is of (%(default)s); a day is one of UTC")
    parser.add_argument("--chart", nargs="?", const=_DRAW, metavar="WHAT",
                        help=f"draw bars instead of a table: {', '.join(stats_text.CHARTS)}")  # fmt: skip
    parser.add_argument("--csv", action="store_true", help="answer with CSV, a line for each group")
    parser.add_argument("-n", "--limit", type=int, default=_limits.STATS_GROUPS_DEFAULT, metavar="N",
                        help="at most so many groups; 0 for all (%(default)s)")  # fmt: skip
    parser.epilog = (
        "What a replay was told by its tape was not paid for: it counts as saved. Playbacks leave no trace, so what\n"
        "they saved is in no sum. Costs are estimated with the package genai-prices; what is unknown is said so.\n\n"
        "examples:\n"
        "  playhead stats --since 7d --by model\n"
        "  playhead stats @last --by step\n"
        "  playhead stats --agent fix-login --by day --chart cost\n"
        "  playhead stats --by run -n 0 --csv > runs.csv"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    recorded = _named(args)
    _check(args, out)
    sold = price_list_at(store_place(args.store))
    found, names, altered = (*_many(args, sold, out), None) if recorded is None else _one(recorded, args, out)
    children = [] if recorded is None or args.csv else _children(recorded)
    if args.csv:
        _write_csv(found, out)
    elif out.json:
        problem = {} if altered is None else {"problem": altered.as_dict()["error"]}
        out.emit({**found.as_dict(), **({"children": children} if children else {}), **problem})
    elif names is not None:
        replayable = recorded is not None and recorded.readiness().replayable
        _print(found, names, args, out, replayable=replayable)
        if found.total.models is not None and found.total.models.unpriced and sold.is_empty:
            out.print(f"\nNo prices are installed:  {INSTALL}")
        if recorded is not None and children:
            _print_children(recorded, children, args, out)
    return 3 if altered else 0


def _check(args: argparse.Namespace, out: Output) -> None:
    if args.run is not None and filters.given(args):
        raise UsageError("one run, or the runs that filters choose", hint="Leave out either of them.")
    if args.chart is not None and args.chart not in (*(drawn := stats_text.charts(args.by)), _DRAW):
        raise UsageError(f"no chart of {args.chart!r} by {args.by}", hint=f"It is {', '.join(drawn)}.")
    if sum((args.csv, out.json, args.chart is not None)) > 1:
        raise UsageError("--csv, --json and --chart are three answers", hint="Choose one.")
    if not 0 <= args.limit <= _limits.LIST_RUNS_MAX:
        raise UsageError("--limit is a number of groups, 0 for all")


def _named(args: argparse.Namespace) -> Run | None:
    """Return the run that is named, if one is; it may stand after `--chart`: `--chart @last`."""
    is_charts = args.run is None and args.chart not in (None, *stats_text.CHARTS, _DRAW)
    if is_charts:
        args.run, args.chart = args.chart, _DRAW
    if args.run is None:
        return None
    from playhead._api.reading import load  # here and below: to add up many runs takes none of it

    try:
        return load(args.run, args.store)
    except RunNotFound:
        if not is_charts:
            raise
        hint = f"A chart is {', '.join(stats_text.charts(args.by))}; `playhead ls` lists the runs."
        raise UsageError(f"there is neither a chart nor a run {args.run!r}", hint=hint) from None


def _children(recorded: Run) -> list[dict[str, Any]]:
    from playhead.cli.started import started_by

    return started_by(recorded)


def _print_children(recorded: Run, children: list[dict[str, Any]], args: argparse.Namespace, out: Output) -> None:
    from playhead.cli.started import print_started

    out.print(f"\nIts program started {text.several(len(children), 'run')} of Pythons, added up apart:")
    print_started(recorded, children, "stats", args.store, out)


def _one(recorded: Run, args: argparse.Namespace, out: Output) -> tuple[Metrics, dict[str, str], Altered | None]:
    from playhead.cli.altered import warn_if_altered

    altered = warn_if_altered(recorded, args.run, out)
    return recorded.metrics(args.by).limited(args.limit), {recorded.id: recorded.name}, altered


def _many(args: argparse.Namespace, sold: PriceList, out: Output) -> tuple[Metrics, dict[str, str] | None]:
    """Return what the runs come to, and the names of those in the table; None where there are none, which is said."""
    root, chosen = store_place(args.store), RunFilter(**filters.chosen(args))
    with open_quick_index(root) as index:
        with out.progress(QUESTIONS, "adding up") as advance:
            found = stats_of(index, args.by, chosen, sold, limit=args.limit, advance=advance)
        runs = found.total.runs
        if runs is not None and not runs.count and not runs.replays:
            if not (out.json or args.csv):
                filters.say_none(root, index, out)
            return found, None
        ids = [group.name for group in found.groups] if args.by == "run" and not (out.json or args.csv) else []
        named = index.names([run for run in ids if run is not None])
    return found, named


def _print(found: Metrics, names: dict[str, str], args: argparse.Namespace, out: Output, *, replayable: bool) -> None:
    lines = stats_text.summary(found, replayable=replayable)
    for label, told in lines:
        out.wrapped([(f"{label:<8}", "dim")], told)
    if not lines:
        out.print("No model was asked, no tool called, and there are no steps: nothing to add up.")
    if not found.groups or not lines:
        return
    out.print()
    if args.chart is not None:
        what, bars = stats_text.bars(found, None if args.chart == _DRAW else args.chart)
        out.styled((f"{what} by {found.by}" + (" (UTC)" if found.by == "day" else ""), "dim"))
        draw(bars, out)
    else:
        stats_text.table(found, names, out)
    if found.left_out:
        out.print(f"\n{found.left_out:,} more: `-n 0` for all.")


def _write_csv(found: Metrics, out: Output) -> None:
    from playhead.cli.spreadsheet import write_rows

    flat = [_flat(group.as_dict()) for group in found.groups]
    columns = list(_flat(new_group(None, found.by).as_dict()))
    table = io.StringIO(newline="")
    write_rows(table, [[found.by, *columns[1:]], *([row[column] for column in columns] for row in flat)])
    out.write_exactly(table.getvalue())
    if found.left_out:  # which the lines themselves cannot say
        out.warn(f"{found.left_out:,} more: `-n 0` for all.")


def _flat(nested: dict[str, Any], before: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in nested.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{before}{name}_")
        else:
            out[before + name] = " ".join(value) if isinstance(value, list) else value
    return out
