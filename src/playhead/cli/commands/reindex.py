"""Build the index again from the runs. It can be deleted at any time: nothing is lost with it."""

from __future__ import annotations

import argparse
import time

from playhead._api.reading import open_index, open_store
from playhead.cli.output import Output
from playhead.errors import UsageError
from playhead.store import layout
from playhead.views import text


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.epilog = (
        "The index catches up by itself; this is for runs that were copied into the store by hand,\n"
        "and for an index that is in doubt.\n\n"
        "example:\n"
        "  cp -r backup/run_01jqk3… .playhead/runs/ && playhead reindex"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    store = open_store(args.store)
    if not layout.runs_dir(store.root).is_dir():
        raise UsageError(f"there is no store at {store.root}", hint="`--store DIR` names another one.")
    store.refuse_newer()
    began = time.monotonic()
    done = 0
    with out.progress(sum(1 for _ in store.runs()), "reading runs") as advance, open_index(store) as index:

        def progress(now: int, _: int) -> None:
            nonlocal done
            advance(now - done)
            done = now

        count = index.rebuild(progress)
    took_us = int((time.monotonic() - began) * 1_000_000)
    if out.json:
        out.emit({"runs": count, "duration_ms": took_us / 1000, "index": layout.index(store.root)})
    else:
        out.print(f"indexed {text.several(count, 'run')} in {text.duration(took_us)}")
    return 0
