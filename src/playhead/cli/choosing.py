"""Choose recordings to work on: cassettes of a folder, or runs of a store by what they are."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from playhead._api.reading import looks_like_path
from playhead.cli import filters
from playhead.cli.arguments import store_root
from playhead.cli.quick_index import open_quick_index
from playhead.errors import UsageError
from playhead.store import layout


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
    filters.add_filters(parser)
    parser.add_argument(
        "-n", "--limit", type=int, default=0, metavar="N", help="at most so many, the newest; 0 for all"
    )


def wanted(args: argparse.Namespace) -> list[Recorded]:
    """Return the recordings that are meant: cassettes where a path was given, else runs of the store."""
    path = None if args.what is None else Path(args.what)
    if path is not None and path.exists():
        if filters.given(args):
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
            text=args.what,
            include_replays=False,
            **filters.chosen(args),
        )
    found = [one for one in runs if not isinstance(one["origin"], dict)]  # not what programs of other runs made
    if not found:
        hint = "`playhead ls` with the same filters lists them; a folder of cassettes is named by its path."
        raise UsageError(f"no run in {root} matches", hint=hint)
    return [Recorded(one["name"] or "", one["id"], str(layout.run_dir(root, one["id"]))) for one in found]


def cassettes_in(folder: Path) -> list[Path]:
    """Return every cassette of a folder and the folders in it, by its path."""
    return sorted({*folder.rglob("*.cassette"), *folder.rglob("*.cassette.jsonl")})
