"""Read one of two runs that are compared: its tree, what it ran in, and any of its values when it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import msgspec

from playhead import _limits
from playhead.errors import BrokenLine, MissingContent, NotComparable
from playhead.event.envelope import Event
from playhead.event.normalise import Normalisers
from playhead.views import answers, last_words, text
from playhead.views.diff import content
from playhead.views.diff.cancelled import Ends, ends_in
from playhead.views.diff.nodes import Node, meaning, side_of
from playhead.views.diff.saying import said_of
from playhead.views.diff.setting import Setting
from playhead.views.diff.volatile import Volatile
from playhead.views.facts import Facts
from playhead.views.points import mapping
from playhead.views.prices import Prices

_BILLED = ("run.started", "model.invoked", "model.responded", "replay.reported")


@dataclass(frozen=True, slots=True)
class Recorded:
    """One run as it is read: its events in order, one of them with every value as it was, and a value as it was."""

    events: Callable[[], Iterable[Event]]
    event: Callable[[int], Event]
    value: Callable[[Any], Any]


@dataclass(frozen=True)
class Options:
    """What is compared, and how."""

    ignore: Sequence[str] = ()  # JSON pointers, `*` for any name: `/output/time`
    normalisers: Normalisers | None = None
    durations: bool = False
    prices: Prices | None = None


class Source:
    """One of the runs: its tree, and how to look something up in it."""

    def __init__(self, recorded: Recorded, name: str, options: Options) -> None:
        self.recorded, self.name = recorded, name
        self.volatile = Volatile(options.ignore, options.normalisers)
        self.ends: Ends = {}
        self._adopted: int | None = None  # where the agent begins that adopted the run of its program
        self._meanings: dict[int, Any] = {}
        self.setting = Setting(recorded.value)
        self._facts, self._prices = Facts(self._readable), options.prices
        try:
            self.side = side_of(recorded.events(), recorded.value, self._watch, self.volatile)
        except BrokenLine as problem:
            raise NotComparable(f"the {name} run cannot be read to its end: {problem.message}") from problem
        if self.side.root is None:
            raise NotComparable(f"the {name} run has no beginning: no run.started is in it")

    def begin_at_the_agent(self) -> None:
        """Take the agent that adopted the run of its program for the run, as it is where the agent alone was recorded.

        What the program did besides is left out: there nobody saw it.
        """
        side = self.side
        agent = next((node for node in side.nodes if node.seq == self._adopted), None)
        if agent is None:
            return
        for node in side.later:
            node.parent = agent
        within = {id(agent)}
        for node in side.nodes:
            if id(node.parent) in within:
                within.add(id(node))
        agent.children = agent.children + side.later
        agent.parent, agent.kind = None, "run"
        side.root, side.nodes = agent, [node for node in side.nodes if id(node) in within]
        self._begin_lanes_at(agent.lane)
        if (event := self._event(agent.seq)) is not None:
            agent.question = meaning(event, self.volatile.asked(event, side.folder))

    def _begin_lanes_at(self, base: str) -> None:
        """Call the lane of the agent as that of a run is called, and those that it began by that."""

        def own(lane: str) -> str:
            return f"0{lane[len(base) :]}" if f"{lane}.".startswith(f"{base}.") else lane

        for node in self.side.nodes if base != "0" else ():
            node.lane = own(node.lane)
            node.effects = [(which, own(lane), when) for which, lane, when in node.effects]
        self.ends = {own(lane): end for lane, end in self.ends.items() if f"{lane}.".startswith(f"{base}.")}

    def failure(self) -> dict[str, Any] | None:
        """Return why the run failed; None where it did not.

        `error`, `where` in the program, `causes` behind it, and which tools the last answer `asked` for in vain.
        """
        root = self.side.root
        event = self._event(root.end_seq) if root is not None and root.status == "error" else None
        return None if event is None else {**self._error(event), "asked": self._asked_in_vain()}

    def _error(self, event: Event) -> dict[str, Any]:
        error = self.recorded.value(event.data.get("error"))
        if mapping(error).get("type") in last_words.PROGRAM_ERRORS:
            written = b"".join(found for _, found in self.side.outputs.get("stderr", ()))
            told = written.decode("utf-8", "replace")
            said, where = last_words.read(told)
            if said:
                behind = last_words.behind(told)
                return {"error": said, "where": where, "causes": [f"caused by {behind}"] if behind else []}
        return {"error": text.error_line(error), "where": text.error_place(error), "causes": text.error_causes(error)}

    def _asked_in_vain(self) -> list[str]:
        """Return the tools that the last answer of a model asked for, and of which nothing was seen afterwards."""
        asked = [(at, node) for at, node in enumerate(self.side.nodes) if node.kind == "model" and node.status == "ok"]
        event = self._event(asked[-1][1].end_seq) if asked else None
        if event is None:
            return []
        at, model = asked[-1]
        run = Counter(node.name for node in self.side.nodes[at:] if node.kind == "tool" and node.number > model.number)
        told = []
        for call in answers.read(event.data.get("response"), _limits.CELL_CHARACTERS_MAX, self.recorded.value).asked:
            if run[call.name]:
                run[call.name] -= 1
            else:
                told.append(str(call))
        return told

    @property
    def cost(self) -> tuple[float | None, bool]:
        """Return what the calls of models cost, and whether that is all: 0 where none was made or all failed."""
        bill = self._facts.bill(self._prices)
        free = bill.amount is None and all(fact.taped is True or fact.is_free for fact in self._facts.all)
        paid = (fact for fact in self._facts.all if fact.kind == "model" and fact.taped is not True)
        silent = bill.silent and any(fact.silent and fact.cost is None and not fact.is_free for fact in paid)
        return (0.0, True) if free else (bill.amount, not bill.unpriced and not silent)

    @cached_property
    def silent_calls(self) -> int:
        """Return how many calls of models did not say their tokens: those are not in the counts."""
        return sum(fact.kind == "model" and fact.silent for fact in self._facts.all)

    @property
    def order(self) -> tuple[str, str, str]:
        """Return by what two runs are put in an order that does not depend on how they are named: the older first."""
        return self.side.time, self.side.head, self.side.run

    def meaning(self, node: Node) -> Any:
        """Return what is left of a question to a model without the ids of its provider; None for any other one."""
        if node.kind != "model":
            return None
        if node.seq not in self._meanings:
            event = self._event(node.seq)
            found = None if event is None else meaning(event, self.volatile.asked(event, self.side.folder))
            self._meanings[node.seq] = found
        return self._meanings[node.seq]

    def nameless(self, node: Node) -> Any:
        """Return what is left of a question without its name."""
        rest = content.nameless(node.kind, self.asked(node))
        return None if rest is None else content.digest(rest)

    def values(self, node: Node) -> dict[str, Hashable]:
        """Return the single values of a question, without names of what is asked."""
        found: dict[str, Hashable] = {}
        for name, value in content.parts(node.kind, self.asked(node)):
            found[name] = content.digest(value)
        return found

    def asked(self, node: Node) -> dict[str, Any]:
        """Return the question of a node, field by field."""
        event = self._event(node.seq)
        return {} if event is None else self.volatile.asked(event, self.side.folder)

    def answered(self, node: Node) -> dict[str, Any]:
        """Return the answer to it."""
        event = self._event(node.seq if node.status == "point" else node.end_seq)
        found: dict[str, Any] = {"status": node.status}
        if event is not None:
            found = content.heard(event.kind, content.answer(event.kind, event.data))
            if event.kind == "artifact.created" and "content" in event.data:
                found["content"] = event.data["content"]
        left: dict[str, Any] = self.volatile.ignored(found)
        return left

    def said(self, node: Node) -> tuple[str, str]:
        """Return in a few words what a node asked, and what came of it."""
        event = self._event(node.seq)
        if event is None:
            return "", ""
        return said_of(event, self._event(node.end_seq), self.recorded.value)

    def _readable(self, value: Any) -> Any:
        try:
            return self.recorded.value(value)
        except MissingContent:
            return None

    def _event(self, seq: int | None) -> Event | None:
        try:
            event = None if seq is None else self.recorded.event(seq)
        except MissingContent:
            return None  # which is said where its digest was made
        root = self.side.root
        if event is not None and event.kind == "step.started" and root is not None and root.seq == seq:
            return msgspec.structs.replace(event, kind="run.started")
        return event

    def _watch(self, event: Event) -> None:
        self.setting.take(event)
        if self._adopted is None and event.kind == "step.started" and event.data.get("adopts"):
            self._adopted = event.seq
        if event.kind == "ambient.read":
            self.ends.update(ends_in(event.data))
        if event.kind in _BILLED:
            self._facts.take(event)
