"""Find on the tape what a lane read: values in the order in which each module got them, answers by what was asked."""

from __future__ import annotations

import hashlib
import itertools
from collections import deque
from typing import Any, NamedTuple

from playhead import _limits
from playhead.capture.queues import GOT
from playhead.event.reads import Read
from playhead.replay import listing
from playhead.replay.folders import Folders
from playhead.replay.tape import LANE_ENDED, Tape

# Sources whose answers are kept when they are other ones than before: by what was asked.
_BY_PATH = frozenset({"open", "sqlite3.connect"}) | listing.SOURCES
_TOLD = listing.TOLD - listing.SOURCES
VARIABLES = "os.environ"
_NOTHING = object()


class _Answers:
    """What somebody was told when he asked one thing again and again: each answer, and how often."""

    __slots__ = ("_given", "_index", "values")

    def __init__(self) -> None:
        self.values: list[tuple[Any, int]] = []  # an answer, and how often the one before was given
        self._index = self._given = 0

    def next(self) -> Any:
        """Return what he is told this time; the last answer holds from then on."""
        if self._index + 1 < len(self.values) and self._given >= self.values[self._index + 1][1]:
            self._index, self._given = self._index + 1, 0
        self._given += 1
        return self.values[self._index][0]


class _Lane:
    """What one lane read."""

    def __init__(self, tape: Tape, lane: str, here: Folders) -> None:
        self._here = here
        self.queues: dict[tuple[str, str], deque[Any]] = {}
        self.answers: dict[tuple[str, str, Any], _Answers] = {}
        for one in tape.reads_before(lane):
            self._keep_last(one)
        for number in range(tape.packs(lane)):
            for one in tape.reads(lane, number):
                self._keep(one)

    def _keep_last(self, one: Read) -> None:
        """Keep what was told last before the part that is meant: an answer is not written again while it holds."""
        name = f"{one.via}:{one.of}" if one.via else one.of
        place, _ = _asked(one, self._here)
        if place is not None:
            self.answers[name, one.by, place] = answers = _Answers()
            answers.values.append((one.value, 1))

    def _keep(self, one: Read) -> None:
        name = f"{one.via}:{one.of}" if one.via else one.of
        place, times = _asked(one, self._here)
        if place is None:
            self.queues.setdefault((name, one.by), deque()).append(one.value)
        else:
            self.answers.setdefault((name, one.by, place), _Answers()).values.append((one.value, times))


def _asked(one: Read, here: Folders) -> tuple[Any, int]:
    """Return what was asked for, where answers are kept by that, and how often the answer before was given."""
    value = one.value
    if not isinstance(value, dict):
        return None, 1
    if one.of == VARIABLES:
        name = next((name for name in value if name), "")
        return (name,), value.get("", 1)
    if one.of in _BY_PATH:
        path = here.recorded(value["path"])
        return path_key(one.of, path, link=bool(value.get("link")), mode=value.get("mode")), value.get("after", 1)
    if one.of in _TOLD:
        return told_key(value.get("asked")), value.get("after", 1)
    return None, 1


def path_key(of: str, path: str, *, link: bool = False, mode: Any = None) -> tuple[Any, ...]:
    """Say what is asked of the file system."""
    return (path, bool(link), mode)


def told_key(asked: Any) -> tuple[Any, ...]:
    """Say what is asked of the system."""
    return tuple(map(repr, asked or ()))


class Found(NamedTuple):
    """What was found, and whether it belonged to somebody else."""

    value: Any
    drifted: bool = False


class Lookup:
    """Hand out what was read, in order."""

    def __init__(self, tape: Tape, here: Folders | None = None) -> None:
        self._tape, self._here = tape, here or Folders()
        self._lanes: dict[str, _Lane] = {}
        self._contents: dict[str, Any] | None = None
        self._numbered: dict[tuple[str, str], dict[int, int]] = {}  # by lane and source
        self._started: frozenset[str] | None = None
        self.ended: dict[str, int] = {}  # by lane: when it was recorded as ended
        self.cancelled: set[str] = set()  # lanes that were recorded as cancelled
        self.was_got = False  # whether something was got out of a queue
        self._know_endings()

    def _know_endings(self) -> None:
        for lane in self._tape.lanes():
            self.was_got = self.was_got or any(name.endswith(GOT) for name, _ in self.lane(lane).queues)
            for value in self.lane(lane).queues.get((LANE_ENDED, ""), ()):
                self.ended[value[0]] = self._tape.elapsed(value[1])
                if value[2] == "cancelled":
                    self.cancelled.add(value[0])

    def lane(self, path: str) -> _Lane:
        """Return what a lane read."""
        found = self._lanes.get(path)
        if found is None:
            found = self._lanes[path] = _Lane(self._tape, path, self._here)
        return found

    def next(self, lane: str, name: str, by: str) -> Found | None:
        """Return the next value of a source for a module in a lane; where the lane has none, that of another lane."""
        queue = self.lane(lane).queues.get((name, by))
        if queue:
            return Found(queue.popleft())
        for other in self._tape.lanes():
            queue = self.lane(other).queues.get((name, by))
            if queue and other != lane:
                return Found(queue.popleft(), drifted=True)
        return None

    def own(self, lane: str, name: str, by: str) -> Any:
        """Return the next value that a lane has itself; None for none.

        For when it goes on: what other lanes have is theirs, and a thread that was killed while it waited has none.
        """
        queue = self.lane(lane).queues.get((name, by))
        return queue.popleft() if queue else None

    def handed(self, lane: str, of: str, by: str) -> tuple[bool, int | None] | None:
        """Say whether the next thing that a lane put or got was one, and when; no time for one that only polled."""
        queue = self.lane(lane).queues.get((of, by))
        if not queue:
            return None
        done, at_us, *polled = queue[0]
        if polled and polled[0]:
            queue[0] = [done, at_us, polled[0] - 1]
            return False, None
        queue.popleft()
        return done, at_us

    def numbered(self, lane: str, of: str) -> dict[int, int]:
        """Return when the timers of a lane fired, or when it wrote: by their number, since the run began."""
        found = self._numbered.get((lane, of))
        if found is None:
            queues = self.lane(lane).queues
            happened = [value for (name, _), values in queues.items() if name == of for value in values]
            found = {number: self._tape.elapsed(wall_us) for number, wall_us in happened}
            self._numbered[lane, of] = found
        return found

    def put_back(self, lane: str, name: str, by: str, value: Any) -> None:
        """Let what is left of a value be the next one."""
        self.lane(lane).queues.setdefault((name, by), deque()).appendleft(value)

    def answer(self, lane: str, name: str, by: str, place: tuple[Any, ...]) -> Found | None:
        """Return what a module was told when it asked this in a lane; else what anybody was told."""
        found = self.lane(lane).answers.get((name, by, place))
        if found is not None:
            return Found(found.next())
        of = name.rpartition(":")[2]
        for other in self._tape.lanes():
            for (named, who, asked), answers in self.lane(other).answers.items():
                if asked == place and named.rpartition(":")[2] == of and (who == by or of != VARIABLES):
                    return Found(answers.values[-1][0], drifted=True)
        return None

    def content(self, answer: dict[str, Any]) -> bytes | None:
        """Return what a file held, from what was recorded of it; None where that was not kept."""
        if "content" in answer:
            return _bytes(answer["content"])
        digest = answer.get("digest")
        if digest is None:
            return None
        if self._contents is None:
            contents: dict[str, Any] = {}
            for lane in self._tape.lanes():
                packs = (self._tape.reads(lane, number, hidden=True) for number in range(self._tape.packs(lane)))
                for one in itertools.chain(self._tape.reads_before(lane), *packs):
                    value = one.value
                    if isinstance(value, dict) and "content" in value and "digest" in value:
                        contents[value["digest"]] = value["content"]
            self._contents = contents  # only now: other threads ask as well
        found = self._contents.get(digest, _NOTHING)
        return None if found is _NOTHING else _bytes(found)

    def files(self) -> dict[str, str]:
        """Return the files of the program's own code, by path, with the digest that they had."""
        found: dict[str, str] = {}
        for lane in self._tape.lanes():
            for value in self.lane(lane).queues.get(("import", ""), ()):
                if isinstance(value, dict) and isinstance(value.get("digest"), str):
                    found[self._here.recorded(str(value.get("path")))] = value["digest"]
        return found

    def started(self) -> frozenset[str]:
        """Return the programs that the recorded one started, by their first word: also what no call tells of."""
        if self._started is None:
            found = [one.get("detail") for one in self._tape.effects() if one["what"] == "process.started"]
            commands = [one["argv"] for one in found if isinstance(one, dict) and isinstance(one.get("argv"), list)]
            self._started = frozenset(str(argv[0]) for argv in commands if argv)
        return self._started

    def changed_code(self) -> list[str]:
        """Return the files of the program that are not what they were, or are gone."""
        changed = []
        for path, digest in self.files().items():
            try:
                with open(path, "rb") as file:
                    same = digest_of(file.read()) == digest
            except OSError:
                same = False
            if not same:
                changed.append(path)
        return changed[: _limits.BLOCKED_KEPT_MAX]


def digest_of(content: bytes) -> str:
    """Return the digest by which a file is known."""
    return hashlib.sha256(content).hexdigest()


def _bytes(content: Any) -> bytes:
    from playhead.event.plain import restore

    plain = restore(content)
    return plain.encode("utf-8", "surrogateescape") if isinstance(plain, str) else bytes(plain)
