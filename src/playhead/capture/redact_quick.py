"""Say quickly that bytes hold no secret: what almost every event is asked, and the answer almost always.

Every secret holds a telling word, or stands in a run of key-like characters, or is a known value; most events have few
of these. The answer may be too wide, never too narrow.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from playhead import _limits
from playhead.capture.redact_known import Form, Known, rarest
from playhead.capture.redact_named import WORDS
from playhead.capture.redact_rules import RUN_CHARACTERS, TOKENS, Rule, begins
from playhead.event import speed

_KEYLIKE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=-")
_TO_RUNS = bytes(ord("k") if byte in _KEYLIKE else ord(" ") for byte in range(256))
_FOLDED = bytes(ord("_") if byte in b"- " else ord(chr(byte).lower()) if byte < 128 else byte for byte in range(256))
_RUN = b"k" * RUN_CHARACTERS
_BEFORE = b" .~:"  # what may stand before the run of a token that is told by what comes before it
_LONG_RUN_BYTES = 2048  # in a longer run (base64 data) a search for each needle is faster than one for all
_LOOK_BACK_BYTES = 66  # from a run to the space after "Bearer": three short parts, their dots, and room
_FEW_RUNS = 3
NEVER = 1 << 62


class Values(NamedTuple):
    """Hold the known values. Replaced as a whole, so that readers need no lock."""

    names: frozenset[str]  # of all rules, in force or not
    placeholder: re.Pattern[str]
    known: tuple[Known, ...] = ()  # longest first: a value that holds another one goes as a whole
    seen: frozenset[str] = frozenset()
    alone: tuple[Form, ...] = ()  # forms without a run: each is looked for in every event
    in_runs: tuple[tuple[int, bytes], ...] = ()  # forms with a run: length and needle, shortest first
    needles: tuple[bytes, ...] = ()  # of these, and of the shapes: what may stand in a run
    telling: tuple[tuple[bytes, bytes], ...] = ()  # of those without a run, and of the shapes
    shortest: int = NEVER
    generation: int = 0


class Clean:
    """Remember texts in which nothing was found, for as long as the same secrets are known.

    A rule of the user's own may fit anything, so that every text is searched; in a conversation the same ones,
    turn by turn.
    """

    def __init__(self) -> None:
        self._held: tuple[Values | None, set[str]] = (None, set())  # one name, so that threads never mix two of them
        self._characters = 0

    def holds(self, text: str, values: Values) -> bool:
        """Say whether nothing was found in this text."""
        known, texts = self._held
        return known is values and text in texts

    def add(self, text: str, values: Values) -> None:
        """Note that nothing was found in this text."""
        if len(text) > _limits.CLEAN_CHARACTERS_MAX:
            return
        known, texts = self._held
        self._characters += len(text)
        if known is not values or self._characters > _limits.CLEAN_CHARACTERS_MAX:
            self._held, self._characters = (values, {text}), len(text)
        else:
            texts.add(text)


class QuickTest:
    """Know what the shapes in force have in common with everything else, and look for that only."""

    def __init__(self, shapes: Sequence[Rule], fields: Collection[str] = ()) -> None:
        self._names = (*WORDS, *sorted(name.encode() for name in fields)) if fields else WORDS
        runs = [rule for rule in shapes if rule.in_run]
        needles = {needle.encode() for rule in runs for needle in rule.needles}
        self._inner = {
            needle.encode() for rule in runs if not (rule.leading or rule in TOKENS) for needle in rule.needles
        }
        # Inner needles first: where one of them and the beginning of a token coincide, it must not be overlooked.
        ordered = sorted(needles, key=lambda needle: (needle not in self._inner, needle))
        self.beginnings = tuple(ordered)
        self._starts = re.compile(b"|".join(map(re.escape, ordered)) or b"(?!)")
        self._needles = tuple((_absent_from_base64(needle), needle) for needle in ordered)
        self._words = tuple(word.encode() for rule in runs for word in rule.after)
        behind = [pair for rule in runs for pair in rule.behind]
        lengths = sorted({len(before.encode()) for before, _ in behind})
        self._behind = tuple(
            (tuple((before + begin).encode() for before, begin in behind if len(before.encode()) == length), length)
            for length in lengths
        )
        self._anywhere = tuple(
            (rarest(needle.encode()), needle.encode(), re.compile(rule.encoded.encode()) if rule.encoded else None)
            for rule in shapes
            if not rule.in_run and not rule.words
            for needle in rule.needles or ("",)
        )
        self._named = any(rule.words for rule in shapes)
        self.telling = tuple((needle, rare) for rare, needle, _ in self._anywhere)

    def values(
        self, values: Sequence[Known], names: frozenset[str], placeholder: re.Pattern[str], generation: int
    ) -> Values:
        """Prepare to look for these values."""
        known = tuple(sorted(values, key=lambda item: (-len(item.value), item.value)))
        forms = [form for item in known for form in item.forms]
        in_runs = sorted({(len(form.needle), form.needle) for form in forms if form.in_run})
        alone = tuple(form for form in forms if not form.in_run)
        return Values(
            names=names,
            placeholder=placeholder,
            known=known,
            seen=frozenset(item.value for item in known),
            alone=alone,
            in_runs=tuple(in_runs),
            needles=(*self.beginnings, *(needle for _, needle in in_runs)),
            telling=(*self.telling, *((form.needle, form.rare) for form in alone)),
            shortest=in_runs[0][0] if in_runs else NEVER,
            generation=generation,
        )

    def smells(self, data: bytes, values: Values, json: bool = False) -> bool:
        """Say whether text in UTF-8, encoded as JSON or not, or any other bytes, may hold a secret; a no is certain.

        With `json` it is compact JSON, and the caller looks at the keys of objects.
        """
        if self._named and (speed.names_secret or _names_secret)(data, self._names, json):
            return True
        # Every other secret holds a telling word, or a run of key-like characters, and most events have few such runs.
        find_runs = speed.find_runs or _find_runs
        needles = values.needles or self.beginnings
        suspects = find_runs(data, needles, _BEFORE, _LONG_RUN_BYTES, values.telling or self.telling)
        if suspects is None:
            for form in values.alone:
                if form.rare in data and form.within(data):
                    return True
            for rare, needle, pattern in self._anywhere:
                if rare in data and needle in data and (pattern is None or pattern.search(data)):
                    return True
            suspects = find_runs(data, needles, _BEFORE, _LONG_RUN_BYTES, ()) or []
        if not suspects:
            return False
        # Where nothing of that kind stands anywhere, a run without a needle is any number, any long word. A few are
        # looked at sooner than all the rest.
        if len(suspects) > _FEW_RUNS and not self._tells_what_follows(data):
            suspects = [
                suspect for suspect in suspects if suspect[2] >= 0 or suspect[1] - suspect[0] >= _LONG_RUN_BYTES
            ]
        return any(self._run_smells(data, *suspect, values) for suspect in suspects)

    def _tells_what_follows(self, data: bytes) -> bool:
        """Say whether something stands there that is told by what comes before it: by a word, or by a sign."""
        if any(text in data for texts, _ in self._behind for text in texts):
            return True
        lowered = data.lower()
        return any(word in lowered for word in self._words)

    def forms(self, text: str, data: bytes, values: Values) -> list[Form]:
        """Return the forms of known values that may stand in a text, which is given in UTF-8 too, in their order."""
        # There may be thousands, and few runs that hold any of them: only in these are they looked for.
        found = (speed.find_runs or _find_runs)(data, values.needles or self.beginnings, _BEFORE, _LONG_RUN_BYTES, ())
        runs = b"\n".join(data[start:end] for start, end, first in found or () if first >= 0).decode()
        return [form for known in values.known for form in known.forms if form.possible(runs if form.in_run else text)]

    def names(self, data: bytes, json: bool = False) -> bool:
        """Say whether a name stands there that a secret may follow."""
        return self._named and (speed.names_secret or _names_secret)(data, self._names, json)

    def _run_smells(self, data: bytes, start: int, end: int, first: int, values: Values) -> bool:
        length = end - start
        if length >= _LONG_RUN_BYTES:
            if self._long_run_smells(data, start, end):
                return True
        elif first >= 0 and self._begins(self._starts.search(data, first, end), data, end):
            return True
        if first >= 0 and length >= values.shortest and _holds(values.in_runs, data, start, end):
            return True
        if not start or data[start - 1] not in _BEFORE:
            return False
        for texts, length in self._behind:
            if length <= start and data.startswith(texts, start - length):
                return True
        return self._follows_word(data, start)

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
) -> list[tuple[int, int, int]] | None:
    """Find the long runs of key-like characters; None where a telling word, which comes with its rarest byte, stands.

    The third number is from where to look for a needle. The compiled form leaves out runs in which nothing can be, for
    which it takes the other arguments, and says -1 where there is no needle.
    """
    if any(rare in data and needle in data for needle, rare in telling):
        return None
    return [(start, end, start) for start, end in _runs(data)]


def _names_secret(data: bytes, words: tuple[bytes, ...], json: bool) -> bool:
    """Say whether one of the words names what follows it, as the compiled form does."""
    text = data.translate(_FOLDED)
    if b"-u" not in data and not any(word in text for word in words):
        return False
    assigned, option = _name_patterns(words, json)
    return assigned.search(data) is not None or option.search(data) is not None


@functools.cache
def _name_patterns(words: tuple[bytes, ...], json: bool) -> tuple[re.Pattern[bytes], re.Pattern[bytes]]:
    names = b"|".join(re.escape(word).replace(b"_", b"[_ -]") for word in words)
    around, value = rb"[ \"'\\]", rb"[^\x00-\x20\"'\\]{3}"
    colon = rb"(?<!\"):|(?<=\\\"):" if json else b":"
    assigned = rb"(?:%b)[ \"'\\\]]{0,32}(?:=|%%3[da]|%b)[ \"'\\=:>]{0,32}%b" % (names, colon, value)
    login = rb"u%b[ \"'\\,]*[^\x00-\x20\"'\\:]*:" % around
    option = rb"(?<![A-Za-z0-9_+/=-])(?:-%b|(?=--)[A-Za-z0-9_+-]{0,79}?(?:%b)[ \"'\\=])" % (login, names)
    return re.compile(assigned, re.IGNORECASE), re.compile(option, re.IGNORECASE)


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
