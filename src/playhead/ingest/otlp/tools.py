"""Say which tool was called, with what, and what it gave back."""

from __future__ import annotations

import ast
import re
from typing import Any

from playhead import _limits
from playhead.ingest.otlp import contents, messages
from playhead.ingest.otlp.told import Told

_NAMED = re.compile(r"(?:execute_tool|running tool:?|tool(?: call)?:) +(\S.*)|(\S.*)\.tool")
_BEGINS_LIKE_PYTHON = ("{", "[", "(")
_ODD_ESCAPE = re.compile(r"\\[^\\'\"abfnrtvxuUN0-7\n]")
_DEEP = 20  # brackets in a text that is read as a value of Python: the reader is recursive


class Use:
    """One use of a tool."""

    __slots__ = ("call", "failed", "input", "name", "output")

    def __init__(self, told: Told) -> None:
        self.call = told.text("call")
        self.failed: str | None = None  # what the tool itself says went wrong
        given = told.of("tool_input")
        self.input = self._given(told.of("input") if given is None else given)
        output = told.of("tool_output")
        self.output = self._returned(told.of("output") if output is None else output)
        self.name = told.text("tool") or _name_of(told.span.name)

    def _given(self, given: Any) -> Any:
        """Return the arguments, without what frameworks put around them."""
        if type(given) is dict:
            more = given.get("kwargs")
            if "input_str" in given:  # LangChain, as Traceloop has it: also as text that Python wrote
                if type(more) is dict and type(id := more.get("tool_call_id")) is str:
                    self.call = self.call or id
                inputs = given.get("inputs")
                return python_value(given["input_str"]) if inputs is None else inputs
            if given.keys() == {"args", "kwargs"} and type(more) is dict:  # Traceloop's decorator
                return more if not given["args"] else given
            if given.keys() == {"input"} and type(given["input"]) is str:  # LangSmith
                read = python_value(given["input"])
                return given if read is given["input"] else read
        return python_value(given)

    def _returned(self, given: Any) -> Any:
        """Return the result, without what frameworks put around it."""
        inner = given.get("output") if type(given) is dict and given.keys() <= {"output", "kwargs"} else None
        message = _message(given if inner is None else inner)
        if message is None:
            return given if inner is None else inner
        if type(id := message.get("tool_call_id")) is str:
            self.call = self.call or id
        content = message.get("content")
        if message.get("status") == "error":
            self.failed = messages.text_of(content)
        return contents.parsed_or(content)


def _message(value: Any) -> dict[str, Any] | None:
    """Return the message of a tool that LangChain made of its result."""
    if type(value) is not dict:
        return None
    if value.get("type") == "constructor" and type(inner := value.get("kwargs")) is dict:
        return inner if inner.get("type") == "tool" or "tool_call_id" in inner else None
    if value.get("type") == "tool":
        inner = value.get("data", value)
        return inner if type(inner) is dict and "content" in inner else None
    return None


def _name_of(span: str) -> str:
    found = _NAMED.fullmatch(span)
    return (found[1] or found[2]) if found else span or "tool"


def python_value(text: Any) -> Any:
    """Return the value that a text is which Python wrote of one, `{'city': 'Oslo'}`; any other value as it is.

    Only literals are read, and nothing is run.
    """
    if type(text) is not str or not text.startswith(_BEGINS_LIKE_PYTHON):
        return text
    if len(text) > _limits.OTLP_REPR_CHARACTERS_MAX or sum(map(text.count, "{[(")) > _DEEP:
        return text
    if _ODD_ESCAPE.search(text):  # of which Python would warn
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return text
    return value if _is_json_like(value) else text


def _is_json_like(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(key) is str and _is_json_like(item) for key, item in value.items())
    if isinstance(value, list):
        return all(_is_json_like(item) for item in value)
    return value is None or type(value) in (str, int, float, bool)
