"""Choose recordings to work on: cassettes of a folder, or runs of a store by what they are."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from playhead._api.reading import looks_like_path
from playhead.cli.arguments import moment_us, store_root
from playhead.cli.quick_index import open_quick_index
from playhead.errors import UsageError
from playhead.store import layout
from playhead.store.index import STATUSES


@dataclass(frozen=True)
class Recorded:
    """One recording that is to be replayed: the folder of a run, or a cassette."""

    name: str
    shown: str  # as the reader knows it
    place: str


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add which recordings are meant."""
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


def wanted(args: argparse.Namespace) -> list[Recorded]:
    """Return the recordings that are meant: cassettes where a path was given, else runs of the store."""
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


def cassettes_in(folder: Path) -> list[Path]:
    """Return every cassette of a folder and the folders in it, by its path."""
    return sorted({*folder.rglob("*.cassette"), *folder.rglob("*.cassette.jsonl")})
