"""Keep runs in folders and files, readable with any tool. README.md beside this file tells the life of an event."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from playhead import _limits
from playhead._clock import Clock, SystemClock
from playhead._ids import is_run_id
from playhead.errors import BadName, LedgerError, MissingContent, RunNotFound, StoreError, StoreTooNew, WriteFailed
from playhead.ledger.writer import Ledger
from playhead.store import layout
from playhead.store.disk import CLOEXEC, FOLDER, NOFOLLOW, NONBLOCK, Disk
from playhead.store.file_ledger import FileLedger
from playhead.store.removal import remove_run_dir

if sys.platform != "win32":
    from playhead.store.file_log import FileLog

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW
_FOLDER = FOLDER | NOFOLLOW


class FileStore:
    """Use one folder, `.playhead` by default. Nothing is created before the first run is."""

    flushes_soon = True  # what was written is flushed in the background; else by whoever writes

    def __init__(self, root: Path | str, *, disk: Disk | None = None, clock: Clock | None = None) -> None:
        self.root = Path(root).absolute()
        self._disk = disk or Disk()
        self._clock = clock or SystemClock()
        self._unsynced: dict[Path, object] = {}  # a new mark each time a file is written

    def folder(self, run: str) -> Path:
        """Return the directory of a run, there or not."""
        return layout.run_dir(self.root, run)

    def ledger(self, run: str, *, create: bool = False) -> Ledger:
        self.refuse_on_windows()
        if not is_run_id(run):
            raise StoreError(f"not a run id: {run!r}", hint="A run id is `run_` and 26 characters.")
        folder = self.folder(run)
        try:
            self.refuse_newer()
            if create:
                self._create(folder)
            elif not layout.timeline(folder).exists():
                raise RunNotFound(f"no run {run} in {self.root}")
        except OSError as problem:
            raise WriteFailed(f"cannot write to {problem.filename or self.root}: {problem.strerror}") from problem
        try:
            return self._open(folder, run, create)
        except LedgerError:
            if create:
                shutil.rmtree(folder, ignore_errors=True)  # nothing is in it yet
            raise

    def _open(self, folder: Path, run: str, create: bool) -> FileLedger:
        timeline = layout.timeline(folder)
        log = self._log(timeline, create)
        try:
            ledger = self._ledger(log, run)
        except OSError as problem:
            log.close()
            raise WriteFailed(f"cannot hold {folder}: {problem.strerror}") from problem
        try:
            self.note(run, "open")
        except LedgerError:
            ledger.abandon()
            raise
        if create:  # their entries in the folders above must survive a power loss as well
            self._unsynced[folder] = self._unsynced[timeline] = object()
        return ledger

    def _ledger(self, log: FileLog, run: str) -> FileLedger:
        return FileLedger(log, run, self._clock, self)

    def _log(self, timeline: Path, create: bool) -> FileLog:
        return FileLog(timeline, self._disk, create=create, before_sync=self.sync_files)

    def _create(self, folder: Path) -> None:
        try:
            try:
                self._disk.mkdir(folder)
            except FileNotFoundError:
                self.make_root()
                self._disk.mkdir(folder)
        except FileExistsError:
            raise StoreError(f"{folder.name} exists already") from None
        try:
            self._fill(folder)
        except OSError:
            shutil.rmtree(folder, ignore_errors=True)  # half of a run is none
            raise

    def _fill(self, folder: Path) -> None:
        """Make what a run directory has from its start, beside the timeline."""
        self._disk.mkdir(layout.artifacts_dir(folder))
        for path in (layout.context_pack(folder), layout.policy_snapshot(folder)):
            self._write_new(path, b"{}\n")

    def make_root(self) -> None:
        """Make the folders of the store, where they are not there."""
        if layout.is_store(self.root):
            return
        self.root.parent.mkdir(parents=True, exist_ok=True)
        self._make_folder(self.root)
        self._make_folder(layout.blobs_dir(self.root))
        version = b"%d\n" % layout.STORE_VERSION
        for path, text in ((self.root / ".gitignore", b"*\n"), (layout.version_file(self.root), version)):
            if not path.exists():
                self._put(path, text)
        self._make_folder(layout.runs_dir(self.root))  # last: where it stands, the rest does

    def _make_folder(self, path: Path) -> None:
        with contextlib.suppress(FileExistsError):
            self._disk.mkdir(path)

    def refuse_on_windows(self) -> None:
        """Raise StoreError where runs are read and not written."""
        if sys.platform == "win32":
            raise StoreError(
                "runs are read on Windows, not written",
                hint="Record and prune on Linux, on macOS or in WSL; show, verify and replay work here.",
            )

    def refuse_newer(self) -> None:
        """Raise StoreTooNew where a newer Playhead wrote this store: it is read, not written."""
        if self.version() > layout.STORE_VERSION:
            raise StoreTooNew(f"{self.root} has format {self.version()}, this Playhead writes {layout.STORE_VERSION}")

    def version(self) -> int:
        """Return the format of the store; 1 where nothing says otherwise."""
        try:
            return int(layout.version_file(self.root).read_text().strip() or 1)
        except (FileNotFoundError, NotADirectoryError, ValueError):
            return 1

    def note(self, run: str, what: str, *, sync: bool = False) -> None:
        """Tell the index, by one line in the journal, that a run was opened or closed, or is about to be pruned."""
        try:
            descriptor = self._disk.open(layout.journal(self.root), os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                self._disk.write_all(descriptor, f"{run} {what}\n".encode())
                if sync:
                    self._disk.sync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as problem:
            # The index then finds the run by `reindex`; the timeline itself is not affected.
            raise LedgerError(
                f"cannot note {run} in the journal: {problem.strerror}",
                hint="Run `playhead reindex` when there is space.",
            ) from problem

    def lines(self, run: str, start: int = 0) -> Iterator[bytes]:
        yield from read_lines(layout.timeline(self.folder(run)), start)

    def runs(self) -> Iterator[str]:
        try:
            names = sorted(os.listdir(layout.runs_dir(self.root)))
        except (FileNotFoundError, NotADirectoryError):
            return
        yield from (name for name in names if is_run_id(name))

    def put_blob(self, data: bytes, digest: str | None = None) -> str:
        digest = digest or hashlib.sha256(data).hexdigest()
        path = layout.blob(self.root, digest)
        try:
            self._put_new_blob(path, data)
        except FileNotFoundError:
            self._make_folder(path.parent)
            self._put_new_blob(path, data)
        return digest

    def _put_new_blob(self, path: Path, data: bytes) -> None:
        try:
            # Under its own name at once. A crash may leave a part of it, which no line names and the next writer mends.
            self._write_new(path, data)
            self._unsynced[path] = object()
        except FileExistsError:
            self._disk.touch(path)  # prune leaves young blobs alone: the line that names this one is still to come
            if path.read_bytes() != data:  # damaged, or still being written: it must not spoil this run as well
                self._put(path, data)

    def blob(self, digest: str) -> bytes:
        return _read(layout.blob(self.root, digest), f"blob {digest}")

    def put_file(self, run: str, name: str, data: bytes) -> str:
        folder = self.folder(run)
        if not name.startswith("artifacts/"):
            self._put(folder / layout.pack_name(name), data)
            return name
        return self._put_artifact(folder, layout.artifact_name(name.removeprefix("artifacts/")).parts, data)

    def _put_artifact(self, folder: Path, parts: tuple[str, ...], data: bytes) -> str:
        """Write a new file below `artifacts/` without following any link that stands there, and return its name."""
        got = ["artifacts"]
        with contextlib.ExitStack() as stack:
            try:
                where = self._disk.open(layout.artifacts_dir(folder), _FOLDER)
            except FileNotFoundError:  # of a run that a server took in
                self._make_folder(layout.artifacts_dir(folder))
                where = self._disk.open(layout.artifacts_dir(folder), _FOLDER)
            stack.callback(os.close, where)
            for part in parts[:-1]:
                name, where = next(
                    (name, inner)
                    for name in layout.numbered(part)
                    if (inner := self._open_folder(name, where)) is not None
                )
                stack.callback(os.close, where)
                got.append(name)
            got.append(next(name for name in layout.numbered(parts[-1]) if self._write_artifact(name, where, data)))
        path = "/".join(got)
        self._unsynced[folder / path] = object()
        return path

    def _open_folder(self, name: str, where: int) -> int | None:
        """Open a folder below another, making it if need be; None where a file or a link has its name."""
        with contextlib.suppress(FileExistsError):
            self._disk.mkdir(name, dir_fd=where)
        try:
            return self._disk.open(name, _FOLDER, dir_fd=where)
        except OSError as problem:
            if problem.errno in (errno.ENOTDIR, errno.ELOOP):
                return None
            raise

    def _write_artifact(self, name: str, where: int, data: bytes) -> bool:
        """Write a new file; False where its name is taken by other content."""
        try:
            descriptor = self._disk.open(name, _NEW, dir_fd=where)
        except FileExistsError:
            return _same_content(name, where, data)
        try:
            self._disk.write_all(descriptor, data)
        except OSError:
            os.unlink(name, dir_fd=where)
            raise
        finally:
            os.close(descriptor)
        return True

    def file(self, run: str, name: str) -> bytes:
        folder = self.folder(run)
        if name.startswith("artifacts/"):
            path = layout.artifact(folder, name.removeprefix("artifacts/"))
            if not path.resolve().is_relative_to(folder.resolve()):
                raise BadName(f"{name} leads out of the run directory")
        else:
            path = folder / layout.pack_name(name)
        return _read(path, f"{run}: {name}")

    def private(self, run: str, commitment: str) -> bytes | None:
        """Return the erasable bytes behind a commitment, or None where they were erased.

        The file holds a salt of 32 bytes and then the value, so its SHA-256 is the commitment.
        """
        if not layout.is_digest(commitment):
            return None
        path = layout.private_dir(self.folder(run)) / commitment
        try:
            data = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if hashlib.sha256(data).hexdigest() != commitment:
            raise MissingContent(f"the private value {commitment[:12]} of {run} was altered")
        return data[32:]

    def delete(self, run: str) -> None:
        self.refuse_newer()
        folder = self.folder(run)
        if not is_run_id(run) or not folder.is_dir():
            raise RunNotFound(f"no run {run} in {self.root}")
        remove_run_dir(self.root, run, self._disk, lambda: self.note(run, "pruned", sync=True))

    def _put(self, path: Path, data: bytes) -> None:
        """Put a whole file in its place, so that a crash leaves the old one or the new one."""
        aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            self._write_new(aside, data)
            self._disk.replace(aside, path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(aside)
            raise
        self._unsynced[path] = object()

    def _write_new(self, path: Path, data: bytes) -> None:
        descriptor = self._disk.open(path, _NEW)
        try:
            self._disk.write_all(descriptor, data)
        except OSError:
            with contextlib.suppress(OSError):
                self._disk.truncate(descriptor, 0)  # half of it is of no use, and a full disk needs the space
            raise
        finally:
            os.close(descriptor)

    def sync_files(self) -> None:
        """Bring blobs and artifacts to the disk before the lines that name them."""
        for path, written in list(self._unsynced.items()):
            try:
                descriptor = self._disk.open(path, os.O_RDONLY)
            except (FileNotFoundError, NotADirectoryError):
                self._unsynced.pop(path, None)  # pruned meanwhile
                continue
            try:
                self._disk.sync(descriptor)
                self._disk.sync_folder(path.parent)
            finally:
                os.close(descriptor)
            # Forgotten only now, and only if it was not written again: two threads may be here, and neither may return
            # before the file is on the disk.
            if self._unsynced.get(path) is written:
                self._unsynced.pop(path, None)


class OneRun(FileStore):
    """Read one run directory wherever it lies: a copy, a download, a damaged one that was set aside.

    Blobs are looked for beside it, then in the store that `blobs_from` names.
    """

    def __init__(self, path: Path, run: str, blobs_from: Path | None = None) -> None:
        super().__init__(path.parent)
        self._path = path.absolute()
        self._run = run
        self._blobs_from = blobs_from

    def folder(self, run: str) -> Path:
        return self._path

    def runs(self) -> Iterator[str]:
        yield self._run

    def blob(self, digest: str) -> bytes:
        for root in (self._path, self._path.parent, self._blobs_from):
            if root is not None and (path := layout.blob(root, digest)).is_file():
                return path.read_bytes()
        raise MissingContent(f"blob {digest} is neither beside {self._path} nor in the store")

    def ledger(self, run: str, *, create: bool = False) -> Ledger:
        raise StoreError(
            f"{self._path} is not in a store, so nothing is written to it",
            hint="Move it into .playhead/runs/ and run `playhead reindex`.",
        )


def read_lines(path: Path, start: int = 0) -> Iterator[bytes]:
    """Yield the lines of a timeline file, each with its newline; a torn last one without."""
    if not path.is_file():  # not there, or a pipe, which would be waited for
        raise RunNotFound(f"no timeline at {path}")
    try:
        file = path.open("rb", buffering=_limits.READ_CHUNK_BYTES)
    except (FileNotFoundError, NotADirectoryError):  # pruned meanwhile
        raise RunNotFound(f"no timeline at {path}") from None
    with file:
        file.seek(start)
        while line := file.readline(_limits.LINE_BYTES_MAX):
            yield line


def _read(path: Path, label: str) -> bytes:
    try:
        if path.is_file():  # a pipe that somebody put there would never end
            return path.read_bytes()
    except FileNotFoundError:  # pruned meanwhile
        pass
    raise MissingContent(f"{label} is not in this store")


def _same_content(name: str, folder: int, data: bytes) -> bool:
    try:
        descriptor = os.open(name, os.O_RDONLY | NOFOLLOW | NONBLOCK | CLOEXEC, dir_fd=folder)
    except OSError:
        return False
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return False
    with os.fdopen(descriptor, "rb") as file:
        return file.read(len(data) + 1) == data
