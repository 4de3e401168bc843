"""Let a program find what the tape tells of the files of its world, whatever the world has become."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from typing import NamedTuple

from playhead.replay.overlay.layers import Found, Layers, write

_FOLDER, _ABSENT = "folder", "absent"


class Change(NamedTuple):
    """What a replay would have done to a file."""

    path: str
    what: str  # `created`, `written`, `deleted`


class Told:
    """What was told of files, and what the program made of them."""

    def __init__(self, layers: Layers) -> None:
        self._layers = layers
        self._told = os.path.join(layers.scratch, "told")
        self._aside = os.path.join(layers.scratch, "aside")
        for folder in (self._told, self._aside):
            os.makedirs(folder, mode=0o700, exist_ok=True)

    def put(self, path: str, content: bytes) -> str:
        """Have a file with this content at a path, whatever there was, and return where."""
        layers = self._layers
        if layers.is_apart(path):  # such as those of /proc: nobody else finds it
            place = layers.marker(self._aside, path)
            self._write(place, content)
            return place
        with layers.lock:
            found = self._reach(path)
            if found.facts is not None and not stat.S_ISREG(found.facts.st_mode):
                layers.take_away(found)
                found = self._reach(path)
            if found.facts is not None and found.facts.st_size == len(content) and _same(layers, found, content):
                return found.place
            layers.make_way(found.path)
            if found.facts is not None:
                layers.up(found, empty=True)
            # In place: whoever has it open, to add to it, goes on in the same file.
            place = layers.files + found.path
            self._write(place, content)
            self._tell(found.path, hashlib.sha256(content).hexdigest())
            return place

    def beside(self, path: str, content: bytes) -> str:
        """Have this content where it is only read, and leave what the program has written at a path as it is."""
        with self._layers.lock:
            found = self._layers.walk(path)
            if _same(self._layers, found, content):
                return found.place
        place = self._layers.marker(self._aside, f"{path} {hashlib.sha256(content).hexdigest()}")
        self._write(place, content)
        return place

    def put_folder(self, path: str) -> None:
        """Have a folder at a path."""
        with self._layers.lock:
            found = self._reach(path)
            if found.apart or found.is_folder:
                return
            if found.facts is not None:
                self._layers.take_away(found)
            self._layers.make_way(f"{found.path}/-")
            self._tell(found.path, _FOLDER)

    def put_missing(self, path: str) -> None:
        """Have a file at a path, an empty one where there is nothing."""
        with self._layers.lock:
            found = self._reach(path, follow=False)
            if found.facts is None and not found.apart:
                self.put(path, b"")

    def have_another_mode(self, path: str, mode: int) -> None:
        """Have another mode on what is at a path, where it has this one: the recorded run has set it."""
        with self._layers.lock:
            self.put_missing(path)
            found = self._layers.walk(path)
            if found.facts is not None and not found.apart and stat.S_IMODE(found.facts.st_mode) == mode:
                self._layers.raw.chmod(self._layers.up(found), mode ^ stat.S_IRGRP)

    def absent(self, path: str) -> None:
        """Have nothing at a path."""
        with self._layers.lock:
            try:
                found = self._layers.walk(path, follow=False)
            except OSError:
                return  # nor a way to it
            if found.facts is not None and not found.apart:
                self._layers.take_away(found)
                self._tell(found.path, _ABSENT)

    def only(self, folder: str, paths: set[str]) -> None:
        """Have nothing in a folder but what is at these paths."""
        with self._layers.lock:
            found = self._reach(folder)
            if found.is_folder and not found.apart:
                for name in self._layers.names(found):
                    path = f"{folder}/{name}"
                    if path not in paths:
                        self.absent(path)

    def _reach(self, path: str, *, follow: bool = True) -> Found:
        """Return where a path leads, and make the folders that are missing on the way."""
        try:
            return self._layers.walk(path, follow=follow)
        except OSError as problem:
            if problem.errno not in (errno.ENOENT, errno.ENOTDIR):
                raise
        self.put_folder(os.path.dirname(path))
        return self._layers.walk(path, follow=follow)

    def _tell(self, path: str, what: str) -> None:
        self._write(self._layers.marker(self._told, path), what.encode())

    def _write(self, place: str, content: bytes) -> None:
        number = self._layers.raw.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        try:
            write(number, content)
        finally:
            os.close(number)

    def _was_told(self, path: str) -> str | None:
        marker = self._layers.marker(self._told, path)
        return None if self._layers.raw.look(marker) is None else self._layers.content(marker).decode()

    # What the program made of it.

    def changes(self) -> list[Change]:
        """Return what the program would have done to the world, by path."""
        layers = self._layers
        with layers.lock:
            found = list(self._changed_in(layers.walk_here("/")))
            for path in layers.hidden():
                try:
                    gone = layers.walk_here(path, follow=False).facts is None
                except OSError:
                    continue  # the folder that it was in is gone too, and is told itself
                if gone and self._was_told(path) != _ABSENT:
                    found.append(Change(path, "deleted"))
        return sorted(found)

    def _changed_in(self, folder: Found) -> list[Change]:
        layers, changed = self._layers, []
        for name in layers.raw.listdir(layers.files + folder.path):
            found = layers.walk_here(f"{folder.path.rstrip('/')}/{name}", follow=False)
            if found.above is None:
                continue  # gone meanwhile
            told = self._was_told(found.path)
            if found.is_folder:
                if (found.below is None or not stat.S_ISDIR(found.below.st_mode)) and told != _FOLDER:
                    changed.append(Change(found.path, "created"))
                changed += self._changed_in(found)
            elif not self._is_as_before(found, told):
                known = layers.raw.look(found.path) is not None if told is None else told != _ABSENT
                changed.append(Change(found.path, "written" if known else "created"))
        return changed

    def _is_as_before(self, found: Found, told: str | None) -> bool:
        assert found.above is not None
        mode = found.above.st_mode
        if told is not None:
            if not stat.S_ISREG(mode):
                return False
            return hashlib.sha256(self._layers.content(found.place)).hexdigest() == told
        below = found.below
        if below is None or below.st_mode != mode:
            return False
        if stat.S_ISREG(mode):
            if below.st_size != found.above.st_size:
                return False
            return self._layers.content(found.place) == self._layers.content(found.path)
        if stat.S_ISLNK(mode):
            return bool(self._layers.raw.readlink(found.place) == self._layers.raw.readlink(found.path))
        return True


def _same(layers: Layers, found: Found, content: bytes) -> bool:
    try:
        return layers.content(found.place) == content
    except PermissionError:
        return False
