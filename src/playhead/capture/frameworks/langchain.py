"""Record the tools of LangChain, which LangGraph runs too, and give each of its threads a lane."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from playhead.capture import lanes
from playhead.capture.frameworks import seams
from playhead.capture.patches import Patches
from playhead.capture.scope import Scope, current, live
from playhead.capture.spans import ToolCall

MODULES = ("langchain_core.tools.base", "langchain_core.runnables.config")

# What LangChain passes to a tool beside the arguments, and takes out itself in releases that have a method for it.
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
        seams.tools(patches, module.BaseTool, name, functools.partial(_called, module), _given)
    for name in ("_handle_tool_error", "_handle_validation_error"):
        patches.replace(module, name, _handling)


def _called(
    module: Any, tool: Any, tool_input: Any = None, *_: Any, tool_call_id: str | None = None, **__: Any
) -> ToolCall:
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    arguments = _without_injected(module, tool, tool_input) if isinstance(tool_input, dict) else tool_input
    return ToolCall(tool.name, arguments, seams.effects_of(function), tool_call_id, framework=True)


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


def _given(result: Any) -> Any:
    """Return what the tool gave: of a message its content and artifact, since the rest was put there for the model."""
    if isinstance(result, list):
        return [_given(item) for item in result]
    if not (hasattr(result, "tool_call_id") and hasattr(result, "content")):
        return result
    artifact = getattr(result, "artifact", None)
    return result.content if artifact is None else {"content": result.content, "artifact": artifact}


def _handling(original: Any) -> Any:
    @functools.wraps(original)
    def handle(error: BaseException, *args: Any, **kwargs: Any) -> Any:
        seams.note_failure(error)
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
