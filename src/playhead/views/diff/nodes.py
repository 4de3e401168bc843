"""Make a tree of a run, with all that two runs are compared by, and little else: no value is kept, only its digest.

Runs come from anywhere. An event whose parent is not there stands under the run, the second span of an id is a span of
its own without an end, and parents that make a circle are cut apart. What the recorder says of itself is left out, and
so is what belongs to the setting: reads, effects, gaps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from playhead.errors import MissingContent
from playhead.event.envelope import Event
from playhead.event.kinds import CLOSING, COMMITS, OPENING_TO_CLOSING, TREE_CHANGED, UNSEEN
from playhead.views.diff import content
from playhead.views.diff.content import ResolveValue
from playhead.views.diff.volatile import Volatile
from playhead.views.imported import is_imported
from playhead.views.points import mapping, written
from playhead.views.spans import SpanView

# What says how the run was recorded or judged, or what is compared as its setting.
_LEFT_OUT = frozenset(
    {
        *("run.reopened", "run.invalidated", "run.graded", "content.erased", "ambient.read", "effect.observed"),
        *("gap.noted", "git.committed", "replay.deviated", "replay.reported", "output.written"),
        *("run.started", "run.finished", "emitter.described", "span.revised"),
    }
)
_OURS = frozenset({"attached", "left_tape"})  # what notes have that the recorder makes
_CLOSES = CLOSING - {"run.finished"}
_CALLED = frozenset({"tool.called", "model.invoked", "mcp.requested", "http.sent"})  # never the recorder's own
# What somebody else than the tree is made of is interested in.
WATCHED = frozenset(
    {
        *("run.started", "run.finished", "step.started", "model.invoked", "model.responded", "effect.observed"),
        *("ambient.read", "replay.reported"),
    }
)
_MADE = frozenset({"run", "step", "artifact.created", "note.added", "output.written"})  # by the agent itself
REPLAYS = ("exact", "model", "fork", "step", "resume")


_NOUNS = {kind: kind.partition(".")[0] for kind in OPENING_TO_CLOSING}
_NAMED = frozenset({"run", "step", "tool"})  # whose name is a field
Once = Callable[[str, str], str]
_NO_ANSWER = content.digest({})
_NOTHING: list[Any] = []  # to be replaced, never to be added to


class Node:
    """One span, or one thing that happened, of one run."""

    __slots__ = (
        "answer", "children", "deviates", "duration_us", "effects", "end", "end_seq", "kind", "lane", "lost", "mate",
        "moved", "name", "number", "parent", "question", "seq", "start", "status", "whole",
    )  # fmt: skip

    def __init__(self, event: Event, number: int, when: int, once: Once) -> None:
        self.seq, self.lane, self.number = event.seq, once(event.lane, event.lane), number
        noun = _NOUNS.get(event.kind)
        self.kind = noun or event.kind
        name = event.data.get("name") if noun in _NAMED else None
        name = name if type(name) is str and name else SpanView(event).name
        self.name: str = once(name, name)
        self.end_seq: int | None = None
        self.start = self.end = when  # in the order of the run
        self.status = "point" if noun is None else "open"
        self.duration_us: int | None = None
        self.question: Any = None  # the same for the same question
        self.answer: bytes = _NO_ANSWER
        self.parent: Node | None = None
        self.children: list[Node] = _NOTHING  # most have none
        self.effects: list[tuple[str, str, int]] = _NOTHING  # that happened right in it: which, lane, when
        self.mate: Node | None = None  # in the other run
        self.moved = ""  # why its place is another: order, parent, wrapper, name
        self.deviates = False
        self.lost = ""  # which of its values cannot be read, so that nobody can compare them: question, answer or both
        self.whole: int | None = None  # a number for it and all that is in it, where that was asked for

    @property
    def path(self) -> str:
        """Return the names of all that it is in, and its own."""
        names: list[str] = []
        node: Node | None = self
        while node is not None:
            names.append(node.name or node.kind)
            node = node.parent
        return " / ".join(reversed(names))

    @property
    def is_made(self) -> bool:
        """Say whether the agent made it by itself, in place of being answered."""
        return self.kind in _MADE


@dataclass
class Side:
    """One of the two runs."""

    run: str = ""
    root: Node | None = None
    finished: bool = False
    started: dict[str, Any] = field(default_factory=dict)  # the data of run.started
    time: str = ""  # when it began
    folder: str = ""  # where it began, with a slash
    head: str = ""
    launched: bool = False  # the whole program was recorded, with what it printed
    imported: bool = False  # its events are in the order of their times
    replay: bool = False  # what is inside of tools that were answered from the tape is not in it
    nodes: list[Node] = field(default_factory=list)
    outputs: dict[str, list[tuple[int, bytes]]] = field(default_factory=dict)  # by stream: seq, what was written
    counts: Counter[str] = field(default_factory=Counter)
    first_us: int = 0
    ended_us: int = 0
    problems: list[tuple[int, str]] = field(default_factory=list)  # events that cannot be compared, and why
    decisions: list[tuple[Node, bytes]] = field(default_factory=list)  # each check, and what came of it alone
    checks: list[Node] = field(default_factory=list)  # that the policy made of its own accord, about what was done
    stops: list[Node] = field(default_factory=list)  # those of them that kept something from being done
    later: list[Node] = field(default_factory=list)  # that came after the end, such as results of CI

    def leave_out(self, nodes: Iterable[Node]) -> None:
        """Take away what is not to be compared."""
        gone = {id(node): node.parent for node in nodes}
        if gone:
            self.nodes = [node for node in self.nodes if id(node) not in gone]
            for parent in {id(parent): parent for parent in gone.values()}.values():
                if parent is not None:
                    parent.children = [child for child in parent.children if id(child) not in gone]

    def unheeded(self) -> list[Node]:
        """Return what the policy decided in this run alone, and nothing was stopped by."""
        stops = {id(node) for node in self.stops}
        return [node for node in self.checks if node.mate is None and id(node) not in stops]

    def leave_rules(self) -> None:
        """Compare of what was checked the decision alone, and not by which rule: those are of another policy."""
        for node, decision in self.decisions:
            node.answer = decision

    def let_go(self) -> None:
        """Keep no node that nobody else has: from here on they know what they are in, and not what is in them."""
        for node in self.nodes:
            node.children, node.mate = _NOTHING, None  # no circles, which only the garbage collector would find
        self.nodes, self.decisions = [], []


Watch = Callable[[Event], None]


def side_of(events: Iterable[Event], resolve: ResolveValue, watch: Watch, volatile: Volatile) -> Side:
    """Read a run.

    `resolve` gives a value as it was, `watch` is shown what is WATCHED, `volatile` is what is not to be compared.
    """
    return _Reading(resolve, watch, volatile).read(events)


def meaning(event: Event, asked: dict[str, Any]) -> Any:
    """Return what a question is known by where not all of it is compared: what is left of it."""
    return event.kind, content.digest(asked)


class _Reading:
    """Take the events of one run in order."""

    def __init__(self, resolve: ResolveValue, watch: Watch, volatile: Volatile) -> None:
        self._side = Side()
        self._resolve, self._watch, self._volatile = resolve, watch, volatile
        texts: dict[str, str] = {}
        self._once = texts.setdefault  # of few names there are many nodes, which need not have each their own
        self._known: dict[str, Node] = {}
        self._open: dict[str, Node] = {}
        self._around: dict[str, list[Node]] = {}  # what was open under the id of an open span
        self._early: list[tuple[Node, str]] = []  # nodes that came before their parent, and its id
        self._begun_us: list[int] = []
        self._effects: list[tuple[str | None, str, str, int]] = []
        self._program: str | None = None  # the span of the program itself, that a launcher started
        self._until_end: int | None = None  # how many nodes there were at the end of the run

    def read(self, events: Iterable[Event]) -> Side:
        side, number, last_us = self._side, 0, 0
        event = None
        for event in events:
            number += 1
            if event.elapsed_us > last_us:
                last_us = event.elapsed_us
            if event.kind in WATCHED:
                self._watch(event)
            self._take(event)
        if event is not None:
            side.run, side.head, side.counts["events"] = event.run, event.hash, number
        if not side.finished:
            side.ended_us = last_us
        if self._until_end is not None:
            side.later = side.nodes[self._until_end :]
        kinds = Counter(node.kind for node in side.nodes)
        side.counts.update(model_calls=kinds["model"], tool_calls=kinds["tool"])
        self._nest()
        return side

    def _take(self, event: Event) -> None:
        kind = event.kind
        if kind in _CLOSES:
            opened = self._open.pop(event.span or "", None)
            if opened is not None:
                if self._around and (others := self._around.get(event.span or "")):
                    self._open[event.span or ""] = others.pop()
                self._close(opened, event)
            elif event.span is None or event.span != self._program:
                self._node(event)
        elif kind in _CALLED or kind not in _LEFT_OUT:
            if kind in _CALLED or not self._is_ours(event):
                self._node(event)
        else:
            self._aside(event)

    def _aside(self, event: Event) -> None:
        """Take what is no node."""
        side, kind, data = self._side, event.kind, event.data
        if kind == "run.finished":
            if side.root is not None:
                self._close(side.root, event)  # the last one counts
                side.finished, side.ended_us = True, event.elapsed_us
                self._until_end = len(side.nodes)
        elif kind == "run.reopened" and side.root is not None:
            side.root.status, side.root.answer, side.root.end_seq = "open", _NO_ANSWER, None
            side.finished, self._until_end = False, None
        elif kind == "run.started" and side.root is None:
            side.started, side.time, side.first_us = data, event.time, event.elapsed_us
            side.folder = content.folder_of(data)
            origin = mapping(data.get("origin"))
            side.replay = origin.get("mode") in REPLAYS
            side.launched = data.get("agent") is None and data.get("entrypoint") is not None
            side.imported = is_imported(data)
            side.root = self._node(event)
        elif kind == "output.written":
            side.outputs.setdefault(str(data.get("stream")), []).append((event.seq, written(data)))
        elif kind == "effect.observed":
            what, target = str(data.get("what")), str(data.get("target"))
            self._effects.append((event.parent, f"{what} {target}", event.lane, self._when(event)))
        elif kind == "gap.noted" and data.get("reason") not in tuple(UNSEEN):
            lost = data.get("count", 1)
            side.problems.append((event.seq, f"{lost} lost when it was recorded: {data.get('reason')}"))

    def _node(self, event: Event) -> Node:
        node = Node(event, len(self._side.nodes), self._when(event), self._once)
        opens = node.status == "open"
        missed = len(self._side.problems)
        node.question = self._asked(event)
        if len(self._side.problems) > missed:
            node.lost = "question"
        if not opens:
            self._answer_of(node, event)
        self._side.nodes.append(node)
        if event.kind == "policy.checked":
            self._decided(node, event.data)
        if event.parent is not None:
            node.parent = self._known.get(event.parent)
            if node.parent is None:
                self._early.append((node, event.parent))
        self._begun_us.append(event.elapsed_us)
        if opens and event.span is not None:
            self._known.setdefault(event.span, node)
            if event.span in self._open:
                self._around.setdefault(event.span, []).append(self._open[event.span])
            self._open[event.span] = node
        return node

    def _decided(self, node: Node, data: dict[str, Any]) -> None:
        side = self._side
        decision = self._volatile.ignored({"decision": data.get("decision")})
        side.decisions.append((node, content.digest(decision)))
        if data.get("by") == "policy" and data.get("asked") != "agent":
            side.checks.append(node)
            if data.get("decision") != "allow" and data.get("mode") == "enforce":
                side.stops.append(node)

    def _asked(self, event: Event) -> Any:
        if self._volatile.concerns(event):
            whole = msgspec.structs.replace(event, data=self._resolved(event.seq, event.data))
            return meaning(event, self._volatile.asked(whole, self._side.folder))
        if event.key is not None:
            return event.key
        return event.kind, self._digest(event.seq, content.question(event.kind, event.data, self._side.folder))

    def _close(self, node: Node, event: Event) -> None:
        node.end, node.end_seq = max(node.start, self._when(event)), event.seq  # clocks of others may be wrong
        data = event.data
        status = str(data.get("outcome") or data.get("status") or "ok")
        node.status = self._once(status, status)
        if not data.get("inferred"):
            node.duration_us = max(0, event.elapsed_us - self._begun_us[node.number])
        if event.kind == "model.responded":
            self._count(data)
        self._answer_of(node, event)

    def _answer_of(self, node: Node, event: Event) -> None:
        missed = len(self._side.problems)
        node.answer = self._answer(event)
        if len(self._side.problems) > missed:
            node.lost += "answer"

    def _answer(self, event: Event) -> bytes:
        data = event.data
        if "error" in data:
            data = {**data, "error": self._resolved(event.seq, data["error"])}
        found = content.answer(event.kind, data)
        if event.kind in content.REFINED or self._volatile.ignores:
            found = content.heard(event.kind, self._resolved(event.seq, found))
        return self._digest(event.seq, self._volatile.ignored(found))

    def _count(self, data: dict[str, Any]) -> None:
        usage = mapping(data.get("usage"))
        for name in ("input", "output", "cached", "reasoning"):
            if type(usage.get(name)) is int:
                self._side.counts[f"tokens_{name}"] += usage[name]

    def _digest(self, seq: int, value: Any) -> bytes:
        try:
            return content.digest(value, self._resolve)
        except MissingContent as problem:
            self._side.problems.append((seq, problem.message))
            return content.digest(value)

    def _resolved(self, seq: int, value: Any) -> Any:
        try:
            return self._resolve(value)
        except MissingContent as problem:
            self._side.problems.append((seq, problem.message))
            return value

    def _when(self, event: Event) -> int:
        return event.elapsed_us if self._side.imported else event.seq

    def _is_ours(self, event: Event) -> bool:
        """Say whether the recorder wrote it of its own accord."""
        data = event.data
        if event.kind == "process.started" and len(self._side.nodes) == 1:
            if self._side.launched and data.get("argv") == mapping(self._side.started.get("entrypoint")).get("argv"):
                self._program = event.span
                return True
            return False
        if event.kind == "note.added":
            extra = mapping(data.get("data"))
            told = str(data.get("text")).startswith(TREE_CHANGED)
            return told or not _OURS.isdisjoint(extra) or {"omitted", "problem"} <= extra.keys()
        if event.kind != "artifact.created":
            return False
        return data.get("role") == "diff" or (data.get("role") == "patch" and str(data.get("name")).startswith(COMMITS))

    def _nest(self) -> None:
        """Hang every node under its parent, as soon as all are known: what came from outside may come before it."""
        side = self._side
        root = side.root
        if root is None:
            return
        for node, said in self._early:
            node.parent = self._known.get(said)
        after = any(node.parent is not None for node, _ in self._early)
        for node in side.nodes:
            if node.parent is None or node.parent is node:
                node.parent = root
        root.parent = None
        if after:  # a circle has at least one that comes before its parent
            self._cut_circles(root)
        for node in side.nodes:
            parent = node.parent
            if parent is not None:
                if parent.children is _NOTHING:
                    parent.children = []
                parent.children.append(node)
        for span, which, lane, when in self._effects:
            around = self._known.get(span or "") or root
            if around.effects is _NOTHING:
                around.effects = []
            around.effects.append((which, lane, when))

    def _cut_circles(self, root: Node) -> None:
        """Put under the run what would else be under itself."""
        sound = {root.number}
        for node in self._side.nodes:
            way: set[int] = set()
            at: Node | None = node
            while at is not None and at.number not in sound:
                if at.number in way:
                    at.parent = root
                    break
                way.add(at.number)
                at = at.parent
            sound |= way
