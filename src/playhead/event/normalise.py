"""Take what is volatile out of a question, so that two runs ask the same.

A rule is a function, or says where (a JSON pointer, in which `*` stands for any one step) and what (a regular
expression) a placeholder stands for. A key over a normalised input is `k2:`, never `k1:`: what is recorded keeps its
`k1:`, and rules count only where two runs are compared.

No rule can hang a replay: a regular expression may hold few repeats without an end, none of them inside another repeat,
and is tried on a window of bounded size at a time. So its work grows with the length of a text, not with its square.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from playhead import _limits
from playhead.errors import ConfigError
from playhead.event.keys import canonical

Function = Callable[[str, str | None, Any], Any]  # (kind, name, input) -> input

FIELDS = ("path", "pattern", "instead", "kinds", "names")  # of a rule in a file
_QUANTIFIER = re.compile(r"[*+?]|\{(\d*)(,?)(\d*)\}")
_GROUP_REPEATS_MAX = 16
_HINT = "See docs/reference/configuration.md, `normalise`."


@dataclass(frozen=True)
class Rule:
    """One rule: for which calls, and what it does to their input."""

    name: str
    function: Function | None = None
    path: tuple[str, ...] | None = None
    pattern: re.Pattern[str] | None = None
    instead: str = "<volatile>"
    kinds: frozenset[str] = frozenset()  # empty: all
    names: frozenset[str] = frozenset()

    def concerns(self, kind: str, name: str | None) -> bool:
        """Say whether calls of this kind and name are normalised by it."""
        return (not self.kinds or kind in self.kinds) and (not self.names or name in self.names)

    def applied(self, kind: str, name: str | None, value: Any) -> Any:
        """Return the input as the rule leaves it; what it was given stays as it is."""
        if self.function is None:
            return self._walk(value, self.path)
        try:
            found = self.function(kind, name, copy.deepcopy(value))
            canonical(found)
        except Exception as problem:
            raise ConfigError(
                f"the normaliser {self.name!r} failed on {kind} {name or ''}: {type(problem).__name__}: {problem}",
                hint="It takes (kind, name, input) and returns the input as plain JSON.",
            ) from problem
        return found

    def _walk(self, value: Any, path: tuple[str, ...] | None) -> Any:
        if path:
            return self._step(value, path[0], path[1:])
        if self.pattern is None:
            return self.instead
        if type(value) is str:
            return _substituted(self.pattern, self.instead, value)
        if type(value) is list:
            return [self._walk(item, None) for item in value]
        if type(value) is dict:
            return {key: self._walk(item, None) for key, item in value.items()}
        return value if type(value) is bool or value is None else self._number(value)

    def _number(self, value: Any) -> Any:
        return self.instead if self.pattern is not None and self.pattern.fullmatch(str(value)) else value

    def _step(self, value: Any, name: str, rest: tuple[str, ...]) -> Any:
        if type(value) is dict:
            return {key: self._walk(item, rest) if name in ("*", key) else item for key, item in value.items()}
        if type(value) is list:
            return [self._walk(item, rest) if name in ("*", str(at)) else item for at, item in enumerate(value)]
        return value


class Normalisers:
    """The rules in force, in order: those of the settings, then those that the program registered."""

    def __init__(self, rules: Iterable[Rule] = (), *, registered: bool = True) -> None:
        self._rules = tuple(rules)
        self._registered = _registered if registered else {}

    @classmethod
    def of_settings(cls, table: Mapping[str, Mapping[str, Any]]) -> Normalisers:
        """Return the rules of a table `normalise` in the settings, and all that the program registers."""
        return cls(rule_of(name, **fields) for name, fields in table.items())

    def __bool__(self) -> bool:
        """Say whether there is any rule."""
        return bool(self._rules or self._registered)

    @property
    def generation(self) -> int:
        """Return a number that changes when a rule is registered: match keys made before no longer hold."""
        return _generation

    def concerns_some(self, kind: str) -> bool:
        """Say whether a rule is for calls of this kind, of whatever name."""
        rules = (*self._rules, *self._registered.values())
        return any(not rule.kinds or kind in rule.kinds for rule in rules)

    def concerned(self, kind: str, name: str | None) -> tuple[Rule, ...]:
        """Return the rules for calls of this kind and name."""
        if not self._rules and not self._registered:
            return ()
        return tuple(rule for rule in (*self._rules, *self._registered.values()) if rule.concerns(kind, name))

    def normalised(self, kind: str, name: str | None, value: Any) -> Any:
        """Return an input without what the rules call volatile."""
        for rule in self.concerned(kind, name):
            value = rule.applied(kind, name, value)
        return value

    def match_key(self, kind: str, name: str | None, value: Any) -> str | None:
        """Return the `k2:` key of a question; None where no rule concerns it, so that its recorded key counts."""
        rules = self.concerned(kind, name)
        if not rules:
            return None
        encoded = canonical([kind, name, self.normalised(kind, name, value)])
        return "k2:" + hashlib.sha256(encoded).hexdigest()


_registered: dict[str, Rule] = {}
_generation = 0


def register(rule: Rule) -> None:
    """Put a rule in force from now on; it takes the place of one of the same name."""
    global _generation
    _registered[rule.name] = rule
    _generation += 1


def forget(name: str) -> None:
    """Take a registered rule out of force."""
    global _generation
    if _registered.pop(name, None) is not None:
        _generation += 1


def rule_of(
    name: str,
    *,
    path: str | None = None,
    pattern: str | None = None,
    instead: str | None = None,
    kinds: Collection[str] = (),
    names: Collection[str] = (),
) -> Rule:
    """Make a rule of what a user wrote. Raises ConfigError where it cannot be one."""
    if path is None and pattern is None:
        raise ConfigError(f"the normaliser {name!r} has neither a path nor a pattern", hint=_HINT)
    steps: tuple[str, ...] | None = None
    if path is not None:
        if not path.startswith("/"):
            raise ConfigError(f"the path {path!r} of the normaliser {name!r} does not begin with a slash", hint=_HINT)
        steps = tuple(step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/"))
    compiled = None if pattern is None else _compiled(name, pattern)
    what = instead if instead is not None else f"<{name}>"
    return Rule(name, path=steps, pattern=compiled, instead=what, kinds=frozenset(kinds), names=frozenset(names))


def _compiled(name: str, pattern: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as problem:
        raise ConfigError(
            f"the pattern of the normaliser {name!r} is not a regular expression: {problem}",
            hint="It is one of Python's. In TOML, write it between single quotes, so that its backslashes stay.",
        ) from None
    if compiled.match(""):
        raise ConfigError(f"the pattern of the normaliser {name!r} fits the empty text, so it would fit everywhere")
    repeats = _unbounded(pattern)
    if repeats is None or repeats > _limits.NORMALISER_REPEATS_MAX:
        most = _limits.NORMALISER_REPEATS_MAX
        what = (
            "a repeat inside a repeat"
            if repeats is None
            else f"{repeats} repeats without an end, at most {most} may be"
        )
        raise ConfigError(
            f"the pattern of the normaliser {name!r} could take forever: it has {what}",
            hint=r"Give repeats an end: \d{1,10} in place of \d+, (?:…){1,4} in place of (?:…)+.",
        )
    return compiled


def _unbounded(pattern: str) -> int | None:
    """Count the repeats without an end, those in a bounded group as often as it repeats; None: one inside another."""
    counts, repeated = [0], [False]  # of the groups that are open: repeats without an end, and whether a group repeats
    at = 0
    inside: tuple[int, bool] | None = None  # of the group that a quantifier here would repeat; None: a single letter
    while at < len(pattern):
        letter = pattern[at]
        if letter == "(":
            counts.append(0)
            repeated.append(False)
            at += 2 if pattern.startswith("?", at + 1) else 1  # of `(?:`, `(?=`, `(?P<name>`: no quantifier
        elif letter == ")" and len(counts) > 1:
            inside = counts.pop(), repeated.pop()
            counts[-1] += inside[0]
            repeated[-1] |= inside[1]
            at += 1
        elif (found := _QUANTIFIER.match(pattern, at)) and (found[0] in "*+?" or found[1] or found[3]):
            most = _most(found)
            if inside is None:
                counts[-1] += most is None
            elif most is None or (most > 1 and inside[1]) or most > _GROUP_REPEATS_MAX:
                return None  # what is in a group may fit in several ways, and each of them again
            elif most > 1:
                counts[-1] += inside[0] * (most - 1)
                repeated[-1] = True
            at = found.end()
            while pattern.startswith(("?", "+"), at):  # lazy or possessive
                at += 1
            inside = None
        else:
            at = _class_end(pattern, at) if letter == "[" else at + 2 if letter == "\\" else at + 1
            inside = None
    return counts[0]


def _most(found: re.Match[str]) -> int | None:
    if found[0] == "?":
        return 1
    if found[0] in "*+":
        return None
    if not found[2]:
        return int(found[1])
    return int(found[3]) if found[3] else None


def _class_end(pattern: str, at: int) -> int:
    at += 1
    if pattern.startswith("^", at):
        at += 1
    first = at
    while at < len(pattern) and (pattern[at] != "]" or at == first):
        at += 2 if pattern[at] == "\\" else 1
    return at + 1


def _substituted(pattern: re.Pattern[str], instead: str, text: str) -> str:
    """Replace every match by the placeholder as it stands, looking at a window of the text at a time.

    A match of at most half a window is found wherever it begins, whatever stands around it.
    """
    half = _limits.NORMALISER_MATCH_CHARACTERS_MAX
    if len(text) <= 2 * half:
        return pattern.sub(lambda found: instead, text)
    parts: list[str] = []
    copied = at = 0
    while at < len(text):
        end = min(len(text), at + 2 * half)
        found = pattern.search(text, at, end)
        if found is None or (found.start() >= at + half and end < len(text)):
            at += half
            continue
        parts += [text[copied : found.start()], instead]
        copied = at = max(found.end(), found.start() + 1)
    return "".join([*parts, text[copied:]])
