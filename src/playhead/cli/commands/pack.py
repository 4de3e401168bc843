"""Pack a run into one file that can be passed on, kept in a repository, and replayed."""

from __future__ import annotations

import argparse

from playhead._api.packing import pack_run
from playhead._api.reading import load
from playhead.cli.arguments import add_run
from playhead.cli.output import Output
from playhead.views import text


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser)
    parser.add_argument("-o", "--output", metavar="FILE", required=True,
                        help="x.cassette, a zip, or x.cassette.jsonl, lines that can be reviewed")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    parser.add_argument("--unfinished", action="store_true", help="pack a run that has no end, and say so in the file")
    parser.epilog = (
        "The file holds the exact lines of the run, and of the runs of programs that it started, up to their present\n"
        "ends, with all blobs, artifacts and packs. Every command that takes a run takes the file.\n\n"
        "examples:\n"
        "  playhead pack @last -o fix-login.cassette\n"
        "  playhead pack fix-login -o tests/cassettes/fix-login.cassette.jsonl\n"
        "  playhead verify fix-login.cassette"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    found = load(args.run, args.store)
    with out.progress(None, "packing") as advance:
        packed = pack_run(found, args.output, unfinished=args.unfinished, force=args.force, progress=advance)
    header = packed.header
    unfinished = [taped.run for taped in header.runs if not taped.finished]
    if out.json:
        out.emit({
            "file": packed.file, "run": header.run, "head": header.runs[0].head,
            "runs": [taped.run for taped in header.runs], "events": packed.events, "contents": header.contents,
            "unfinished": unfinished, "bytes": packed.bytes,
        })  # fmt: skip
        return 0
    with_children = f" and {text.several(len(header.runs) - 1, 'child run')}" if header.runs[1:] else ""
    told = f"{text.several(packed.events, 'event')}, {text.several(header.contents, 'content')}"
    out.print(f"packed {header.run}{with_children} into {packed.file}: {told}, {text.size(packed.bytes)}")
    for id in unfinished:
        out.warn(f"playhead: {id} has no end; the cassette says so")
    return 0
