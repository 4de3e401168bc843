"""Answer questions to the file system: which there are, what path each is about, and what a listing is."""

from __future__ import annotations

import os
import stat
from types import TracebackType
from typing import TYPE_CHECKING, Any

from playhead.capture.sources import files

if TYPE_CHECKING:
    from playhead.replay.served import Served

SOURCES = frozenset(
    {"os.listdir", "os.scandir", "os.stat", "os.lstat", "os.access", "os.readlink", "os.DirEntry.stat", "os.statvfs"}
)
TOLD = frozenset(
    {
        *("os.getcwd", "os.cpu_count", "os.getlogin", "os.uname", "os.getloadavg", "os.get_terminal_size"),
        *("os.statvfs", "os.sysconf", "os.times", "socket.gethostname", "resource.getrusage"),
    }
)


def asked_path(source: str, owner: Any, args: tuple[Any, ...], named: dict[str, Any] | None) -> str:
    """Return the path that is asked about, as it is recorded."""
    if source == "os.DirEntry.stat":
        return os.path.abspath(os.fsdecode(owner.path))
    return files.asked_path(args, named)


class Entry:
    """One entry of a folder, as it was recorded: what `os.DirEntry` is."""

    def __init__(self, served: Served, folder: Any, name: str, sort: str) -> None:
        self._served, self._sort = served, sort
        as_bytes = isinstance(folder, bytes)
        self.name: Any = os.fsencode(name) if as_bytes else name
        base: Any = "." if folder is None or isinstance(folder, int) else os.fspath(folder)
        self.path: Any = self.name if isinstance(folder, int) else os.path.join(base, self.name)
        # Of a folder that was open by its number, the entry itself does not know where it is.
        self._at = os.path.join(files.asked_path((folder,), None), name) if isinstance(folder, int) else None

    @property  # type: ignore[misc]  # nobody sets it
    def __class__(self) -> Any:
        """Return what it stands for: `shutil` asks such an entry itself."""
        return os.DirEntry

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def is_symlink(self) -> bool:
        """Say whether it is a link."""
        return self._sort == "l"

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Say whether it is a folder."""
        if self._sort == "l" and follow_symlinks:
            return os.path.isdir(self.path)
        return self._sort == "d"

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Say whether it is a file."""
        if self._sort == "l" and follow_symlinks:
            return os.path.isfile(self.path)
        return self._sort == "f"

    def is_junction(self) -> bool:
        """Say no: there are none here."""
        return False

    def inode(self) -> int:
        """Return its number."""
        return self.stat(follow_symlinks=False).st_ino

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return what was told of it."""
        named = os.path.abspath(os.fsdecode(self.path))
        found = self._served.entry_facts(named, self._at or named, not follow_symlinks, 1)
        if found is not None:
            facts: os.stat_result = found
            return facts
        mode = {"d": stat.S_IFDIR | 0o755, "l": stat.S_IFLNK | 0o777}.get(self._sort, stat.S_IFREG | 0o644)
        return os.stat_result((mode, 0, 0, 1, 0, 0, 0, 0, 0, 0))


class Listing:
    """What `os.scandir` gives."""

    def __init__(self, served: Served, entries: list[list[str]], folder: Any) -> None:
        self._entries = iter([Entry(served, folder, name, sort) for name, sort in entries])

    def __iter__(self) -> Listing:
        return self

    def __next__(self) -> Entry:
        return next(self._entries)

    def __enter__(self) -> Listing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Have no more."""
        self._entries = iter(())
