"""Say what a dialect is: a table entry and two pure functions over parsed JSON.

Nothing here, and in no dialect, does I/O, changes what it is given, or raises on odd input: what is not as expected
reads as None.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from playhead.event import kinds


class ToolAsked(NamedTuple):
    """A tool that the model asks the client to run."""

    id: str | None
    name: str
    input: Any  # parsed where it is JSON, else the text as it came


class ToolResult(NamedTuple):
    """What a tool gave back, as a request brings it to the model."""

    id: str | None
    name: str | None  # where the request still holds the call, or says it beside the result
    output: Any  # as it came: a text, a list of parts, an object
    failed: bool  # only where the protocol has a word for it


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request says."""

    model: str | None
    results: tuple[ToolResult, ...] = ()  # those after the last message of the model: the new ones


@dataclass(frozen=True, slots=True)
class Answered:
    """What an answer says."""

    response: Any  # in the shape of an answer that was not streamed; where it was not, the body itself
    model: str | None = None
    usage: kinds.Usage | None = None
    finish: str | None = None
    calls: tuple[ToolAsked, ...] = ()  # only those the client has to run
    error: dict[str, Any] | None = None  # an error object in an answer 200, or in a stream
    said: str | None = None  # the text, for viewers, where it stands where they do not find it: views/answers.py


@dataclass(frozen=True, slots=True)
class Dialect:
    """One protocol that models are spoken to in."""

    name: str
    provider: str  # of the family, for hosts that the table of hosts does not know
    routes: tuple[str, ...]  # regular expressions, searched in the path of the URL of a POST
    operation: str | Callable[[str], str]  # its name, or how to read it off the path
    volatile: tuple[str, ...]  # top-level fields of the body that are no part of the question
    asked: Callable[[Any, str], Asked]  # (body, path)
    answered: Callable[[Sequence[Any], bool], Answered]  # (JSON documents in order, whether they were streamed)
    fields: tuple[tuple[str, ...], ...] = ()  # a body that has all of none of these is another service's; empty: any


# Read JSON that may be anything.

_decode = msgspec.json.Decoder().decode


def loads(data: bytes | str) -> Any:
    """Parse JSON, also what strict parsers refuse: NaN, half of a surrogate pair. Raises ValueError.

    Integers keep all their digits, which is why this is not orjson.
    """
    try:
        return _decode(data)
    except (ValueError, RecursionError):
        pass
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def parsed(text: Any) -> Any:
    """Return what a text says as JSON, or the text itself; what is no text stays as it is."""
    if type(text) is not str:
        return text
    try:
        return loads(text)
    except ValueError:
        return text


def is_json(text: Any) -> bool:
    """Say whether a value is complete: an object, or a text that is JSON."""
    if type(text) is not str:
        return text is not None
    try:
        loads(text)
    except ValueError:
        return False
    return True


def mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is an object, else an empty one."""
    return value if type(value) is dict else {}


def rows(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list."""
    return [item for item in value if type(item) is dict] if type(value) is list else []


def text(value: Any) -> str | None:
    """Return the value if it is a text that says something."""
    return value if type(value) is str and value else None


def count(value: Any) -> int | None:
    """Return the value if it is a number of tokens."""
    return value if type(value) is int else None


def total(*values: Any) -> int | None:
    """Add up the numbers among the values; None where there is none."""
    numbers = [value for value in values if type(value) is int]
    return sum(numbers) if numbers else None


def error_of(document: Any) -> dict[str, Any] | None:
    """Return the error object of a document; a bare text becomes its message."""
    error = mapping(document).get("error")
    if type(error) is dict:
        return error or None
    return {"message": error} if type(error) is str and error else None


def usage(
    input: int | None = None, output: int | None = None, cached: int | None = None, reasoning: int | None = None
) -> kinds.Usage | None:
    """Count tokens; None where nothing was counted.

    `input` is all input, also what came from a cache, of which `cached` is the part that was read from it; `output` is
    all output, of which `reasoning` is the part that was thought. So numbers of different providers compare.
    """
    if input is None and output is None and cached is None and reasoning is None:
        return None
    return kinds.Usage(input=input, output=output, cached=cached, reasoning=reasoning)


def last_segment(path: str) -> str:
    """Return the last segment of a path without a `:verb`, decoded: the model, where the path names it."""
    segment = path[path.rfind("/") + 1 :]
    verb = segment.rfind(":")
    return unquote(segment[:verb] if verb >= 0 else segment)
