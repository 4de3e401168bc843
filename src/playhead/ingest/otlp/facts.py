"""Say what a span is in the words of a timeline: the call of a model, of a tool, or a step; asked what, ended how.

It depends on nothing but the span and the log records beside it, and not on the order of these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from playhead.ingest.otlp import models, steps, tools
from playhead.ingest.otlp.conventions import base
from playhead.ingest.otlp.spans import LogRecord, Span
from playhead.ingest.otlp.told import Told, event_of

_ERROR = 2
_EXCEPTION = "exception"
_CANCELLED = frozenset({"CancelledError", "CancelledException", "AbortError", "Cancelled", "KeyboardInterrupt"})
_RAISED = re.compile(r"([A-Za-z_][\w.]*)\((.*?)\)(?=$|Traceback|\n)", re.DOTALL)  # as Python says it: ValueError('no')
_STATUSES = {"ok": "ok", "success": "ok", "error": "error", "failed": "error", "cancelled": "cancelled"}


class Facts(msgspec.Struct, kw_only=True):
    """What a span is: the data of the two events that it becomes."""

    opens: str
    asked: dict[str, Any]
    closes: str
    answered: dict[str, Any]
    question: tuple[str | None, Any] | None = None  # of a step: what makes it the same one in another run
    response_id: str | None = None
    richness: int = 0  # 8 an answer, 4 messages, 2 tools, 1 usage
    agent: str | None = None
    model_call: bool = False


def facts(span: Span, logs: Sequence[LogRecord] = ()) -> Facts:
    """Return what a span is, with the log records that name it as theirs."""
    if logs:
        return _facts(span, logs)
    if span.told is None:
        span.told = _facts(span, ())
    found: Facts = span.told
    return found


def _facts(span: Span, logs: Sequence[LogRecord]) -> Facts:
    told = Told(span, logs)
    role = told.role()
    status, error = _ended(told)
    answered: dict[str, Any] = {"status": status}
    agent = told.text("agent")
    if role in (base.MODEL, base.EMBEDDINGS):
        found = _of_model(told, role, answered)
    elif role == base.TOOL:
        found = _of_tool(told, answered)
    else:
        found = as_step(told, answered)
    found.agent = agent
    if error is not None:
        answered["error"] = error
    return found


def step_of(span: Span, logs: Sequence[LogRecord] = ()) -> Facts:
    """Return a span as a step, whatever it is: a second account of a call that another span tells of."""
    told = Told(span, logs)
    status, error = _ended(told)
    answered: dict[str, Any] = {"status": status}
    found = as_step(told, answered)
    found.agent = told.text("agent")
    if error is not None:
        answered["error"] = error
    return found


def _of_model(told: Told, role: str, answered: dict[str, Any]) -> Facts:
    exchange = models.Exchange(told, role)
    asked: dict[str, Any] = {}
    if exchange.provider is not None:
        asked["provider"] = exchange.provider
    if exchange.model is not None:
        asked["model"] = exchange.model
    asked["request"] = exchange.request
    asked["operation"] = exchange.operation
    if exchange.response:
        answered["response"] = exchange.response
    if exchange.usage:
        answered["usage"] = exchange.usage
    if exchange.finish is not None:
        answered["finish"] = exchange.finish
    if exchange.answered_model is not None and exchange.answered_model != exchange.model:
        answered["model"] = exchange.answered_model
    return Facts(
        opens="model.invoked",
        asked=asked,
        closes="model.responded",
        answered=answered,
        response_id=exchange.response_id,
        richness=exchange.richness,
        model_call=True,
    )


def _of_tool(told: Told, answered: dict[str, Any]) -> Facts:
    use = tools.Use(told)
    asked: dict[str, Any] = {"name": use.name}
    if use.input is not None:
        asked["input"] = use.input
    if use.call is not None:
        asked["call"] = use.call
    if use.output is not None:
        answered["output"] = use.output
    if use.failed is not None and answered["status"] == "ok":
        answered["status"] = "error"
        answered["error"] = {"type": "ToolError", "message": use.failed}
    richness = 4 * (use.input is not None) + 8 * (use.output is not None)
    return Facts(opens="tool.called", asked=asked, closes="tool.returned", answered=answered, richness=richness)


def as_step(told: Told, answered: dict[str, Any]) -> Facts:
    """Return what a step is."""
    work = steps.Work(told)
    asked: dict[str, Any] = {"name": told.span.name or told.text("tool") or "span"}
    if work.attributes:
        asked["attributes"] = work.attributes
    if work.output is not None:
        answered["output"] = work.output
    richness = 4 * ("input" in work.attributes) + 8 * (work.output is not None)
    return Facts(
        opens="step.started",
        asked=asked,
        closes="step.finished",
        answered=answered,
        question=work.question,
        richness=richness,
    )


def _ended(told: Told) -> tuple[str, dict[str, Any] | None]:
    """Return how a span ended, and what went wrong."""
    span = told.span
    code, said, raised = span.status_code, None, None
    if code == 0 and "status" in told.names:
        status = told.of("status")
        said = _STATUSES.get(status.lower()) if type(status) is str else None
    type_of = told.text("error_type")
    if span.events or told.logs:
        raised = _raised(told)
    escaped = raised is not None and str(raised.get("exception.escaped", "")).lower() == "true"
    failed = code == _ERROR or (code == 0 and (said == "error" or escaped or (said is None and type_of is not None)))
    if not failed and said != "cancelled":
        return "ok", None
    error: dict[str, Any] = {}
    if raised is not None:
        for name, to in (
            ("exception.type", "type"),
            ("exception.message", "message"),
            ("exception.stacktrace", "stacktrace"),
        ):
            if type(value := raised.get(name)) is str and value:
                error[to] = value
    message = told.text("error") or span.status_message
    if message:
        if error.get("message") is None:
            _take_apart(error, message)
        elif message not in (error["message"], error.get("stacktrace")):
            error["status"] = message
    error.setdefault("type", type_of or "error")
    error.setdefault("message", "")
    cancelled = said == "cancelled" or error["type"].rpartition(".")[2] in _CANCELLED
    ordered: dict[str, Any] = {
        name: error[name] for name in ("type", "message", "stacktrace", "status") if name in error
    }
    return ("cancelled" if cancelled else "error"), ordered


def _take_apart(error: dict[str, Any], message: str) -> None:
    """Take class, message and traceback out of a text that Python or LangSmith made of an exception."""
    found = _RAISED.match(message[:2000]) if "type" not in error else None
    if found is None:
        error["message"] = message
        return
    error["type"] = found[1]
    inner = found[2]
    quoted = len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "'\""
    error["message"] = inner[1:-1] if quoted else inner
    rest = message[found.end() :].strip()
    if rest:
        error.setdefault("stacktrace", rest)


def _raised(told: Told) -> dict[str, Any] | None:
    """Return the attributes of the last exception that is noted, of the span or beside it."""
    found: dict[str, Any] | None = None
    for log in told.logs:
        if event_of(log) == _EXCEPTION:
            found = log.attributes
    for event in told.span.events:
        if event["name"] == _EXCEPTION:
            found = event.get("attributes") or {}
    return found
