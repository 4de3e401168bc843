"""Make a cassette of a run: look through its lines once for what they refer to, write, read back, put in place."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import secrets
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from playhead.errors import MissingContent, PlayheadError
from playhead.store.base import Store
from playhead.store.cassettes import form, lines, zips
from playhead.store.cassettes.form import Head, Header, Referred, Taped
from playhead.store.cassettes.reading import Cassette
from playhead.store.disk import Disk

Progress = Callable[[int], None]
_MODE = 0o644
_TOLD_LINES = 1000  # between two words about the progress, each of which takes its time


class Snapshot:
    """A run and its family, each pinned to a head. Lines that are added later are no part of it."""

    def __init__(self, store: Store, heads: dict[str, Head], progress: Progress = lambda amount: None) -> None:
        self._store = store
        self._progress = progress
        self._files: dict[str, tuple[str, str]] = {}  # digest, and the run and name of a file that holds it
        found: set[str] = set()
        taped = [self._look_through(run, head, found) for run, head in heads.items()]
        self.digests = sorted(found | self._files.keys())
        self.header = Header(run=taped[0].run, runs=taped, contents=len(self.digests))

    def _look_through(self, run: str, head: Head, found: set[str]) -> Taped:
        referred = Referred()
        for line in itertools.islice(self._store.lines(run), head.seq + 1):
            referred.take(line)
        referred.follow(self._store.blob)
        found.update(referred.blobs)
        found.update(digest for digest in referred.aside if self._has(digest))
        files = {**referred.artifacts, **self._packs(run, referred)}
        for name, digest in files.items():
            self._files.setdefault(digest, (run, name))
        return Taped(run, head, referred.finished, dict(sorted(files.items())))

    def _has(self, digest: str) -> bool:
        """Say whether a line that was set aside is still there: nothing depends on it."""
        try:
            return hashlib.sha256(self._store.blob(digest)).hexdigest() == digest
        except MissingContent:
            return False

    def _packs(self, run: str, referred: Referred) -> dict[str, str]:
        found = {}
        for name in sorted(referred.packs):
            with contextlib.suppress(MissingContent):  # what a line refers to was found to be there
                found[name] = hashlib.sha256(self._store.file(run, name)).hexdigest()
        return found

    def lines(self, taped: Taped) -> Iterator[bytes]:
        told = 0
        for number, line in enumerate(itertools.islice(self._store.lines(taped.run), taped.head.seq + 1)):
            yield line
            if number - told >= _TOLD_LINES:
                self._progress(number - told)
                told = number

    def content(self, digest: str) -> bytes:
        self._progress(1)
        place = self._files.get(digest)
        return self._store.blob(digest) if place is None else self._store.file(*place)


def write(snapshot: Snapshot, target: Path) -> None:
    """Write a cassette that takes its place when all of it is written and was read back: whole, or not at all."""
    aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    disk = Disk()
    try:
        with _new(aside) as file:
            write_form = lines.write if form.form_of(target) == form.LINES else zips.write
            write_form(file, snapshot.header, snapshot)
            file.flush()
            disk.sync(file.fileno())
        _read_back(aside, target)
        disk.replace(aside, target)
    except BaseException:
        aside.unlink(missing_ok=True)
        raise
    if sys.platform != "win32":
        disk.sync_folder(target.absolute().parent)


def _read_back(aside: Path, target: Path) -> None:
    """Check what was written, as everybody does who uses it."""
    try:
        Cassette(aside).check()
    except PlayheadError as problem:
        problem.message = f"{target} is not written: {problem.message.partition(' is refused: ')[2] or problem.message}"
        problem.hint, problem.detail = "docs/reference/limits.md says what a cassette can hold.", None
        raise


def _new(path: Path) -> BinaryIO:
    file = path.open("x+b")
    path.chmod(_MODE)  # whatever the umask: it is made to be passed on
    return file
