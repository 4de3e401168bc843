"""Put the runs of a cassette into a store."""

from __future__ import annotations

import argparse

from playhead._api.packing import unpack_file
from playhead.cli.output import Output
from playhead.views import text


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", metavar="FILE", help="a cassette")
    parser.epilog = (
        "The file is checked first: chain, head, every digest. A run that is in the store already stays as it is;\n"
        "where the store has another record under the same id, nothing is written.\n\n"
        "examples:\n"
        "  playhead unpack fix-login.cassette\n"
        "  playhead unpack fix-login.cassette.jsonl --store elsewhere"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    with out.progress(None, "unpacking") as advance:
        done = unpack_file(args.file, args.store, progress=advance)
    if out.json:
        out.emit({
            "file": done.file, "store": done.store, "run": done.header.run,
            "runs": [{"run": one.run, "there": one.there, "events": one.events, "more": one.more} for one in done.runs],
        })  # fmt: skip
        return 0
    for one in done.runs:
        events = text.several(one.events, "event")
        if not one.there:
            out.print(f"unpacked {one.run} into {done.store}: {events}")
        else:
            more = f"; the store has {text.several(one.more, 'event')} more" if one.more else ""
            out.print(f"{one.run} is in {done.store} already: the same {events}{more}")
    return 0
