"""Find which recorded answers make the difference between a run that went well and one that did not.

The program of the bad run is replayed again and again, with some of its answers swapped for those of the good one,
until no smaller set of swaps is left that makes it end well (delta debugging). Nothing is asked live: where a swap
leads to a question that neither run was asked, nobody knows how it would have gone on, and that is said.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, NamedTuple

from playhead import _limits
from playhead.errors import UsageError
from playhead.replay.course import Course
from playhead.replay.onwards import Again
from playhead.replay.outcome import Ended, came
from playhead.replay.ready import exact_readiness, refuse_unless_ready
from playhead.replay.relaunch import Ran, relaunch
from playhead.replay.tape import Call, Tape
from playhead.replay.where import sort_of
from playhead.store.reader import RunReader
from playhead.views.aside import said
from playhead.views.difference import changes
from playhead.views.spans import SpanView

Verdict = Literal["good", "bad", "unresolved"]
BY = ("exit", "output")
_INTERRUPTED = 130  # a program that whoever sits there has ended, with us
_NOT_RUN = (126, 127)  # what a shell says of a command that it does not have
_CANNOT_TELL = 125  # the exit code of a check that cannot, as for `git bisect`
# What an answer says of itself, its times and its way: not of what it answers.
_ASIDE = frozenset(
    {"http", "chunks", "usage", "head_us", "sent_us", "headers", "printed", "pid", "waited", "timers", "spawned"}
)


class Swap(NamedTuple):
    """One question that both runs were asked, and were answered differently."""

    bad: Call
    good: Call
    changes: list[dict[str, Any]]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        opening = self.bad.question
        return {
            "seq": self.bad.closing,
            "good_seq": self.good.closing,
            "asked": self.bad.seq,
            "kind": opening.kind,
            "name": SpanView(opening).name,
            "lane": self.bad.lane,
            "changes": self.changes,
        }


class Tried(NamedTuple):
    """What came of one replay with some answers swapped."""

    verdict: Verdict
    why: str = ""


@dataclass
class Bisected:
    """What makes the difference."""

    good: str
    bad: str
    by: str
    verdict: str  # found, not_found, same: nothing differs
    cause: list[dict[str, Any]] = field(default_factory=list)
    minimal: bool = False  # that no part of it does the same is known, and not only that no tape can tell
    candidates: int = 0
    replays: int = 0
    live_calls: int = 0
    unresolved: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead bisect`."""
        return asdict(self)


class Bisection:
    """Two runs of one program, and what was found out so far."""

    def __init__(
        self,
        good: RunReader,
        again: Again,
        *,
        by: str | None = None,
        check: str | None = None,
        done: Callable[[int], None] = lambda replays: None,
    ) -> None:
        """`again` is the bad run, and where its replays go; `check` is a command that says whether one ended well."""
        for reader in (good, again.reader):
            refuse_unless_ready(exact_readiness(reader), reader.id, [*again.waive, "not_captured"])
        self._good, self._again, self._done = good, again, done
        self._tape = Tape(again.reader)
        self._good_end, self._bad_end = came(good).end, came(again.reader).end
        self._check = check or ""
        self.by = "check" if self._check else by or self._told_by()
        self.swaps = list(_swaps(Tape(good), self._tape))
        self.replays = 0
        self.live = 0
        self._tried: dict[frozenset[int], Tried] = {}
        self._usual: list[str] = []  # what is not on the tape and yet asked or tried, with nothing swapped

    def _told_by(self) -> str:
        """Say by what the two runs can be told apart."""
        return "exit" if self._good_end.exit_code != self._bad_end.exit_code else "output"

    @property
    def seem_swapped(self) -> bool:
        """Say whether the run that is called good failed, and the bad one did not."""
        return self.by == "exit" and self._bad_end.exit_code == 0 != self._good_end.exit_code

    def run(self) -> Bisected:
        """Find the smallest set of answers that turns the bad outcome into the good one."""
        found = Bisected(self._good.id, self._again.reader.id, self.by, "not_found", candidates=len(self.swaps))
        if not self._check and self._verdict_of(self._good_end) == self._verdict_of(self._bad_end):
            apart = "exit code" if self.by == "exit" else "output"
            raise UsageError(
                f"the two runs have the same {apart}: they cannot be told apart by it",
                hint="`--check CMD` says by its exit code whether a run ended well.",
            )
        everything = frozenset(range(len(self.swaps)))
        if not self.swaps:
            found.verdict = "same"
            found.text = "no question was answered differently in the two runs: what differs is not an answer"
        elif self._try(frozenset()).verdict != "bad":
            found.text = f"a replay of the bad run does not end badly: {self._try(frozenset()).why or 'it ends well'}"
        elif (best := self._smallest(everything)) is not None:
            found.verdict = "found"
            found.cause = [self.swaps[at].as_dict() for at in sorted(best)]
            smaller = [self._tried.get(best - {at}) for at in best]
            found.minimal = all(tried is not None and tried.verdict == "bad" for tried in smaller)
        else:
            why = self._try(everything).why
            found.text = f"no set of swapped answers that was tried makes it end well{f': {why}' if why else ''}"
        found.replays, found.live_calls = self.replays, self.live
        found.unresolved = [
            {"swapped": [self.swaps[at].bad.closing for at in sorted(chosen)], "why": tried.why}
            for chosen, tried in self._tried.items()
            if tried.verdict == "unresolved"
        ]
        return found

    def _smallest(self, everything: frozenset[int]) -> frozenset[int] | None:
        """Return a set of which no part does the same; None where none was found."""
        if self._try(everything).verdict == "good":
            return self._minimal(everything)
        # What all of them together lead to is not known: perhaps the first few do, or one.
        for count in range(1, len(everything)):
            if self._try(frozenset(range(count))).verdict == "good":
                return self._minimal(frozenset(range(count)))
        for at in everything:
            if self._try(frozenset({at})).verdict == "good":
                return frozenset({at})
        return None

    def _minimal(self, chosen: frozenset[int]) -> frozenset[int]:
        """Take away what is not needed: half of it, a quarter, and so on, until nothing can be."""
        parts = 2
        while len(chosen) >= 2:
            pieces = _split(sorted(chosen), parts)
            smaller = next((piece for piece in pieces if self._try(piece).verdict == "good"), None)
            if smaller is not None:
                chosen, parts = smaller, 2
                continue
            rest = next((chosen - piece for piece in pieces if self._try(chosen - piece).verdict == "good"), None)
            if rest is not None:
                chosen, parts = rest, max(parts - 1, 2)
            elif parts < len(chosen):
                parts = min(len(chosen), 2 * parts)
            else:
                break
        return chosen

    def _try(self, chosen: frozenset[int]) -> Tried:
        """Replay the bad run with these answers from the good one."""
        if chosen not in self._tried:
            if self.replays >= _limits.BISECT_REPLAYS_MAX:
                return Tried("unresolved", f"after {_limits.BISECT_REPLAYS_MAX} replays no more were made")
            self._tried[chosen] = self._replayed(chosen)
            self.replays += 1
            self._done(self.replays)
        return self._tried[chosen]

    def _replayed(self, chosen: frozenset[int]) -> Tried:
        again, good = self._again, self._good
        swaps = {str(self.swaps[at].bad.closing): self.swaps[at].good.closing or 0 for at in chosen}
        other = (str(getattr(good.store, "root", "")), good.id)
        course = Course(mode="exact", swaps=swaps, other=other, told={"swapped": sorted(map(int, swaps))})
        ran = relaunch(self._tape, again.store, again.settings, argv=again.argv, course=course)
        if ran.exit_code == _INTERRUPTED and _INTERRUPTED not in (self._good_end.exit_code, self._bad_end.exit_code):
            raise KeyboardInterrupt
        replay = RunReader(again.store, ran.run)
        events = [event for event in replay.resolved() if event.kind in ("replay.deviated", "replay.reported")]
        self.live += sum(event.data.get("live", 0) for event in events if event.kind == "replay.reported")
        deviated = next((event.data for event in events if event.kind == "replay.deviated"), None)
        if deviated is not None:
            return Tried("unresolved", str(deviated.get("text")).partition("\n")[0])
        beyond = _beyond(ran, [event.data for event in events if event.kind == "replay.reported"])
        if not chosen:
            self._usual = beyond
        elif new := [one for one in beyond if one not in self._usual]:
            return Tried("unresolved", f"no tape has what it did then: {new[0]}")
        return self._judged(replay)

    def _judged(self, replay: RunReader) -> Tried:
        end = came(replay).end
        if not self._check:
            verdict = self._verdict_of(end)
            return Tried(verdict, "" if verdict != "unresolved" else "it ended like neither of the two runs")
        environment = {**os.environ, "PLAYHEAD_RUN": replay.id, "PLAYHEAD_DIR": str(self._again.store.root)}
        environment["PLAYHEAD_EXIT_CODE"] = str(end.exit_code)
        done = subprocess.run(
            self._check, shell=True, input=end.stdout.encode(), env=environment, capture_output=True, check=False
        )
        if done.returncode in _NOT_RUN:
            told = done.stderr.decode(errors="replace").strip()
            raise UsageError(f"the check could not be run: {told}", hint="It is a command for the shell.")
        if done.returncode == 0:
            return Tried("good")
        return Tried("unresolved", "the check cannot tell (125)") if done.returncode == _CANNOT_TELL else Tried("bad")

    def _verdict_of(self, end: Ended) -> Verdict:
        """Say like which of the two runs a replay ended."""
        for verdict, other in (("bad", self._bad_end), ("good", self._good_end)):
            same = end.exit_code == other.exit_code if self.by == "exit" else not end.differs_from(other)
            if same:
                return verdict  # type: ignore[return-value]
        return "unresolved"


def _beyond(ran: Ran, reports: list[dict[str, Any]]) -> list[str]:
    """Return what a replay tried or read that was not on its tape; clocks only go on."""
    blocked = [*ran.blocked, *(one for report in reports for one in report.get("blocked", ()))]
    drift = [one for report in reports for one in report.get("drift", ())]
    found = [f"{one['what']} {one['detail']}" for one in blocked]
    return found + [
        f"{one['source']} {one['where']}" for one in drift if sort_of(str(one["source"])) not in ("clock", "sleeps")
    ]


def _split(items: list[int], parts: int) -> list[frozenset[int]]:
    """Return about equal parts, none of them empty."""
    size, more = divmod(len(items), parts)
    found, start = [], 0
    for number in range(parts):
        end = start + size + (number < more)
        if end > start:
            found.append(frozenset(items[start:end]))
        start = end
    return found


def _swaps(good: Tape, bad: Tape) -> Iterator[Swap]:
    """Yield the questions that both runs were asked and were answered differently, in the order of the bad one."""
    known = {(call.lane, call.key, call.occurrence): call for call in good.calls}
    for call in bad.calls:
        other = known.get((call.lane, call.key, call.occurrence))
        if other is None or other.closing is None or call.closing is None:
            continue
        found = changes(_content(call), _content(other))
        if found:
            yield Swap(call, other, [change.as_dict() for change in found])


def _content(call: Call) -> Any:
    if call.kind == "model.invoked":
        return said(call.data)
    data = {name: value for name, value in call.data.items() if name not in _ASIDE}
    if isinstance(data.get("error"), dict):
        data["error"] = {name: data["error"].get(name) for name in ("type", "message")}
    return data
