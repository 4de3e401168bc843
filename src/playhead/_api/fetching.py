"""Bring a run of a server here, as a cassette that is gone with this process: other processes are to read it too."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import weakref
from pathlib import Path

from playhead._api.packing import pack_run
from playhead._api.reading import Run, load
from playhead.errors import UsageError
from playhead.store.cassettes import form
from playhead.store.cassettes.reading import Cassette
from playhead.store.remote.address import part
from playhead.store.remote.connection import Connection
from playhead.store.remote.reading import RemoteStore


def load_here(reference: str | Path, store: str | Path | None = None) -> Run:
    """Find a run as `load` does, and bring it here where it is on a server."""
    return at_hand(load(reference, store))


def at_hand(run: Run) -> Run:
    """Return a run that can be read without a network: that of a server as a cassette, with the runs it started."""
    if not isinstance(run.store, RemoteStore):
        return run
    folder = tempfile.mkdtemp(prefix="playhead-fetched-")
    try:
        path = Path(folder) / f"{run.id}{form.ZIP}"
        pack_run(run, path, unfinished=True)
        cassette = Cassette(path)
        cassette.check()
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(cassette, shutil.rmtree, folder, True)
    return Run(cassette, run.id)


def download(connection: Connection, id: str, path: Path) -> Path:
    """Bring a cassette here that a server keeps: as a new file, after all of it was checked."""
    if form.form_of(path) is None:
        raise UsageError(f"{path} does not say that it is a cassette", hint=f"Name it x{form.ZIP}, or x{form.LINES}.")
    if path.exists() or not path.absolute().parent.is_dir():
        raise UsageError(f"cannot write to {path}", hint="Name a new file, in a folder that exists.")
    content = connection.get(f"/api/cassettes/{part(id)}/download", accept="*/*").body
    aside = path.with_name(f".{secrets.token_hex(4)}{form.ZIP if content[:2] == b'PK' else form.LINES}")
    try:
        aside.write_bytes(content)
        Cassette(aside).check()
        aside.replace(path)
    except OSError as problem:
        raise UsageError(f"cannot write to {path}: {problem.strerror}") from None
    finally:
        aside.unlink(missing_ok=True)
    return path
