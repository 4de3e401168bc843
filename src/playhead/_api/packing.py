"""Pack a run into a cassette, and put a cassette into a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from playhead._api.children import children_of
from playhead._api.reading import Run
from playhead._api.stores import open_folder
from playhead.errors import Altered, MissingContent, UsageError
from playhead.store import presence
from playhead.store.cassettes import form
from playhead.store.cassettes.form import Head, Header
from playhead.store.cassettes.packing import Snapshot, write
from playhead.store.cassettes.reading import Cassette
from playhead.store.cassettes.unpacking import Placed, unpack
from playhead.store.family import children
from playhead.store.remote.reading import RemoteStore

Progress = Callable[[int], None]


class Packed(msgspec.Struct):
    """A cassette that was written."""

    file: Path
    header: Header
    events: int
    bytes: int


class Unpacked(msgspec.Struct):
    """The runs of a cassette that are in a store now."""

    file: Path
    store: Path
    header: Header
    runs: list[Placed]


def pack_run(
    run: Run,
    target: str | Path,
    *,
    unfinished: bool = False,
    force: bool = False,
    progress: Progress = lambda amount: None,
) -> Packed:
    """Write a run and the runs of programs it started into one file: `.cassette`, a zip, or `.cassette.jsonl`.

    Everything is verified first, and what was written is read back before it takes its place. `unfinished` allows runs
    without an end; `force` replaces a file that is there.
    """
    path = Path(target)
    _check_target(path, force)
    if isinstance(run.store, Cassette):
        run.store.check()
    heads = {id: _head(Run(run.store, id)) for id in (run.id, *_started(run))}
    snapshot = Snapshot(run.store, heads, progress)
    open_runs = [taped.run for taped in snapshot.header.runs if not taped.finished]
    if open_runs and not unfinished:
        raise _not_finished(run, open_runs)
    write(snapshot, path)
    events = sum(taped.head.seq + 1 for taped in snapshot.header.runs)
    return Packed(path, snapshot.header, events, path.stat().st_size)


def _started(run: Run) -> list[str]:
    """Return the runs of programs that it started, and that those did: of a server as its index has them."""
    if isinstance(run.store, RemoteStore):
        return sorted(child.id for child in children_of(run))
    return children(run.store, run.id)


def _check_target(path: Path, force: bool) -> None:
    if form.form_of(path) is None:
        raise UsageError(
            f"{path} does not say which form of cassette it is",
            hint=f"Name it x{form.ZIP} for a zip, or x{form.LINES} for lines that can be reviewed.",
        )
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"cannot write to {path}", hint="Name a file in a folder that exists.")
    if path.exists() and not force:
        raise UsageError(f"{path} is there already", hint="`--force` replaces it.")


def _head(run: Run) -> Head:
    """Verify a run, and return the head that it is pinned to."""
    found = run.verify()
    if found.integrity.verdict == "broken" or found.integrity.reason == "cut_tail":
        raise Altered(
            f"{run.id} is not packed: {found.integrity.message}",
            detail={"at": found.integrity.at, "reason": found.integrity.reason},
        )
    if found.missing:
        raise MissingContent(f"{run.id} is not packed: {', '.join(found.missing[:10])} is gone")
    if found.head is None:
        raise UsageError(f"{run.id} has no events", hint="The process was killed before the first one was written.")
    return Head(found.events - 1, found.head)


def _not_finished(run: Run, open_runs: list[str]) -> UsageError:
    of = run.id if run.id in open_runs else f"{open_runs[0]}, which {run.id} started,"
    running = presence.is_written(run.store, open_runs[0])
    return UsageError(
        f"{of} {'is still running' if running else 'did not finish'}: it is not packed",
        hint="`--unfinished` packs what there is, and the cassette says so.",
        detail={"unfinished": open_runs},
    )


def unpack_file(
    file: str | Path, store: str | Path | None = None, *, progress: Progress = lambda amount: None
) -> Unpacked:
    """Put the runs of a cassette into a store: checked first, byte for byte, and never over another record."""
    cassette = Cassette(Path(file))
    target = open_folder(store)
    return Unpacked(Path(file), target.root, cassette.header, unpack(cassette, target, progress))
