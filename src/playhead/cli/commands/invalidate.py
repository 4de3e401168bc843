"""Declare that a run must not be played back. It stays readable, and its chain says who declared it and why."""

from __future__ import annotations

import argparse

from playhead._api.reading import load
from playhead.cli.arguments import add_run
from playhead.cli.output import Output


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser)
    parser.add_argument("--why", required=True, metavar="TEXT", help="the reason, kept in the timeline")
    parser.add_argument("--by", metavar="NAME", help="who says so; else the current user")
    parser.epilog = "examples:\n  playhead invalidate @last --why 'the search tool answered from a stale cache'"


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    found = load(args.run, args.store)
    found.invalidate(args.why, args.by)
    state = found.readiness()
    if out.json:
        answer = {"replayable": state.replayable, "reasons": state.reasons, "not_captured": state.not_captured}
        out.emit({"run": found.id, "why": args.why, **answer})
    else:
        out.print(f"{found.id} will not be played back any more: {state.detail['manually_invalidated']}")
    return 0
