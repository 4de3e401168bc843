"""Keep secrets out of the record: the one gate that every byte passes before it is sealed.

A secret inside a text becomes `[redacted:RULE]`; the whole value of a field with a secret name becomes
`{"$redacted": "RULE"}`. Both name only the rule. The same input and the same rules give the same output, and redacting
twice gives what redacting once gives. docs/reference/redaction.md lists the rules.

This proves that no value of the listed shapes, and no value that was made known, stands in the output in one of the
spellings that `redact_known` lists. It does not prove that the output holds no secret.
"""

from __future__ import annotations

import operator
import os
import re
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from playhead import _limits
from playhead.capture.redact_known import Form, Known, rarest
from playhead.capture.redact_names import FIELDS, FieldTest, folded, secrets_of
from playhead.capture.redact_rules import (
    BEARER,
    PRIVATE_KEY,
    RUN_CHARACTERS,
    TOKENS,
    URL_PASSWORD,
    Rule,
    begins,
    check_name,
    compiled,
)
from playhead.errors import ConfigError
from playhead.event import speed

_KEYLIKE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+/=-")
_TO_RUNS = bytes(ord("k") if byte in _KEYLIKE else ord(" ") for byte in range(256))
_RUN = b"k" * RUN_CHARACTERS
_BEFORE = b" .~"  # what may stand between a word such as "Bearer" and the run of its token
_LONG_RUN_BYTES = 2048  # in a longer run (base64 data) a search for each needle is faster than one for all
_LOOK_BACK_BYTES = 66  # from a run to the space after "Bearer": three short parts, their dots, and room
_INTEGER_MIN = 10 ** (_limits.SECRET_CHARACTERS_MIN - 1)
_NEVER = 1 << 62

# One lock for all redactors, held over a fork: a child never inherits it locked by a thread that it does not have.
_adding = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_adding.acquire, after_in_parent=_adding.release, after_in_child=_adding.release)


class _Values(NamedTuple):
    """Hold the known values. Replaced as a whole, so that readers need no lock."""

    names: frozenset[str]  # of all rules, in force or not
    placeholder: re.Pattern[str]
    known: tuple[Known, ...] = ()  # longest first: a value that holds another one goes as a whole
    seen: frozenset[str] = frozenset()
    alone: tuple[Form, ...] = ()  # forms without a run: each is looked for in every event
    in_runs: tuple[tuple[int, bytes], ...] = ()  # forms with a run: length and needle, shortest first
    shortest: int = _NEVER
    generation: int = 0


class Redactor:
    """Replace secrets by the name of the rule that found them. Safe to share between threads."""

    VERSION = 1

    def __init__(
        self,
        *,
        environ: Mapping[str, str] | None = None,
        disabled: Collection[str] = (),
        extra_rules: Sequence[Rule] = (),
        patterns: Mapping[str, str] | None = None,
        fields: Collection[str] | None = None,
    ) -> None:
        """Put the rules in force.

        `disabled` names rules to switch off; `extra_rules` and `patterns` (name to regular expression) add shapes;
        `fields` adds names of secret fields.
        """
        extra = (*extra_rules, *(_custom(name, pattern) for name, pattern in sorted((patterns or {}).items())))
        shapes = (PRIVATE_KEY, URL_PASSWORD, *TOKENS, *extra, BEARER)
        names = ["field", "env", "known", *(rule.name for rule in shapes)]
        if twice := sorted(name for name in set(names) if names.count(name) > 1):
            raise ConfigError(f"two redaction rules are called {twice[0]!r}", hint="Give yours another name.")
        if unknown := sorted(set(disabled) - set(names)):
            raise ConfigError(f"no redaction rule is called {unknown[0]!r}", hint=f"The rules are {', '.join(names)}.")
        self.version = f"r{self.VERSION}"
        self.rules: tuple[str, ...] = tuple(name for name in names if name not in disabled)
        self._disabled = frozenset(disabled)
        self._shapes = tuple(rule for rule in shapes if rule.name not in self._disabled)
        self._fields = FieldTest(FIELDS | {folded(name) for name in fields or ()}) if "field" in self.rules else None
        self._prepare()
        self._values = _Values(frozenset(names), _placeholders(frozenset(names)))
        if "env" in self.rules:
            self.learn(os.environ if environ is None else environ)

    def _prepare(self) -> None:
        """Gather what `suspicious` asks about the shapes."""
        runs = [rule for rule in self._shapes if rule.in_run]
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
            for rule in self._shapes
            if not rule.in_run
            for needle in rule.needles or ("",)
        )
        self._telling = tuple((needle, rare) for rare, needle, _ in self._anywhere)

    @property
    def generation(self) -> int:
        """Return a number that grows whenever a value becomes known: what was written before may hold that value."""
        return self._values.generation

    def learn(self, environ: Mapping[str, str]) -> None:
        """Redact the values of secret-looking variables from now on."""
        for value in secrets_of(environ):
            self.add_known(value, "env")

    def add_known(self, value: str, rule: str = "known") -> None:
        """Redact this value from now on, in every spelling.

        A value shorter than `SECRET_CHARACTERS_MIN` is left alone: it would blacken ordinary words. A value that is a
        token of a known shape goes by the name of its shape, so that a replay without the variable redacts alike.
        """
        check_name(rule)
        value = value.strip()
        if len(value) < _limits.SECRET_CHARACTERS_MIN or rule in self._disabled or value in self._values.seen:
            return
        new = Known(value, self._shape_of(value) or rule)
        with _adding:
            old = self._values
            if value in old.seen:
                return
            known = tuple(sorted((*old.known, new), key=lambda item: (-len(item.value), item.value)))
            forms = [form for item in known for form in item.forms]
            in_runs = sorted({(len(form.needle), form.needle) for form in forms if len(form.needle) >= RUN_CHARACTERS})
            names = old.names | {new.name}
            self._values = _Values(
                names=names,
                placeholder=_placeholders(names) if names != old.names else old.placeholder,
                known=known,
                seen=old.seen | {value},
                alone=tuple(form for form in forms if len(form.needle) < RUN_CHARACTERS),
                in_runs=tuple(in_runs),
                shortest=in_runs[0][0] if in_runs else _NEVER,
                generation=old.generation + 1,
            )

    def _shape_of(self, value: str) -> str | None:
        """Return the rule whose shape the whole value has."""
        for rule in self._shapes:
            if rule.possible(value) and rule.replace(value, "", {}) == "":
                return rule.name
        return None

    def suspicious(self, encoded: bytes) -> bool:
        """Say quickly whether `redact` might change a value, given its compact JSON in UTF-8.

        False is certain. It also answers for `redact_text` and `redact_bytes`, given the UTF-8 or the bytes.
        """
        if self._fields is not None and self._fields.within(encoded):
            return True
        return self._smells(encoded, self._values)

    def suspicious_text(self, encoded: bytes) -> bool:
        """Say the same for a caller that has looked at every key with `is_secret_field`."""
        return self._smells(encoded, self._values)

    def is_secret_field(self, key: str) -> bool:
        """Say whether the value of a field with this name is replaced as a whole."""
        return self._fields is not None and self._fields.matches(key)

    def _smells(self, data: bytes, values: _Values) -> bool:
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

    def _run_smells(self, data: bytes, start: int, end: int, values: _Values) -> bool:
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

    def redact(self, value: Any, counts: dict[str, int]) -> Any:
        """Return a plain JSON value without secrets: the same object if there are none, else a copy.

        `counts` grows by what was replaced, for each rule. Keys of objects are redacted too.
        """
        if isinstance(value, str):
            return self.redact_text(value, counts)
        if isinstance(value, dict):
            return self._redact_object(value, counts)
        if isinstance(value, list):
            items = [self.redact(item, counts) for item in value]
            return value if all(map(operator.is_, items, value)) else items
        if isinstance(value, int) and abs(value) >= _INTEGER_MIN and value.bit_length() <= 64:
            digits = str(value)
            text = self.redact_text(digits, counts)
            return value if text == digits else text
        return value

    def _redact_object(self, value: dict[str, Any], counts: dict[str, int]) -> dict[str, Any]:
        if len(value) == 1 and isinstance(mark := value.get("$redacted"), str) and mark in self._values.names:
            return value
        out: dict[str, Any] = {}
        changed = False
        for key, item in value.items():
            if key == "$dict" and isinstance(item, list):
                new: Any = self._redact_pairs(item, counts)
            else:
                new = self._redact_field(key, item, counts)
            name = self.redact_text(key, counts)
            if name != key:
                name = _unused(name, out, value)
            changed = changed or name is not key or new is not item
            out[name] = new
        return out if changed else value

    def _redact_field(self, key: Any, item: Any, counts: dict[str, int]) -> Any:
        """Redact what stands under a key: as a whole if the name says that it is secret, and it is or was a text."""
        if isinstance(key, str) and self.is_secret_field(key) and _is_textual(item):
            counts["field"] = counts.get("field", 0) + 1
            return {"$redacted": "field"}
        return self.redact(item, counts)

    def _redact_pairs(self, pairs: list[Any], counts: dict[str, int]) -> list[Any]:
        """Redact the pairs of an object whose keys are not all plain, as its fields."""
        out = []
        for pair in pairs:
            if isinstance(pair, list) and len(pair) == 2:
                key, item = self.redact(pair[0], counts), self._redact_field(pair[0], pair[1], counts)
                out.append(pair if key is pair[0] and item is pair[1] else [key, item])
            else:
                out.append(self.redact(pair, counts))
        return pairs if all(map(operator.is_, out, pairs)) else out

    def redact_text(self, text: str, counts: dict[str, int]) -> str:
        """Return the text without secrets; the same object if there are none."""
        values = self._values
        if not self._smells(text.encode("utf-8", "surrogatepass"), values):
            return text
        return self._settle(text, counts, values)

    def redact_bytes(self, data: bytes, counts: dict[str, int]) -> bytes:
        """Return bytes without secrets, whether they are text or not; the same object if there are none."""
        values = self._values
        if not self._smells(data, values):
            return data
        text = data.decode("utf-8", "surrogateescape")  # lossless, whatever the bytes are
        clean = self._settle(text, counts, values)
        return data if clean == text else clean.encode("utf-8", "surrogateescape")

    def _settle(self, text: str, counts: dict[str, int], values: _Values) -> str:
        """Apply the rules until nothing changes: a secret may come to light beside one that was taken away."""
        while True:
            clean = self._pass(text, counts, values)
            if clean == text:
                return text
            text = clean

    def _pass(self, text: str, counts: dict[str, int], values: _Values) -> str:
        replacers: list[Rule | Known] = [rule for rule in self._shapes if rule.possible(text)]
        if replacers and replacers[0] is PRIVATE_KEY:
            text = PRIVATE_KEY.replace(text, _placeholder(PRIVATE_KEY.name), counts)
            del replacers[0]
        first = 1 if replacers and replacers[0] is URL_PASSWORD else 0
        replacers[first:first] = [known for known in values.known if known.possible(text)]
        for replacer in replacers:
            # Only what lies between placeholders is looked at, so that none is ever taken for a secret itself.
            parts = values.placeholder.split(text)
            for at in range(0, len(parts), 2):
                parts[at] = replacer.replace(parts[at], _placeholder(replacer.name), counts)
            text = "".join(parts)
        return text


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


def _is_textual(item: Any) -> bool:
    """Say whether a value is a text, or a mark that stands for one: bytes, odd text, an instance of a subclass."""
    if isinstance(item, dict):
        return next(iter(item), "") in _TEXTUAL_MARKS
    return isinstance(item, str) and bool(item)


_TEXTUAL_MARKS = frozenset({"$str", "$bytes", "$bytearray", "$as", "$enum", "$blob", "$repr", "$path"})


def _placeholder(rule: str) -> str:
    return f"[redacted:{rule}]"


def _placeholders(names: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern that splits a text into what lies between placeholders and, at odd places, the placeholders."""
    return re.compile(rf"(\[redacted:(?:{'|'.join(map(re.escape, sorted(names)))})\])")


def _custom(name: str, pattern: str) -> Rule:
    try:
        compiled(pattern)
    except re.error as problem:
        raise ConfigError(f"redaction rule {name!r} is not a regular expression: {problem}") from None
    return Rule(name, pattern)


def _unused(name: str, *taken: Mapping[str, Any]) -> str:
    """Return a key that no other has: two secret keys of one object must not become one."""
    number, free = 1, name
    while any(free in keys for keys in taken):
        number += 1
        free = f"{name}#{number}"
    return free
