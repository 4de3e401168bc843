"""Record the tools of pydantic-ai, and make a step of each run of an agent."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

from playhead.capture.frameworks import seams
from playhead.capture.patches import Patches
from playhead.capture.scope import live
from playhead.capture.spans import ToolCall

MODULES = ("pydantic_ai.toolsets.combined", "pydantic_ai.toolsets.function", "pydantic_ai.agent")


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder around what every tool call goes through, and around the one way to run an agent."""
    if module.__name__ == "pydantic_ai.agent":
        patches.replace(module.Agent, "iter", _iterated)
    elif module.__name__ == "pydantic_ai.toolsets.combined":
        # An agent has one toolset, combined of all that it was given, those that an author wrote included.
        seams.tools(patches, module.CombinedToolset, "call_tool", _called, _given)
    else:
        seams.tools(patches, module.FunctionToolset, "call_tool", _called, _given)


def _called(toolset: Any, name: str, tool_args: Any, ctx: Any, tool: Any) -> ToolCall | None:
    if getattr(tool.tool_def, "kind", None) == "output":
        return None  # the model's way to give its answer; nothing is run
    source = tool
    while hasattr(source, "source_tool"):
        source = source.source_tool
    function = getattr(getattr(source, "call_func", None), "__self__", None)
    effects = seams.effects_of(getattr(function, "function", None))
    return ToolCall(name, tool_args, effects, ctx.tool_call_id, framework=True)


def _given(_: ToolCall, result: Any) -> Any:
    return result


def _iterated(original: Any) -> Any:
    @functools.wraps(original)
    def iter(self: Any, *args: Any, **kwargs: Any) -> Any:
        scope = live()
        running = original(self, *args, **kwargs)
        if scope is None or not scope.recording.captures:
            return running
        name = seams.look(type(self), lambda: self.name)
        return _inside(seams.AgentStep("agent" if name is None else f"agent {name}"), running)

    return iter


@contextlib.asynccontextmanager
async def _inside(step: seams.AgentStep, running: Any) -> AsyncIterator[Any]:
    with step:
        async with running as run:
            yield run
