"""Build the index again from the runs, and say which of them no longer hold what the old one had seen."""

from __future__ import annotations

import argparse
import time
from typing import Any

from playhead._api.stores import open_folder, open_own_index
from playhead.cli.output import Output
from playhead.errors import UsageError
from playhead.store import layout, search_database
from playhead.store.files import FileStore
from playhead.store.index import Index
from playhead.views import text


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--forget", action="store_true",
                        help="also forget what was seen of runs that were cut, written anew or removed")  # fmt: skip
    parser.epilog = (
        "The index catches up by itself; this is for runs that were copied into the store by hand,\n"
        "and for an index that is in doubt. Where a run no longer holds the last line that the old index had\n"
        "seen of it, that is said, and `verify` goes on saying so.\n"
        "Exit code: 0, or 1 where there is such a run.\n\n"
        "example:\n"
        "  cp -r backup/run_01jqk3… .playhead/runs/ && playhead reindex"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    store = open_folder(args.store)
    if not layout.is_store(store.root):
        raise UsageError(f"there is no store at {store.root}", hint="`--store DIR` names another one.")
    store.refuse_newer()
    began = time.monotonic()
    done = 0
    with out.progress(sum(1 for _ in store.runs()), "reading runs") as advance, open_own_index(store) as index:

        def progress(now: int, _: int) -> None:
            nonlocal done
            advance(now - done)
            done = now

        search_database.remove(store.root)  # made again when somebody searches
        count = index.rebuild(progress, forget=args.forget)
        changed = [_changed(store, index, run, seen) for run, (seen, _) in index.remembered().items()]
    took_us = int((time.monotonic() - began) * 1_000_000)
    if out.json:
        out.emit({"runs": count, "duration_ms": took_us / 1000, "index": layout.index(store.root), "altered": changed})
    else:
        out.print(f"indexed {text.several(count, 'run')} in {text.duration(took_us)}")
    for one in changed:
        out.warn(f"playhead: {one['run']}: {one['message']}")
    if changed:
        out.warn("  `playhead verify --all` goes on saying so; `playhead reindex --forget` takes the runs as they are")
    return 1 if changed else 0


def _changed(store: FileStore, index: Index, run: str, seen: int) -> dict[str, Any]:
    """Say what became of a run that does not hold the event that was the last one seen of it."""
    now = index.get(run)
    left = 0 if now is None else now["events"]
    if not store.folder(run).exists():
        message = f"it is gone; {text.several(seen + 1, 'event')} of it had been seen"
    elif left <= seen:
        message = f"its end was cut off: {text.several(seen + 1, 'event')} had been seen, {left} are left"
    else:
        message = f"it was written anew: event {seen} is not the one that had been seen"
    return {"run": run, "seq": seen, "message": message}
