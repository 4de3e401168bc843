"""Record the tools of LangChain, which LangGraph runs too, and give each of its threads a lane."""

from __future__ import annotations

import functools
import inspect
from contextvars import ContextVar
from types import ModuleType
from typing import Any, Self

from playhead.capture import lanes
from playhead.capture.answered import Outcome
from playhead.capture.frameworks import seams
from playhead.capture.patches import Patches
from playhead.capture.scope import Scope, current, live
from playhead.capture.spans import ToolCall

MODULES = ("langchain_core.tools.base", "langchain_core.runnables.config")

# What LangChain passes to a tool beside the arguments, and takes out itself in releases that have a method for it.
_COVERED = "playhead_covered"
_HANDED_IN = frozenset({"run_manager", "callbacks"})


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder around the two methods that every tool is run by, and into the executor."""
    if module.__name__ == "langchain_core.runnables.config":
        patches.replace(module.ContextThreadPoolExecutor, "submit", _submit)
        patches.replace(module.ContextThreadPoolExecutor, "map", _map)
        return
    # An `_arun` that is not overridden runs `_run` in a thread, and `ainvoke` of a plain function runs `run` there:
    # whichever way a call takes, it goes through one of these two, once.
    for name in ("run", "arun"):
        seams.tools(patches, module.BaseTool, name, functools.partial(_called, module, patches), _given, _replayed)
    for name in ("_handle_tool_error", "_handle_validation_error"):
        patches.replace(module, name, _handling)


def _called(
    module: Any,
    patches: Patches,
    tool: Any,
    tool_input: Any = None,
    *_: Any,
    tool_call_id: str | None = None,
    **__: Any,
) -> ToolCall:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    arguments = _without_injected(module, tool, tool_input) if isinstance(tool_input, dict) else tool_input
    _cover(patches, type(tool))
    return _Call(module, tool, arguments, seams.effects_of(function), tool_call_id)


def _cover(patches: Patches, kind: type) -> None:
    """Put ourselves around the bodies of a class of tools, where they are defined."""
    for name in ("_run", "_arun"):
        owner = next(base for base in kind.__mro__ if name in base.__dict__)
        if not hasattr(owner.__dict__[name], _COVERED):
            patches.replace(owner, name, _body)


class _Call(ToolCall):
    """A call of a tool. What LangChain does around the body is outside of it: it is done again in a replay."""

    begins_later = True

    def __init__(self, module: Any, tool: Any, arguments: Any, effects: list[str], message_for: str | None) -> None:
        super().__init__(tool.name, arguments, effects, message_for, framework=True)
        self.module, self.tool = module, tool
        self.message_for = message_for  # the call of the model that a message is made for
        self.outcome: Outcome | None = None  # in a replay
        self.body_began = False

    def __enter__(self) -> Self:
        self._before = _calling.set(self)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        _calling.reset(self._before)
        super().__exit__(*error)

    def is_made_of(self, message: Any) -> bool:
        """Say whether LangChain makes this message of its content and artifact, or it was the tool's own."""
        content, artifact = message.content, getattr(message, "artifact", None)
        status = getattr(message, "status", "success")
        made = self.module._format_output(content, artifact, self.message_for, self.tool.name, status)
        return bool(made == message)

    def gave(self, output: Any) -> Any:
        """Return what the body of the tool gave, from what was recorded of it."""
        if getattr(self.tool, "response_format", "content") != "content_and_artifact":
            return output
        pair = isinstance(output, dict) and output.keys() == {"content", "artifact"} and self.message_for is not None
        return (output["content"], output["artifact"]) if pair else (output, None)


# The call that LangChain is at here.
_calling: ContextVar[_Call | None] = ContextVar("playhead_langchain_calling", default=None)


def _without_injected(module: Any, tool: Any, tool_input: dict[str, Any]) -> dict[str, Any]:
    """Return what the model asked for, without the state, store or runtime that LangGraph adds."""
    if hasattr(tool, "_filter_injected_args"):
        kept: dict[str, Any] = tool._filter_injected_args(tool_input)
        return kept
    hidden = {*_HANDED_IN, *getattr(tool, "_injected_args_keys", ())}
    if isinstance(tool.args_schema, type):
        annotations = module.get_all_basemodel_annotations(tool.args_schema)
        hidden |= {name for name, kind in annotations.items() if module._is_injected_arg_type(kind)}
    return {name: value for name, value in tool_input.items() if name not in hidden}


def _given(call: Any, result: Any) -> Any:
    """Return what the tool gave: of a message its content and artifact, since the rest was put there for the model."""
    if not (hasattr(result, "tool_call_id") and hasattr(result, "content")) or not call.is_made_of(result):
        return result
    artifact = getattr(result, "artifact", None)
    return result.content if artifact is None else {"content": result.content, "artifact": artifact}


def _replayed(call: Any, outcome: Outcome) -> None:
    """Let LangChain do everything but run the body of the tool: it calls back, checks the input, makes the message."""
    call.outcome = outcome
    outcome.through = lambda function, args, kwargs: function(*args, **kwargs)


def _body(original: Any) -> Any:
    body = _body_of(original)
    setattr(body, _COVERED, True)
    return body


def _body_of(original: Any) -> Any:
    if inspect.iscoroutinefunction(original):

        @functools.wraps(original)
        async def body_async(self: Any, *args: Any, **kwargs: Any) -> Any:
            call = _beginning(self)
            if call is None:
                return await original(self, *args, **kwargs)
            if call.outcome is not None:
                return call.gave(await call.outcome.result_async(raising=True))
            with call.current():
                return await original(self, *args, **kwargs)

        return body_async

    @functools.wraps(original)
    def body(self: Any, *args: Any, **kwargs: Any) -> Any:
        call = _beginning(self)
        if call is None:
            return original(self, *args, **kwargs)
        if call.outcome is not None:
            return call.gave(call.outcome.result(raising=True))
        with call.current():
            return original(self, *args, **kwargs)

    return body


def _beginning(tool: Any) -> _Call | None:
    """Return the call whose body begins here, once: the method of a class calls that of the class before."""
    call = _calling.get()
    if call is None or call.tool is not tool or call.body_began:
        return None
    call.body_began = True
    return call


def _handling(original: Any) -> Any:
    @functools.wraps(original)
    def handle(error: BaseException, *args: Any, **kwargs: Any) -> Any:
        if (call := _calling.get()) is not None:
            call.failure = error
        return original(error, *args, **kwargs)

    return handle


def _submit(original: Any) -> Any:
    @functools.wraps(original)
    def submit(self: Any, *args: Any, **kwargs: Any) -> Any:
        return lanes.submitted(original, self, *args, **kwargs)

    return submit


def _map(original: Any) -> Any:
    @functools.wraps(original)
    def map(self: Any, fn: Any, *iterables: Any, **kwargs: Any) -> Any:
        scope = live()
        if scope is None or not iterables or not hasattr(iterables[0], "__len__"):
            return original(self, fn, *iterables, **kwargs)
        places = [Scope(scope.recording, scope.span, scope.lane.spawn()) for _ in range(len(iterables[0]))]

        def in_lane(place: Scope, *args: Any) -> Any:
            current.set(place)  # in the copy of the context that this item alone runs in
            return fn(*args)

        return lanes.submitted(original, self, in_lane, places, *iterables, lane=False, **kwargs)

    return map
