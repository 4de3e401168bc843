"""Make another answer of a recorded one: a part of it changed, or all of it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from playhead.capture import dialects
from playhead.capture.dialects import Dialect
from playhead.errors import UsageError
from playhead.event import wire
from playhead.replay.pointing import assignment, parts, put
from playhead.replay.restream import streamed
from playhead.store.reader import RunReader

_FAILED = ("error", "cancelled")
_STATUS = (100, 599)
TEXT = "text"  # the path that means what a model said, wherever its provider puts that
_ABSENT = object()
# What the closing event of a call has besides: whoever gives an object with these gives all of it.
_FIELDS = {
    "model.responded": {"status", "response", "http", "body", "chunks", "usage", "finish", "model", "error"},
    "tool.returned": {"status", "output", "error", "chunks", "handled", "waited", "spawned", "timers", "printed"},
    "mcp.answered": {"status", "result", "error"},
    "http.received": {
        "outcome",
        "status",
        "headers",
        "body",
        "form",
        "reason",
        "head_us",
        "sent_us",
        "chunks",
        "error",
    },
    "process.exited": {"status", "exit_code", "error", "stdout", "stderr", "printed"},
}
_MAIN = {"model.responded": "response", "tool.returned": "output", "mcp.answered": "result", "http.received": "body"}


def edited(reader: RunReader, seq: int, assignments: Sequence[str] = (), given: Any = _ABSENT) -> dict[str, Any]:
    """Return what the answer at an event is to say: with parts of it changed, or as it is `given`.

    What is given is the data of such an event, as `playhead show RUN --event SEQ --json` has it, or the answer alone:
    what a tool gave back, what a model responded.
    """
    event = reader.event(seq)
    recorded = reader.data(seq)
    data = copy.deepcopy(recorded)
    if given is not _ABSENT:
        main, known = _MAIN.get(event.kind), _FIELDS.get(event.kind, set())
        if isinstance(given, dict) and given and given.keys() <= known and given.keys() & {"status", "outcome", main}:
            data = {**data, **given} if main in given and "error" not in given else dict(given)
        elif main is not None:
            data[main] = given
        else:
            raise UsageError(f"not what {event.kind} says", hint=f"It has {', '.join(sorted(known))}.")
    for one in assignments:
        path, value = assignment(one)
        if path == TEXT and event.kind == "model.responded":
            _set_text(data, value if isinstance(value, str) else one.partition("=")[2])
        else:
            put(data, path, value, creates=len(parts(path)) == 1)
    if data == recorded:
        raise UsageError("that changes nothing: it is what was answered then")
    _settle(event.kind, recorded, data)
    if event.kind != "model.responded":
        return data
    if all(data.get(name) == recorded.get(name) for name in ("response", "body", "http")):
        raise UsageError(
            "that changes nothing that the program sees",
            hint="It sees the `response`: `--set text=…`, `--set response.…=…`, or `--set http.status=500`.",
        )
    return _on_the_wire(reader, event.span, recorded, data)


def _settle(kind: str, recorded: dict[str, Any], data: dict[str, Any]) -> None:
    """Let how a call ended agree with what it says: an answer takes the place of an error, and an error that of it."""
    field = "outcome" if kind == "http.received" else "status"
    main = _MAIN.get(kind)
    status = data.get("status") if kind == "http.received" else (data.get("http") or {}).get("status")
    if status is not None and (type(status) is not int or not _STATUS[0] <= status <= _STATUS[1]):
        raise UsageError(f"not a status of HTTP: {status!r}", hint="It is a number, such as 500.")
    is_new = main is not None and data.get(main) != recorded.get(main)
    if is_new and recorded.get("error") is not None and data.get("error") == recorded["error"]:
        for name in ("error", "handled"):
            data.pop(name, None)
        data[field] = "ok"
        if kind == "model.responded":
            http = data.setdefault("http", {})
            http["status"] = 200 if status is None or status == recorded["http"].get("status") else status
            http["form"] = http.get("form") if str(http.get("form")).startswith(wire.JSON) else f"{wire.JSON}compact"
            http["headers"] = http.get("headers") or [["content-type", "application/json"]]
    elif data.get("error") is not None and data.get("error") != recorded.get("error"):
        data[field] = data[field] if data.get(field) in _FAILED else "error"
    if data.get(field, "ok") not in ("ok", *_FAILED):
        raise UsageError(f"not how a call ends: {data[field]!r}", hint="It is ok, error or cancelled.")
    if main is not None and data.get(field) in _FAILED and not isinstance(data.get("error"), dict):
        told = '{"type": "builtins.TimeoutError", "message": "late", "args": ["late"]}'
        raise UsageError("it is to fail, and does not say with what", hint=f"Say it: `--set 'error={told}'`.")


def _set_text(data: dict[str, Any], value: str) -> None:
    """Put something in place of what a model said."""
    if not _put_text(data.get("response"), value):
        raise UsageError(
            "this answer has no text that could be another one",
            hint="Name the place: `--set response.choices.0.message.content=…`.",
        )


def _put_text(part: Any, value: str) -> bool:
    """Put it where the first text is, and nothing where there are more."""
    if isinstance(part, list):
        return any(_put_text(one, value) for one in part)
    if not isinstance(part, dict):
        return False
    for name in ("text", "content", "completion", "response"):
        if isinstance(part.get(name), str) and part.get("type") not in ("thinking", "reasoning"):
            part[name] = value
            return True
    into = ("choices", "candidates", "output", "message", "content", "parts")
    return any(_put_text(part.get(name), value) for name in into)


def _on_the_wire(reader: RunReader, span: str | None, recorded: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Let what came over the wire say what the answer says now."""
    if data.get("response") == recorded.get("response") or "body" not in data:
        return data
    if data.get("body") != recorded.get("body"):
        return data  # whoever gives that knows what is on the wire
    dialect, stream = _dialect(reader, span), streamed
    body = None if dialect is None else stream(dialect.name, data["response"])
    if dialect is None or body is None or _read_back(dialect, body, data) != data["response"]:
        raise UsageError(
            "this answer was streamed, and the stream cannot be made again from what it is to say",
            hint="Give the stream itself: `--edit FILE` with the `body` of the event.",
        )
    data["body"] = body
    data.pop("chunks", None)
    data["http"] = {**data.get("http", {}), "form": wire.TEXT}
    return data


def _read_back(dialect: Dialect, body: str, data: dict[str, Any]) -> Any:
    media = next((v for n, v in data.get("http", {}).get("headers") or () if str(n).lower() == "content-type"), "")
    found = dialects.documents(body.encode(), str(media))
    return None if found is None else dialect.answered(*found).response


def _dialect(reader: RunReader, span: str | None) -> Dialect | None:
    for event in reader.resolved():
        if event.kind == "model.invoked" and event.span == span:
            http = event.data.get("http") or {}
            found = dialects.find(str(http.get("method")), str(http.get("url")))
            return None if found is None else found[0]
    return None
