"""Lay out a run as people read it: what it was, and one row for each span and each thing that happened.

Events are taken one by one and only a few words of each are kept, so a run of any size can be shown. Lines come from
files that anybody may have written: a field of the wrong form is said as it is, and nothing here raises for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from playhead import _limits
from playhead.event.envelope import Event
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING
from playhead.views import text
from playhead.views.spans import OpenSpans, SpanView
from playhead.views.text import Resolve

_FOLDED = ("output.written", "ambient.read")
_COUNTED = {"model.invoked": "model_calls", "tool.called": "tool_calls", "step.started": "steps"}


@dataclass(slots=True)
class Row:
    """One span, one point event, or several output events folded into one."""

    seq: int
    kind: str  # step, model, tool, http, process, or the kind of a point event
    name: str
    detail: str
    status: str  # ok, error, cancelled, open, point; allow, deny, ask of a policy check
    lane: str
    at_us: int
    depth: int = 0
    parent: int | None = None  # seq of the row it happened in
    end_seq: int | None = None
    duration_us: int | None = None
    result: str = ""
    error: str | None = None
    where: str | None = None  # file, line and function in which the error was raised
    tokens_in: int | None = None
    tokens_out: int | None = None
    folded: int = 1
    children: list[Row] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return the row without its children, whose `parent` it is."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "children"}


@dataclass
class Summary:
    """What a run was. `in_flight` lists spans that nothing closed."""

    id: str = ""
    name: str = ""
    started: str = ""
    finished: str | None = None
    ended: str | None = None  # ok, error, cancelled; None while there is no run.finished
    duration_us: int = 0
    events: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    steps: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    models: list[str] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    request: Any = None
    agent: Any = None
    git: Any = None
    ci: Any = None
    environment: Any = None
    origin: Any = None
    tags: Any = None
    gaps: dict[str, int] = field(default_factory=dict)
    redacted: dict[str, int] = field(default_factory=dict)
    invalidated: dict[str, Any] | None = None
    error: Any = None
    output: Any = None
    metadata: Any = None
    after: int = 0  # events after run.finished
    in_flight: list[dict[str, Any]] = field(default_factory=list)


class Timeline:
    """Take the events of one run in order; then `summary` and `rows` say what it was.

    `resolve` follows a reference inside a value; it is asked only for what is said in a row.
    """

    def __init__(self, resolve: Resolve | None = None) -> None:
        self.summary = Summary()
        self._resolve = resolve
        self._roots: list[Row] = []
        self._known: dict[str, Row] = {}
        self._open = OpenSpans()
        self._lanes: dict[str, None] = {}
        self._models: dict[str, None] = {}
        self._first_us: int | None = None
        self._last_us = 0
        self._ended_us: int | None = None

    def take(self, event: Event) -> Row | None:
        """Look at the next event, and return the row that it opened, closed or was folded into."""
        data = event.data if isinstance(event.data, dict) else {}
        self._count(event, data)
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
        summary.in_flight = self._open.listed() if summary.ended is None else []
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
                self._started(data)
            case "step.started" if data.get("adopts"):
                self._adopted(data)
            case "run.finished":
                self._finished(event, data)
            case "run.reopened":
                summary.ended, summary.finished, summary.after, self._ended_us = None, None, 0, None
            case "run.invalidated":
                summary.invalidated = {"seq": event.seq, "why": data.get("why"), "by": data.get("by")}
            case "gap.noted":
                reason = str(data.get("reason"))
                summary.gaps[reason] = summary.gaps.get(reason, 0) + _whole(data.get("count", 1))

    def _started(self, data: dict[str, Any]) -> None:
        self.summary.name = str(data.get("name", ""))
        self.summary.request = data.get("input")
        for name in ("agent", "git", "ci", "environment", "origin", "tags"):
            setattr(self.summary, name, data.get(name))

    def _adopted(self, data: dict[str, Any]) -> None:
        self.summary.name = str(data.get("name") or self.summary.name)
        self.summary.request = data.get("input") or self.summary.request
        self.summary.agent = data.get("agent") or self.summary.agent

    def _finished(self, event: Event, data: dict[str, Any]) -> None:
        summary = self.summary
        summary.ended, summary.finished, summary.after = str(data.get("status")), event.time, 0
        self._ended_us = event.elapsed_us
        summary.error, summary.output, summary.metadata = data.get("error"), data.get("output"), data.get("metadata")
        redacted = data.get("redacted")
        summary.redacted = {str(rule): _whole(count) for rule, count in _object(redacted).items()}

    def _add(self, event: Event, data: dict[str, Any]) -> Row | None:
        if event.kind == "run.started":
            return None
        parent = self._known.get(event.parent or "")
        siblings = self._roots if parent is None else parent.children
        if event.kind in _FOLDED and siblings and _folds(siblings[-1], event, data):
            siblings[-1].folded += 1
            siblings[-1].end_seq = event.seq
            return siblings[-1]
        row = self.row_of(event)
        row.depth, row.parent = (0, None) if parent is None else (parent.depth + 1, parent.seq)
        siblings.append(row)
        if event.span is not None and event.kind in OPENING_TO_CLOSING:
            self._known.setdefault(event.span, row)
        return row

    def row_of(self, event: Event) -> Row:
        """Return the row of an event on its own, as if nothing followed it."""
        data = event.data if isinstance(event.data, dict) else {}
        view = SpanView(event)
        row = Row(event.seq, view.kind, text.cut(view.name, _limits.NAME_CHARACTERS_MAX), "", view.status, event.lane,
                  event.elapsed_us)  # fmt: skip
        width = _limits.CELL_CHARACTERS_MAX
        match event.kind:
            case "tool.called":
                row.detail = text.arguments(data.get("input"), width, self._resolve)
            case "model.invoked":
                self._models.setdefault(row.name)
                row.detail = _attempt(data)
            case "step.started":
                row.detail = ", ".join(filter(None, (_attempt(data), self._named(data.get("attributes"), width))))
            case "policy.checked":
                row.status, row.detail = str(data.get("decision")), _words(data.get("resource"))
                rule = "" if data.get("rule", "none") == "none" else _words(data.get("rule"))
                row.result = ": ".join(filter(None, (rule, _words(data.get("reason")))))
            case "artifact.created":
                size = text.size(data["size"]) if type(data.get("size")) is int else ""
                row.detail = ", ".join(filter(None, (_words(data.get("role")), size)))
            case "gap.noted":
                row.status, row.detail = "error", f"{_whole(data.get('count', 1))} lost"
            case kind if kind not in OPENING_TO_CLOSING:
                row.detail = text.cut(_point(kind, data, row.name, self._resolve), width)
        return row

    def _close(self, row: Row, event: Event, data: dict[str, Any]) -> Row:
        row.end_seq = event.seq
        row.duration_us = max(0, event.elapsed_us - row.at_us)
        row.status = str(data.get("outcome") or data.get("status") or "ok")
        row.error, row.where = text.error_line(data.get("error")), text.error_place(data.get("error"))
        width = _limits.CELL_CHARACTERS_MAX
        match event.kind:
            case "model.responded":
                usage = _object(data.get("usage"))
                row.tokens_in, row.tokens_out = _count_or_none(usage.get("input")), _count_or_none(usage.get("output"))
                self.summary.tokens_in += row.tokens_in or 0
                self.summary.tokens_out += row.tokens_out or 0
                row.result = _words(data.get("finish"))
            case "tool.returned" if row.error is None:
                row.result = text.short(data.get("output"), width, self._resolve)
            case "http.received" if row.error is None:
                row.result = _words(data.get("status"))
            case "process.exited" if data.get("exit_code") is not None:
                row.result = f"exit {_words(data['exit_code'])}"
            case "step.finished" if data.get("attributes"):
                row.result = self._named(data["attributes"], width)
        return row

    def _named(self, attributes: Any, width: int) -> str:
        return text.arguments(attributes, width, self._resolve) if attributes else ""


def window(rows: list[Row], limit: int | None) -> tuple[list[Row], int, list[Row]]:
    """Choose what to show of many rows: the beginning, how many are left out, and the end."""
    if limit is None or limit <= 0 or len(rows) <= limit:
        return rows, 0, []
    tail = limit // 4
    return rows[: limit - tail], len(rows) - limit, rows[len(rows) - tail :]


def _point(kind: str, data: dict[str, Any], name: str, resolve: Resolve | None) -> str:
    match kind:
        case "note.added":
            return _words(data.get("text"))
        case "output.written":
            return _words(data.get("text")).strip("\n")
        case "effect.observed":
            return _words(data.get("target"))
        case "ambient.read":
            reads = data.get("reads")
            return text.several(len(reads) if isinstance(reads, list) else 1, "read")
        case "git.committed":
            return f"{_words(data.get('commit'))[:10]} {_words(data.get('message')).partition(chr(10))[0]}"
        case "run.invalidated":
            by = _words(data.get("by"))
            return _words(data.get("why")) + (f" (by {by})" if by else "")
        case "content.erased":
            return f"event {_words(data.get('seq'))} {_words(data.get('path'))} {_words(data.get('why'))}".rstrip()
        case _:
            rest = {key: value for key, value in data.items() if not (name and key == "name")}
            return text.arguments(rest, _limits.CELL_CHARACTERS_MAX, resolve) if rest else ""


def _folds(last: Row, event: Event, data: dict[str, Any]) -> bool:
    same_stream = event.kind != "output.written" or last.name == str(data.get("stream", ""))
    return last.kind == event.kind and last.lane == event.lane and same_stream


def _attempt(data: dict[str, Any]) -> str:
    attempt = data.get("attempt", 1)
    return f"attempt {attempt}" if type(attempt) is int and attempt > 1 else ""


def _words(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else text.short(value, _limits.CELL_CHARACTERS_MAX)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _whole(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 1


def _count_or_none(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None
