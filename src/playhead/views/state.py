"""Say how things stood at one event of a run: what was open, asked, answered, allowed, made and spent by then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from playhead.event.envelope import Event
from playhead.event.kinds import UNSEEN
from playhead.views.spans import OpenSpans


@dataclass
class State:
    """How a run stood right after the event `seq`."""

    run: str = ""
    seq: int = -1
    kind: str = ""
    time: str = ""
    elapsed_us: int = 0
    finished: bool = False
    ended: str | None = None  # ok, error, cancelled, once it was finished
    error: Any = None  # that ended the run
    open_spans: list[dict[str, Any]] = field(default_factory=list)
    last_request: dict[str, Any] | None = None  # seq, provider, model, request
    last_answer: dict[str, Any] | None = None  # seq, status, response, finish, usage, error
    context_pack: dict[str, Any] | None = None  # seq, digest, and the artifact's name; the name is null at the start
    policy_checks: list[dict[str, Any]] = field(default_factory=list)
    artifacts: list[dict[str, Any]] = field(default_factory=list)
    tokens_in: int = 0
    tokens_out: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    gaps: int = 0


def state_at(events: Iterable[Event], seq: int, resolve: Callable[[Event], Event] | None = None) -> State:
    """Return the state after event `seq`; `events` may go on beyond it. `resolve` is asked for the last call only."""
    state = State()
    open_spans = OpenSpans()
    asked: Event | None = None
    answered: Event | None = None
    end: Event | None = None
    since: dict[int, int] = {}
    for event in events:
        if event.seq > seq:
            break
        data = event.data if isinstance(event.data, dict) else {}
        open_spans.take(event)
        if event.span is not None:
            since[event.seq] = event.elapsed_us
        state.run, state.seq, state.kind = event.run, event.seq, event.kind
        state.time, state.elapsed_us = event.time, event.elapsed_us
        if event.kind == "model.invoked":
            asked = event
        elif event.kind == "model.responded":
            answered = event
        elif event.kind in ("run.finished", "run.reopened"):
            end = event if event.kind == "run.finished" else None
        _take(state, event, data)
    state.open_spans = [{**item, "since_us": since[item["seq"]]} for item in open_spans.listed()]
    state.last_request = _picked(asked, resolve, ("provider", "model", "request"))
    state.last_answer = _picked(answered, resolve, ("status", "response", "finish", "usage", "error"))
    if end is not None:
        failed = isinstance(end.data, dict) and "error" in end.data
        how = _picked(end, resolve if failed else None, ("status", "error")) or {}
        state.finished, state.ended, state.error = True, str(how.get("status")), how.get("error")
    return state


def _take(state: State, event: Event, data: dict[str, Any]) -> None:
    match event.kind:
        case "run.started":
            state.context_pack = {"seq": event.seq, "digest": data.get("context_pack"), "name": None}
        case "model.invoked":
            state.model_calls += 1
        case "model.responded":
            usage = data.get("usage")
            if isinstance(usage, dict):
                state.tokens_in += _count(usage.get("input"))
                state.tokens_out += _count(usage.get("output"))
        case "tool.called":
            state.tool_calls += 1
        case "gap.noted" if data.get("reason") not in tuple(UNSEEN):
            state.gaps += 1
        case "policy.checked":
            fields = ("capability", "resource", "decision", "rule", "reason", "mode")
            state.policy_checks.append({"seq": event.seq, **{name: data.get(name) for name in fields}})
        case "artifact.created":
            made = {"seq": event.seq, **{name: data.get(name) for name in ("name", "role", "media", "digest", "size")}}
            state.artifacts.append(made)
            if data.get("role") == "context_pack":
                state.context_pack = {"seq": event.seq, "digest": data.get("digest"), "name": data.get("name")}


def _picked(
    event: Event | None, resolve: Callable[[Event], Event] | None, names: tuple[str, ...]
) -> dict[str, Any] | None:
    if event is None:
        return None
    whole = event if resolve is None else resolve(event)
    data = whole.data if isinstance(whole.data, dict) else {}
    found = {name: data[name] for name in names if name in data}
    return {"seq": event.seq, **found}


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0
