"""Stand in place of the functions that open files: what is written is above, what is read is what the tape tells."""

from __future__ import annotations

import errno
import os
import stat
import sys
from collections.abc import Callable
from typing import Any

from playhead.capture import answering, hooks
from playhead.capture.sources.files import not_the_agents
from playhead.replay import world
from playhead.replay.blocked import Blocked
from playhead.replay.overlay import passing
from playhead.replay.overlay.layers import Found, failure
from playhead.replay.overlay.refusing import refusal
from playhead.replay.overlay.told import Told
from playhead.replay.overlay.view import Naming, View, given, given_text, program

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_TMPFILE = getattr(os, "O_TMPFILE", 0)
_NOT_READ = os.O_WRONLY | os.O_TRUNC | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_PATH", 0)


class Opening:
    """Functions by the names of those that they stand for."""

    def __init__(self, view: View, told: Told, blocked: Blocked) -> None:
        self._view, self._layers, self._raw, self._told = view, view.layers, view.raw, told
        self._blocked = blocked

    def instead(self) -> dict[str, Callable[..., Any]]:
        """Return what to put in whose place."""
        return {"open": self.open, "io_open": passing.opening(self, self._raw), "open_code": self.open_code}

    def opener(self, file: Any, mode: Any, own: Any) -> Callable[[Any, int], int] | None:
        """Return what opens a file at the place where it is for the program; None where `open` itself does that.

        What the tape tells of it is there from then on.
        """
        text = given_text(file)
        if text is None or own is not None or not isinstance(mode, str):
            return None
        if text.startswith(not_the_agents()) and not set(mode) & set("wax+") and self._view.find(text) is None:
            return None
        place = None
        if not set(mode) & set("wx") and ("r" in mode or "+" in mode):
            with Naming(given(file)):
                place = self._ask("open", self._view.meant(text), creates="a" in mode, writes="+" in mode)
        return lambda path, flags: self._open_at(path, flags, 0o666, None, place)

    def open_code(self, path: Any) -> Any:
        """Open a file that is to be run: it may be one that the program has written."""
        found = self._view.find(path)
        if found is None or found.above is None:
            return self._raw.open_code(path)
        with Naming(path):
            return self._raw.open_code(found.place)

    def open(self, path: Any, flags: Any, mode: Any = 0o777, *, dir_fd: Any = None) -> int:
        """Open a file as `os.open` does."""
        text = given_text(path)
        if text is None or not isinstance(flags, int) or not isinstance(dir_fd, (int, type(None))):
            return int(self._raw.open(path, flags, mode, dir_fd=dir_fd))
        place = None
        if not flags & _NOT_READ and not (flags & os.O_CREAT and flags & os.O_EXCL):
            with Naming(given(path)):
                meant, writes = self._view.meant(text, dir_fd), bool(flags & _WRITES)
                place = self._ask("open", meant, creates=bool(flags & os.O_CREAT), writes=writes)
        if flags & _WRITES and not self._is_apart(text, dir_fd):
            sys.audit("open", given(path), None, flags)  # as the program gave it; ours is not listened to
        return self._open_at(path, flags, mode, dir_fd, place)

    def _open_at(self, path: Any, flags: int, mode: int, folder: Any, place: str | None) -> int:
        if answering.is_in_world():  # since it was told of just now
            return int(world.do(self._raw.open, path, flags, mode, dir_fd=folder))
        if place is not None and not flags & _WRITES:
            with Naming(given(path)):
                return int(self._raw.open(place, flags, mode))
        with Naming(given(path)):
            found = self._find(os.fsdecode(path), folder, flags)
            if found is None:
                return int(self._raw.open(path, flags, mode, dir_fd=folder))
            if not flags & _WRITES or found.apart:
                return int(self._raw.open(found.place, flags, mode))
            with self._layers.lock:
                return self._write_to(found, flags, mode)

    def _write_to(self, found: Found, flags: int, mode: int) -> int:
        place = self._layers.files + found.path
        facts = found.facts
        if facts is not None and flags & os.O_CREAT and flags & os.O_EXCL:
            raise failure(errno.EEXIST)
        if facts is None:
            if not flags & os.O_CREAT:
                raise failure(errno.ENOENT)
            if found.slash:
                raise failure(errno.EISDIR)
            parent = self._layers.parent(found)
            if parent.below is not None and not self._raw.access(parent.path, os.W_OK | os.X_OK):
                raise failure(errno.EACCES)
            self._layers.make_way(found.path)
        elif _TMPFILE and flags & _TMPFILE == _TMPFILE:
            self._layers.up(found)
        elif found.is_folder:
            raise failure(errno.EISDIR)
        elif stat.S_ISLNK(facts.st_mode):
            raise failure(errno.ELOOP)
        elif not stat.S_ISREG(facts.st_mode) and found.above is None:
            self._blocked.refuse("open", refusal(found.path, "it is no plain file, and whoever reads it is outside"))
        elif found.above is None:
            if not self._raw.access(found.path, os.W_OK):
                raise failure(errno.EACCES)
            self._layers.up(found, empty=bool(flags & os.O_TRUNC))
        if answering.player is not None:
            adds = flags & os.O_APPEND and not flags & os.O_TRUNC
            answering.player.wrote(found.path, after=facts.st_size if adds and facts is not None else None)
        return int(self._raw.open(place, flags, mode))

    def _find(self, text: str, folder: Any, flags: int) -> Found | None:
        follow = not flags & os.O_NOFOLLOW and not (flags & os.O_CREAT and flags & os.O_EXCL)
        if not flags & _WRITES:
            return self._view.find(text, folder, follow=follow)
        with self._layers.lock:
            whole = self._view.led(self._view.whole(text, folder), itself=True)
            return self._layers.walk(whole, follow=follow)

    def _is_apart(self, text: str, folder: Any) -> bool:
        try:
            return self._layers.walk(self._view.whole(text, folder), follow=False).apart
        except OSError:
            return False

    # What the tape tells.

    def _ask(self, of: str, path: str, *, creates: bool = False, writes: bool = True, sure: bool = True) -> str | None:
        """Have at a path what the agent found there when it was recorded, and return where; None for nothing known."""
        player = answering.player
        frame = program()
        if player is None or frame is None or path == os.devnull or path.startswith(not_the_agents()):
            return None
        asking = hooks.here(of, frame)
        if asking is None:
            return None
        of, by, pack, _ = asking
        told = player.file(of, by, pack.lane, path, sure=sure)
        if told is None:
            return None
        if "content" in told:
            if player.is_own(path):
                if self._is_other(player, path, told["content"]):
                    return None
                if not writes:
                    return self._told.beside(path, told["content"])
            return self._told.put(path, told["content"])
        number = getattr(errno, str(told.get("error")), None)
        if number in (errno.ENOENT, errno.ENOTDIR) and (creates or not told.get("written")):
            self._told.absent(path)
        elif number == errno.EISDIR:
            self._told.put_folder(path)
        elif isinstance(number, int) and not creates:
            raise failure(number)
        return None

    def _is_other(self, player: answering.Player, path: str, recorded: bytes) -> bool:
        """Say whether the program has written something else here than it did then, and note that: it reads its own."""
        try:
            place = self._layers.files + self._layers.walk(path).path
            number = int(self._raw.open(place, os.O_RDONLY | os.O_CLOEXEC))
        except OSError:
            return False
        parts = []
        try:
            while part := os.read(number, 1 << 20):
                parts.append(part)
        finally:
            os.close(number)
        return player.wrote_other(path, b"".join(parts), recorded)

    def database(self, path: str) -> str:
        """Have a database above, with what belongs to it, as the tape tells or else as the world has it."""
        whole = self._view.meant(path)
        beside = tuple(f"{whole}{ending}" for ending in ("-wal", "-journal"))
        if self._ask("sqlite3.connect", whole, creates=True) is not None:
            for name in beside:
                if self._ask("sqlite3.connect", name, creates=True, sure=False) is None:
                    self._told.absent(name)
        with self._layers.lock:
            found = self._layers.walk(whole)
            if found.apart:
                return found.place
            for name in ("", "-wal", "-journal", ".db", ".dir", ".pag"):  # the last three are of `dbm`
                one = self._layers.walk(found.path + name)
                if one.facts is not None and stat.S_ISREG(one.facts.st_mode):
                    self._layers.up(one)
            if self._layers.parent(found).is_folder:
                self._layers.make_way(found.path)
            self._layers.databases.add(self._layers.files + found.path)
            return self._layers.files + found.path

    def nowhere(self, path: str) -> str:
        """Return a place at which nothing can be opened, as at the path of which that holds."""
        return os.path.join(self._layers.scratch, "nowhere", os.path.basename(path))

    def is_ours(self, path: str) -> bool:
        """Say whether a path is one that is not redirected."""
        return self._layers.is_apart(self._view.meant(path))
