"""Know which files a program has written itself in a replay, and where its code did."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from playhead import _limits
from playhead.capture import scope
from playhead.replay.where import agents_line, at_line

if TYPE_CHECKING:
    from playhead.replay.player import Player


class Own:
    """The files of the program's own making."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.touches = 0  # answers of tools and processes, which may have changed files
        self._written: dict[str, int] = {}  # by file: how many of these had been given when it was written
        self._lanes: dict[str, str] = {}  # by file: who wrote it last
        self._then: set[str] | None = None  # the files that the recorded program wrote
        # Files that were added to: how much was there, which need not be what was there then, and whether such an
        # answer was given before, so that some of it may be theirs.
        self._added: dict[str, tuple[int, bool]] = {}
        self._lines: dict[str, str] = {}
        self._other: set[str] = set()

    def wrote(self, path: str, *, after: int | None) -> None:
        """Take in that the program writes a file; `after` so many bytes that are there, where it adds to them."""
        if after is None:
            self._added.pop(path, None)
        elif not self.has(path):
            self._added[path] = (self._added.get(path, (after,))[0], self.touches > 0)
        self._written[path] = self.touches
        self._lanes[path] = scope.lane_path()
        if path in self._lines or len(self._lines) < _limits.WRITTEN_FILES_MAX:
            self._lines[path] = agents_line(sys._getframe(1))

    def has(self, path: str) -> bool:
        """Say whether a file is as the program wrote it: nothing was answered since that might have changed it."""
        return self._written.get(path) == self.touches

    def is_anothers(self, path: str) -> bool:
        """Say whether another lane, which has not ended, wrote a file here that was written in the recording, too.

        Then the tape knows best who has seen that, and when: how long a thread took to write it is not on record.
        """
        writer, player = self._lanes.get(path), self._player
        if writer is None or writer == scope.lane_path():
            return False
        if player.lookup.ended.get(writer, sys.maxsize) <= player.order.now_us:
            return False
        if self._then is None:
            effects = player.folders.effects(player.tape.effects())
            self._then = {effect["target"] for effect in effects if effect["what"] == "file.written"}
        return path in self._then

    def note_race(self, path: str) -> None:
        """Note that the tape tells of a file of another lane what it is not now."""
        self._player.note_drift("files", f"{path}: another lane had written more of it, or less, when it was recorded")

    def all_of(self, path: str) -> bool:
        """Say whether a file is as the program wrote it, and nobody else has a part in it."""
        return self.has(path) and path not in self._added

    def lines(self) -> dict[str, str]:
        """Return by file where the program's code wrote it."""
        return {path: line for path, line in self._lines.items() if line}

    def is_other(self, path: str, own: bytes, recorded: bytes) -> bool:
        """Say whether what the program wrote is something else than what it read there then, and note that."""
        recording = self._player.recording
        clean = bytes if recording is None else recording.clean
        if recorded in (own, clean(own)) or (path in self._added and self._added_so(path, own, recorded, clean)):
            return False
        if self.is_anothers(path) and (clean(own).startswith(recorded) or recorded.startswith(clean(own))):
            self.note_race(path)
            return False
        if path not in self._other:
            self._other.add(path)
            line = agents_line(sys._getframe(1))
            text = f"{path} was written with another content than it had when it was read in the recording"
            found = {"type": "write", "name": path, "text": text + at_line(line), "where": line}
            self._player.differs(None, found)
        return True

    def _added_so(self, path: str, own: bytes, recorded: bytes, clean: Callable[[bytes], bytes]) -> bool:
        """Say whether the program added what it added then, whatever was there before."""
        after, mixed = self._added[path]
        parts = {own[after:], clean(own[after:])}
        if mixed:
            return any(_is_part(part, recorded) for part in parts)
        return any(recorded.endswith(part) for part in parts) and self._is_all(path, len(own) - after, recorded)

    def _is_all(self, path: str, size: int, recorded: bytes) -> bool:
        """Say whether so much was added when it was recorded; of redacted content nobody can tell."""
        here = self._player.folders.recorded
        for effect in self._player.tape.effects():
            if effect["what"] == "file.written" and here(effect["target"]) == path:
                before = (effect.get("detail") or {}).get("size")
                return before is None or b"[redacted:" in recorded or len(recorded) - before == size
        return True


def _is_part(own: bytes, recorded: bytes) -> bool:
    """Say whether all that the program wrote is in what was read, in this order; others wrote the rest."""
    left = iter(recorded.splitlines())
    return recorded.endswith(own) or all(line in left for line in own.splitlines())
