"""Recognise what differs from run to run: dates, times, random ids, temporary paths, addresses, ports, durations.

Each recogniser has a pattern without an unbounded repeat, which may stand in a normaliser as it is.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from playhead.views.words import Piece

_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December"
_MONTH += "|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)"
_DAY = "(?:Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_NAME = "[A-Z][a-z]{2,8}"  # of a month or a day, in a rule that is proposed
_CLOCK = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2}))?"
_WINDOW = 200  # letters around a change that are looked at


@dataclass(frozen=True, slots=True)
class Recogniser:
    """One sort of volatile text, in the forms that it may have."""

    name: str  # of the rule that would normalise it
    said: str  # in a sentence
    forms: tuple[str, ...]

    @property
    def pattern(self) -> str:
        """Return a pattern for all of its forms."""
        return "|".join(self.forms)

    @property
    def placeholder(self) -> str:
        """Return what stands for it in a normalised question."""
        return f"<{self.name}>"


def _forms(name: str, said: str, *forms: str) -> Recogniser:
    return Recogniser(name, said, forms)


# The first that covers a change on both sides names it: the narrow ones come before the wide ones.
RECOGNISERS: tuple[Recogniser, ...] = (
    _forms(
        "uuid",
        "a UUID",
        r"(?<![0-9A-Za-z])[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}(?![0-9A-Za-z])",
    ),
    _forms(
        "timestamp",
        "a timestamp",
        rf"(?<!\d)\d{{4}}-\d{{2}}-\d{{2}}[T ]{_CLOCK}{_ZONE}(?!\d)",
        rf"{_DAY},? {_MONTH} {{1,2}}\d{{1,2}},? {_CLOCK}{_ZONE}(?: \d{{4}})?",
        rf"{_DAY},? \d{{1,2}} {_MONTH} \d{{4}} {_CLOCK}{_ZONE}",
    ),
    _forms(
        "date",
        "a date",
        r"(?<!\d)\d{4}[-/]\d{2}[-/]\d{2}(?!\d)",
        r"(?<!\d)\d{1,2}[./]\d{1,2}[./]\d{2,4}(?!\d)",
        rf"(?:{_DAY},? )?{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}",
        rf"(?:{_DAY},? )?\d{{1,2}}(?:st|nd|rd|th)?\.? {_MONTH}\.?,? \d{{4}}",
        rf"{_MONTH} \d{{4}}",
        rf"\b{_DAY}\b",
        rf"\b{_MONTH} \d{{1,2}}\b",
    ),
    _forms(
        "port",
        "a port",
        r"(?:localhost|127\.0\.0\.1|0\.0\.0\.0|\[::1?\]):\d{2,5}(?!\d)",
        r"\b[Pp]ort[ =:]{1,3}\d{2,5}(?!\d)",
    ),
    _forms("time", "a time of day", rf"(?<![\d:]){_CLOCK}(?: ?[AaPp]\.?[Mm]\.?)?(?![\d:])"),
    _forms("epoch", "a timestamp", r"(?<![\d.])1[0-9]{9}(?:\.\d{1,9}|\d{3}|\d{6}|\d{9})?(?!\d)"),
    _forms("address", "a memory address", r"\b0x[0-9A-Fa-f]{6,16}\b"),
    _forms(
        "temp-path",
        "a temporary path",
        r"(?:/private)?/(?:tmp|var/tmp|var/folders|run/user|dev/shm)/[\w./+-]{0,200}[\w/]",
        r"[A-Za-z]:\\[\w\\ .~-]{1,100}\\Temp\\[\w\\.~-]{0,100}[\w\\]",
        r"\btmp[a-z0-9_]{8}\b",
    ),
    _forms("pid", "a process id", r"\b(?:pid|PID|ppid|process)[ =:#]{1,3}\d{1,7}\b", r"/proc/\d{1,7}\b"),
    _forms(
        "duration",
        "a duration",
        r"(?<![\w.])\d{1,9}(?:\.\d{1,9})? ?(?:ns|µs|us|ms|s|secs?|seconds?|minutes?|min)\b",
    ),
    _forms("year", "a date", r"\b20[123]\d\b"),
    # The last part of it has both letters and digits: `variable_1` is a name, `call_8Fd2kq` is none.
    _forms(
        "id",
        "a random id",
        r"\b(?:[A-Za-z]{1,20}[_-]){0,3}(?=[A-Za-z]{0,31}\d)(?=\d{0,31}[A-Za-z])[A-Za-z0-9]{6,64}\b",
    ),
)
_COMPILED = tuple((one, re.compile(one.pattern)) for one in RECOGNISERS)
_FLOAT = re.compile(r"[-+]?\d+\.\d+(?:[eE][-+]?\d+)?")


class Volatile(NamedTuple):
    """A change that looks volatile: what it is, and the whole of it on either side."""

    what: Recogniser
    left: str
    right: str

    @property
    def form(self) -> str:
        """Return the pattern of the form that both sides have, as a rule would hold it."""
        for form in self.what.forms:
            if re.fullmatch(form, self.left) and re.fullmatch(form, self.right):
                return form.replace(_MONTH, _NAME).replace(_DAY, _NAME)
        return self.what.pattern.replace(_MONTH, _NAME).replace(_DAY, _NAME)


def of_texts(pieces: list[Piece]) -> list[Volatile | None]:
    """Say of each change in a text what sort of volatile thing changed; None for one that is nothing of the sort."""
    left = "".join(piece.text for piece in pieces if piece.how != "added")
    right = "".join(piece.text for piece in pieces if piece.how != "removed")
    found: list[Volatile | None] = []
    at_left = at_right = 0
    for number, piece in enumerate(pieces):
        if piece.how == "same":
            at_left, at_right = at_left + len(piece.text), at_right + len(piece.text)
            continue
        if piece.how == "added" and number and pieces[number - 1].how == "removed":
            continue  # taken together with what it replaces
        removed = piece.text if piece.how == "removed" else ""
        following = pieces[number + 1] if number + 1 < len(pieces) else None
        added = piece.text if piece.how == "added" else following.text if following and following.how == "added" else ""
        found.append(_recognised(left, at_left, len(removed), right, at_right, len(added)))
        at_left, at_right = at_left + len(removed), at_right + len(added)
    return found


def of_values(left: object, right: object) -> Volatile | None:
    """Say what sort of volatile thing two whole values are."""
    if type(left) in (int, float) and type(right) in (int, float):
        left, right = repr(left), repr(right)
    if type(left) is not str or type(right) is not str or max(len(left), len(right)) > _WINDOW:
        return None
    return next(
        (
            Volatile(one, left, right)
            for one, pattern in _COMPILED
            if pattern.fullmatch(left.strip()) and pattern.fullmatch(right.strip())
        ),
        None,
    )


def is_float_noise(left: object, right: object) -> bool:
    """Say whether two numbers, or two texts, differ only in the last digits of floats."""
    if isinstance(left, float) or isinstance(right, float):
        both = (left, right)
        return all(isinstance(one, (int, float)) for one in both) and math.isclose(*both, rel_tol=1e-11)  # type: ignore[arg-type]
    if type(left) is not str or type(right) is not str:
        return False
    lefts, rights = _FLOAT.findall(left), _FLOAT.findall(right)
    return (
        bool(lefts)
        and len(lefts) == len(rights)
        and _FLOAT.sub("", left) == _FLOAT.sub("", right)
        and all(math.isclose(float(one), float(other), rel_tol=1e-11) for one, other in zip(lefts, rights, strict=True))
    )


def _recognised(left: str, at: int, size: int, right: str, at_right: int, size_right: int) -> Volatile | None:
    """Return the first sort that covers the changed place in both texts."""
    for one, pattern in _COMPILED:
        before = _covering(pattern, left, at, size)
        if before is None:
            continue
        after = _covering(pattern, right, at_right, size_right)
        if after is not None and before != after:
            return Volatile(one, before, after)
    return None


def _covering(pattern: re.Pattern[str], text: str, at: int, size: int) -> str | None:
    start, end = at, at + size
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    for found in pattern.finditer(text, max(0, start - _WINDOW), min(len(text), end + _WINDOW)):
        if found.start() <= start and found.end() >= end:
            return found[0]
        if found.start() > start:
            break
    return None
