"""Propose normalisers from two runs of one program: what differs between their questions and looks volatile."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from playhead.event.envelope import Event
from playhead.event.kinds import CALLS
from playhead.event.normalise import Normalisers, rule_of
from playhead.replay import volatile
from playhead.replay.cause import explained
from playhead.replay.question import Question, question_of
from playhead.views.alignment import aligned
from playhead.views.difference import Change, changes, equal
from playhead.views.words import words


@dataclass(frozen=True)
class Pair:
    """Two questions, one of each run, that are taken for the same place in the program."""

    left: Question
    right: Question
    changes: tuple[Change, ...]  # that are left when the rules in force are applied


@dataclass(frozen=True)
class Suggestion:
    """What would make two runs ask the same."""

    rules: dict[str, dict[str, Any]]  # as in the setting `normalise`
    questions: int  # pairs
    equal: int  # of them, with the rules that are in force already
    become_equal: int  # with the proposed ones
    differing: tuple[Pair, ...] = ()  # those that still differ, and what of them
    unpaired: tuple[Question, ...] = ()  # asked in one run only
    examples: dict[str, str] = field(default_factory=dict)  # by rule: what it would replace

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "rules": self.rules, "questions": self.questions, "equal": self.equal, "become_equal": self.become_equal,
            "differing": [
                {
                    "left_seq": pair.left.seq, "right_seq": pair.right.seq, "kind": pair.left.kind,
                    "name": pair.left.name, "changes": [change.as_dict() for change in pair.changes],
                    "cause": (explained(pair.changes, pair.left, pair.right) or (None, None))[0],
                }
                for pair in self.differing
            ],
            "unpaired": [
                {"seq": one.seq, "kind": one.kind, "name": one.name, "lane": one.lane} for one in self.unpaired
            ],
            "examples": self.examples, "toml": self.toml(),
        }  # fmt: skip

    def toml(self) -> str:
        """Return the rules as they stand in `playhead.toml`; in `pyproject.toml` under `tool.playhead`."""
        if not self.rules:
            return ""
        lines = ["[normalise]"]
        for name, rule in self.rules.items():
            fields = ", ".join(f"{key} = {_toml(value)}" for key, value in rule.items())
            lines.append(f"{name} = {{ {fields} }}")
        return "\n".join(lines) + "\n"


def suggest(left: Iterable[Event], right: Iterable[Event], normalisers: Normalisers | None = None) -> Suggestion:
    """Compare the questions of two runs, given as resolved events, and propose rules for what looks volatile.

    `normalisers` are the rules in force already. A rule is proposed only for a place where something recognised as
    volatile differed; everything else is listed as it is.
    """
    in_force = normalisers or Normalisers(registered=False)
    pairs, unpaired = _paired(_questions(left, in_force), _questions(right, in_force))
    rules: dict[str, dict[str, Any]] = {}
    examples: dict[str, str] = {}
    found = [(one, other, changes(one.input, other.input)) for one, other in pairs]
    for one, _, differing in found:
        for change in differing:
            for rule, example in _rules_for(one, change):
                name = _add(rules, rule)
                examples.setdefault(name, example)
    rules = _ordered(rules)
    proposed = Normalisers((rule_of(name, **rule) for name, rule in rules.items()), registered=False)
    before = sum(not differing for _, _, differing in found)
    still = []
    for one, other, differing in found:
        if differing:
            lefts, rights = (proposed.normalised(q.kind, q.name, q.input) for q in (one, other))
            rest = () if equal(lefts, rights) else tuple(changes(lefts, rights))
            if rest:
                still.append(Pair(one, other, rest))
    return Suggestion(
        rules=rules, questions=len(pairs), equal=before, become_equal=len(pairs) - before - len(still),
        differing=tuple(still), unpaired=tuple(unpaired), examples={name: examples[name] for name in rules},
    )  # fmt: skip


def _questions(events: Iterable[Event], normalisers: Normalisers) -> Iterator[Question]:
    """Yield what a tape would have to answer: nothing that was asked inside of a tool, which does not run again."""
    within: set[str] = set()  # spans of tools, and those inside of them
    for event in events:
        inside = event.parent in within
        if event.span is not None and (inside or event.kind == "tool.called"):
            within.add(event.span)
        if event.kind in CALLS and not inside and not event.data.get("inferred"):
            asked = question_of(event)
            value = normalisers.normalised(asked.kind, asked.name, asked.input)
            yield Question(asked.seq, asked.kind, asked.lane, asked.name, value, asked.key)


def _paired(
    left: Iterable[Question], right: Iterable[Question]
) -> tuple[list[tuple[Question, Question]], list[Question]]:
    """Pair by lane, kind and name, in order: first those that ask the same, then what lies between them."""
    groups: dict[tuple[str, str, str | None], tuple[list[Question], list[Question]]] = defaultdict(lambda: ([], []))
    for side, questions in enumerate((left, right)):
        for one in questions:
            groups[one.lane, one.kind, one.name][side].append(one)
    pairs: list[tuple[Question, Question]] = []
    unpaired: list[Question] = []
    for lefts, rights in groups.values():
        for block in aligned([one.key for one in lefts], [one.key for one in rights]):
            some, others = lefts[block.left : block.left_end], rights[block.right : block.right_end]
            pairs += zip(some, others, strict=False)
            both = min(len(some), len(others))
            unpaired += [*some[both:], *others[both:]]
    return sorted(pairs, key=lambda pair: pair[0].seq or 0), sorted(unpaired, key=lambda one: one.seq or 0)


def _rules_for(question: Question, change: Change) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield rules for one change, each with what it would replace."""
    path = _anywhere(change.path)
    kinds = [question.kind]
    whole = volatile.of_values(change.left, change.right)
    if whole is not None and type(change.left) is not float:
        # Any item is more than this one: of the others only what looks alike may be replaced.
        form = {"pattern": whole.form} if "/*" in path else {}
        yield {"path": path, **form, "instead": whole.what.placeholder, "kinds": kinds}, f"{whole.left} | {whole.right}"
    elif type(change.left) is str and type(change.right) is str:
        for part in volatile.of_texts(words(change.left, change.right)):
            if part is not None:
                rule = {"path": path, "pattern": part.form, "instead": part.what.placeholder, "kinds": kinds}
                yield rule, f"{part.left} | {part.right}"


def _anywhere(path: str) -> str:
    """Return the pointer with any item in place of the number of an item: a conversation grows."""
    return "/" + "/".join("*" if step.isdigit() else step for step in path.split("/")[1:])


def _add(rules: dict[str, dict[str, Any]], rule: dict[str, Any]) -> str:
    """Add a rule, or its kinds to one that does the same; returns its name."""
    for name, known in rules.items():
        if {**known, "kinds": 0} == {**rule, "kinds": 0}:
            known["kinds"] = sorted({*known["kinds"], *rule["kinds"]})
            return name
    base = rule["instead"].strip("<>")
    name, number = base, 1
    while name in rules:
        number += 1
        name = f"{base}-{number}"
    rules[name] = rule
    return name


def _ordered(rules: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Put rules with a pattern before those without: a whole value that is replaced has nothing left to match."""
    return dict(sorted(rules.items(), key=lambda item: "pattern" not in item[1]))


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    text = str(value)
    if "'" not in text and text.isprintable():
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in escaped) + '"'
