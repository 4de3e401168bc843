"""Record the functions that google-genai calls by itself when the model asks for them."""

from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar
from types import ModuleType
from typing import Any

from playhead.capture.answered import Outcome
from playhead.capture.frameworks import seams
from playhead.capture.patches import Patches
from playhead.capture.scope import live
from playhead.capture.spans import ToolCall

MODULES = ("google.genai._extra_utils",)


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder around the two functions that call a function of the agent, and the two that read an answer."""
    for name in ("invoke_function_from_dict_args", "invoke_function_from_dict_args_async"):
        seams.tools(patches, module, name, _called, _given, _replayed)
    for name in ("get_function_response_parts", "get_function_response_parts_async"):
        patches.replace(module, name, _reading)


# The calls of the answer that is being read, until their functions are called: with a stream that is before its end.
_asked: ContextVar[list[Any] | None] = ContextVar("playhead_google_asked", default=None)


def _reading(original: Any) -> Any:
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def read_async(response: Any, *args: Any, **kwargs: Any) -> Any:
            token = _asked.set(_calls(response))
            try:
                return await original(response, *args, **kwargs)
            finally:
                _asked.reset(token)

        return read_async

    @functools.wraps(original)
    def read(response: Any, *args: Any, **kwargs: Any) -> Any:
        token = _asked.set(_calls(response))
        try:
            return original(response, *args, **kwargs)
        finally:
            _asked.reset(token)

    return read


def _calls(response: Any) -> list[Any]:
    if live() is None:
        return []
    return seams.look(type(response), lambda: list(response.function_calls or ())) or []


class _Call(ToolCall):
    """A call whose error is told as the function raised it; the SDK wraps it for the model."""

    def end(self, error: BaseException | None = None) -> None:
        if error is not None and type(error).__name__ == "FunctionInvocationError":
            error = error.__context__ or error
        super().end(error)


def _called(args: Any, function_to_invoke: Any) -> ToolCall:
    name, waiting = function_to_invoke.__name__, _asked.get() or []
    asked = next((call for call in waiting if call.name == name), None)
    if asked is not None:
        waiting.remove(asked)
    call = None if asked is None else asked.id
    return _Call(name, args, seams.effects_of(function_to_invoke), call, framework=True)


def _given(_: ToolCall, result: Any) -> Any:
    return result


def _replayed(_: Any, outcome: Outcome) -> None:
    """Have the SDK call something else in place of the function: it makes its own error of what that raises."""

    def through(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        function = kwargs["function_to_invoke"] if "function_to_invoke" in kwargs else args[1]
        if inspect.iscoroutinefunction(original):

            @functools.wraps(function)
            async def answer_async(**_: Any) -> Any:
                return await outcome.result_async(raising=True)

            answer: Any = answer_async
        else:

            @functools.wraps(function)
            def answer_now(**_: Any) -> Any:
                return outcome.result(raising=True)

            answer = answer_now
        kwargs = {name: value for name, value in kwargs.items() if name != "function_to_invoke"}
        return original(*args[:1], function_to_invoke=answer, **kwargs)

    outcome.through = through
