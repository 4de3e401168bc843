"""Remove runs that are no longer wanted, and the blobs that nothing refers to then."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from playhead import _limits
from playhead._api.points_in_time import moment_us
from playhead._api.reading import load
from playhead._api.stores import open_folder, open_own_index
from playhead._clock import SystemClock
from playhead.cli.arguments import add_run
from playhead.cli.output import Output
from playhead.errors import RunNotFound, StoreError, UsageError
from playhead.store import search_database
from playhead.store.files import FileStore
from playhead.store.index import STATUSES, Index
from playhead.store.prune import Candidate, candidates, choose, collect_blobs, remove_run, size_of
from playhead.store.removal import remove_leftovers
from playhead.views import text


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser, "runs", nargs="*")
    parser.add_argument("--older-than", metavar="WHEN", help="only runs started before: 12h, 30d, 8w, or a date")
    parser.add_argument("--keep", type=int, metavar="N", help="not the newest N of the runs that fit")
    statuses = [status for status in STATUSES if status != "running"]
    parser.add_argument("--status", choices=statuses, help="only runs with this status")
    parser.add_argument("--yes", action="store_true", help="remove them; without it they are only listed")
    parser.add_argument(
        "--blobs-now", action="store_true", help="remove blobs younger than a day too: nothing may be recording"
    )
    parser.epilog = (
        "Lists what it would remove, and removes it when you say yes. Running runs stay.\n\n"
        "examples:\n"
        "  playhead prune --older-than 30d\n"
        "  playhead prune --status crashed --yes\n"
        "  playhead prune --keep 1000 --yes --json"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if not args.runs and args.older_than is None and args.keep is None and args.status is None and not args.blobs_now:
        raise UsageError("say which runs", hint="For instance `playhead prune --older-than 30d`, or name runs.")
    if args.keep is not None and args.keep < 0:
        raise UsageError("--keep is a number of runs")
    store = open_folder(args.store)
    if not store.root.is_dir():
        raise UsageError(f"there is no store at {store.root}", hint="`--store DIR` names another one.")
    store.refuse_on_windows()
    with open_own_index(store) as index:
        chosen, skipped = _chosen(args, store, index)
        sizes = {one.id: size_of(store.folder(one.id)) for one in chosen}
        if not out.json:
            _list(chosen, skipped, sizes, out)
        if not (args.yes or _agreed(chosen, out)):
            return _only_shown(chosen, skipped, sizes, out)
        return _remove(args, store, index, chosen, skipped, sizes, out)


def _chosen(args: argparse.Namespace, store: FileStore, index: Index) -> tuple[list[Candidate], list[dict[str, str]]]:
    all_runs = candidates(store, index)
    skipped: list[dict[str, str]] = []
    if args.runs:
        wanted = {_in_store(reference, store) for reference in args.runs}
        all_runs = [one for one in all_runs if one.id in wanted]
        skipped = [{"id": one.id, "why": "running"} for one in all_runs if one.status == "running"]
    elif args.older_than is None and args.keep is None and args.status is None:
        return [], []
    before = None if args.older_than is None else moment_us(args.older_than)
    return choose(all_runs, keep=args.keep or 0, before_us=before, status=args.status), skipped


def _in_store(reference: str, store: FileStore) -> str:
    if store.folder(reference).is_dir() and reference in set(store.runs()):
        return reference  # also a directory without a timeline
    found = load(reference, store.root)
    if found.path != store.folder(found.id):
        raise UsageError(f"{reference} is not in {store.root}", hint="A directory elsewhere is yours to remove.")
    return found.id


def _list(chosen: list[Candidate], skipped: list[dict[str, str]], sizes: dict[str, int], out: Output) -> None:
    now = SystemClock().wall_us()
    rows = [(one.id, one.name, one.status, text.ago(one.started_us, now), text.size(sizes[one.id])) for one in chosen]
    if rows:
        out.table(("run", "name", "status", "started", "size"), rows, right=("size",))
    for one in skipped:
        out.print(f"{one['id']} is {one['why']} and stays")


def _agreed(chosen: list[Candidate], out: Output) -> bool:
    if not chosen or not out.terminal or not sys.stdin.isatty():
        return False
    out.stdout.write(f"Remove {text.several(len(chosen), 'run')} for good? [y/N] ")
    out.stdout.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _only_shown(chosen: list[Candidate], skipped: list[dict[str, str]], sizes: dict[str, int], out: Output) -> int:
    if out.json:
        out.emit(_document([], [one.id for one in chosen], skipped, sum(sizes.values())))
    elif chosen:
        told = f"would remove {text.several(len(chosen), 'run')}, {text.size(sum(sizes.values()))}"
        out.print(f"\n{told}, and the blobs that no other run refers to; --yes does it")
    else:
        out.print("would remove nothing")
    return 0


def _remove(
    args: argparse.Namespace,
    store: FileStore,
    index: Index,
    chosen: list[Candidate],
    skipped: list[dict[str, str]],
    sizes: dict[str, int],
    out: Output,
) -> int:
    removed: list[str] = []
    try:
        remove_leftovers(store.root)
    except StoreError as problem:
        out.warn(f"playhead: {problem.message}")
    with out.progress(len(chosen), "removing runs") as advance:
        for one in chosen:
            try:
                remove_run(store, index, one.id)
                removed.append(one.id)
            except RunNotFound:
                pass  # somebody else has just removed it
            except StoreError as problem:
                skipped.append({"id": one.id, "why": problem.message})
                stays = " and stays" if store.folder(one.id).exists() else ""
                out.warn(f"playhead: {problem.message}{stays}")
            advance(1)
    if removed:
        search_database.remove(store.root)  # which still holds the words of those that are gone
    with out.progress(sum(1 for _ in store.runs()), "looking for blobs in use") as advance:
        freed = collect_blobs(store, age_s_min=0 if args.blobs_now else _limits.BLOB_AGE_S_MIN, progress=advance)
    count = sum(sizes[id] for id in removed) + freed.bytes
    if out.json:
        out.emit(_document(removed, [], skipped, count, freed.blobs))
    else:
        told = f"removed {text.several(len(removed), 'run')} and {text.several(freed.blobs, 'blob')}"
        out.print(f"{told}: {text.size(count)}")
    return 0


def _document(
    removed: list[str], would_remove: list[str], skipped: list[dict[str, str]], size: int, blobs: int = 0
) -> dict[str, Any]:
    return {"removed": removed, "would_remove": would_remove, "skipped": skipped, "blobs_removed": blobs, "bytes": size}
