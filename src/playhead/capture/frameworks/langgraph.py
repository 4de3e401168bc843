"""Make a step of every node of a LangGraph graph, and of a graph that has a name."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from playhead.capture import lanes
from playhead.capture.frameworks import seams
from playhead.capture.patches import Patches
from playhead.capture.spans import Step

# With and without the underscore: releases from 0.6 on, and those before.
_RUNNERS = ("langgraph.pregel._runner", "langgraph.pregel.runner")
_EXECUTORS = ("langgraph.pregel._executor", "langgraph.pregel.executor")
_GRAPHS = ("langgraph.pregel.main",)
_QUEUES = ("langgraph._internal._queue", "langgraph.utils.queue")
MODULES = (*_RUNNERS, *_EXECUTORS, *_GRAPHS, *_QUEUES)

_RUNNING = ("run_with_retry", "arun_with_retry")
_HIDDEN = "langsmith:hidden"
_NAMELESS = ("LangGraph", "", None)


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder around each node, and give nodes that run side by side a lane each."""
    if module.__name__ in _RUNNERS:
        for name in _RUNNING:
            seams.steps(patches, module, name, _started)
    elif module.__name__ in _EXECUTORS:
        for executor in (module.BackgroundExecutor, module.AsyncBackgroundExecutor):
            patches.replace(executor, "submit", _submit)
    elif module.__name__ in _QUEUES:
        lanes.laneless.add(module.AsyncQueue.wait.__code__)  # likewise for the tasks that wait for the stream
    else:
        for name in ("stream", "astream"):
            seams.steps(patches, module.Pregel, name, _graph_started)


class _Node(seams.FrameworkStep):
    """A step that a command to the graph around it ends as it should."""

    def end(self, error: BaseException | None = None) -> None:
        super().end(None if type(error).__name__ == "ParentCommand" else error)


def _started(task: Any, *_: Any, **__: Any) -> Step | None:
    config = task.config or {}
    if task.name.startswith("__") or _HIDDEN in (config.get("tags") or ()):
        return None
    number = (config.get("metadata") or {}).get("langgraph_step")
    return _Node(task.name, None if number is None else {"langgraph_step": number})


def _graph_started(graph: Any, *_: Any, **__: Any) -> Step | None:
    return None if graph.name in _NAMELESS else _Node(f"agent {graph.name}")


def _submit(original: Any) -> Any:
    @functools.wraps(original)
    def submit(self: Any, fn: Any, *args: Any, **kwargs: Any) -> Any:
        # How often a thread waits for the stream is a matter of chance, so only nodes have lanes.
        return lanes.submitted(original, self, fn, *args, lane=getattr(fn, "__name__", "") in _RUNNING, **kwargs)

    return submit
