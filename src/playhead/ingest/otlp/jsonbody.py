"""Read OTLP in JSON, as the specification has it and as clients write it.

Ids are hex, 64-bit integers are texts or numbers, enums are numbers or names, fields are in camel case or as in the
protobuf. What is not known is kept beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from playhead import _limits
from playhead.errors import BadBody
from playhead.ingest.otlp import strict_json
from playhead.ingest.otlp.jsonvalues import attributes_of, integer, value_of
from playhead.ingest.otlp.received import TOO_MANY, Received, Rejected, check, check_count, hexadecimal, parent_of
from playhead.ingest.otlp.spans import Emitter, LogRecord, Span

_KINDS = {f"SPAN_KIND_{name}": n for n, name in enumerate(("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER",
                                                           "CONSUMER"))}  # fmt: skip
_CODES = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
_LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_SEVERITIES = {"SEVERITY_NUMBER_UNSPECIFIED": 0} | {
    f"SEVERITY_NUMBER_{name}{step or ''}": 1 + 4 * place + (step - 1 if step else 0)
    for place, name in enumerate(_LEVELS)
    for step in (0, 2, 3, 4)
}
_U64, _U32 = 2**64, 2**32


class _Fields:
    """Take the fields of an object one by one; what nobody took is not known."""

    def __init__(self, value: Any, what: str) -> None:
        if type(value) is not dict:
            raise Rejected(f"{what} is no object")
        self.left: dict[str, Any] = dict(value)

    def take(self, name: str, snake: str | None = None) -> Any:
        value = self.left.pop(name, None)
        if snake is not None and snake in self.left:
            other = self.left.pop(snake)
            value = other if value is None else value
        return value

    def text(self, name: str, snake: str | None = None) -> str:
        value = self.take(name, snake)
        if value is None:
            return ""
        if type(value) is not str:
            raise Rejected(f"{name} is no text")
        return value

    def rows(self, name: str, snake: str | None = None) -> list[Any]:
        value = self.take(name, snake)
        if value is None:
            return []
        if type(value) is not list:
            raise Rejected(f"{name} is no list")
        return value

    def count(self, name: str, snake: str | None = None, below: int = _U32) -> int:
        number = integer(self.take(name, snake), name)
        if not 0 <= number < below:
            raise Rejected(f"{name} is out of range")
        return number

    def enum(self, name: str, names: dict[str, int], snake: str | None = None) -> int:
        value = self.take(name, snake)
        if type(value) is str and value in names:
            return names[value]
        number = integer(value, name)
        if not -(2**31) <= number < 2**31:
            raise Rejected(f"{name} is out of range")
        return number


def read_traces(body: bytes) -> Received:
    """Read the body of a request with spans."""
    received = Received()
    for emitter, span in _each(body, received, ("resourceSpans", "scopeSpans", "spans")):
        _add(received, received.spans, span, emitter, _span)
    return received


def read_logs(body: bytes) -> Received:
    """Read the body of a request with log records."""
    received = Received()
    for emitter, log in _each(body, received, ("resourceLogs", "scopeLogs", "logRecords")):
        _add(received, received.logs, log, emitter, _log)
    return received


_SNAKE = {"resourceSpans": "resource_spans", "scopeSpans": "scope_spans", "resourceLogs": "resource_logs",
          "scopeLogs": "scope_logs", "logRecords": "log_records"}  # fmt: skip
# What a scope was called before it was called that.
_FORMER = {"scopeSpans": ("instrumentationLibrarySpans", "instrumentation_library_spans"),
           "scopeLogs": ("instrumentationLibraryLogs", "instrumentation_library_logs")}  # fmt: skip


def _each(body: bytes, received: Received, names: tuple[str, str, str]) -> Iterator[tuple[Emitter | str, Any]]:
    """Yield each span or log record with its emitter; or with why that cannot be read."""
    outer, middle, inner = names
    document = strict_json.loads(body)
    if type(document) is not dict:
        raise BadBody("it is JSON, and no object")
    for of_resource in _rows(document, outer):
        if type(of_resource) is not dict:
            raise BadBody(f"{outer} holds what is no object")
        about = _described(of_resource, "resource")
        scopes = _rows(of_resource, middle)
        for former in _FORMER[middle]:
            scopes = scopes or _rows(of_resource, former)
        for of_scope in scopes:
            if type(of_scope) is not dict:
                raise BadBody(f"{middle} holds what is no object")
            by = _described(of_scope, "scope" if "scope" in of_scope else "instrumentationLibrary")
            bad = about if type(about) is str else by if type(by) is str else None
            emitter = bad if bad is not None else received.emitter(about, by)  # type: ignore[arg-type]
            for one in _rows(of_scope, inner):
                yield emitter, one


def _rows(value: dict[str, Any], name: str) -> list[Any]:
    found = value.get(name, value.get(_SNAKE.get(name, name)))
    if found is None:
        return []
    if type(found) is not list:
        raise BadBody(f"{name} is no list")
    return found


def _described(around: dict[str, Any], what: str) -> dict[str, Any] | str:
    """Return what a resource or a scope says, or why that cannot be read."""
    try:
        fields = _Fields(around.get(what) or {}, what)
        out: dict[str, Any] = {}
        for name in ("name", "version"):
            if value := fields.text(name):
                out[name] = value
        _detail(out, fields)
        url = around.get("schemaUrl", around.get("schema_url"))
        if url:
            if type(url) is not str:
                return "its schemaUrl is no text"
            out["schema_url"] = url
        entities = fields.take("entityRefs", "entity_refs")
        if entities:
            check(entities)
            out["entity_refs"] = entities
        if fields.left:
            check(fields.left)
            out["unknown"] = fields.left
    except Rejected as why:
        return f"its {what}: {why}"
    return out


def _add(received: Received, to: list[Any], value: Any, emitter: Emitter | str, read: Callable[..., Any]) -> None:
    try:
        if type(emitter) is str:
            raise Rejected(emitter)
        if received.full():
            raise Rejected(TOO_MANY)
        to.append(read(value, emitter))
    except Rejected as why:
        name = value.get("name") if type(value) is dict else None
        received.reject(f"{(name if type(name) is str else '')[:80]!r}: {why}")


def _span(value: Any, emitter: Emitter) -> Span:
    fields = _Fields(value, "a span")
    trace = hexadecimal(fields.text("traceId", "trace_id"), 32, "trace")
    own = hexadecimal(fields.text("spanId", "span_id"), 16, "span")
    parent, unfit = parent_of(fields.text("parentSpanId", "parent_span_id"), own)
    attributes, repeated = attributes_of(fields.rows("attributes"))
    status = _Fields(fields.take("status") or {}, "the status")
    found = Span(
        trace=trace,
        span=own,
        parent=parent,
        unfit_parent=unfit,
        name=fields.text("name"),
        kind=fields.enum("kind", _KINDS),
        start_ns=fields.count("startTimeUnixNano", "start_time_unix_nano", _U64),
        end_ns=fields.count("endTimeUnixNano", "end_time_unix_nano", _U64),
        attributes=attributes,
        repeated=repeated,
        flags=fields.count("flags"),
        status_code=status.enum("code", _CODES),
        status_message=status.text("message"),
        events=_events(fields.rows("events")),
        links=_links(fields.rows("links")),
        trace_state=fields.text("traceState", "trace_state"),
        dropped_attributes=fields.count("droppedAttributesCount", "dropped_attributes_count"),
        dropped_events=fields.count("droppedEventsCount", "dropped_events_count"),
        dropped_links=fields.count("droppedLinksCount", "dropped_links_count"),
        emitter=emitter,
    )
    if status.left:
        fields.left["status"] = status.left
    if fields.left:
        check(fields.left)
        found.unknown = fields.left
    return found


def _events(values: list[Any]) -> list[dict[str, Any]]:
    check_count(len(values), _limits.OTLP_EVENTS_MAX, "events")
    found = []
    for value in values:
        fields = _Fields(value, "an event")
        event: dict[str, Any] = {"name": fields.text("name")}
        event["time_unix_nano"] = str(fields.count("timeUnixNano", "time_unix_nano", _U64))
        _detail(event, fields, whole=True)
        found.append(event)
    return found


def _links(values: list[Any]) -> list[dict[str, Any]]:
    check_count(len(values), _limits.OTLP_EVENTS_MAX, "links")
    found = []
    for value in values:
        fields = _Fields(value, "a link")
        link: dict[str, Any] = {
            "trace": fields.text("traceId", "trace_id").lower(),
            "span": fields.text("spanId", "span_id").lower(),
        }
        if state := fields.text("traceState", "trace_state"):
            link["trace_state"] = state
        if flags := fields.count("flags"):
            link["flags"] = flags
        _detail(link, fields, whole=True)
        found.append(link)
    return found


def _detail(out: dict[str, Any], fields: _Fields, whole: bool = False) -> None:
    attributes, repeated = attributes_of(fields.rows("attributes"))
    if attributes:
        out["attributes"] = attributes
    if repeated:
        out["repeated"] = repeated
    if dropped := fields.count("droppedAttributesCount", "dropped_attributes_count"):
        out["dropped_attributes"] = dropped
    if whole and fields.left:
        check(fields.left)
        out["unknown"] = fields.left


def _log(value: Any, emitter: Emitter) -> LogRecord:
    fields = _Fields(value, "a log record")
    trace, span = fields.text("traceId", "trace_id"), fields.text("spanId", "span_id")
    attributes, repeated = attributes_of(fields.rows("attributes"))
    body = fields.take("body")
    said = None if body is None else value_of(body)
    check(said)
    found = LogRecord(
        trace=hexadecimal(trace, 32, "trace") if trace.strip("0") else None,
        span=hexadecimal(span, 16, "span") if span.strip("0") else None,
        time_ns=fields.count("timeUnixNano", "time_unix_nano", _U64),
        observed_ns=fields.count("observedTimeUnixNano", "observed_time_unix_nano", _U64),
        severity_number=fields.enum("severityNumber", _SEVERITIES, "severity_number"),
        severity_text=fields.text("severityText", "severity_text"),
        body=said,
        event_name=fields.text("eventName", "event_name"),
        attributes=attributes,
        repeated=repeated,
        flags=fields.count("flags"),
        dropped_attributes=fields.count("droppedAttributesCount", "dropped_attributes_count"),
        emitter=emitter,
    )
    if fields.left:
        check(fields.left)
        found.unknown = fields.left
    return found
