"""Say quickly that bytes hold no secret: what almost every event is asked, and the answer almost always.

Every secret holds a telling word, or stands in a run of key-like characters, or is a known value; most events have few
of these. The answer may be too wide, never too narrow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from playhead.capture.redact_known import Form, Known, rarest
from playhead.capture.redact_rules import RUN_CHARACTERS, TOKENS, Rule, begins
from playhead.event import speed

_KEYLIKE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=-")
_TO_RUNS = bytes(ord("k") if byte in _KEYLIKE else ord(" ") for byte in range(256))
_RUN = b"k" * RUN_CHARACTERS
_BEFORE = b" .~"  # what may stand between a word such as "Bearer" and the run of its token
_LONG_RUN_BYTES = 2048  # in a longer run (base64 data) a search for each needle is faster than one for all
_LOOK_BACK_BYTES = 66  # from a run to the space after "Bearer": three short parts, their dots, and room
NEVER = 1 << 62


class Values(NamedTuple):
    """Hold the known values. Replaced as a whole, so that readers need no lock."""

    names: frozenset[str]  # of all rules, in force or not
    placeholder: re.Pattern[str]
    known: tuple[Known, ...] = ()  # longest first: a value that holds another one goes as a whole
    seen: frozenset[str] = frozenset()
    alone: tuple[Form, ...] = ()  # forms without a run: each is looked for in every event
    in_runs: tuple[tuple[int, bytes], ...] = ()  # forms with a run: length and needle, shortest first
    shortest: int = NEVER
    generation: int = 0


class QuickTest:
    """Know what the shapes in force have in common with everything else, and look for that only."""

    def __init__(self, shapes: Sequence[Rule]) -> None:
        runs = [rule for rule in shapes if rule.in_run]
        needles = {needle.encode() for rule in runs for needle in rule.needles}
        self._inner = {needle.encode() for rule in runs if rule not in TOKENS for needle in rule.needles}
        # Inner needles first: where one of them and the beginning of a token coincide, it must not be overlooked.
        ordered = sorted(needles, key=lambda needle: (needle not in self._inner, needle))
        self._beginnings = tuple(ordered)
        self._starts = re.compile(b"|".join(map(re.escape, ordered)) or b"(?!)")
        self._needles = tuple((_absent_from_base64(needle), needle) for needle in ordered)
        self._words = tuple(word.encode() for rule in runs for word in rule.after)
        self._anywhere = tuple(
            (rarest(needle.encode()), needle.encode(), re.compile(rule.encoded.encode()) if rule.encoded else None)
            for rule in shapes
            if not rule.in_run
            for needle in rule.needles or ("",)
        )
        self._telling = tuple((needle, rare) for rare, needle, _ in self._anywhere)

    def smells(self, data: bytes, values: Values) -> bool:
        """Say whether text in UTF-8, encoded as JSON or not, or any other bytes, may hold a secret; a no is certain."""
        for form in values.alone:
            if form.rare in data and form.within(data):
                return True
        # Every other secret holds a telling word, or a run of key-like characters, and most events have few such runs.
        find_runs = speed.find_runs or _find_runs
        long_from = values.shortest if values.shortest < _LONG_RUN_BYTES else _LONG_RUN_BYTES
        suspects = find_runs(data, self._beginnings, _BEFORE, long_from, self._telling)
        if suspects is None:
            for rare, needle, pattern in self._anywhere:
                if rare in data and needle in data and (pattern is None or pattern.search(data)):
                    return True
            suspects = find_runs(data, self._beginnings, _BEFORE, long_from, ()) or []
        return bool(suspects) and any(self._run_smells(data, start, end, values) for start, end in suspects)

    def _run_smells(self, data: bytes, start: int, end: int, values: Values) -> bool:
        length = end - start
        if length >= _LONG_RUN_BYTES:
            if self._long_run_smells(data, start, end):
                return True
        elif (match := self._starts.search(data, start, end)) and self._begins(match, data, end):
            return True
        if length >= values.shortest and _holds(values.in_runs, data, start, end):
            return True
        return data[start - 1] in _BEFORE and self._follows_word(data, start)

    def _begins(self, match: re.Match[bytes] | None, data: bytes, end: int) -> bool:
        """Say whether this needle, or one after it in the run, stands where a token may begin."""
        while match:
            if match[0] in self._inner or begins(data, match.start()):
                return True
            match = self._starts.search(data, match.start() + 1, end)
        return False

    def _long_run_smells(self, data: bytes, start: int, end: int) -> bool:
        run = data[start:end]
        for telling, needle in self._needles:
            at = run.find(needle) if telling in run else -1
            while at >= 0:
                if needle in self._inner or begins(data, start + at):
                    return True
                at = run.find(needle, at + 1)
        return False

    def _follows_word(self, data: bytes, start: int) -> bool:
        """Say whether what holds this run comes after a word such as "Bearer"."""
        space = data.rfind(b" ", max(0, start - _LOOK_BACK_BYTES), start)
        return space > 0 and data[max(0, space - _LOOK_BACK_BYTES) : space].lower().endswith(self._words)


def _find_runs(
    data: bytes, needles: object, before: object, long_from: object, telling: tuple[tuple[bytes, bytes], ...]
) -> list[tuple[int, int]] | None:
    """Find the long runs of key-like characters; None where a telling word, which comes with its rarest byte, stands.

    The compiled form leaves out runs in which nothing can be, for which it takes the other arguments.
    """
    if any(rare in data and needle in data for needle, rare in telling):
        return None
    return list(_runs(data))


def _runs(data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the long runs of key-like characters begin and end."""
    runs = data.translate(_TO_RUNS)
    start = runs.find(_RUN)
    while start >= 0:
        end = runs.find(b" ", start)
        if end < 0:
            end = len(runs)
        yield start, end
        start = runs.find(_RUN, end)


def _absent_from_base64(needle: bytes) -> bytes:
    """Return the byte of a needle that long runs, being base64 data, hardly ever hold."""
    return next((mark for mark in (b"-", b"_") if mark in needle), rarest(needle))


def _holds(needles: tuple[tuple[int, bytes], ...], data: bytes, start: int, end: int) -> bool:
    """Say whether a run holds one of the needles, which come with their lengths, shortest first."""
    for length, needle in needles:
        if length > end - start:
            return False
        if data.find(needle, start, end) >= 0:
            return True
    return False
