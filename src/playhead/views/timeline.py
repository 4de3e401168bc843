"""Lay out a run as people read it: what it was, and one row for each span and each thing that happened.

Events are taken one by one and only a few words of each are kept, so a run of any size can be shown. Lines come from
files that anybody may have written: a field of the wrong form is said as it is, and nothing here raises for it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from playhead import _limits
from playhead.event.envelope import Event
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING, TREE_CHANGED, UNSEEN
from playhead.event.reads import count
from playhead.event.usage import is_silent, is_talk
from playhead.views import answers, points, reads, redactions, text
from playhead.views.asked import AskedTools
from playhead.views.attempts import Attempts
from playhead.views.denials import Denials
from playhead.views.facts import Facts
from playhead.views.folding import same_before
from playhead.views.last_words import PROGRAM_ERRORS, TRACEBACK, LastWords, of_process
from playhead.views.points import mapping, words
from playhead.views.prices import Prices
from playhead.views.spans import OpenSpans, SpanView
from playhead.views.starts import Starts
from playhead.views.summary import Summary
from playhead.views.text import Resolve

Shown = TypeVar("Shown")
_UNSEEN = tuple(UNSEEN)  # a field of the wrong form can be looked up in it
_HEAD = ("agent", "git", "ci", "environment", "origin", "tags", "ambient", "external_id", "received")
_COUNTED = {
    "model.invoked": "model_calls",
    "tool.called": "tool_calls",
    "step.started": "steps",
    "http.sent": "http_requests",
}


@dataclass(slots=True)
class Row:
    """One span, one point event, or several output events folded into one."""

    seq: int
    kind: str  # step, model, tool, mcp, http, process, or the kind of a point event
    name: str
    detail: str
    status: str  # ok, error, cancelled, open, point; allow, deny, ask of a policy check; unseen of a gap without loss
    lane: str
    at_us: int
    depth: int = 0
    parent: int | None = None  # seq of the row it happened in
    end_seq: int | None = None
    duration_us: int | None = None  # None too where nobody saw it: what is inferred is written at one moment
    result: str = ""
    error: str | None = None
    where: str | None = None  # file, line and function in which the error was raised
    causes: list[str] = field(default_factory=list)  # what lies behind the error
    answer: str = ""  # of a model: the beginning of what it said, and the tools that it asked for
    unanswered: bool = False  # the call of a model ended well, and nobody recorded what it said
    tokens_in: int | None = None
    tokens_out: int | None = None
    folded: int = 1
    inferred: bool = False  # nobody saw it happen: it was read off the model traffic
    quiet: bool = False  # told elsewhere: reads of clocks and the like in a sum, the start of a process by its call
    children: list[Row] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the row without its children, whose `parent` it is."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "children"}


class Timeline:
    """Take the events of one run in order; then `summary` and `rows` say what it was.

    `resolve` follows a reference inside a value; it is asked only for what is said in a row. `prices` has what models
    cost. `interpret` says what the answer to a request means, by its method and address, where that is not plain.
    """

    def __init__(
        self,
        resolve: Resolve | None = None,
        prices: Prices | None = None,
        interpret: Callable[[str, str, Any], answers.Meaning | None] | None = None,
    ) -> None:
        self.summary = Summary()
        self._facts, self._prices = Facts(resolve), prices
        self._resolve = resolve
        self._roots: list[Row] = []
        self._known: dict[str, Row] = {}
        self._open = OpenSpans()
        self._asked = AskedTools()
        self._starts = Starts(resolve)
        self._interpret = interpret
        self._requests: dict[int, tuple[str, str, str]] = {}  # open ones to models, by row: operation, method, address
        self._lanes, self._models = dict[str, None](), dict[str, None]()
        self._first_us: int | None = None
        self._last_us = 0
        self._ended_us: int | None = None
        self._root: str | None = None  # span of the run
        self._by_program = False
        self._program: Row | None = None
        self._going_on: dict[int | None, dict[int, Row]] = {}  # open spans, by the row that they are in
        self._attempts, self._denials = Attempts(resolve), Denials()
        self._stderr, self._redacted = LastWords(), Counter[str]()

    def take(self, event: Event) -> Row | None:
        """Look at the next event, and return the row that it opened, closed or was folded into."""
        data = event.data if isinstance(event.data, dict) else {}
        self._count(event, data)
        self._redacted.update(redactions.marks(data))
        self._facts.take(event)
        self._open.take(event)
        self._lanes.setdefault(event.lane)
        if event.kind == "run.finished":
            return None
        row = self._known.get(event.span or "")
        if event.kind in CLOSING and row is not None and row.end_seq is None:
            return self._close(row, event, data)
        return self._add(event, data)

    def take_all(self, events: Iterable[Event]) -> Timeline:
        """Take several events."""
        for event in events:
            self.take(event)
        return self

    def finish(self) -> Summary:
        """Return what the run was, up to the last event taken."""
        summary = self.summary
        until = self._last_us if self._ended_us is None else self._ended_us
        summary.duration_us = max(0, until - (self._first_us or 0))
        summary.lanes, summary.models = list(self._lanes), list(self._models)
        summary.in_flight, summary.no_result = self._open.listed(), self._asked.listed()
        summary.denied, bill = self._denials.listed(), self._facts.bill(self._prices)
        summary.cost, summary.cost_unpriced = bill.amount, bill.unpriced
        redactions.add(summary, self._redacted)
        summary.last_words = self._last_words() or None if _only_how(summary.error) else None
        return summary

    def rows(self) -> Iterator[Row]:
        """Yield every row, each followed by what happened in it. The run itself is not a row: `summary` is."""
        stack = list(reversed(self._roots))
        while stack:
            row = stack.pop()
            yield row
            stack.extend(reversed(row.children))

    def _count(self, event: Event, data: dict[str, Any]) -> None:
        summary = self.summary
        summary.events += 1
        if self._first_us is None:
            self._first_us = event.elapsed_us
            summary.id, summary.started = event.run, event.time
        self._last_us = max(self._last_us, event.elapsed_us)
        if summary.ended is not None:
            summary.after += 1
        if (counted := _COUNTED.get(event.kind)) is not None:
            setattr(summary, counted, getattr(summary, counted) + 1)
        match event.kind:
            case "run.started":
                self._root = event.span
                self._started(data)
            case "step.started" if data.get("adopts"):
                self._adopted(data)
            case "run.finished":
                self._finished(event, data)
            case "tool.called" if isinstance(asked_by := data.get("asked_by"), str):
                call = data.get("call")
                known = call if isinstance(call, str) else None
                self._asked.called(asked_by, answers.Call(str(data.get("name")), id=known))
            case "run.reopened":
                summary.ended, summary.finished, summary.after, self._ended_us = None, None, 0, None
            case "output.written" if data.get("stream") == "stderr":
                summary.wrote_stderr = True
                self._stderr.take(words(data.get("text")))
            case "policy.checked":
                self._denials.take(event)
            case "effect.observed" if isinstance(what := data.get("what"), str):
                summary.effects[what] = summary.effects.get(what, 0) + 1
            case "note.added" if words(data.get("text")).startswith(TREE_CHANGED):
                summary.files_changed = points.files_changed(data, self._resolve)
            case "run.invalidated":
                summary.invalidated = {"seq": event.seq, "why": data.get("why"), "by": data.get("by")}
            case "ambient.read":
                summary.reads += count(data)
            case "gap.noted" if data.get("reason") in _UNSEEN:
                told = text.cut(points.unseen(data, self._resolve), _limits.SHOW_VALUE_CHARACTERS_MAX)
                if told not in summary.not_captured:  # each process of a run says it by itself
                    summary.not_captured.append(told)
            case "gap.noted":
                reason = str(data.get("reason"))
                summary.gaps[reason] = summary.gaps.get(reason, 0) + _whole(data.get("count", 1))

    def _started(self, data: dict[str, Any]) -> None:
        self.summary.name = words(data.get("name", ""))
        self.summary.request = data.get("input")
        for name in _HEAD:
            setattr(self.summary, name, data.get(name))
        self._by_program = data.get("agent") is None  # as `playhead record` starts a run

    def _adopted(self, data: dict[str, Any]) -> None:
        self.summary.name = words(data.get("name") or self.summary.name)
        self.summary.request = data.get("input") or self.summary.request
        self.summary.agent = data.get("agent") or self.summary.agent
        if tags := mapping(data.get("tags")):
            self.summary.tags = {**mapping(self.summary.tags), **tags}

    def _finished(self, event: Event, data: dict[str, Any]) -> None:
        summary = self.summary
        summary.ended, summary.finished, summary.after = str(data.get("status")), event.time, 0
        self._ended_us = event.elapsed_us
        summary.error, summary.output, summary.metadata = data.get("error"), data.get("output"), data.get("metadata")
        redacted = sorted(mapping(data.get("redacted")).items())
        summary.redacted, summary.redacted_at_least = {rule: _whole(count) for rule, count in redacted}, []

    def _add(self, event: Event, data: dict[str, Any]) -> Row | None:
        if event.kind == "run.started":
            return None
        parent = self._around(event)
        siblings = self._roots if parent is None else parent.children
        if (last := same_before(siblings, event, data)) is not None:
            last.folded += 1
            last.end_seq = event.seq
            if last.detail.startswith(TRACEBACK) and (raised := self._stderr.raised):  # which came in pieces
                last.detail = f"… {text.cut(raised, _limits.CELL_CHARACTERS_MAX)}"
            return last
        row = self.row_of(event)
        row.depth, row.parent = (0, None) if parent is None else (parent.depth + 1, parent.seq)
        row.quiet = row.quiet or (event.kind == "effect.observed" and self._starts.has(event))
        siblings.append(row)
        if event.span is not None and event.kind in OPENING_TO_CLOSING:
            self._known.setdefault(event.span, row)
            self._opened(row, event, data)
        return row

    def _around(self, event: Event) -> Row | None:
        """Return the row that an event happened in.

        Under `playhead record` all of it happens in the program. What that program writes comes without a word about
        the step that wrote it: it stands in what was going on, as far as that is one thing.
        """
        parent, program = self._known.get(event.parent or ""), self._program
        if program is None or program.end_seq is not None:
            return parent
        if parent is None and event.parent == self._root:
            return program
        if parent is program and event.kind == "output.written":
            while len(inner := self._going_on.get(parent.seq, {})) == 1:
                (parent,) = inner.values()
        return parent

    def _opened(self, row: Row, event: Event, data: dict[str, Any]) -> None:
        self._going_on.setdefault(row.parent, {})[row.seq] = row
        if event.kind == "step.started":
            self._attempts.opened(event)
        elif event.kind == "process.started":
            self._starts.opened(event)
            if self._by_program and len(self._known) == 1:
                self._program = row
        elif event.kind == "model.invoked":
            http = mapping(data.get("http"))
            self._requests[row.seq] = words(data.get("operation")), words(http.get("method")), words(http.get("url"))
            self.summary.calls_without_usage += is_talk(self._requests[row.seq][0])

    def row_of(self, event: Event) -> Row:
        """Return the row of an event on its own, as if nothing followed it."""
        data = event.data if isinstance(event.data, dict) else {}
        view = SpanView(event)
        row = Row(event.seq, view.kind, text.cut(view.name, _limits.NAME_CHARACTERS_MAX), "", view.status, event.lane,
                  event.elapsed_us, inferred=data.get("inferred") is True)  # fmt: skip
        width = _limits.CELL_CHARACTERS_MAX
        match event.kind:
            case "tool.called":
                row.detail = text.arguments(data.get("input"), width, self._resolve)
            case "mcp.requested":
                row.detail = text.cut(points.mcp_side(data), width)
            case "model.invoked":
                self._models.setdefault(row.name)
                row.detail = _attempt(data.get("attempt", 1))
            case "step.started":
                attempt = _attempt(self._attempts.number(event))
                row.detail = ", ".join(filter(None, (attempt, self._named(data.get("attributes"), width))))
            case "policy.checked":
                row.status, row.detail = str(data.get("decision")), words(data.get("resource"))
                rule = "" if data.get("rule", "none") == "none" else words(data.get("rule"))
                row.result = ": ".join(filter(None, (rule, words(data.get("reason")))))
            case "artifact.created":
                size = text.size(data["size"]) if type(data.get("size")) is int else ""
                row.detail = ", ".join(filter(None, (words(data.get("role")), size)))
            case "gap.noted" if data.get("reason") in _UNSEEN:
                row.status, row.detail = "unseen", text.cut(points.unseen(data, self._resolve), width)
            case "gap.noted":
                row.status, row.detail = "error", f"{_whole(data.get('count', 1))} lost"
            case "ambient.read":
                row.detail = text.cut(reads.told(data, self._resolve), width)
                row.quiet = not reads.contents(data, self._resolve)
            case kind if kind not in OPENING_TO_CLOSING:
                row.detail = text.cut(points.said(kind, data, row.name, self._resolve), width)
                row.quiet = kind in points.QUIET
        return row

    def _close(self, row: Row, event: Event, data: dict[str, Any]) -> Row:
        row.end_seq = event.seq
        unseen = row.kind == "tool" and row.inferred
        row.duration_us = None if unseen else max(0, event.elapsed_us - row.at_us)
        row.status = str(data.get("outcome") or data.get("status") or "ok")
        self._settle(row)
        error = data.get("error")
        if error is not None:
            error = error if self._resolve is None else self._resolve(error)
            row.error, row.where, row.causes = text.error_line(error), text.error_place(error), text.error_causes(error)
        width = _limits.CELL_CHARACTERS_MAX
        match event.kind:
            case "model.responded":
                self._answered(row, event, data)
            case "tool.returned" if row.error is None:
                row.result = text.short(data.get("output"), width, self._resolve)
            case "mcp.answered" if row.error is None:
                row.result = text.short(data.get("result"), width, self._resolve)
            case "http.received" if row.error is None:
                row.result = words(data.get("status"))
            case "process.exited":
                self._starts.closed(event)
                row.result = "" if data.get("exit_code") is None else _exit(data["exit_code"])
                if row is self._program and _only_how(error):
                    row.causes = [*row.causes, *([f"stderr: … {last}"] if (last := self._last_words()) else [])]
                elif row.status == "error":
                    row.causes = [*row.causes, *of_process(data, self._resolve)]
            case "step.finished" if data.get("attributes"):
                row.result = self._named(data["attributes"], width)
        return row

    def _answered(self, row: Row, event: Event, data: dict[str, Any]) -> None:
        """Say in the row of a model what it answered, and add up what that took."""
        usage = mapping(data.get("usage"))
        row.tokens_in, row.tokens_out = _count_or_none(usage.get("input")), _count_or_none(usage.get("output"))
        self.summary.tokens_in += row.tokens_in or 0
        self.summary.tokens_out += row.tokens_out or 0
        self.summary.model_failures += row.status == "error"
        row.result = words(data.get("finish"))
        operation, *address = self._requests.pop(row.seq, ("", "", ""))
        talk = is_talk(operation)
        interpret = partial(self._interpret, *address) if self._interpret is not None and address[1] and talk else None
        response = data.get("response")
        row.answer, asked = answers.read(response, _limits.CELL_CHARACTERS_MAX, self._resolve, interpret)
        if asked and event.span is not None and row.status == "ok" and data.get("http") is not None:
            self._asked.answered(event.span, event.seq, asked)  # by hand, nobody may tell what came of it
        told = any(data.get(name) is not None for name in ("response", "chunks", "finish", "usage", "error"))
        row.unanswered = row.status == "ok" and not told
        counted = row.tokens_in is not None or row.tokens_out is not None
        self.summary.calls_without_usage -= talk and not (told and is_silent(data, counted))

    def _settle(self, row: Row) -> None:
        """Take a row out of what is going on."""
        beside = self._going_on.get(row.parent, {})
        beside.pop(row.seq, None)
        if not beside:
            self._going_on.pop(row.parent, None)
        self._attempts.closed(row.seq, row.status)

    def _last_words(self) -> str:
        return text.cut(self._stderr.line, _limits.CELL_CHARACTERS_MAX)

    def _named(self, attributes: Any, width: int) -> str:
        return text.arguments(attributes, width, self._resolve) if attributes else ""


def window(rows: list[Shown], limit: int | None) -> tuple[list[Shown], int, list[Shown]]:
    """Choose what to show of many rows, or lines: the beginning, how many are left out, and the end."""
    if limit is None or limit <= 0 or len(rows) <= limit:
        return rows, 0, []
    tail = limit // 4
    return rows[: limit - tail], len(rows) - limit, rows[len(rows) - tail :]


def _only_how(error: Any) -> bool:
    return mapping(error).get("type") in PROGRAM_ERRORS


def _attempt(attempt: Any) -> str:
    return f"attempt {attempt}" if type(attempt) is int and attempt > 1 else ""


def _exit(code: Any) -> str:
    return f"killed by {text.signal_name(-code)}" if type(code) is int and code < 0 else f"exit {words(code)}"


def _whole(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 1


def _count_or_none(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
