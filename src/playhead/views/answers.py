"""Say in few words what a model answered: the tools that it asked for, and the beginning of its text.

Answers are recorded as the provider or the author of the agent shaped them. The usual shapes are understood, whether
as JSON or as the recorded fields of a client's objects; of any other is said what somebody says who knows its protocol
(`Interpret`), else nothing, and nothing here raises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import orjson

from playhead.views import text
from playhead.views.text import Resolve

_PARTS_MAX = 400  # of an answer that are looked at
_DEPTH_MAX = 12
_ARGUMENTS_WIDTH = 40  # of each call; the row of the tool has more of them
# Where an answer has its text and its calls: chat completions, responses, messages, candidates, and plain ones.
_INTO = ("choices", "candidates", "output", "message", "delta", "content", "parts", "text", "completion", "response",
         "tool_calls", "function_call", "functionCall")  # fmt: skip
_ALTERNATIVES = ("choices", "candidates")  # of which the first one is the answer
_ALL = 2**60  # characters
_THOUGHTS = ("reasoning", "thinking", "redacted_thinking")
_WRAPPED = {"$object": "fields", "$as": "value", "$tuple": "$tuple"}  # marks around what is looked for


# Of a part that asks for a tool: those that the agent is to run. Others the provider runs by itself.
_FOR_THE_AGENT = (None, "function", "function_call", "custom_tool_call", "tool_use")


class Call(NamedTuple):
    """A tool that an answer asks for, and its arguments in few words."""

    name: str
    arguments: str = ""
    id: str | None = None

    def __str__(self) -> str:
        return f"{self.name}({self.arguments})" if self.arguments else self.name


class Answer(NamedTuple):
    """What was said, in a line, and the tools that the agent is asked to run."""

    told: str
    asked: list[Call]


class Meaning(NamedTuple):
    """What an answer says, in the words of somebody who knows its protocol."""

    said: str | None  # None where that stands where everybody finds it
    calls: Sequence[tuple[str | None, str, Any]]  # id, name and input of the tools that the agent is to run


Interpret = Callable[[Any], Meaning | None]


def read(response: Any, width: int, resolve: Resolve | None = None, interpret: Interpret | None = None) -> Answer:
    """Tell an answer as `calls read_file(path="a"), "First I look"`, or the text alone, in at most `width` columns.

    `interpret` is asked where one of the two was not found in the usual places.
    """
    answer = _Answer(width, resolve)
    answer.look(response, 0)
    if interpret is not None and response is not None and not (answer.calls and "".join(answer.words).strip()):
        answer.take(interpret(response if resolve is None else resolve(response)))
    spoken = " ".join("".join(answer.words).split())  # a line has no room for line breaks and indents
    parts = [f"calls {', '.join(map(str, answer.calls))}"] if answer.calls else []
    if spoken:
        parts.append(text.short(spoken, width))
    return Answer(text.cut(", ".join(parts), width), answer.asked)


class Whole(NamedTuple):
    """All that was said, and every tool that was asked for."""

    text: str
    calls: list[Call]


def whole(response: Any, width: int, interpret: Interpret | None = None) -> Whole:
    """Tell all of an answer, of the arguments of each call as far as `width` characters."""
    answer = _Answer(_ALL, None, width)
    answer.look(response, 0)
    if interpret is not None and response is not None and not (answer.calls and "".join(answer.words).strip()):
        answer.take(interpret(response))
    return Whole("".join(answer.words).strip(), answer.calls)


class _Answer:
    """Collect which tools were asked for, and what was said until a line is full."""

    def __init__(self, width: int, resolve: Resolve | None, arguments_width: int = _ARGUMENTS_WIDTH) -> None:
        self.words: list[str] = []
        self.calls: list[Call] = []
        self.asked: list[Call] = []
        self._width, self._arguments_width = width, arguments_width
        self._resolve = resolve
        self._left = _PARTS_MAX

    def take(self, meaning: Meaning | None) -> None:
        """Take what was not found by looking."""
        if meaning is None:
            return
        if not self.calls:
            self.calls = self.asked = [
                Call(name, self._arguments(given), id) for id, name, given in meaning.calls[:_PARTS_MAX]
            ]
        if meaning.said is not None:
            self.words = [meaning.said]

    def look(self, part: Any, depth: int) -> None:
        """Take one part of an answer, and what is inside it."""
        self._left -= 1
        if self._left < 0 or depth > _DEPTH_MAX:
            return
        part = text.followed(part, self._resolve)
        if isinstance(part, dict) and "$str" in part:
            part = text.legible(part)
        if isinstance(part, str):
            if sum(map(len, self.words)) <= self._width:  # else only what tools it asks for: that may come last
                self.words.append(part)
        elif isinstance(part, list):
            for item in part[:_PARTS_MAX]:
                self.look(item, depth + 1)
        elif isinstance(part, dict):
            self._look_into(part, depth)

    def _look_into(self, part: dict[str, Any], depth: int) -> None:
        first = next(iter(part), "")
        self.words.append(" ")
        if first in _WRAPPED:
            self.look(part.get(_WRAPPED[first]), depth + 1)
        elif first in ("$blob", "$redacted"):
            self.words.append(text.short(part, self._width))
        elif (call := self._called(part)) is not None:
            self.calls.append(call)
            if part.get("type") in _FOR_THE_AGENT:
                self.asked.append(call)
        elif part.get("type") not in _THOUGHTS and part.get("thought") is not True:
            for field in _INTO:
                inner = part.get(field)
                if inner is not None:
                    first_only = field in _ALTERNATIVES and isinstance(inner, list)
                    self.look(inner[:1] if first_only else inner, depth + 1)

    def _called(self, part: dict[str, Any]) -> Call | None:
        """Return the tool where this part of an answer asks for one."""
        function = part.get("function")
        asked = function if isinstance(function, dict) else part
        name = asked.get("name")
        given = [asked[field] for field in ("arguments", "input", "args") if field in asked]
        if not isinstance(name, str) or not (given or asked is function):
            return None
        told = self._arguments(given[0]) if given else ""
        ids = (part.get(field) for field in ("call_id", "id"))
        return Call(name, told, next((id for id in ids if isinstance(id, str)), None))

    def _arguments(self, given: Any) -> str:
        return text.arguments(parsed(text.followed(given, self._resolve)), self._arguments_width, self._resolve)


def parsed(arguments: Any) -> Any:
    """Return the arguments that many providers write as a text of JSON; any other text is said as it is."""
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        return orjson.loads(arguments)
    except ValueError:
        return arguments or {}
