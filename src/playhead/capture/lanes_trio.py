"""Give every task of trio a lane when it is spawned; and what trio and anyio do in worker threads."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from playhead.capture import lanes
from playhead.capture.patches import Patches

_running: dict[Any, lanes.Start] = {}  # the tasks of trio that have a lane


def patch(module: ModuleType, patches: Patches) -> None:
    """Put ourselves where tasks begin and end, and where work goes to a thread."""
    if module.__name__ == "trio._core._run":
        _running.clear()
        patches.replace(module.Runner, "spawn_impl", _spawn_impl)
        patches.replace(module.Runner, "task_exited", _task_exited)
    elif module.__name__ == "trio._threads":
        patches.replace(module, "start_thread_soon", _start_thread_soon)
    elif hasattr(module, "AsyncIOBackend"):  # not in anyio 3, where such work goes on in the lane of its task
        patches.replace(module.AsyncIOBackend, "run_sync_in_worker_thread", _run_sync_in_worker_thread)


def _spawn_impl(original: Any) -> Any:
    made = lanes.era()

    @functools.wraps(original)
    def spawn_impl(self: Any, async_fn: Any, args: Any, nursery: Any, name: Any, **options: Any) -> Any:
        # What trio.run was given goes on in the lane of whoever called that.
        mine = options.get("system_task") or nursery is None or nursery.parent_task is self.init_task
        if made != lanes.era() or mine or options.get("context") is not None:
            return original(self, async_fn, args, nursery, name, **options)
        start = lanes.begin()
        if start is None:
            return original(self, async_fn, args, nursery, name, **options)
        tokens = start.enter()
        try:
            task = original(self, async_fn, args, nursery, name, **options)
        finally:
            lanes.leave(tokens)
        if start.child is not None and lanes.on_end is not None:
            _running[task] = start
        return task

    return spawn_impl


def _task_exited(original: Any) -> Any:
    @functools.wraps(original)
    def task_exited(self: Any, task: Any, outcome: Any) -> Any:
        start = _running.pop(task, None)
        if start is not None:
            start.end(getattr(outcome, "error", None))
        return original(self, task, outcome)

    return task_exited


def _start_thread_soon(original: Any) -> Any:
    made = lanes.era()

    @functools.wraps(original)
    def start_thread_soon(fn: Any, *args: Any, **options: Any) -> Any:
        names = fn.__code__.co_freevars
        start = lanes.begin() if made == lanes.era() and "context" in names else None
        if start is None or start.child is None:
            return original(fn, *args, **options)
        # A copy that was made for this work alone.
        fn.__closure__[names.index("context")].cell_contents.run(start.enter)
        return original(functools.partial(start.finish, fn), *args, **options)

    return start_thread_soon


def _run_sync_in_worker_thread(original: Any) -> Any:
    made, function = lanes.era(), original.__func__

    @functools.wraps(function)
    def run_sync_in_worker_thread(cls: Any, func: Any, args: Any, *rest: Any, **options: Any) -> Any:
        start = lanes.begin() if made == lanes.era() else None
        if start is None or start.child is None:
            return function(cls, func, args, *rest, **options)
        return function(cls, functools.partial(start.carry().run, func), args, *rest, **options)

    return classmethod(run_sync_in_worker_thread)
