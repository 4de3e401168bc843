"""Print the JSON Schema of a line of a timeline."""

from __future__ import annotations

import argparse

from playhead.cli.output import Output
from playhead.errors import UsageError
from playhead.event.kinds import PAYLOADS
from playhead.event.schema import schema


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--kind", metavar="KIND", help="only lines of this kind, such as model.invoked")
    parser.epilog = "examples:\n  playhead schema > line.schema.json\n  playhead schema --kind model.invoked"


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if args.kind is not None and args.kind not in PAYLOADS:
        raise UsageError(f"there is no kind {args.kind!r}", hint=f"The kinds are {', '.join(PAYLOADS)}.")
    out.emit(schema(args.kind))
    return 0
