"""Lay a scratch folder over the file system of a program: what it writes is above, the world is below.

What lies above is in `files` below its own path; a name in `gone` says that whatever the world has at a path is hidden.
All of it is on disk, so that every process of a replay sees the same. Symbolic links are followed here and never by
the system: one that the program made leads elsewhere in its own view.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playhead.capture import answering
from playhead.replay.folders import is_of_then
from playhead.replay.overlay.raw import Raw

_LINKS_MAX = 40  # as Linux has it
_SYSTEM = ("/dev/", "/proc/", "/sys/")
_SHARED_MEMORY = "/dev/shm/"  # files as any other, though among the devices


@dataclass(slots=True)
class Found:
    """Where a path leads."""

    path: str  # without links, as the program would name it
    place: str  # where it is, or would be read
    above: os.stat_result | None = None
    below: os.stat_result | None = None  # None also where it is hidden
    apart: bool = False  # not ours to redirect
    slash: bool = False  # a folder was asked for, by its name

    @property
    def facts(self) -> os.stat_result | None:
        """Return what is there; None for nothing."""
        return self.above or self.below

    @property
    def is_folder(self) -> bool:
        """Say whether it is a folder, itself and not where it leads."""
        facts = self.facts
        return facts is not None and stat.S_ISDIR(facts.st_mode)


@dataclass(slots=True)
class _Step:
    path: str
    above: bool
    below: bool


def _step(found: Found) -> _Step:
    below = found.below is not None and stat.S_ISDIR(found.below.st_mode)
    return _Step(found.path.rstrip("/"), found.above is not None, below)


def failure(number: int) -> OSError:
    """Return the error that the system has for a number; whoever knows it puts in the path that was given."""
    return OSError(number, os.strerror(number))


class CannotLeave(Exception):
    """Something that the program has open cannot be handed over to the world."""


class Layers:
    """What is above and what is below."""

    def __init__(
        self, scratch: Path, apart: tuple[Path, ...], moved: tuple[str, str] | None = None, *, may_pass: bool = False
    ) -> None:
        self._moved = moved  # a folder, and the one that is in its place here
        self.raw = Raw(may_pass=may_pass)
        self.lock = threading.RLock()
        self.databases: set[str] = set()  # where they are that the program has opened
        self.scratch = os.path.realpath(scratch)
        self.files = os.path.join(self.scratch, "files")
        self._gone = os.path.join(self.scratch, "gone")
        for folder in (self.files, self._gone):
            os.makedirs(folder, mode=0o700, exist_ok=True)
        self.device = os.stat(self.files).st_dev
        named = {
            str(given) for place in (scratch, *apart) for given in (os.path.abspath(place), os.path.realpath(place))
        }
        self._apart = tuple(os.path.join(name, "") for name in sorted(named))

    # Where a path leads.

    def is_apart(self, path: str) -> bool:
        """Say whether a path is not ours to redirect: devices and the like, Playhead's own."""
        whole = f"{path}/"
        return whole.startswith(self._apart) or (path.startswith(_SYSTEM) and not whole.startswith(_SHARED_MEMORY))

    def shown(self, path: str) -> str:
        """Return the name under which the program knows a place."""
        if path == self.files or path.startswith(self.files + "/"):
            return path[len(self.files) :] or "/"
        return path

    def here(self) -> str:
        """Return the folder that the program is in."""
        return self.shown(self.raw.getcwd())

    def of_number(self, number: int) -> str:
        """Return the path of a folder that is open by its number."""
        return self.shown(self.place_of(number))

    def place_of(self, number: int) -> str:
        """Return where something is that is open by its number."""
        try:
            path: str = self.raw.readlink(f"/proc/self/fd/{number}")
        except FileNotFoundError:
            self.raw.fstat(number)  # says where it is not open
            import fcntl  # no Linux

            path = os.fsdecode(fcntl.fcntl(number, fcntl.F_GETPATH, bytes(1024)).rstrip(b"\0"))  # type: ignore[attr-defined]
        return path

    def walk(self, path: str, *, follow: bool = True) -> Found:
        """Return where an absolute path leads; OSError where the way to it ends before."""
        if self._moved is None:
            return self.walk_here(path, follow=follow)
        then, now = self._moved
        if not is_of_then(path, then, now):
            return self.walk_here(path, follow=follow)
        here = self._try(now + path[len(then) :], follow)
        if here is not None and here.facts is not None:
            return here
        # What the folder of now has not may be there all the same, as packages are; what is nowhere is made in the new.
        there = self._try(path, follow)
        return (
            here if here is not None and (there is None or there.facts is None) else self.walk_here(path, follow=follow)
        )

    def _try(self, path: str, follow: bool) -> Found | None:
        try:
            return self.walk_here(path, follow=follow)
        except OSError:
            return None

    def walk_here(self, path: str, *, follow: bool = True) -> Found:
        """Do the same with a path that was found before: in this folder, and not in that of then."""
        parts = path.split("/")[::-1]
        steps = [_Step("", True, True)]
        found = Found("/", "/", self.raw.look(self.files), self.raw.look("/"), slash=True)
        links = 0
        while parts:
            part = parts.pop()
            if part in ("", "."):
                continue
            if part == "..":
                if len(steps) > 1:
                    steps.pop()
                found = self._at(steps[-1])
                continue
            last = not any(one not in ("", ".") for one in parts)
            found = self._next(steps[-1], part)
            found.slash = last and bool(parts)
            if found.apart:
                found.path = found.place = "/".join((found.path, *parts[::-1]))
                return found
            facts = found.facts
            if facts is None:
                if not last:
                    raise failure(errno.ENOENT)
                return found
            if stat.S_ISLNK(facts.st_mode) and (follow or not last or found.slash):
                links += 1
                if links > _LINKS_MAX:
                    raise failure(errno.ELOOP)
                target = self.raw.readlink(found.place)
                steps = steps[:1] if target.startswith("/") else steps
                parts.extend(target.split("/")[::-1])
                found = self._at(steps[-1])
            elif stat.S_ISDIR(facts.st_mode):
                steps.append(_step(found))
            elif not last or found.slash:
                raise failure(errno.ENOTDIR)
        return found

    def _next(self, step: _Step, part: str) -> Found:
        path = f"{step.path}/{part}"
        if self.is_apart(path):
            return Found(path, path, apart=True)
        above = self.raw.look(self.files + path) if step.above else None
        below = self.raw.look(path) if step.below and not (step.above and self._is_gone(path)) else None
        # What is nowhere would be above: the world may have it, and be hidden.
        return Found(path, path if above is None and below is not None else self.files + path, above, below)

    def _at(self, step: _Step) -> Found:
        above = self.raw.look(self.files + step.path) if step.above else None
        below = self.raw.look(step.path or "/") if step.below else None
        place = step.path or "/" if above is None else self.files + step.path
        return Found(step.path or "/", place, above, below, slash=True)

    def inside(self, found: Found) -> list[Found]:
        """Return what is in a folder."""
        step = _step(found)
        return [self._next(step, name) for name in self.names(found)]

    def parent(self, found: Found) -> Found:
        """Return the folder that something is in, or would be: it is there, or the way would have ended."""
        return self.walk_here(os.path.dirname(found.path))

    def names(self, found: Found) -> list[str]:
        """List a folder of both layers: in the order of the world, and then what is above only."""
        above = self.raw.listdir(self.files + found.path) if found.above is not None else []
        if found.below is None or not stat.S_ISDIR(found.below.st_mode):
            return list(above)
        below: list[str] = self.raw.listdir(found.path)
        if found.above is None:
            return below
        base = found.path.rstrip("/")
        there = set(above)
        seen = [name for name in below if name in there or not self._is_gone(f"{base}/{name}")]
        return seen + [name for name in above if name not in set(below)]

    # Devices: what is above is to look as if it were where it belongs.

    def device_of(self, path: str) -> int:
        """Return the device that a path is on, or would be, without us."""
        known: os.stat_result = self.raw.lstat("/")
        at = 0
        # From the root on: what the world has further down may lead elsewhere, and be hidden.
        while at < len(path) and stat.S_ISDIR(known.st_mode):
            at = path.find("/", at + 1) if "/" in path[at + 1 :] else len(path)
            facts = self.raw.look(path[:at])
            if facts is None:
                break
            known = facts
        return known.st_dev

    def facts_of(self, path: str, facts: os.stat_result, *, above: bool) -> os.stat_result:
        """Return what is known of a file as the program is to see it: where it belongs, or was when it was recorded."""
        player = answering.player
        told = None if player is None else player.identity(path)
        if told is not None:
            number, device = told
        elif above:
            number, device = facts.st_ino, self.device_of(path)
        else:
            return facts
        if (number, device) == (facts.st_ino, facts.st_dev):
            return facts
        form: Any = facts.__reduce__()
        kind, (values, more) = form
        shown: os.stat_result = kind((values[0], number, device, *values[3:]), more)
        return shown

    # What is hidden.

    def marker(self, folder: str, path: str) -> str:
        """Return the name that stands for a path in a folder of ours."""
        return os.path.join(folder, hashlib.blake2b(os.fsencode(path), digest_size=20).hexdigest())

    def _is_gone(self, path: str) -> bool:
        return self.raw.look(self.marker(self._gone, path)) is not None

    def hide(self, path: str) -> None:
        """Hide what the world has at a path."""
        self.make_way(path)  # `walk` looks for what is hidden only in folders that are above too
        try:
            self.raw.symlink(path, self.marker(self._gone, path))
        except FileExistsError:
            pass  # hidden before

    def hidden(self) -> list[str]:
        """Return the paths at which the world is hidden."""
        return sorted(self.raw.readlink(os.path.join(self._gone, name)) for name in self.raw.listdir(self._gone))

    # What goes up.

    def make_way(self, path: str) -> None:
        """Have above the folders that lead to a path, each as it is below."""
        missing = []
        folder = os.path.dirname(path)
        while self.raw.look(self.files + folder) is None:
            missing.append(folder)
            folder = os.path.dirname(folder)
        for folder in reversed(missing):
            below = self.raw.look(folder)  # a file, where the world has changed, or the program replaced it
            self._folder_up(folder, below if below is not None and stat.S_ISDIR(below.st_mode) else None)

    def _folder_up(self, path: str, below: os.stat_result | None) -> None:
        try:
            self.raw.mkdir(self.files + path, 0o700 if below is not None else 0o777)
        except FileExistsError:
            return  # another process was quicker
        if below is not None:
            self._like(self.files + path, path, below)

    def _like(self, place: str, path: str, facts: os.stat_result) -> None:
        """Give what is above the owner, the mode and the times of what is below."""
        if os.geteuid() == 0:
            self.raw.chown(place, facts.st_uid, facts.st_gid, follow_symlinks=False)
        if not stat.S_ISLNK(facts.st_mode):
            # We must be able to add to a folder, even where the program is not: that is asked of the one below.
            ours = 0o300 if stat.S_ISDIR(facts.st_mode) and os.geteuid() != 0 else 0
            self.raw.chmod(place, stat.S_IMODE(facts.st_mode) | ours)
            if "listxattr" in self.raw:
                self._attributes(place, path)
        self.raw.utime(place, ns=(facts.st_atime_ns, facts.st_mtime_ns), follow_symlinks=False)

    def _attributes(self, place: str, path: str) -> None:
        try:
            for name in self.raw.listxattr(path):
                if name.startswith("user."):
                    self.raw.setxattr(place, name, self.raw.getxattr(path, name))
        except OSError as problem:
            if problem.errno not in (errno.ENOTSUP, errno.ENODATA, errno.EACCES, errno.EPERM):
                raise  # else a file system without any, or one of them is not ours to have

    def up(self, found: Found, *, empty: bool = False) -> str:
        """Have above what was found, with its content unless it will be emptied, and return where."""
        place = self.files + found.path
        if found.above is not None:
            return place
        assert found.below is not None, "nothing is there to copy"
        self.make_way(found.path)
        mode = found.below.st_mode
        if stat.S_ISDIR(mode):
            self._folder_up(found.path, found.below)
        elif stat.S_ISLNK(mode):
            self.raw.symlink(self.raw.readlink(found.path), place)
            self._like(place, found.path, found.below)
        elif stat.S_ISREG(mode):
            self._copy(found.path, place, found.below, empty=empty)
        else:
            self.raw.mknod(place, mode, found.below.st_rdev)
        found.above, found.place = self.raw.look(place), place
        return place

    def _copy(self, path: str, place: str, facts: os.stat_result, *, empty: bool) -> None:
        # Under another name until it is whole: another thread may look meanwhile.
        new = f"{self.scratch}/new-{threading.get_native_id()}"
        target = self.raw.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            if not empty:
                source = self.raw.open(path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    while part := os.read(source, 1 << 20):
                        write(target, part)
                finally:
                    os.close(source)
        finally:
            os.close(target)
        self._like(new, path, facts)
        self.raw.rename(new, place)

    def all_up(self, found: Found) -> str:
        """Have above what was found and all that is in it."""
        below = found.below if found.above is None else None
        place = self.up(found)
        if found.is_folder:
            for one in self.inside(found):
                self.all_up(one)
            if below is not None:
                self._like(place, found.path, below)  # its times are those of its content
        return place

    def take_away(self, found: Found) -> None:
        """Take something from the view of the program, with all that is in it."""
        if found.above is not None:
            self._remove(self.files + found.path, found.above)
        if found.below is not None:
            self.hide(found.path)

    def _remove(self, place: str, facts: os.stat_result) -> None:
        if stat.S_ISDIR(facts.st_mode):
            for name in self.raw.listdir(place):
                self._remove(f"{place}/{name}", self.raw.lstat(f"{place}/{name}"))
            self.raw.rmdir(place)
        else:
            self.raw.unlink(place)

    def content(self, place: str) -> bytes:
        """Read what is at a place, past the overlay."""
        number = self.raw.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            parts = []
            while part := os.read(number, 1 << 20):
                parts.append(part)
            return b"".join(parts)
        finally:
            os.close(number)


def write(number: int, content: bytes) -> None:
    """Write all of it."""
    view = memoryview(content)
    while view:
        view = view[os.write(number, view) :]
