"""Answer from a cassette as from any other store. Nothing is written, to it or anywhere else."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NoReturn

from playhead.errors import Altered, MissingContent, PlayheadError, RunNotFound, StoreError
from playhead.ledger.verify import ContentCheck, Verification, verify
from playhead.ledger.writer import Ledger
from playhead.store import layout
from playhead.store.cassettes import form
from playhead.store.cassettes.form import Referred, Taped
from playhead.store.cassettes.lines import LinedContents
from playhead.store.cassettes.zips import MAGIC, ZippedContents
from playhead.store.files import FileStore


def is_cassette(path: Path) -> bool:
    """Say whether a file is to be read as a cassette: by its name, or by how it begins."""
    if form.form_of(path) is not None:
        return True
    with path.open("rb") as file:
        begins = file.read(len(form.OPENS))
    return begins.startswith(MAGIC) or begins == form.OPENS


def store_at(root: Path | str) -> FileStore | Cassette:
    """Open the store at a path again, in another process: a folder, or a cassette, which was checked before."""
    return Cassette(Path(root)) if os.path.isfile(root) else FileStore(root)


class Cassette:
    """Read the runs of one file. Its structure is checked at once, and what it says by `check`."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        if not path.is_file():
            raise RunNotFound(f"there is no file {path}", hint="`playhead pack RUN -o x.cassette` makes one.")
        with path.open("rb") as file:
            zipped = file.read(len(MAGIC)) == MAGIC
        self.contents: ZippedContents | LinedContents = (ZippedContents if zipped else LinedContents)(self.path)
        self.header = self.contents.header
        self._taped = {taped.run: taped for taped in self.header.runs}
        self._checked = False
        self.blobs: set[str] = set()  # digests of contents that are not only files of a run; known when it was checked

    @property
    def root(self) -> Path:
        """Return what `store_at` opens again."""
        return self.path

    def lines(self, run: str, start: int = 0) -> Iterator[bytes]:
        self._of(run)
        return self.contents.lines(run, start)

    def runs(self) -> Iterator[str]:
        yield from sorted(self._taped)

    def blob(self, digest: str) -> bytes:
        data = self.contents.content(digest)
        if data is None:
            raise MissingContent(f"blob {digest} is not in {self.path}")
        return data

    def file(self, run: str, name: str) -> bytes:
        if name.startswith("artifacts/"):
            layout.artifact(Path(), name.removeprefix("artifacts/"))
        else:
            layout.pack_name(name)
        digest = self._of(run).files.get(name)
        data = None if digest is None else self.contents.content(digest)
        if data is None:
            raise MissingContent(f"{run} has no file {name} in {self.path}")
        return data

    def head(self, run: str) -> tuple[int, str]:
        """Return seq and hash of the event that a run is pinned to."""
        head = self._of(run).head
        return head.seq, head.hash

    def place(self, run: str) -> tuple[int, str]:
        """Return how many lines stand before those of a run, and the name of the file that they stand in."""
        return self.contents.place(run)

    def _of(self, run: str) -> Taped:
        try:
            return self._taped[run]
        except KeyError:
            raise RunNotFound(f"no run {run} in {self.path}", hint=f"There are: {', '.join(self._taped)}.") from None

    def ledger(self, run: str, *, create: bool = False) -> Ledger:
        self._refuse()

    def put_blob(self, data: bytes, digest: str | None = None) -> str:
        self._refuse()

    def put_file(self, run: str, name: str, data: bytes) -> str:
        self._refuse()

    def delete(self, run: str) -> None:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise StoreError(
            f"{self.path} is a cassette: nothing is ever written to it",
            hint="`playhead unpack` puts its run into a store.",
        )

    def check(self) -> None:
        """Compare everything with the digest that it goes by, once; raises where something is not what was packed.

        Each line with its hash and the one before, the last one with the head, each content with its digest, and what
        is there with what the lines refer to: nothing may be missing, nothing may be there that nobody refers to.
        """
        if self._checked:
            return
        for digest in self.contents.digests:
            if hashlib.sha256(self.blob(digest)).hexdigest() != digest:
                raise self._altered(f"content {digest} is not what was packed")
        there = set(self.contents.digests)
        for taped in self.header.runs:
            referred = self._check_run(taped)
            self.blobs.update(referred.blobs, referred.aside & there)
        wanted = self.blobs.union(*(taped.files.values() for taped in self.header.runs))
        if unknown := there - wanted:
            raise self._altered(f"nobody refers to content {min(unknown)}")
        if gone := wanted - there:
            raise self._altered(f"content {min(gone)} is gone")
        self._checked = True

    def _check_run(self, taped: Taped) -> Referred:
        """Check the lines of one run, and return what it refers to."""
        referred = Referred()
        lines, head = self._noted(taped.run, referred), self.head(taped.run)
        told = verify(lines, taped.run, check=self._knows(taped), known_head=head)
        if (wrong := _wrong(told, taped)) is not None:
            raise self._altered(wrong)
        if referred.finished != taped.finished:
            raise self._altered(f"its header does not say whether {taped.run} was finished")
        named = {name: digest for name, digest in taped.files.items() if name not in referred.packs}
        if named != referred.artifacts:
            other = min(name for name, _ in named.items() ^ referred.artifacts.items())
            raise self._altered(f"{other} of {taped.run} is not what an event recorded")
        try:
            referred.follow(self.blob)
        except MissingContent as problem:
            raise self._altered(problem.message) from None
        return referred

    def _noted(self, run: str, referred: Referred) -> Iterator[bytes]:
        for line in self.contents.lines(run):
            try:
                referred.take(line)
            except PlayheadError:
                pass  # no event: verify, which gets the line next, says so
            yield line

    def _knows(self, taped: Taped) -> ContentCheck:
        """Return what verify asks; the contents were compared with their digests already."""
        names = {"context_pack": layout.CONTEXT_PACK, "policy_snapshot": layout.POLICY_SNAPSHOT}
        there = set(self.contents.digests)

        def check(kind: str, digest: str, name: str | None) -> Literal["missing", "altered"] | None:
            if kind == "blob":
                return None if digest in there else "missing"
            kept = taped.files.get(names.get(kind) or f"artifacts/{name}")
            return None if kept == digest else "missing" if kept is None else "altered"

        return check

    def _altered(self, why: str) -> Altered:
        return Altered(
            f"{self.path} is refused: {why}",
            hint=f"`playhead verify {self.path}` says more; take the file again from where it came from.",
            detail={"file": str(self.path), "reason": why},
        )


def _wrong(told: Verification, taped: Taped) -> str | None:
    """Return what is wrong with a timeline that must be whole up to its head."""
    if told.events <= taped.head.seq and told.integrity.reason in (None, "cut_tail", "content_altered"):
        return f"{taped.run} is cut: {taped.head.seq + 1} events were packed, {told.events} are left"
    if told.integrity.verdict == "broken" or told.integrity.reason is not None:
        return f"{taped.run}: {by_header(str(told.integrity.message))}"
    if told.missing:
        return f"{taped.run}: {told.missing[0]} is gone"
    if (told.events - 1, told.head) != (taped.head.seq, taped.head.hash):
        return f"{taped.run} goes on after event {taped.head.seq}, to which it is pinned"
    return None


def by_header(message: str) -> str:
    """Say of a cassette what verify says of a run in a store: its header knows the head, where there the index does."""
    return message.replace("the index remembers", "its header names").replace("were indexed", "were packed")
