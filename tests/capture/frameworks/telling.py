"""Run an agent of a framework bare and recorded, and read from the timeline what it says about tools and steps."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import playhead
from playhead.testing import ScriptedProvider
from playhead.views.spans import SpanView, tree


@dataclass(frozen=True)
class Tool:
    """One call of a tool, as the timeline tells it."""

    name: str
    input: Any
    call: str | None
    asked_by: str | None
    inferred: bool
    effects: list[str]
    status: str
    output: Any
    error: str | None
    lane: str
    parent: str | None


class Told:
    """What one recording says."""

    def __init__(self, events: list[Any], result: Any) -> None:
        self.events, self.result = events, result
        self.closing = {event.span: event for event in events if event.kind in ("tool.returned", "model.responded")}
        self.names = {event.span: event.data.get("name") for event in events if event.kind == "step.started"}

    @property
    def tools(self) -> list[Tool]:
        """Return the calls of tools, in the order in which they began."""
        return [self._tool(event) for event in self.events if event.kind == "tool.called"]

    def tool(self, call: str) -> Tool:
        """Return the one call with this id."""
        found = [tool for tool in self.tools if tool.call == call]
        assert len(found) == 1, f"{call} is told {len(found)} times"
        return found[0]

    def _tool(self, event: Any) -> Tool:
        data, end = event.data, self.closing[event.span].data
        error = end.get("error") or {}
        return Tool(
            data["name"], data.get("input"), data.get("call"), data.get("asked_by"), data.get("inferred", False),
            data.get("effects") or [], end["status"], end.get("output"), error.get("type"), event.lane, event.parent,
        )  # fmt: skip

    @property
    def steps(self) -> list[Any]:
        """Return steps and what is in them, by name; a step is a list that begins with its name."""
        spoken = [event for event in self.events if event.kind not in ("effect.observed", "ambient.read")]
        return [_named(view) for view in tree(spoken)[0].children]

    def lanes(self, *calls: str) -> list[list[int]]:
        """Return the lanes of calls, as numbers."""
        return [[int(part) for part in self.tool(call).lane.split(".")] for call in calls]

    def check(self) -> None:
        """Hold what must be true whatever the framework: each tool once, under the model call that asked for it."""
        asked = {}
        for span, end in self.closing.items():
            if end.kind == "model.responded":
                message = (end.data.get("response") or {}).get("choices", [{}])[0].get("message", {})
                asked.update({call["id"]: span for call in message.get("tool_calls") or ()})
        calls = [tool.call for tool in self.tools if tool.call is not None]
        assert len(calls) == len(set(calls)), f"a call is told twice: {calls}"
        for tool in self.tools:
            assert not tool.inferred, tool
            assert tool.asked_by == asked.get(tool.call), tool
        opened = {event.span for event in self.events if event.kind == "step.started"}
        closed = {event.span for event in self.events if event.kind == "step.finished"}
        assert opened == closed, "a step was left open"
        assert not [event.data for event in self.events if event.kind == "gap.noted"]


def _named(view: SpanView) -> Any:
    inside = [_named(child) for child in view.children]
    if view.kind == "step":
        return [view.name, *inside]
    return "model" if view.kind == "model" else view.name


def told(script: Any, agent: Callable[[ScriptedProvider], Any], *, raises: bool = False) -> Told:
    """Run an agent alone and recorded, and return what the recording says; both must do and see the same."""
    outcomes, seen = [], []
    for recorded in (False, True):
        gc.collect()  # clients of earlier runs close themselves in tasks, of which this one would be the spawner
        with ScriptedProvider(script) as provider:
            if recorded:
                with playhead.record("test") as run:
                    outcomes.append(_outcome(agent, provider))
            else:
                outcomes.append(_outcome(agent, provider))
            seen.append(sorted(json.dumps(json.loads(request.body), sort_keys=True) for request in provider.requests))
    assert (outcomes[0][0] == "raised") == raises, outcomes[0]
    assert outcomes[0] == outcomes[1]
    assert seen[0] == seen[1]
    result = Told(list(playhead.load(str(run.path)).events()), outcomes[1])
    result.check()
    return result


def _outcome(agent: Callable[[ScriptedProvider], Any], provider: ScriptedProvider) -> Any:
    try:
        return "returned", agent(provider)
    except Exception as error:
        return "raised", type(error).__name__, str(error)
