"""Say what each thing in a run asked, and what it was answered: the two parts that are compared.

A call asks and is answered. What the agent makes by itself (a step, an artifact, the run's own output) has a name in
place of a question. Times, ids, traces of errors, headers, and how often something was tried belong to neither.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import orjson

from playhead import _limits
from playhead.errors import MissingContent
from playhead.event.keys import ASKED
from playhead.event.resolve import has_references
from playhead.views import marks
from playhead.views.aside import UNASKED, said
from playhead.views.aside import asked as asked_of_model
from playhead.views.difference import encoded
from playhead.views.points import mapping

Data = dict[str, Any]
ResolveValue = Callable[[Any], Any]

_ENVELOPE = ("intent", "payload", "metadata")  # of a request: the rest are its ids and its time
# What of an event is the question, and what of one is the answer; a kind that is in neither asks with all it has.
_QUESTION: dict[str, tuple[str, ...]] = {
    "run.started": ("input",),
    "model.invoked": ("model", "operation", "request"),
    "tool.called": ("name", "input"),
    "mcp.requested": ("method", "from_server", "params"),
    "http.sent": ("method", "url", "body"),
    "process.started": ("argv", "shell", "stdin", "options"),
    "artifact.created": ("name", "role"),
    "step.started": ("name", "attributes", "input"),
    "policy.checked": ("capability", "resource"),
    "note.added": ("text", "data"),
    "mcp.notified": ("method", "params", "from_server"),
    "ci.reported": ("job", "step", "test"),
    "log.emitted": ("name", "severity", "body"),
}
_ANSWER: dict[str, tuple[str, ...]] = {
    "run.finished": ("status", "output", "metadata", "error"),
    "step.finished": ("status", "output", "attributes", "metadata", "error"),
    "tool.returned": ("status", "output", "error"),
    "mcp.answered": ("status", "result", "error"),
    "http.received": ("outcome", "status", "body", "error"),
    "process.exited": ("status", "exit_code", "output", "stdout", "stderr", "error"),
    "model.responded": ("status", "response", "finish", "error"),
    "policy.checked": ("decision", "rule", "reason"),  # the mode is of the setting
    "artifact.created": ("digest",),
    "ci.reported": ("result", "counts", "tests", "test"),
}
REFINED = ("model.responded", "ci.reported")  # of whose answers a part is left out: see `heard`
# Where a question has the name of what is asked for, which a renamed one has not in common.
_NAMED = {"step": "name", "tool": "name", "artifact.created": "name"}
_NAMES = ("name", "model", "method", "operation")  # of what is asked
_NUMBERED = re.compile(r"~\d+(?=(\.[^/]*)?$)")  # what the store adds to the name of a second artifact of one name
_SHORT = 32  # bytes that are as good as their digest
_ERASED = b'"$commit":'  # what is left of a value whose content is gone
_IGNORED = "[ignored]"  # in a list, in place of what is not compared
_TEST_NAME = ("classname", "file", "name", "suite")
_TEST_RESULT = ("message", "result", "status")


def folder_of(started: Data) -> str:
    """Return the folder in which a run began, with a slash; nothing where that is not known."""
    entrypoint = started.get("entrypoint")
    folder = entrypoint.get("cwd") if isinstance(entrypoint, dict) else None
    return f"{folder.rstrip('/')}/" if isinstance(folder, str) and folder.strip("/") else ""


def asking(kind: str) -> Sequence[str] | None:
    """Return the fields that a question of this kind may have; None where these are all that its event has."""
    return _QUESTION.get(kind)


def question(kind: str, data: Data, folder: str = "") -> Data:
    """Return what an event that opens a span, or stands alone, asks, by the names of its fields.

    What a policy was asked about is called as it is in the folder of the run: two runs may be of two folders.
    """
    if kind == "run.started":
        return {} if data.get("input") is None else {"input": _envelope(data["input"], data)}
    if kind == "mcp.requested":
        name, (from_server, params) = ASKED[kind](data)
        return {"method": name, "from_server": from_server, "params": params}
    if kind == "artifact.created":
        return {"name": data.get("given") or _NUMBERED.sub("", str(data.get("name"))), "role": data.get("role")}
    fields = _QUESTION.get(kind)
    found = dict(data) if fields is None else {name: data[name] for name in fields if name in data}
    if kind == "model.invoked" and "http" in data and isinstance(request := data.get("request"), dict):
        found["request"] = {name: value for name, value in request.items() if name not in UNASKED}
    if kind == "policy.checked" and isinstance(resource := data.get("resource"), str):
        found["resource"] = resource.removeprefix(folder)
    if kind == "step.started" and data.get("adopts"):
        found["input"] = _envelope(data.get("input"), data)
    if kind == "ci.reported" and isinstance(found.get("test"), dict):
        found["test"] = {name: found["test"][name] for name in _TEST_NAME if name in found["test"]}
    return found


def answer(kind: str, data: Data) -> Data:
    """Return what an event that closes a span, or stands alone, was answered or came to; an error must be resolved."""
    fields = _ANSWER.get(kind, ())
    if kind == "tool.returned" and len(data) == 2 and "output" in data and "status" in data:
        return data  # most are like this
    found = {name: data[name] for name in fields if name in data}
    if kind == "policy.checked" and data.get("by") == "policy":
        found.pop("reason", None)  # the rule once more, with paths and with how much time there was
    if isinstance(error := found.get("error"), dict):
        found["error"] = _failure(error, 0)
    if kind == "model.responded" and data.get("response") is None and data.get("body") is not None:
        found["body"] = data["body"]
    if kind == "ci.reported" and isinstance(found.get("test"), dict):
        found["test"] = {name: found["test"][name] for name in _TEST_RESULT if name in found["test"]}
    return found


def _failure(error: Data, depth: int) -> Data:
    """Return what an error says, and what lies behind it: not where it was raised, nor the order of a group."""
    found: Data = {name: error[name] for name in ("type", "message") if name in error}
    if isinstance(cause := error.get("cause"), dict) and depth < _limits.DEPTH_MAX:
        found["cause"] = _failure(cause, depth + 1)
    if isinstance(errors := error.get("errors"), list) and depth < _limits.DEPTH_MAX:
        inner = (_failure(one, depth + 1) for one in errors if isinstance(one, dict))
        found["errors"] = sorted(inner, key=encoded)
    return found


def heard(kind: str, found: Data) -> Data:
    """Return an answer without what it says of itself; its references must be resolved.

    Of the tests of a suite that is how each ended, by its name.
    """
    if kind == "ci.reported" and isinstance(found.get("tests"), list):
        ended: dict[str, list[str]] = {}
        for test in filter(None, map(mapping, found["tests"])):
            name = "::".join(str(test[field]) for field in ("classname", "name") if test.get(field))
            ended.setdefault(name, []).append(str(test.get("status")))
        return {**found, "tests": {name: ", ".join(told) for name, told in ended.items()}}
    if kind != "model.responded" or found.get("response") is None:
        return found
    return {**found, "response": said({"response": found["response"]})["response"]}


def meant(kind: str, found: Data) -> Data:
    """Return a question without the ids that a provider gave; its references must be resolved."""
    if kind == "model.invoked" and "request" in found:
        return {**found, "request": asked_of_model(found["request"])}
    return found


def nameless(noun: str, found: Data) -> Data | None:
    """Return a question without the name that may have changed; None where nothing else is in it, or it has none."""
    name = _NAMED.get(noun)
    if name is None:
        return None
    return {field: value for field, value in found.items() if field != name}


def parts(noun: str, found: Data) -> Iterator[tuple[str, Any]]:
    """Yield the single values of a question, without the name of what is asked; its references must be resolved."""
    for field, value in found.items():
        if noun == "http" and field == "url":
            for one in str(value).partition("?")[2].split("&"):
                yield one.partition("=")[0], one
        elif isinstance(value, dict):
            yield from ((f"{field}/{name}", one) for name, one in value.items() if name != "model")
        elif field not in _NAMES:
            yield field, value


def digest(value: Any, resolve: ResolveValue | None = None) -> bytes:
    """Return what is the same for two values that are one in RFC 8785, and almost never for others."""
    found = _encoded(value)
    if b"$" in found and resolve is not None and has_references(found):
        value = resolve(value)
        found = _encoded(value)
        if _ERASED in found:
            raise MissingContent("a value was erased")
    if b".0" in found:  # perhaps a float that is a whole number, which RFC 8785 writes as one
        found = encoded(value)
    return found if len(found) <= _SHORT else blake2b(found, digest_size=16).digest()


def _encoded(value: Any) -> bytes:
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # nested too deeply for it
        return encoded(value)


def _envelope(request: Any, data: Data) -> Any:
    """Return what a request asks: its name where that is not the run's; of a program its arguments, not where it is."""
    if not isinstance(request, dict):
        return request
    found = {name: request[name] for name in _ENVELOPE if name in request}
    if "intent" in found and found["intent"] == data.get("name"):
        del found["intent"]
    payload = found.get("payload")
    if data.get("agent") is None and isinstance(payload, dict) and isinstance(argv := payload.get("argv"), list):
        found["payload"] = {**payload, "argv": argv[1:]}
    return found


def covers(ignored: Sequence[str], names: Sequence[str]) -> bool:
    """Say whether what has these names, from the outermost in, lies at a path that is ignored."""
    return len(ignored) <= len(names) and all(step in ("*", name) for step, name in zip(ignored, names, strict=False))


def covers_printed(ignored: Sequence[str], names: Sequence[str]) -> bool:
    """Say the same where the path may be spelled as the diff prints what the runs ran with."""
    path = list(ignored)
    while len(path) > 1 and path[-1] == "*":  # all that is in something is as much as itself
        path.pop()
    return covers(path, names) or covers("/".join(path).split("/"), "/".join(names).split("/"))


def without(value: Any, path: Sequence[str]) -> Any:
    """Return a value without what is at a path; `*` stands for any name.

    What is left of a list keeps its numbers: another path may name one, and so do the differences that are found.
    """
    if not path or not isinstance(value, (dict, list)):
        return value
    step, rest = path[0], path[1:]
    # Else it leads through the mark itself, or is all that is in the value, whatever that is.
    if marks.is_marked(value) and not step.startswith("$") and (rest or step != "*"):
        held = marks.inside(value)
        return value if held is None else marks.holding(value, without(held, path))
    if isinstance(value, list):
        left = [
            part if step not in ("*", str(at)) else without(part, rest) if rest else _IGNORED
            for at, part in enumerate(value)
        ]
        while left and left[-1] is _IGNORED:
            left.pop()
        return left
    return {
        name: without(part, rest) if step in ("*", name) else part
        for name, part in value.items()
        if rest or step not in ("*", name)
    }
