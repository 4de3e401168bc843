"""Read OTLP in protobuf.

Usual spans are read by the compiled part (`_read.c`), where there is one; the library reads the others, and what is
around them. A body that protobuf refuses may have one bad span among good ones: then it is taken apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from playhead import _limits
from playhead.errors import BadBody
from playhead.ingest.otlp import compiled
from playhead.ingest.otlp.received import TOO_MANY, Received, Rejected, check, check_count, parent_of
from playhead.ingest.otlp.spans import Emitter, LogRecord, Repeated, Span

_ATTRIBUTES_MAX = _limits.OTLP_ATTRIBUTES_MAX
_PARTS_MAX = 2 * _limits.OTLP_SPANS_MAX  # spans, and what is around them: of more the library makes less in memory
_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)
_INSTALL = "Install what reads it: `pip install 'playhead[server]'`."


def read_traces(body: bytes) -> Received:
    """Read the body of a request with spans."""
    try:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
        from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
    except ImportError:
        raise BadBody("protobuf cannot be read here", hint=_INSTALL) from None
    received = Received()
    groups = None if compiled.read_spans is None else compiled.read_spans(body, _ATTRIBUTES_MAX, _PARTS_MAX)
    if groups is not None:
        for emitter, spans in _by_emitter(groups, received):
            _add_usual(received, spans, emitter, SpanMessage)
        return received
    whole = _parsed(ExportTraceServiceRequest, body)
    if whole is None:
        for emitter, data in _apart(body, received):
            _add_one(received, data, emitter, SpanMessage)
        return received
    for of_resource in whole.resource_spans:
        for of_scope in of_resource.scope_spans:
            emitter = _emitter(received, of_resource, of_scope)
            _add(received, received.spans, of_scope.spans, emitter, _span)
    return received


def read_logs(body: bytes) -> Received:
    """Read the body of a request with log records."""
    try:
        from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
        from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord as LogMessage
    except ImportError:
        raise BadBody("protobuf cannot be read here", hint=_INSTALL) from None
    received = Received()
    whole = _parsed(ExportLogsServiceRequest, body)
    if whole is None:
        for emitter, data in _apart(body, received):
            message = _parsed(LogMessage, data)
            if message is None:
                received.reject("a log record is damaged: a text that is no UTF-8, or values too deep")
            else:
                _add(received, received.logs, [message], emitter, _log)
        return received
    for of_resource in whole.resource_logs:
        for of_scope in of_resource.scope_logs:
            emitter = _emitter(received, of_resource, of_scope)
            _add(received, received.logs, of_scope.log_records, emitter, _log)
    return received


def _by_emitter(groups: Sequence[Any], received: Received) -> Iterator[tuple[Emitter | None, Sequence[Any]]]:
    """Yield the spans of each emitter, as the compiled part has found them."""
    for resource, resource_url, scopes in groups:
        for scope, scope_url, spans in scopes:
            of_bytes = (resource, resource_url, scope, scope_url)
            small = sum(map(len, of_bytes)) <= _limits.OTLP_EMITTER_KEPT_BYTES_MAX
            emitter = _known_emitter(*of_bytes) if small else _known_emitter.__wrapped__(*of_bytes)
            yield None if emitter is None else received.emitters.setdefault(emitter, emitter), spans


@lru_cache(maxsize=_limits.OTLP_EMITTERS_KEPT_MAX)
def _known_emitter(resource: bytes, resource_url: bytes, scope: bytes, scope_url: bytes) -> Emitter | None:
    """Return an emitter; an exporter sends the same bytes with each request."""
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    about, by = _parsed(Resource, resource), _parsed(InstrumentationScope, scope)
    if about is None or by is None:
        return None
    urls = [url.decode("utf-8", "replace") for url in (resource_url, scope_url)]
    of_resource = SimpleNamespace(resource=about, schema_url=urls[0])
    return _emitter(Received(), of_resource, SimpleNamespace(scope=by, schema_url=urls[1]))


def _add_usual(received: Received, spans: Sequence[Any], emitter: Emitter | None, kind: Any) -> None:
    """Add spans as the compiled part has read them; those that it has not are bytes."""
    for read in spans:
        if emitter is None or type(read) is bytes or received.full():
            _add_one(received, read, emitter, kind)
        else:
            trace, span, parent, name, role, start_ns, end_ns, attributes, flags, code, message = read
            received.spans.append(
                Span(
                    trace=trace, span=span, parent=parent, name=name, kind=role, start_ns=start_ns, end_ns=end_ns,
                    attributes=attributes, flags=flags, status_code=code, status_message=message, emitter=emitter,
                )
            )  # fmt: skip


def _add_one(received: Received, read: Any, emitter: Emitter | None, kind: Any) -> None:
    """Add one span, of its bytes; or say why one is not taken, also of one that was read."""
    message = _parsed(kind, read) if type(read) is bytes else SimpleNamespace(name=read[3])
    if message is None:
        received.reject("a span is damaged: a text that is no UTF-8, or values too deep within each other")
    else:
        _add(received, received.spans, [message], emitter, _span)


def _parsed(kind: Any, data: bytes) -> Any:
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        return kind.FromString(data)
    except (DecodeError, ValueError, RecursionError):  # the latter two where protobuf runs without its compiled part
        return None


def _add(
    received: Received, to: list[Any], messages: Iterable[Any], emitter: Emitter | None, read: Callable[..., Any]
) -> None:
    room = _limits.OTLP_SPANS_MAX - len(received.spans) - len(received.logs)
    for message in messages:
        try:
            if emitter is None:
                raise Rejected("its resource or its scope cannot be read")
            if room <= 0:
                raise Rejected(TOO_MANY)
            to.append(read(message, emitter))
            room -= 1
        except Rejected as why:
            received.reject(f"{getattr(message, 'name', '')[:80]!r}: {why}")


def _emitter(received: Received, of_resource: Any, of_scope: Any) -> Emitter | None:
    resource, scope = of_resource.resource, of_scope.scope
    try:
        about = _described(resource, of_resource.schema_url)
        entities = [
            {"type": one.type, "id_keys": list(one.id_keys), "description_keys": list(one.description_keys),
             "schema_url": one.schema_url}
            for one in getattr(resource, "entity_refs", ())
        ]  # fmt: skip
        if entities:
            about["entity_refs"] = entities
        by = _described(scope, of_scope.schema_url)
    except Rejected:
        return None
    for field in ("version", "name"):
        if value := getattr(scope, field):
            by = {field: value, **by}
    return received.emitter(about, by)


def _described(message: Any, schema_url: str) -> dict[str, Any]:
    attributes, repeated = _attributes(message.attributes)
    out: dict[str, Any] = {"attributes": attributes} if attributes else {}
    if repeated:
        out["repeated"] = repeated
    if schema_url:
        out["schema_url"] = schema_url
    if message.dropped_attributes_count:
        out["dropped_attributes"] = message.dropped_attributes_count
    return out


def _span(message: Any, emitter: Emitter) -> Span:
    span, trace, above = message.span_id, message.trace_id, message.parent_span_id
    if len(trace) != 16 or trace == _NO_TRACE:
        raise Rejected(f"its trace id is not 16 bytes, or all zeros: {trace.hex()[:40]!r}")
    if len(span) != 8 or span == _NO_SPAN:
        raise Rejected(f"its span id is not 8 bytes, or all zeros: {span.hex()[:40]!r}")
    attributes, repeated = _attributes(message.attributes)
    own = span.hex()
    parent, unfit = parent_of(above.hex(), own) if above else (None, None)
    found = Span(
        trace=trace.hex(),
        span=own,
        parent=parent,
        unfit_parent=unfit,
        name=message.name,
        kind=message.kind,
        start_ns=message.start_time_unix_nano,
        end_ns=message.end_time_unix_nano,
        attributes=attributes,
        flags=message.flags,
        emitter=emitter,
    )
    if repeated:
        found.repeated = repeated
    if message.HasField("status"):
        found.status_code, found.status_message = message.status.code, message.status.message
    if message.events:
        found.events = _events(message.events)
    if message.links:
        found.links = _links(message.links)
    if message.trace_state:
        found.trace_state = message.trace_state
    if message.dropped_attributes_count:
        found.dropped_attributes = message.dropped_attributes_count
    if message.dropped_events_count:
        found.dropped_events = message.dropped_events_count
    if message.dropped_links_count:
        found.dropped_links = message.dropped_links_count
    return found


def _events(messages: Any) -> list[dict[str, Any]]:
    check_count(len(messages), _limits.OTLP_EVENTS_MAX, "events")
    found = []
    for message in messages:
        event: dict[str, Any] = {"name": message.name, "time_unix_nano": str(message.time_unix_nano)}
        _detail(event, message)
        found.append(event)
    return found


def _links(messages: Any) -> list[dict[str, Any]]:
    check_count(len(messages), _limits.OTLP_EVENTS_MAX, "links")
    found = []
    for message in messages:
        link: dict[str, Any] = {"trace": message.trace_id.hex(), "span": message.span_id.hex()}
        if message.trace_state:
            link["trace_state"] = message.trace_state
        if message.flags:
            link["flags"] = message.flags
        _detail(link, message)
        found.append(link)
    return found


def _detail(out: dict[str, Any], message: Any) -> None:
    attributes, repeated = _attributes(message.attributes)
    if attributes:
        out["attributes"] = attributes
    if repeated:
        out["repeated"] = repeated
    if message.dropped_attributes_count:
        out["dropped_attributes"] = message.dropped_attributes_count


def _log(message: Any, emitter: Emitter) -> LogRecord:
    trace, span = message.trace_id, message.span_id
    if (trace and len(trace) != 16) or (span and len(span) != 8):
        raise Rejected("its trace id is not 16 bytes, or its span id not 8")
    attributes, repeated = _attributes(message.attributes)
    body = None
    if message.HasField("body"):
        body = _value(message.body)
        check(body)
    return LogRecord(
        trace=trace.hex() if trace.strip(b"\0") else None,
        span=span.hex() if span.strip(b"\0") else None,
        time_ns=message.time_unix_nano,
        observed_ns=message.observed_time_unix_nano,
        severity_number=message.severity_number,
        severity_text=message.severity_text,
        body=body,
        event_name=getattr(message, "event_name", ""),
        attributes=attributes,
        repeated=repeated,
        flags=message.flags,
        dropped_attributes=message.dropped_attributes_count,
        emitter=emitter,
    )


def _attributes(pairs: Any) -> tuple[dict[str, Any], Repeated]:
    """Return attributes by name, and those whose name came again later."""
    count = len(pairs)
    if count > _ATTRIBUTES_MAX:
        check_count(count, _ATTRIBUTES_MAX, "attributes")
    found: dict[str, Any] = {}
    for pair in pairs:
        value = pair.value
        text = value.string_value
        if text:
            found[pair.key] = text
            continue
        kind = value.WhichOneof("value")
        if kind is None:
            found[pair.key] = None
        elif kind == "array_value" or kind == "kvlist_value":
            inside = _value(value)
            check(inside)
            found[pair.key] = inside
        else:
            found[pair.key] = getattr(value, kind)
    if len(found) == count:
        return found, []
    last = {pair.key: number for number, pair in enumerate(pairs)}
    return found, [[pair.key, _value(pair.value)] for n, pair in enumerate(pairs) if last[pair.key] != n]


def _value(message: Any) -> Any:
    kind = message.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [_value(item) for item in message.array_value.values]
    if kind == "kvlist_value":
        pairs = message.kvlist_value.values
        found = {pair.key: _value(pair.value) for pair in pairs}
        if len(found) != len(pairs):
            return {"$pairs": [[pair.key, _value(pair.value)] for pair in pairs]}  # a name twice: none may be lost
        return found
    return getattr(message, kind)


# Where a body is taken apart: fields of the messages around a span, which are the same for log records.
_RESOURCE, _SCOPES, _SCHEMA_URL = 1, 2, 3
_SCOPE, _SPANS = 1, 2


def _apart(body: bytes, received: Received) -> Iterator[tuple[Emitter | None, bytes]]:
    """Yield the bytes of each span or log record of a body, with its emitter; None where that cannot be read."""
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    for number, group in list(_fields(body)):
        if number != 1:
            continue
        parts = list(_fields(group))
        about = _one(Resource, parts, _RESOURCE)
        url = _text(parts)
        for scopes in [data for number, data in parts if number == _SCOPES]:
            inner = list(_fields(scopes))
            by = _one(InstrumentationScope, inner, _SCOPE)
            emitter = None
            if about is not None and by is not None:
                of_scope = SimpleNamespace(scope=by, schema_url=_text(inner))
                emitter = _emitter(received, SimpleNamespace(resource=about, schema_url=url), of_scope)
            for data in [data for number, data in inner if number == _SPANS]:
                yield emitter, data


def _one(kind: Any, parts: list[tuple[int, bytes]], field: int) -> Any:
    return _parsed(kind, b"".join(data for number, data in parts if number == field))


def _text(parts: list[tuple[int, bytes]]) -> str:
    return next((data.decode("utf-8", "replace") for number, data in parts if number == _SCHEMA_URL), "")


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield number and content of the fields of a message that have a length; the others are passed over."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        wire = tag & 7
        size = {1: 8, 5: 4}.get(wire, 0)
        if wire == 0:
            _, at = _varint(data, at)
        elif wire == 2:
            size, at = _varint(data, at)
        elif wire not in (1, 5):
            raise BadBody("it is no protobuf of OTLP")
        if at + size > end:
            raise BadBody("it is no protobuf of OTLP, or it was cut off")
        if wire == 2:
            yield tag >> 3, data[at : at + size]
        at += size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise BadBody("it is no protobuf of OTLP, or it was cut off")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
