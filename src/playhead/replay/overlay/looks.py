"""Stand in place of the functions that look at the file system: stat, listings, links, the present folder."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any

from playhead.capture import answering
from playhead.replay.overlay.layers import Found
from playhead.replay.overlay.view import Naming, View, given


class Looks:
    """Functions by the names of those that they stand for."""

    def __init__(self, view: View) -> None:
        self._view, self._layers, self._raw = view, view.layers, view.raw

    def instead(self) -> dict[str, Callable[..., Any]]:
        """Return what to put in whose place."""
        names: tuple[str, ...] = (
            "access",
            "chdir",
            "fstat",
            "getcwd",
            "getcwdb",
            "getxattr",
            "listdir",
            "listxattr",
            "lstat",
        )
        names += ("pathconf", "readlink", "scandir", "stat", "statvfs")
        return {name: getattr(self, name) for name in names}

    def stat(self, path: Any, *, dir_fd: Any = None, follow_symlinks: bool = True) -> os.stat_result:
        """Look at what a path leads to."""
        return self._facts(path, dir_fd, follow_symlinks, self._raw.stat)

    def lstat(self, path: Any, *, dir_fd: Any = None) -> os.stat_result:
        """Look at what is at a path."""
        return self._facts(path, dir_fd, False, self._raw.stat)

    def _facts(self, path: Any, folder: Any, follow: bool, look: Any) -> os.stat_result:
        if isinstance(path, int) and folder is None and follow:
            return self.fstat(path)
        named = given(path) if isinstance(path, (str, bytes, os.PathLike)) else path
        with Naming(named):
            found = self._view.find(path, folder, follow=bool(follow))
            if found is None:
                plain: os.stat_result = look(path, dir_fd=folder, follow_symlinks=follow)
                return plain
            facts: os.stat_result = look(found.place, follow_symlinks=bool(follow) and found.apart)
            return self._layers.facts_of(found.path, facts, above=found.above is not None)

    def fstat(self, fd: Any) -> os.stat_result:
        """Look at what is open."""
        facts: os.stat_result = self._raw.fstat(fd)
        if not isinstance(fd, int) or (facts.st_dev != self._layers.device and answering.player is None):
            return facts
        try:
            place = self._raw.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            return facts  # no Linux, and so not to be found out
        path = self._layers.shown(place)
        return self._layers.facts_of(path, facts, above=path != place)

    def access(
        self, path: Any, mode: Any, *, dir_fd: Any = None, effective_ids: bool = False, follow_symlinks: bool = True
    ) -> bool:
        """Say what may be done with a file."""
        options = {"effective_ids": effective_ids, "follow_symlinks": follow_symlinks}
        try:
            found = self._view.find(path, dir_fd, follow=bool(follow_symlinks))
        except OSError:
            return False
        if found is None:
            return bool(self._raw.access(path, mode, dir_fd=dir_fd, **options))
        return bool(self._raw.access(found.place, mode, **options))

    def readlink(self, path: Any, *, dir_fd: Any = None) -> Any:
        """Say where a link leads."""
        with Naming(given(path)):
            found = self._view.find(path, dir_fd, follow=False)
            if found is None:
                return self._raw.readlink(path, dir_fd=dir_fd)
            to = self._layers.shown(self._raw.readlink(found.place))  # /proc tells of what is open
        return os.fsencode(to) if isinstance(given(path), bytes) else to

    def listdir(self, path: Any = None) -> list[Any]:
        """List a folder."""
        named, found = self._folder(path)
        if found is None:
            names: list[Any] = self._raw.listdir(path)
            return names
        with Naming(named):
            if found.apart or found.above is None:
                names = self._raw.listdir(found.place)
            else:
                self._must_be_folder(found)
                names = self._layers.names(found)
        return [os.fsencode(name) for name in names] if isinstance(named, bytes) else names

    def scandir(self, path: Any = None) -> Any:
        """List a folder, with what is in it."""
        named, found = self._folder(path)
        if found is None or found.apart or self._is_plain(named, found):
            return self._raw.scandir(path)
        with Naming(named):
            self._must_be_folder(found)
            with self._layers.lock:
                there = self._layers.inside(found)
        shown = "." if path is None else "" if isinstance(path, int) else named
        return Entries(self._view, shown, [one for one in there if one.apart or one.facts is not None])

    def _is_plain(self, named: Any, found: Found) -> bool:
        """Say whether the system itself understands by a path what the program does."""
        if found.above is not None or found.below is None or isinstance(named, int):
            return False
        text = os.fsdecode(named)
        if not text.startswith("/"):
            if self._raw.getcwd() != self._layers.here():
                return False
            text = os.path.join(self._layers.here(), text)
        return os.path.normpath(text) == found.path

    def _folder(self, path: Any) -> tuple[Any, Found | None]:
        if isinstance(path, int):
            with self._layers.lock:
                found = self._layers.walk(self._layers.of_number(path))
            # By its number where nothing is above: how far it has been read is the program's matter.
            return path, None if found.above is None or found.apart else found
        named = "." if path is None else given(path)
        with Naming(path if path is None else named):
            return named, self._view.find(named)

    def _must_be_folder(self, found: Found) -> None:
        if not found.is_folder:
            self._raw.listdir(found.place)  # says what is wrong

    def getcwd(self) -> str:
        """Return the present folder."""
        return self._layers.here()

    def getcwdb(self) -> bytes:
        """Return the present folder, as bytes."""
        return os.fsencode(self._layers.here())

    def chdir(self, path: Any) -> None:
        """Go to another folder."""
        if isinstance(path, int):
            self._raw.chdir(path)
            return
        named = given(path)
        with Naming(named):
            found = self._view.find(path)
            if found is None:
                self._raw.chdir(path)
                return
            # To that of the world where there is one: code of C looks from there, and sees more of what it expects.
            place = found.place if found.below is None or not found.is_folder else found.path
            if place != found.path:
                sys.audit("os.chdir", named)  # as the program gave it; ours is not listened to
            self._raw.chdir(place)

    def statvfs(self, path: Any) -> Any:
        """Look at the file system that a file is in: that of the world."""
        return self._on_disk(self._raw.statvfs, path)

    def pathconf(self, path: Any, name: Any) -> Any:
        """Say what the file system of a file allows."""
        return self._on_disk(self._raw.pathconf, path, name)

    def _on_disk(self, ask: Any, path: Any, *rest: Any) -> Any:
        if isinstance(path, int):
            return ask(path, *rest)
        with Naming(given(path)):
            found = self._view.find(path)
            if found is None or found.facts is None:
                return ask(path if found is None else found.place, *rest)
            place = found.path if found.above is None else os.path.dirname(found.path)
            while place != "/" and (found := self._layers.walk(place)).below is None:
                place = os.path.dirname(place)
            return ask(place, *rest)

    def getxattr(self, path: Any, attribute: Any, *, follow_symlinks: bool = True) -> bytes:
        """Return an extended attribute."""
        return bytes(self._attribute(self._raw.getxattr, path, follow_symlinks, attribute))

    def listxattr(self, path: Any = None, *, follow_symlinks: bool = True) -> list[str]:
        """List extended attributes."""
        names: list[str] = self._attribute(self._raw.listxattr, "." if path is None else path, follow_symlinks)
        return names

    def _attribute(self, ask: Any, path: Any, follow: bool, *rest: Any) -> Any:
        if isinstance(path, int):
            return ask(path, *rest, follow_symlinks=follow)
        with Naming(given(path)):
            found = self._view.find(path, follow=bool(follow))
            return ask(path if found is None else found.place, *rest, follow_symlinks=follow)


class Entries:
    """What `os.scandir` returns."""

    def __init__(self, view: View, shown: Any, there: list[Found]) -> None:
        self._left = iter([Entry(view, shown, one) for one in there])

    def __iter__(self) -> Iterator[Entry]:
        return self

    def __next__(self) -> Entry:
        return next(self._left)

    def __enter__(self) -> Entries:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        """Give nothing any more."""
        self._left = iter(())


class Entry:
    """An entry of a folder, as `os.DirEntry`."""

    def __init__(self, view: View, shown: Any, found: Found) -> None:
        name = os.path.basename(found.path)
        self.name: Any = os.fsencode(name) if isinstance(shown, bytes) else name
        self.path: Any = os.path.join(shown, self.name) if shown else self.name
        self._view, self._found = view, found
        self._known: dict[bool, os.stat_result] = {}

    @property  # type: ignore[misc]  # nobody sets it
    def __class__(self) -> Any:
        """Return what it stands for: `shutil` asks such an entry itself."""
        return os.DirEntry

    def __fspath__(self) -> Any:
        return self.path

    def __repr__(self) -> str:
        return f"<DirEntry {self.name!r}>"

    def inode(self) -> int:
        """Return its number."""
        return self._facts(False).st_ino

    def is_symlink(self) -> bool:
        """Say whether it is a symbolic link."""
        return self._is(stat.S_ISLNK, False)

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Say whether it is a folder."""
        return self._is(stat.S_ISDIR, follow_symlinks)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Say whether it is a plain file."""
        return self._is(stat.S_ISREG, follow_symlinks)

    def is_junction(self) -> bool:
        """Say no: they are of Windows."""
        return False

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Return what is known of it, as it was when it was asked for first."""
        with Naming(self.path):
            return self._facts(follow_symlinks)

    def _is(self, kind: Callable[[int], bool], follow: bool) -> bool:
        try:
            with Naming(self.path):
                return kind(self._facts(follow).st_mode)
        except FileNotFoundError:
            return False

    def _facts(self, follow: bool) -> os.stat_result:
        if follow not in self._known:
            found = self._found
            if follow:
                with self._view.layers.lock:
                    found = self._view.layers.walk(found.path)
            facts = self._view.raw.lstat(found.place)
            above = found.above is not None
            self._known[follow] = self._view.layers.facts_of(found.path, facts, above=above)
        return self._known[follow]
