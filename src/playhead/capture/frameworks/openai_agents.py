"""Record the function tools of the OpenAI Agents SDK, and make a step of each run of an agent and of each turn."""

from __future__ import annotations

import copy
import functools
import sys
from types import ModuleType
from typing import Any

from playhead.capture.answered import Outcome
from playhead.capture.frameworks import seams
from playhead.capture.patches import Patches
from playhead.capture.scope import Scope, live
from playhead.capture.spans import Step, ToolCall
from playhead.event import kinds

# All names that are patched were taken over from their modules by the time that this one is there.
MODULES = ("agents.run",)


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder around the calls of tools, and into the loop that asks the model turn by turn."""
    runner = module.AgentRunner
    seams.steps(patches, runner, "run", _run_started)
    if "_run_single_turn" in runner.__dict__:  # before 0.4 or so
        seams.steps(patches, runner, "_start_streaming", _run_started)
        for name in ("_run_single_turn", "_run_single_turn_streamed"):
            seams.steps(patches, runner, name, _turn_started_by_old, _turn_ended)
    else:
        loop = sys.modules["agents.run_internal.run_loop"]
        seams.steps(patches, module, "start_streaming", _run_started)
        seams.steps(patches, module, "run_single_turn", _turn_started, _turn_ended)
        seams.steps(patches, loop, "run_single_turn_streamed", _turn_started, _turn_ended)
    _patch_tools(patches)


def _patch_tools(patches: Patches) -> None:
    old = sys.modules.get("agents._run_impl")
    if old is not None and "_execute_tool_with_hooks" in old.RunImpl.__dict__:
        seams.tools(patches, old.RunImpl, "_execute_tool_with_hooks", _called_by_old, _given, _replayed_by_old)
        patches.replace(sys.modules["agents.util._error_tracing"], "attach_error_to_current_span", _attaching)
        return
    tool = sys.modules["agents.tool"]
    name = "_invoke_function_tool_with_metadata"
    if name not in tool.__dict__:
        name = "invoke_function_tool"
    for place in ("agents.tool", "agents.run_internal.tool_execution", "agents._run_impl", "agents.realtime.session"):
        module = sys.modules.get(place)
        if module is not None and name in module.__dict__:
            seams.tools(patches, module, name, _called, _given, functools.partial(_replayed, tool))
    patches.replace(tool, "maybe_invoke_function_tool_failure_error_function", _failing)


# Tools.


class _Call(ToolCall):
    """A call that knows which tool it is of."""

    tool: Any = None


def _called(*, function_tool: Any, context: Any, arguments: Any) -> ToolCall:
    return _call(function_tool, context, arguments)


def _called_by_old(_: Any, *, func_tool: Any, tool_context: Any, tool_call: Any, **__: Any) -> ToolCall:
    return _call(func_tool, tool_context, tool_call.arguments)


def _call(tool: Any, context: Any, arguments: Any) -> ToolCall:
    function = getattr(tool, "__wrapped__", None)
    call = _Call(tool.name, seams.parsed(arguments), seams.effects_of(function), context.tool_call_id, framework=True)
    call.tool = tool
    return call


def _given(_: ToolCall, result: Any) -> Any:
    return result.output if type(result).__name__ == "_FunctionToolInvocationResult" else result


def _replayed(module: Any, call: Any, outcome: Outcome) -> None:
    """Make of the output what the SDK's own function returns."""
    result = getattr(module, "_FunctionToolInvocationResult", None)
    if result is None:
        return
    by_default = bool(getattr(call.tool, "_use_default_failure_error_function", False))
    outcome.made = lambda output: result(output, is_sdk_generated_error=outcome.handled and by_default)


def _replayed_by_old(_: Any, outcome: Outcome) -> None:
    """Let the SDK call its hooks, and something else in place of the tool."""

    async def answer(*_: Any) -> Any:
        return await outcome.result_async()

    def through(original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        tool = copy.copy(kwargs["func_tool"])
        tool.on_invoke_tool = answer
        return original(*args, **{**kwargs, "func_tool": tool})

    outcome.through = through


def _failing(original: Any) -> Any:
    @functools.wraps(original)
    async def answer(*args: Any, **kwargs: Any) -> Any:
        if isinstance(error := kwargs.get("error"), BaseException):
            seams.note_failure(error)
        return await original(*args, **kwargs)

    return answer


def _attaching(original: Any) -> Any:
    """Note the error that is being handled: the release that calls this has no other place where it is seen."""

    @functools.wraps(original)
    def attach(*args: Any, **kwargs: Any) -> Any:
        if (error := sys.exception()) is not None:
            seams.note_failure(error)
        return original(*args, **kwargs)

    return attach


# Steps.


class _AgentRun(seams.FrameworkStep):
    """A run of an agent, which may hand over to another one."""

    def __init__(self, agent: str) -> None:
        super().__init__(f"agent {agent}")
        self.agent = agent

    def begin(self) -> None:
        super().begin()
        if self._outside is not None and self.span is not None:
            _open[self._outside.recording.id, self.span] = self

    def end(self, error: BaseException | None = None) -> None:
        if self._outside is not None and self.span is not None:
            _open.pop((self._outside.recording.id, self.span), None)
        super().end(error)


_open: dict[tuple[str, str | None], _AgentRun] = {}  # by run and span


class _Turn(seams.FrameworkStep):
    """One question to the model and what its answer leads to."""

    def __init__(self, agent: str) -> None:
        super().__init__("turn", {"agent": agent})
        self._agent = agent

    def opening(self, scope: Scope) -> kinds.Payload:
        self.name = f"turn {scope.recording.attempt(scope.span, 'turn')}"
        around = _open.get((scope.recording.id, scope.span))
        if around is None or around.agent != self._agent:
            self.name += f" ({self._agent})"
        return super().opening(scope)


def _run_started(_: Any = None, starting_agent: Any = None, *args: Any, **kwargs: Any) -> Step:
    return _AgentRun(starting_agent.name)


def _turn_started(_: Any = None, bindings: Any = None, *args: Any, **kwargs: Any) -> Step:
    return _Turn(bindings.public_agent.name)


def _turn_started_by_old(cls: Any, _: Any = None, agent: Any = None, *args: Any, **kwargs: Any) -> Step:
    return _Turn(agent.name)


def _turn_ended(step: Any, result: Any) -> None:
    """Say to whom the turn hands over; the call by which the model asked for that is no tool."""
    new_agent = getattr(result.next_step, "new_agent", None)
    if new_agent is None:
        return
    step.set_attributes(handoff=new_agent.name)
    scope = live()
    for item in result.new_step_items:
        if scope is not None and item.type == "handoff_call_item":
            scope.recording.turns.running(item.raw_item.name, None, item.raw_item.call_id)
