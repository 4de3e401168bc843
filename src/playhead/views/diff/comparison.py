"""Compare two runs, and say what differs in one object."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf
from typing import Any

from playhead.event.tracebacks import without_frames
from playhead.views.diff.causes import Causes
from playhead.views.diff.children import Child
from playhead.views.diff.differing import Difference
from playhead.views.diff.measures import duration_diff, metrics
from playhead.views.diff.nodes import Node, Side
from playhead.views.diff.pairing import Pairing
from playhead.views.diff.setting import differing
from playhead.views.diff.source import Options, Recorded, Source
from playhead.views.diff.wrappers import is_wrapped
from playhead.views.difference import Change, changes

_ORIGINS = ("output_changed", "status_changed")


@dataclass
class Deviation:
    """One place where two runs differ."""

    type: str  # added, removed, changed, moved
    cause: str | None  # input_changed, output_changed, status_changed, follows; None: nothing before it explains it
    kind: str
    name: str
    left_seq: int | None
    right_seq: int | None
    deviation_point: bool  # the first in its branch
    why: str = ""  # of one that moved: order, parent, wrapper, name
    _path: Callable[[], str] = field(default=str, repr=False)
    _changes: Callable[[], list[Change]] = field(default=list, repr=False)
    _said: Callable[[], tuple[str, str]] = field(default=lambda: ("", ""), repr=False)

    @cached_property
    def path(self) -> str:
        """Return the names of the spans that it is in, and its own."""
        return self._path()

    @cached_property
    def changes(self) -> list[Change]:
        """Return which fields differ, and how: looked up when it is asked for."""
        return self._changes()

    @cached_property
    def said(self) -> tuple[str, str]:
        """Return of what was added or removed what was asked and what came of it, in a few words."""
        return self._said()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        names = ("type", "cause", "kind", "name", "path", "left_seq", "right_seq")
        return {
            **{name: getattr(self, name) for name in names},
            "changes": [change.as_dict() for change in self.changes],
            "deviation_point": self.deviation_point,
            **({"why": self.why} if self.why else {}),
            **(dict(zip(("asked", "answered"), self.said, strict=True)) if self.type in ("added", "removed") else {}),
        }


@dataclass
class Comparison:
    """What two runs differ in. `identical` is None where nothing differs and something could not be compared."""

    left: str
    right: str
    deviations: list[Deviation]
    headline: Deviation | None
    metrics: dict[str, dict[str, Any]]
    config: list[Change]
    durations: list[dict[str, Any]] | None  # where they were asked for
    not_compared: list[dict[str, Any]]  # side, seq, why
    output_differs: bool | None  # the final output; None where one of the runs has none
    failures: dict[str, dict[str, Any] | None]  # why the left one failed, and the right one: error, where, causes
    _children: Callable[[], list[Child]] = field(repr=False)

    @property
    def identical(self) -> bool | None:
        """Say whether nothing differs, nor in the runs of Pythons that the two started."""
        if self.deviations:
            return False
        inside = {child.identical for child in self.children}
        return False if False in inside else None if self.not_compared or None in inside else True

    @property
    def first(self) -> Deviation | None:
        """Return the first deviation in time, of those that follow from no other where there is one."""
        return next((one for one in self.deviations if one.cause != "follows"), next(iter(self.deviations), None))

    @cached_property
    def children(self) -> list[Child]:
        """Return what the runs of Pythons that the two started differ in: compared when it is asked for."""
        return self._children()

    def only(self, is_wanted: Callable[[Deviation], bool]) -> Comparison:
        """Return the same with some of the deviations alone, in the runs of Pythons too."""
        deviations = [one for one in self.deviations if is_wanted(one)]

        def children() -> list[Child]:
            return [
                child if child.compared is None else replace(child, compared=child.compared.only(is_wanted))
                for child in self.children
            ]

        return replace(self, deviations=deviations, headline=_headline(deviations), _children=children)

    def __bool__(self) -> bool:
        """Say whether anything differs."""
        return self.identical is False

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead diff`."""
        found: dict[str, Any] = {
            "left": self.left,
            "right": self.right,
            "identical": self.identical,
            "output_differs": self.output_differs,
            "failures": self.failures,
            "headline": None if self.headline is None else self.headline.as_dict(),
            "deviations": [one.as_dict() for one in self.deviations],
            "metrics": self.metrics,
            "config": [change.as_dict() for change in self.config],
            "not_compared": self.not_compared,
            "children": [child.as_dict() for child in self.children],
        }
        return found if self.durations is None else {**found, "durations": self.durations}


def compare(
    left: Recorded,
    right: Recorded,
    options: Options | None = None,
    children: Callable[[], list[Child]] = list,
) -> Comparison:
    """Compare two runs. NotComparable where one cannot be read to its end, or has no beginning.

    `children` compares the runs of Pythons that the two started.
    """
    options = options or Options()
    ones = Source(left, "left", options), Source(right, "right", options)
    # From the same side, whichever is named first: so that both ways round say the same.
    turned = ones[0].order > ones[1].order
    return _Comparing(ones[::-1] if turned else ones, options, turned).compared(children)


class _Comparing:
    """Compare two sides, and tell it from the side that was asked about."""

    def __init__(self, ones: tuple[Source, ...], options: Options, turned: bool) -> None:
        self._left, self._right = ones
        self._options, self._turned = options, turned

    def compared(self, children: Callable[[], list[Child]]) -> Comparison:
        left, right = self._left, self._right
        if left.side.launched != right.side.launched:  # the agent of one of them was recorded by itself
            (left if left.side.launched else right).begin_at_the_agent()
        if left.side.replay or right.side.replay:  # which does not do again what the policy decided about
            for side in (left.side, right.side):
                side.leave_out(side.checks)
        if not (left.side.later and right.side.later):  # results were imported into one of them, and not of the other
            for side in (left.side, right.side):
                side.leave_out(side.later)
        other_policy = left.setting.policy != right.setting.policy  # which asks about more than the other one does
        for side in (left.side, right.side) if other_policy else ():
            side.leave_rules()
        if other_policy and not (left.side.checks and right.side.checks):
            self._leave_unheeded()
        Pairing(
            left.side,
            right.side,
            (left.meaning, right.meaning),
            (left.nameless, right.nameless),
            (left.values, right.values),
        ).pair()
        if other_policy:
            self._leave_unheeded()
        found = list(self._differences())
        if left.side.root is not None:
            Causes(left.side.root, found, (left.ends, right.ends)).settle()
        found.sort(key=lambda one: (one.at, one.node.seq))
        deviations = self._told_in_time(found)
        first, second = (right, left) if self._turned else (left, right)
        comparison = Comparison(
            left=first.side.run,
            right=second.side.run,
            deviations=deviations,
            headline=_headline(deviations),
            metrics=metrics(first, second),
            config=[
                one
                for one in self._seen(differing(left.setting.found(), right.setting.found()))
                if not first.volatile.is_ignored_of_setting(one.path)
            ],
            durations=self._durations() if self._options.durations else None,
            not_compared=[
                {"side": one.name, "seq": seq, "why": why} for one in (first, second) for seq, why in one.side.problems
            ],
            output_differs=_output_differs(left.side, right.side),
            failures={"left": first.failure(), "right": second.failure()},
            _children=children,
        )
        for one in (first, second):
            one.side.let_go()
        return comparison

    def _leave_unheeded(self) -> None:
        for side in (self._left.side, self._right.side):
            side.leave_out(side.unheeded())

    def _differences(self) -> Iterable[Difference]:
        for node in self._left.side.nodes:
            if node.mate is None:
                inside = node.parent is not None and node.parent.mate is None
                yield Difference("removed", node, None, "follows" if inside else None)
            elif (found := self._difference(node, node.mate)) is not None:
                yield found
        for node in self._right.side.nodes:
            if node.mate is None:
                inside = node.parent is not None and node.parent.mate is None
                yield Difference("added", None, node, "follows" if inside else None)

    def _difference(self, left: Node, right: Node) -> Difference | None:
        lost = left.lost + right.lost  # nobody can tell whether that is the same: the comparison says so, and no more
        same_question = "question" in lost or self._asks_the_same(left, right)
        same_answer = left.answer == right.answer or "answer" in lost
        apart = left.parent is not None and left.parent.mate is not right.parent
        if left.moved == "parent" and not apart:  # what it is in was paired later
            left.moved = right.moved = ""
        cause = None
        if not same_question:
            cause = "input_changed"
        elif not self._ended_the_same(left, right):
            cause = "status_changed"
        elif not same_answer:
            cause = "output_changed"
        if left.moved or apart:
            if not left.moved or (left.moved == "parent" and (is_wrapped(left, right) or is_wrapped(right, left))):
                left.moved = right.moved = "wrapper"
            cause = None if left.moved == "name" else "follows" if left.moved == "wrapper" and cause is None else cause
            return Difference("moved", left, right, cause, by_answer=same_question and cause in _ORIGINS)
        return None if cause is None else Difference("changed", left, right, cause, by_answer=same_question)

    def _asks_the_same(self, left: Node, right: Node) -> bool:
        if left.question == right.question:
            return True
        if left.kind != right.kind or left.name != right.name:
            return False
        means = self._left.meaning(left)
        return means is not None and bool(means == self._right.meaning(right))

    def _ended_the_same(self, left: Node, right: Node) -> bool:
        fields = ("/status", "/outcome") if left.kind == "http" else ("/status",)
        return left.status == right.status or any(map(self._left.volatile.is_ignored, fields))

    def _told_in_time(self, found: list[Difference]) -> list[Deviation]:
        """Return all deviations: what was printed where nothing had differed before has its place among the others."""
        told = [(one.at, self._told(one)) for one in found]
        for when, printed in self._printed(found):
            at = bisect_left(told, when, key=lambda pair: pair[0])
            told.insert(at, (when, printed))
        return [deviation for _, deviation in told]

    def _told(self, one: Difference) -> Deviation:
        left, right, kind = one.left, one.right, one.type
        if self._turned:
            left, right = right, left
            kind = {"added": "removed", "removed": "added"}.get(kind, kind)
        node = left or right
        assert node is not None
        return Deviation(
            type=kind,
            cause=one.cause,
            kind=node.kind,
            name=node.name,
            left_seq=None if left is None else left.seq,
            right_seq=None if right is None else right.seq,
            deviation_point=one.point,
            why=node.moved if kind == "moved" else "",
            _path=lambda: node.path,
            _changes=lambda: self._fields(one),
            _said=lambda: self._words(one),
        )

    def _fields(self, one: Difference) -> list[Change]:
        if one.left is None or one.right is None:
            return []
        lost = one.left.lost + one.right.lost
        known = not one.by_answer and "question" not in lost
        asked = changes(self._left.asked(one.left), self._right.asked(one.right), marks=True) if known else []
        heard = [side.answered(node) for side, node in ((self._left, one.left), (self._right, one.right))]
        if "answer" in lost:
            heard = [self._left.volatile.ignored({"status": node.status}) for node in (one.left, one.right)]
        found = asked + changes(*heard, marks=True)
        return self._seen([change for change in found if not self._left.volatile.is_ignored(change.path)])

    def _words(self, one: Difference) -> tuple[str, str]:
        if one.left is not None and one.right is not None:
            return "", ""
        return (self._right if one.left is None else self._left).said(one.node)

    def _seen(self, found: list[Change]) -> list[Change]:
        return [change.mirrored() for change in found] if self._turned else found

    def _printed(self, found: list[Difference]) -> Iterator[tuple[float, Deviation]]:
        """Compare what the programs wrote to their outputs, and say when; of stderr without the lines of tracebacks."""
        sides = self._left.side, self._right.side
        streams = sorted({*sides[0].outputs, *sides[1].outputs})
        compared = sides[0].launched == sides[1].launched and not self._left.volatile.is_ignored("/text")
        points = 0
        for stream in streams if compared else ():
            texts = [b"".join(text for _, text in side.outputs.get(stream, ())) for side in sides]
            if stream == "stderr":
                texts = [without_frames(text) for text in texts]
            if texts[0] == texts[1]:
                continue
            at = next(
                (at for at, pair in enumerate(zip(*texts, strict=False)) if pair[0] != pair[1]), min(map(len, texts))
            )
            seqs = [_holding(side, stream, at) for side in sides]
            follows = any(_came_before(one, *seqs) for one in found)
            points += not follows
            when = inf if follows else -1 if seqs[0] is None else seqs[0]
            yield when, self._told_of_output(stream, texts, seqs, follows, point=not follows and points == 1)

    def _told_of_output(
        self, stream: str, texts: list[bytes], seqs: list[int | None], follows: bool, point: bool
    ) -> Deviation:
        if self._turned:
            texts, seqs = texts[::-1], seqs[::-1]
        one, other = (text.decode("utf-8", "replace") for text in texts)
        root = (self._right if self._turned else self._left).side.root
        return Deviation(
            type="changed",
            cause="follows" if follows else "output_changed",
            kind="output.written",
            name=stream,
            left_seq=seqs[0],
            right_seq=seqs[1],
            deviation_point=point,
            _path=lambda: f"{root.path} / {stream}" if root else stream,
            _changes=lambda: changes({"text": one}, {"text": other}),
        )

    def _durations(self) -> list[dict[str, Any]]:
        found = []
        for node in self._left.side.nodes:
            mate = node.mate
            if mate is None or node.status == "point":
                continue
            ones = (mate, node) if self._turned else (node, mate)
            if (told := duration_diff(*ones)) is not None:
                found.append(told)
        return found


def _headline(deviations: list[Deviation]) -> Deviation | None:
    return next((one for one in deviations if _is_origin(one)), deviations[0] if deviations else None)


def _is_origin(one: Deviation) -> bool:
    return one.cause != "follows" and (one.cause in _ORIGINS or one.type in ("added", "removed"))


def _came_before(one: Difference, *seqs: int | None) -> bool:
    """Say whether something differed before an event of the left run, or one of the right run."""
    for node, seq in zip((one.left, one.right), seqs, strict=True):
        if node is not None and seq is not None and (node.end if one.by_answer else node.start) < seq:
            return True
    return False


def _holding(side: Side, stream: str, offset: int) -> int | None:
    """Return the event that holds a byte of an output; the last one where it ends before."""
    last = None
    for seq, text in side.outputs.get(stream, ()):
        last = seq
        if offset < len(text):
            break
        offset -= len(text)
    return last


def _output_differs(left: Side, right: Side) -> bool | None:
    if not (left.finished and right.finished and left.root and right.root):
        return None
    if "answer" in left.root.lost + right.root.lost:
        return None
    return left.root.answer != right.root.answer
