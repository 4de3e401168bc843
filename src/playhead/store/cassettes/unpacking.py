"""Put the runs of a cassette into a store, byte for byte, and never over another record."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from playhead.errors import MissingContent, StoreError, WriteFailed
from playhead.store import layout, presence
from playhead.store.cassettes.form import Taped, batched
from playhead.store.cassettes.reading import Cassette
from playhead.store.disk import NOFOLLOW, Disk
from playhead.store.files import FileStore
from playhead.store.removal import remove_folder

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW


class Placed(NamedTuple):
    """What became of one run."""

    run: str
    there: bool  # it was in the store already
    events: int
    more: int  # events that the store has after those of the cassette


def unpack(cassette: Cassette, store: FileStore, progress: Callable[[int], None] = lambda amount: None) -> list[Placed]:
    """Put every run of a cassette into a store; nothing is written where any of them is there as another record."""
    cassette.check()
    store.refuse_on_windows()
    store.refuse_newer()
    more = {taped.run: _compare(cassette, store, taped) for taped in cassette.header.runs}
    missing = [taped for taped in reversed(cassette.header.runs) if more[taped.run] is None]
    try:
        with contextlib.ExitStack() as stack:
            store.make_root()
            made = {taped.run: stack.enter_context(_written(cassette, store, taped)) for taped in missing}
            for digest in sorted(cassette.blobs):
                store.put_blob(cassette.blob(digest), digest)
                progress(1)
            store.sync_files()
            for run, aside in made.items():  # the run last: where it is, its family is
                _put_in_place(aside, store.folder(run))
    except OSError as problem:
        raise WriteFailed(f"cannot write to {problem.filename or store.root}: {problem.strerror}") from problem
    for taped in missing:
        store.note(taped.run, "close")
    return [
        Placed(taped.run, more[taped.run] is not None, taped.head.seq + 1, more[taped.run] or 0)
        for taped in cassette.header.runs
    ]


def _compare(cassette: Cassette, store: FileStore, taped: Taped) -> int | None:
    """Return how many events more the store has of a run; None where it does not have it. Another record is refused."""
    folder = store.folder(taped.run)
    if not os.path.lexists(folder):
        return None
    hint = "`--store DIR` unpacks into another store; `playhead prune` removes a run."
    if not layout.timeline(folder).is_file():
        raise StoreError(f"{folder} is there and holds no timeline", hint=hint)
    ours, theirs = cassette.lines(taped.run), store.lines(taped.run)
    for seq, (line, other) in enumerate(itertools.zip_longest(ours, itertools.islice(theirs, taped.head.seq + 1))):
        if line != other:
            what = "has no event" if other is None else "has another event"
            raise StoreError(f"{taped.run} is in {store.root} and differs: it {what} {seq}", hint=hint)
    more = sum(1 for _ in theirs)
    for name, digest in taped.files.items():
        if name.startswith("artifacts/") or not more:
            try:
                same = hashlib.sha256(store.file(taped.run, name)).hexdigest() == digest
            except MissingContent:
                same = False
            if not same:
                raise StoreError(f"{taped.run} is in {store.root} and differs: its {name} is another", hint=hint)
    return more


@contextlib.contextmanager
def _written(cassette: Cassette, store: FileStore, taped: Taped) -> Iterator[Path]:
    """Write the directory of a run beside the others and bring it to the disk; it is removed unless it leaves there."""
    disk = Disk()
    for left in layout.unpacked_dirs(store.root, taped.run):  # by somebody who was killed
        if not presence.is_held(left):
            remove_folder(left)
    aside = layout.unpacked_dir(store.root, taped.run, secrets.token_hex(4))
    disk.mkdir(aside)
    held = presence.hold(aside)
    try:
        disk.mkdir(layout.artifacts_dir(aside))
        _write(layout.timeline(aside), cassette.lines(taped.run), disk)
        for name in taped.files:
            path = layout.file(aside, name)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(path, [cassette.file(taped.run, name)], disk)
        for path in (layout.context_pack(aside), layout.policy_snapshot(aside)):
            if not path.exists():
                _write(path, [b"{}\n"], disk)
        for here, _, _ in os.walk(aside):
            disk.sync_folder(here)
        yield aside
    finally:
        remove_folder(aside)
        os.close(held)


def _put_in_place(aside: Path, target: Path) -> None:
    disk = Disk()
    if os.path.lexists(target):
        raise StoreError(f"{target.name} came into the store meanwhile", hint="Unpack once more.")
    disk.replace(aside, target)
    disk.sync_folder(target.parent)


def _write(path: Path, pieces: Iterable[bytes], disk: Disk) -> None:
    descriptor = disk.open(path, _NEW)
    try:
        for piece in batched(pieces):
            disk.write_all(descriptor, piece)
        disk.sync(descriptor)
    finally:
        os.close(descriptor)
