"""Choose runs by what they are: the options that commands share, and what is said where none matches."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead._api.latest import runs_above, store_above
from playhead._api.points_in_time import moment_us
from playhead.cli.output import Output
from playhead.store.index_questions import STATUSES, Questions
from playhead.store.layout import is_store

if TYPE_CHECKING:
    from playhead.store.remote.address import Address

_ID = re.compile(r"[0-9a-fA-F]{1,64}")
FILTERS = ("name", "status", "error", "since", "until", "agent", "commit", "tag")


def add_filters(parser: argparse.ArgumentParser) -> None:
    """Add the options that say which runs are meant."""
    parser.add_argument("--name", help="only runs of exactly this name")
    parser.add_argument("--status", choices=STATUSES, help="only runs with this status")
    parser.add_argument("--error", action="store_true", help="only runs that ended in an error, or crashed")
    parser.add_argument("--since", metavar="WHEN", help="started at or after: 30m, 2h, 3d, or a date and time")
    parser.add_argument("--until", metavar="WHEN", help="started before")
    parser.add_argument("--agent", metavar="NAME", help="only runs of this agent")
    parser.add_argument("--commit", metavar="SHA",
                        help="only runs that were started from this commit, or made it: its id, the beginning of "
                        "one, or what git calls it here, as HEAD~1")  # fmt: skip
    parser.add_argument("--tag", metavar="KEY[=VALUE]", help="only runs with this tag")


def given(args: argparse.Namespace) -> bool:
    """Say whether any of them was given."""
    return any(getattr(args, name) not in (None, False) for name in FILTERS)


def chosen(args: argparse.Namespace) -> dict[str, Any]:
    """Return which runs are meant, as fields of RunFilter."""
    return {
        "name": args.name,
        "status": args.status,
        "has_error": True if args.error else None,
        "since_us": None if args.since is None else moment_us(args.since),
        "until_us": None if args.until is None else moment_us(args.until),
        "agent": args.agent,
        "commit": None if args.commit is None else _commit(args.commit),
        "tag": args.tag,
    }


def _commit(named: str) -> str:
    """Return the id of a commit, or the beginning of one."""
    if _ID.fullmatch(named):
        return named.lower()
    from playhead._api.linking import commit_id

    return commit_id(named, Path())


def words(args: argparse.Namespace) -> list[str]:
    """Return them as they were typed."""
    out = []
    for name in FILTERS:
        value = getattr(args, name)
        if value is True:
            out.append(f"--{name}")
        elif value not in (None, False):
            out += [f"--{name}", str(value)]
    return out


def say_none(root: Path | Address, index: Questions, out: Output) -> None:
    """Say that no run matches, or that there are none, and what to do then."""
    if index.list_runs(limit=1):
        out.print("No run matches. `playhead ls` without filters lists all of them.")
        return
    out.print(f"No runs yet in {root}.")
    if (hint := runs_above(index)) is not None:
        out.print(hint)
    if not isinstance(root, Path):
        out.print(f"Send it spans:  OTEL_EXPORTER_OTLP_ENDPOINT={root}")
        return
    out.print("Record the first one:  playhead record -- python agent.py")
    out.print("Or look around first:  playhead demo")


def tell_above(args: argparse.Namespace, root: Path | Address, out: Output) -> None:
    """Say where there are runs, where this folder has none and no store was named."""
    if args.store is None and isinstance(root, Path) and not is_store(root) and (hint := store_above(root)) is not None:
        out.warn(f"playhead: there are no runs here yet. {hint}")
