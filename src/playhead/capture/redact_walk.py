"""Go through a plain JSON value and take the secrets out: of texts, of keys, of fields whose name says it."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from playhead import _limits
from playhead.capture.redact_named import argument_after, is_example, looks_random, speaks_http

if TYPE_CHECKING:
    from playhead.capture.redact import Redactor

_LEARNED_CHARACTERS_MAX = 4096  # of the value of a field that is looked for elsewhere
_INTEGER_MIN = 10 ** (_limits.SECRET_CHARACTERS_MIN - 1)


class Walk:
    """One way through a value: what was replaced, for each rule, and the secrets that stood in fields."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self.counts: dict[str, int] = {}
        self.secrets: dict[str, None] = {}  # in order

    def clean(self, value: Any) -> Any:
        """Return a value without secrets; the same object if there are none."""
        if isinstance(value, str):
            return self._redactor.redact_text(value, self.counts)
        if isinstance(value, dict):
            return self._redact_object(value)
        if isinstance(value, list):
            items = [self.clean(item) for item in value]
            self._redact_arguments(value, items)
            return value if all(map(operator.is_, items, value)) else items
        if isinstance(value, int) and abs(value) >= _INTEGER_MIN and value.bit_length() <= 64:
            digits = str(value)
            text = self._redactor.redact_text(digits, self.counts)
            return value if text == digits else text
        return value

    def _redact_arguments(self, value: list[Any], items: list[Any]) -> None:
        """Redact the arguments of a command line that come after a secret option."""
        web: bool | None = None  # found out once for the whole line, and only where it is asked for
        for at in range(1, len(value)):
            option, argument = value[at - 1], items[at]
            if type(option) is str and option[:1] == "-" and type(argument) is str:
                if web is None:
                    web = speaks_http([one for one in value if type(one) is str])
                found = argument_after(option, argument, web)
                if found and found[1] in self._redactor.rules:
                    items[at] = found[0]
                    self.counts[found[1]] = self.counts.get(found[1], 0) + 1

    def _redact_object(self, value: dict[str, Any]) -> dict[str, Any]:
        if len(value) == 1 and isinstance(mark := value.get("$redacted"), str) and mark in self._redactor.rule_names:
            return value
        out: dict[str, Any] = {}
        numbers: dict[str, int] = {}  # the last one that was put after a name
        changed = False
        for key, item in value.items():
            if key == "$dict" and isinstance(item, list):
                new: Any = self._redact_pairs(item)
            else:
                new = self._redact_field(key, item)
            name = self._redactor.redact_text(key, self.counts)
            if name != key:
                name = _unused(name, numbers, out, value)
            changed = changed or name is not key or new is not item
            out[name] = new
        return out if changed else value

    def _redact_field(self, key: Any, item: Any) -> Any:
        """Redact what stands under a key: as a whole if the name says that it is secret, and it is or was a text."""
        if isinstance(key, str) and self._redactor.is_secret_field(key) and _is_textual(item):
            self.counts["field"] = self.counts.get("field", 0) + 1
            if isinstance(item, str):
                self._learn_from_field(item)
            return {"$redacted": "field"}
        return self.clean(item)

    def _learn_from_field(self, value: str) -> None:
        """Note the value of a secret field, which may stand elsewhere too, unless it might be a word there."""
        secret = value.strip().rpartition(" ")[2]  # without "Bearer" and the like
        if len(secret) <= _LEARNED_CHARACTERS_MAX and looks_random(secret) and not is_example(secret):
            self.secrets[secret] = None

    def _redact_pairs(self, pairs: list[Any]) -> list[Any]:
        """Redact the pairs of an object whose keys are not all plain, as its fields."""
        out = []
        for pair in pairs:
            if isinstance(pair, list) and len(pair) == 2:
                key, item = self.clean(pair[0]), self._redact_field(pair[0], pair[1])
                out.append(pair if key is pair[0] and item is pair[1] else [key, item])
            else:
                out.append(self.clean(pair))
        return pairs if all(map(operator.is_, out, pairs)) else out


def _is_textual(item: Any) -> bool:
    """Say whether a value is a text, or a mark that stands for one: bytes, odd text, an instance of a subclass."""
    if isinstance(item, dict):
        return next(iter(item), "") in _TEXTUAL_MARKS
    return isinstance(item, str) and bool(item)


_TEXTUAL_MARKS = frozenset({"$str", "$bytes", "$bytearray", "$as", "$enum", "$blob", "$repr", "$path"})


def _unused(name: str, numbers: dict[str, int], *taken: Mapping[str, Any]) -> str:
    """Return a key that no other has: two secret keys of one object must not become one."""
    number = numbers.get(name, 1)
    free = name if number == 1 else f"{name}#{number}"
    while any(free in keys for keys in taken):
        number += 1
        free = f"{name}#{number}"
    numbers[name] = number
    return free
