"""Serve what a program reads: clocks, random numbers, variables, files and whatever else the system tells."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from playhead.capture import hooks
from playhead.capture.hooks import What
from playhead.capture.processes import instead
from playhead.capture.sources import files
from playhead.errors import DeviationError
from playhead.event.plain import restore
from playhead.replay import listing
from playhead.replay.lookup import VARIABLES, path_key, told_key
from playhead.replay.values import as_text, facts_of, failed, told_of, value_of
from playhead.replay.where import sort_of

if TYPE_CHECKING:
    from playhead.replay.player import Player

_CLOCKS = (What.SECONDS, What.NANOSECONDS, What.CLOCK_WHEN_MISSING, What.MOMENT)
_SLEEP = "time.sleep"
_STDIN = "sys.stdin"
_LATER_NS = 1000  # how much later than the last one a clock is that was asked once more than recorded


class Served:
    """Answer the reads of a program from the tape."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.counts: dict[str, dict[str, int]] = {}  # by sort of source: how many were served, from where
        self.identities: dict[str, tuple[int, int]] = {}  # by path: number and device, as last told
        self._last: dict[tuple[str, str, str], Any] = {}  # of clocks: told last, when, how often since

    def answer(
        self, of: str, by: str, pack: Any, what: int, owner: Any, args: tuple[Any, ...], named: dict[str, Any] | None
    ) -> Any:
        """Return what a function gave back when it was recorded, or raise what it raised; else NotImplemented."""
        if what == What.STDIN:
            return self._stdin(pack.lane, owner, args)
        if what == What.CALL:
            return self._call(of, by, pack.lane, owner, args, named)
        name = _moment_name(of, owner, args, named) if what == What.MOMENT else of
        kept = self._next(pack.lane, name, by, what)
        if what == What.NUMBER and type(kept) is int and of.endswith("os.getpid"):
            instead.known_as(kept)  # what it sends itself goes by this number
        return kept if kept is NotImplemented else value_of(what, kept, owner, args, named)

    def _count(self, name: str, how: str) -> None:
        counts = self.counts.setdefault(sort_of(name), {"served": 0, "drifted": 0, "extra": 0})
        counts[how] += 1

    def _next(self, lane: str, name: str, by: str, what: int) -> Any:
        found = self._player.lookup.next(lane, name, by)
        if found is None:
            self._count(name, "extra")
            self._player.note_drift(name, f"{by}, lane {lane}: asked more often than recorded")
            return self._later(lane, name, by) if what in _CLOCKS else NotImplemented
        self._count(name, "drifted" if found.drifted else "served")
        if found.drifted:
            self._player.note_drift(name, f"{by}, lane {lane}: what another lane was told")
        if what in _CLOCKS:
            self._last[lane, name, by] = found.value, self._player.order.now_us, 0
        return found.value

    def _later(self, lane: str, name: str, by: str) -> Any:
        """Return what a clock says that was asked more often than recorded: later, by what was slept since at least.

        The more, the later: somebody may do nothing but look at it.
        """
        last, then_us, times = self._last.get((lane, name, by), (None, 0, 0))
        if not isinstance(last, int):
            return NotImplemented
        now_us = self._player.order.now_us
        later = last + max(_LATER_NS * (1 + times // 1000), (now_us - then_us) * 1000)
        self._last[lane, name, by] = later, now_us, times + 1
        return later

    def told_last(self, source: str) -> int | None:
        """Return what a clock told last, whoever asked, in nanoseconds; None where nobody did."""
        told = [
            last[0]
            for (_, name, _), last in self._last.items()
            if name.rpartition(":")[2].removesuffix("_ns") == source and isinstance(last[0], int)
        ]
        return max(told, default=None)

    def _call(
        self, of: str, by: str, lane: str, owner: Any, args: tuple[Any, ...], named: dict[str, Any] | None
    ) -> Any:
        source = of.rpartition(":")[2]
        if source == _SLEEP:
            return self._sleep(of, by, lane, args)
        if source in ("open", "input") or source == _STDIN:
            return NotImplemented  # what is opened is the overlay's, and what is typed comes as the standard input
        if source in files.LOOKING and args and isinstance(args[0], int):
            return NotImplemented  # of a file that is open
        if source not in listing.SOURCES and source not in listing.TOLD:
            return NotImplemented
        if source in listing.TOLD and source != "os.statvfs":
            plain = [arg if type(arg) in (str, int) else repr(arg) for arg in args]
            found = self._player.lookup.answer(lane, of, by, told_key(plain))
            path: Any = None
        else:
            path = listing.asked_path(source, owner, args, named)
            if path.startswith(files.not_the_agents()):
                return NotImplemented
            path = self._player.folders.asked(path)
            link = source.endswith("lstat") or (named or {}).get("follow_symlinks") is False
            mode = (args[1] if len(args) > 1 else (named or {}).get("mode")) if source == "os.access" else None
            found = self._player.lookup.answer(lane, of, by, path_key(source, path, link=link, mode=mode))
        if found is not None and path is not None and self._is_own(path, found.value):
            return NotImplemented  # as it has written it, and not as it was then
        self._count(of, "extra" if found is None else "drifted" if found.drifted else "served")
        if found is None:
            self._player.note_drift(
                of, f"{by}, lane {lane}: {path or 'asked'}, which was not asked when it was recorded"
            )
            return NotImplemented
        if found.drifted:
            self._player.note_drift(of, f"{by}, lane {lane}: what somebody else was told of {path or 'it'}")
        given = args[0] if args else None
        error = failed(found.value, given)
        if error is not None:
            raise error
        result = self._told(source, found.value, given)
        if "stat" in found.value and path is not None:
            self.identities[path] = (result.st_ino, result.st_dev)
        return result

    def _is_own(self, path: str, value: dict[str, Any]) -> bool:
        """Say whether the program has written a file that is not what was recorded of it then."""
        own = self._player.own
        if not own.all_of(path):
            return False
        try:
            size = os.stat(path).st_size
        except OSError:
            return False
        if "error" in value:
            return not own.is_anothers(path)
        if "stat" not in value or value["stat"][6] == size:
            return False
        if own.is_anothers(path):
            own.note_race(path)
            return False
        return True

    def _told(self, source: str, value: dict[str, Any], given: Any) -> Any:
        if "stat" in value:
            return facts_of(value)
        if "names" in value:
            names = list(map(as_text, value["names"]))
            return [os.fsencode(name) for name in names] if isinstance(given, bytes) else names
        if "entries" in value:
            return listing.Listing(self, value["entries"], given)
        if "to" in value:
            return os.fsencode(value["to"]) if isinstance(given, bytes) else value["to"]
        return told_of(source, value)

    def entry_facts(self, path: str, at: str, link: bool, level: int) -> Any:
        """Return what a program was told of an entry of a listing, that is at a path; None where it did not ask."""
        place = hooks.here("os.DirEntry.stat", sys._getframe(level + 1))
        if place is None:
            return None
        of, by, pack, _ = place
        path = self._player.folders.asked(path)
        found = self._player.lookup.answer(pack.lane, of, by, path_key(of, path, link=link))
        if found is None:
            return None
        error = failed(found.value, path)
        if error is not None:
            raise error
        facts = facts_of(found.value)
        self.identities[self._player.folders.asked(at)] = (facts.st_ino, facts.st_dev)
        return facts

    def _sleep(self, of: str, by: str, lane: str, args: tuple[Any, ...]) -> Any:
        found, order = self._player.lookup.own(lane, of, by), self._player.order
        if found is not None:
            self._count(of, "served")
            return order.wait(self._player.tape.elapsed(int(found)), "sleep", lane)
        seconds = args[0] if args else None
        if not isinstance(seconds, int | float) or not 0 <= seconds < threading.TIMEOUT_MAX:
            return NotImplemented  # which says what is wrong with it
        order.wait(order.now_us + int(seconds * 1e6), "sleep", lane, after_s=seconds)
        self._count(of, "extra")  # only now: one that was killed while it slept is not woken in a replay either
        return self._player.note_drift(of, f"{by}, lane {lane}: slept once more than recorded")

    def _stdin(self, lane: str, owner: Any, args: tuple[Any, ...]) -> Any:
        """Hand out what came from the standard input, in the pieces in which it came."""
        found = self._player.lookup.next(lane, _STDIN, "")
        self._count(_STDIN, "extra" if found is None else "served")
        if found is None:
            piece = b""  # the end, also where nobody came to it
        else:
            kept = restore(found.value)
            piece = kept.encode("utf-8", "surrogateescape") if isinstance(kept, str) else bytes(kept)
        if args and isinstance(args[0], (bytearray, memoryview)):
            room = memoryview(args[0]).cast("B")
            count = min(len(room), len(piece))
            room[:count] = piece[:count]
            self._give_back(lane, piece[count:])
            return count
        most = args[1] if len(args) > 1 else args[0] if args and owner is not None else None
        if isinstance(most, int) and 0 <= most < len(piece):
            self._give_back(lane, piece[most:])
            piece = piece[:most]
        return piece

    def _give_back(self, lane: str, rest: bytes) -> None:
        if rest:
            self._player.lookup.put_back(lane, _STDIN, "", rest)

    def variable(self, by: str, lane: str, of: str, name: str) -> tuple[bool, Any]:
        """Say whether it is known what a module was told of a variable, and what; None for one that is not set."""
        found = self._player.lookup.answer(lane, of, by, (name,))
        self._count(VARIABLES, "extra" if found is None else "drifted" if found.drifted else "served")
        if found is None:
            self._player.note_drift(VARIABLES, f"{name}, by {by}, lane {lane}: not asked for when it was recorded")
            return False, None
        if found.drifted:
            self._player.note_drift(VARIABLES, f"{name}, by {by}, lane {lane}: what somebody else was told")
        return True, as_text(found.value[name])

    def file(self, of: str, by: str, lane: str, path: str, *, sure: bool = True) -> dict[str, Any] | None:
        """Say what a file was when the agent opened it."""
        found = self._player.lookup.answer(lane, of, by, path_key(of, path))
        if found is None and not sure:
            return None
        self._count(of, "extra" if found is None else "drifted" if found.drifted else "served")
        if found is None:
            self._player.note_drift(of, f"{by}, lane {lane}: {path}, which was not opened when it was recorded")
            return None
        if "error" in found.value:
            return {"error": found.value["error"], "written": self._player.own.is_anothers(path)}
        content = self._player.lookup.content(found.value)
        if content is None:
            raise DeviationError(f"the content of {path} was not kept: it cannot be read again")
        return {"content": content}


def _moment_name(of: str, owner: Any, args: tuple[Any, ...], named: dict[str, Any] | None) -> str:
    """Return the name under which a date is kept: by what it is, and not by what was called."""
    import datetime

    via, _, source = of.rpartition(":")
    if via:
        return of
    zone = args[0] if args else (named or {}).get("tz")
    if source == "datetime.datetime.now" and zone is not None:
        return "datetime.datetime.now(tz)"
    if source == "datetime.date.today" and isinstance(owner, type) and issubclass(owner, datetime.datetime):
        return "datetime.datetime.today"
    return of
