"""Keep secrets out of the record: the one gate that every byte passes before it is sealed.

A secret inside a text becomes `[redacted:RULE]`; the whole value of a field with a secret name becomes
`{"$redacted": "RULE"}`. Both name only the rule. The same input and the same rules give the same output, and redacting
twice gives what redacting once gives. docs/reference/redaction.md lists the rules.

This proves that no value of the listed shapes, and no value that was made known, stands in the output in one of the
spellings that `redact_known` lists. It does not prove that the output holds no secret.
"""

from __future__ import annotations

import collections
import os
import re
import threading
import weakref
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from playhead import _limits
from playhead.capture import redact_binary, telling
from playhead.capture.redact_cuts import Cuts, Span, replaced
from playhead.capture.redact_inside import Unopened, opened_by_magic, packed_rule
from playhead.capture.redact_known import Form, Known
from playhead.capture.redact_named import NAMED, in_text
from playhead.capture.redact_names import FIELDS, FieldTest, folded, is_plainly_no_secret, secrets_of
from playhead.capture.redact_quick import Clean, QuickTest, Values
from playhead.capture.redact_rules import (
    BEARER,
    ELSEWHERE,
    PRIVATE_KEY,
    PUTTY_KEY,
    TOKENS,
    URL_PASSWORD,
    Rule,
    check_name,
    custom,
)
from playhead.capture.redact_walk import Walk
from playhead.errors import ConfigError

_PLACEHOLDER_CHARACTERS_MAX = len("[redacted:]") + 40  # as long as the name of a rule may be
_LAYERS_MAX = 3  # of compression that are opened: there is data that holds itself

# One lock for all redactors. What it guards is replaced in one step, so a child may open one that it inherits locked.
_adding = threading.RLock()  # a signal handler may be in the middle of it, in its own thread
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_adding._at_fork_reinit)  # type: ignore[attr-defined]


_said: dict[str, None] = {}  # what the program itself made known, in order
_all: weakref.WeakSet[Redactor] = weakref.WeakSet()


def make_known(value: str) -> bool:
    """Redact a value from now on, in every run of this process; False where it is too short to be looked for."""
    value = value.strip()
    if len(value) < _limits.SECRET_CHARACTERS_MIN:
        return False
    _said[value] = None
    telling.tell([(value, "known")])
    for redactor in list(_all):
        redactor.add_known(value)
    return True


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
        extra = (*extra_rules, *(custom(name, pattern) for name, pattern in sorted((patterns or {}).items())))
        packed = packed_rule(self._holds_secret)
        own = frozenset(folded(name) for name in fields or ())
        named = (*NAMED, in_text(own))
        shapes = (PRIVATE_KEY, PUTTY_KEY, URL_PASSWORD, packed, *TOKENS, *ELSEWHERE, *extra, BEARER, *named)
        names = ["field", "header", "env", "known", *(rule.name for rule in shapes)]
        if twice := sorted(name for name in set(names) if names.count(name) > 1):
            raise ConfigError(f"two redaction rules are called {twice[0]!r}", hint="Give yours another name.")
        if unknown := sorted(set(disabled) - set(names)):
            raise ConfigError(f"no redaction rule is called {unknown[0]!r}", hint=f"The rules are {', '.join(names)}.")
        self.version = f"r{self.VERSION}"
        self.rules: tuple[str, ...] = tuple(name for name in names if name not in disabled)
        self._disabled = frozenset(disabled)
        self._shapes = tuple(rule for rule in shapes if rule.name not in self._disabled)
        self._fields = FieldTest(FIELDS | own) if "field" in self.rules else None
        self.noticed: set[Any] = set()  # what `redact_http` has learned from already
        self._learned: collections.deque[str] = collections.deque()  # the oldest first
        self._quick = QuickTest(self._shapes, own)
        self._clean = Clean() if extra else None
        self._values = Values(frozenset(names), _placeholders(frozenset(names)))
        _all.add(self)
        self._add([(value, "known") for value in list(_said)])
        if "env" in self.rules:
            self.learn(os.environ if environ is None else environ)

    @property
    def generation(self) -> int:
        """Return a number that grows whenever a value becomes known: what was written before may hold that value."""
        return self._values.generation

    @property
    def rule_names(self) -> frozenset[str]:
        """Return the names of all rules, in force or not."""
        return self._values.names

    def learn(self, environ: Mapping[str, str]) -> None:
        """Redact the values of secret-looking variables from now on."""
        self._add([(value, "env") for value in secrets_of(environ)])

    def add_known(self, value: str, rule: str = "known") -> None:
        """Redact this value from now on, in every spelling.

        A value shorter than `SECRET_CHARACTERS_MIN` is left alone: it would blacken ordinary words. A value that is a
        token of a known shape goes by the name of its shape, so that a replay without the variable redacts alike.
        """
        check_name(rule)
        self._add([(value, rule)])

    def _add(self, new: list[tuple[str, str]]) -> None:
        seen = self._values.seen
        stripped = [(value.strip(), rule) for value, rule in new if rule not in self._disabled]
        fresh = {value: rule for value, rule in stripped if len(value) >= _limits.SECRET_CHARACTERS_MIN}
        added = [Known(value, self._shape_of(value) or rule) for value, rule in fresh.items() if value not in seen]
        if not added:
            return
        with _adding:
            old = self._values
            added = [known for known in added if known.value not in old.seen]
            self._know((*old.known, *added), len(added))
        telling.tell([(item.value, fresh[item.value]) for item in added])  # after the lock: this may have to wait

    def _know(self, values: Sequence[Known], news: int) -> None:
        """Look for these values from now on; with the lock held."""
        old = self._values
        names = old.names | {item.name for item in values}
        placeholder = _placeholders(names) if names != old.names else old.placeholder
        self._values = self._quick.values(values, names, placeholder, old.generation + news)

    def learn_value(self, value: str, rule: str) -> None:
        """Redact a value that was seen where secrets are from now on, unless it is plainly none."""
        self.learn_values([value], rule)

    def learn_values(self, values: Iterable[str], rule: str) -> None:
        """Do so with several, all at once: to know one more takes the longer the more there are.

        Of these there are at most `LEARNED_VALUES_MAX`, so that a program that makes new ones all the time does not
        slow down: where there are more, the older half is forgotten.
        """
        seen = self._values.seen
        new = {value: None for given in values if (value := given.strip()) not in seen}
        fresh = [value for value in new if not is_plainly_no_secret(value)][-_limits.LEARNED_VALUES_MAX :]
        if not fresh:
            return
        check_name(rule)
        self._add([(value, rule) for value in fresh])
        self._learned.extend(fresh)
        if len(self._learned) > _limits.LEARNED_VALUES_MAX:
            with _adding:
                older = {self._learned.popleft() for _ in range(len(self._learned) // 2)}
                self.noticed.clear()
                self._know([item for item in self._values.known if item.value not in older], 0)

    def _shape_of(self, value: str) -> str | None:
        """Return the rule whose shape the whole value has."""
        for rule in self._shapes:
            if rule.possible(value) and replaced(value, rule.spans(value), "") == "":
                return rule.name
        return None

    def suspicious(self, encoded: bytes) -> bool:
        """Say quickly whether `redact` might change a value, given its compact JSON in UTF-8.

        False is certain. It also answers for `redact_text`, given the UTF-8.
        """
        if self._fields is not None and self._fields.within(encoded):
            return True
        return self._quick.smells(encoded, self._values)

    def suspicious_text(self, encoded: bytes, *, json: bool = True) -> bool:
        """Say the same for a caller that looks at every key with `is_secret_field`; `json` says that it is JSON."""
        return self._quick.smells(encoded, self._values, json)

    def is_secret_field(self, key: str) -> bool:
        """Say whether the value of a field with this name is replaced as a whole."""
        return self._fields is not None and self._fields.matches(key)

    def redact(self, value: Any, counts: dict[str, int]) -> Any:
        """Return a plain JSON value without secrets: the same object if there are none, else a copy.

        `counts` grows by what was replaced, for each rule. Keys of objects are redacted too. What stands in a secret
        field becomes known, here too: the rest of the value may repeat it, before the field or after.
        """
        tried: set[str] = (
            set()
        )  # each once: where there are very many, the first are forgotten before the last are known
        while True:
            generation, walk = self.generation, Walk(self)
            out = walk.clean(value)
            fresh = [secret for secret in walk.secrets if secret not in tried]
            tried.update(fresh)
            self.learn_values(fresh, "field")
            if generation == self.generation:
                for rule, count in walk.counts.items():
                    counts[rule] = counts.get(rule, 0) + count
                return out

    def redact_text(self, text: str, counts: dict[str, int]) -> str:
        """Return the text without secrets; the same object if there are none."""
        values, clean = self._values, self._clean
        if clean is not None and clean.holds(text, values):
            return text
        if not self._quick.smells(text.encode("utf-8", "surrogatepass"), values):
            return text
        settled = self._settle(text, counts, values)
        if clean is not None and settled is text:
            clean.add(text, values)
        return settled

    def redact_bytes(self, data: bytes, counts: dict[str, int], *, layers: int = _LAYERS_MAX) -> bytes:
        """Return bytes without secrets, whether they are text or not; the same object if there are none.

        Gzip and zlib data is opened; where a secret is inside, what is inside is returned.
        """
        values = self._values
        if (apart := redact_binary.separated(data, self._shapes)) is not data:
            clean_apart = self.redact_bytes(apart, counts, layers=layers)
            return data if clean_apart is apart else redact_binary.joined(clean_apart)
        if data[:1] in (b"\x1f", b"x") and layers:
            inner = _opened(data)
            if inner is not None and (opened := self.redact_bytes(inner, counts, layers=layers - 1)) is not inner:
                return opened
        if not self._quick.smells(data, values):
            return data
        text = data.decode("utf-8", "surrogateescape")  # lossless, whatever the bytes are
        clean = self._settle(text, counts, values)
        return data if clean == text else clean.encode("utf-8", "surrogateescape")

    def _holds_secret(self, data: bytes) -> bool:
        return self.redact_bytes(data, {}, layers=_LAYERS_MAX - 1) is not data

    def redact_pieces(self, pieces: list[bytes], counts: dict[str, int]) -> list[bytes]:
        """Return the pieces of a stream without secrets, also those that lie in several pieces; as many as there were.

        The same object if there are none. What is not replaced stays in its piece; a placeholder stands in the piece
        in which the secret began, and a piece that was all secret becomes empty.
        """
        values = self._values
        if not self._quick.smells(b"".join(pieces), values):
            return pieces
        cuts = Cuts(pieces)
        clean = self._settle(cuts.text, counts, values, cuts)
        return pieces if clean == cuts.text else cuts.pieces(clean)

    def _settle(self, text: str, counts: dict[str, int], values: Values, cuts: Cuts | None = None) -> str:
        """Apply the rules until nothing changes: a secret may come to light beside one that was taken away."""
        while True:
            clean = self._pass(text, counts, values, cuts)
            if clean == text:
                return text
            text = clean

    def _pass(self, text: str, counts: dict[str, int], values: Values, cuts: Cuts | None) -> str:
        data = text.encode("utf-8", "surrogatepass")
        named = self._quick.names(data)
        replacers: list[Rule | Form] = [
            rule for rule in self._shapes if (named or not rule.words) and rule.possible(text)
        ]
        first = sum(rule in (PRIVATE_KEY, PUTTY_KEY, URL_PASSWORD) for rule in replacers[:3])
        replacers[first:first] = self._quick.forms(text, data, values)
        marked = "[redacted:" in text
        for replacer in replacers:
            whole = replacer is PRIVATE_KEY or replacer is PUTTY_KEY  # they may hold placeholders, and take them along
            between = marked and not whole
            spans = _spans_between(values.placeholder, replacer, text) if between else replacer.spans(text)
            if spans:
                marked = True
                mark = _placeholder(replacer.name)
                counts[replacer.name] = counts.get(replacer.name, 0) + len(spans)
                text = replaced(text, spans, mark)
                if cuts is not None:
                    cuts.move(spans, len(mark))
        return text


def _spans_between(placeholder: re.Pattern[str], replacer: Rule | Form, text: str) -> list[Span]:
    """Look only at what lies between placeholders, so that none is ever taken for a secret itself."""
    spans: list[Span] = []
    if isinstance(replacer, Form):  # there may be very many of them, and of placeholders
        found = replacer.spans(text)
        if not any(_touches_placeholder(text, start, end) for start, end in found):
            return found
    begin = 0
    for at, part in enumerate(placeholder.split(text)):
        if at % 2 == 0:
            spans += [(begin + start, begin + end) for start, end in replacer.spans(part)]
        begin += len(part)
    return spans


def _touches_placeholder(text: str, start: int, end: int) -> bool:
    """Say whether a part of a text may lie in a placeholder, or holds one or its beginning."""
    begin = "[redacted:"
    at = text.rfind(begin, max(0, start - _PLACEHOLDER_CHARACTERS_MAX), end + len(begin) - 1)
    return at >= 0 and not 0 <= text.find("]", at, start) < start


def _opened(data: bytes) -> bytes | None:
    try:
        return opened_by_magic(data)
    except Unopened:  # more than may be looked at: see `OPENED_BYTES_MAX`
        return None


def _placeholder(rule: str) -> str:
    return f"[redacted:{rule}]"


def _placeholders(names: frozenset[str]) -> re.Pattern[str]:
    """Return a pattern that splits a text into what lies between placeholders and, at odd places, the placeholders."""
    return re.compile(rf"(\[redacted:(?:{'|'.join(map(re.escape, sorted(names)))})\])")
