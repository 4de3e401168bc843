"""Give every task of asyncio a lane when it is created, and tell when it is done."""

from __future__ import annotations

import functools
import sys
import weakref
from contextvars import Context, ContextVar
from types import CodeType, CoroutineType, ModuleType
from typing import Any

from playhead.capture import answering, lanes, spawning, timers
from playhead.capture import done as ordered
from playhead.capture.patches import Patches

# A coroutine that another thread hands to the loop, and its lane, which it gets there: what else that thread begins
# meanwhile has later numbers.
_handed_over: ContextVar[tuple[weakref.ref[Any], lanes.Start] | None] = ContextVar("playhead_handed_over", default=None)


def patch(module: ModuleType, patches: Patches) -> None:
    """Put ourselves where tasks are created. The loop of uvloop is a class of its own, with methods of C below."""
    if module.__name__ == "uvloop":
        if answering.player is not None:
            return  # in a replay its loop is that of asyncio
        patches.cover(module.Loop, "create_task", _create_task)
        patches.cover(module.Loop, "call_soon_threadsafe", _call_soon_threadsafe)
        patches.cover(module.Loop, "call_later", timers.call_later)
        patches.cover(module.Loop, "call_at", timers.call_later)
        for name in ("create_server", "create_unix_server"):
            patches.cover(module.Loop, name, _create_server)
    elif module.__name__ == "asyncio.base_subprocess":
        lanes.laneless.add(
            module.BaseSubprocessTransport._connect_pipes.__code__
        )  # which other loops do without a task
    elif module.__name__ == "asyncio.base_events":
        patches.replace(module.BaseEventLoop, "create_task", _create_task)
        patches.replace(module.BaseEventLoop, "call_at", timers.call_at)
        patches.replace(module.BaseEventLoop, "call_soon_threadsafe", _call_soon_threadsafe)
    else:
        tasks = sys.modules["asyncio.tasks"]
        for owner in (tasks, module):
            patches.replace(owner, "wait", ordered.wait_in_loop)
        if hasattr(tasks, "_AsCompletedIterator"):  # from 3.13 on
            patches.replace(tasks._AsCompletedIterator, "__init__", functools.partial(_in_order, tasks))
        else:
            for owner in (tasks, module):
                patches.replace(owner, "as_completed", functools.partial(_as_completed, tasks))


def _create_task(original: Any) -> Any:
    made = lanes.era()

    @functools.wraps(original)
    def create_task(self: Any, coro: Any, **options: Any) -> Any:
        if made != lanes.era() or getattr(coro, "cr_code", None) in lanes.laneless or _is_finalisation(coro):
            return original(self, coro, **options)
        context = options.get("context")
        start = _in_its_context(context) if context is not None else _begun(coro)
        if start is None:
            return original(self, coro, **options)
        # The task copies the context that it is made in. A task factory of the agent may know no `context`.
        tokens = start.enter() if context is None else []
        if answering.player is not None and start.child is not None and isinstance(coro, CoroutineType):
            coro = _ending_in_turn(coro, start.child.path)
        try:
            task = original(self, coro, **options)
        finally:
            lanes.leave(tokens)
        _watch(task, start)
        return task

    return create_task


async def _ending_in_turn(coro: Any, lane: str) -> Any:
    """Let a task end when it is its turn, in a replay: of two whose answers came at once, either may be done first."""
    assert answering.player is not None
    try:
        result = await coro
    except Exception:
        await answering.player.ending_async(lane)
        raise
    await answering.player.ending_async(lane)
    return result


def _is_finalisation(coro: Any) -> bool:
    """Say whether this closes an asynchronous generator: for the loop, or for the collector, which strikes anywhere."""
    return type(coro).__name__ == "async_generator_athrow"


def _begun(coro: Any) -> lanes.Start | None:
    handed = _handed_over.get()
    if handed is not None and handed[0]() is coro:
        return handed[1]
    return lanes.begin()


def _in_its_context(context: Context) -> lanes.Start | None:
    """Give a task that runs in a context of the agent's a lane there, if it was copied here and has none yet.

    A runner of asyncio has one context for everything: what it runs goes on in the lane of whoever runs it.
    """
    if sys._getframe(2).f_globals.get("__name__") == "asyncio.runners" or not lanes.is_here(context.get):
        return None
    start = lanes.begin()
    if start is not None and start.changed:
        try:
            context.run(start.enter)
        except RuntimeError:  # somebody is inside of it, and speaks in its lane
            return None
    return start


def _watch(task: Any, start: lanes.Start) -> None:
    """Be the first to be called when a task is done: before those who wait for it can go on."""
    if start.child is None or lanes.on_end is None:
        return

    def lane_ended(done: Any) -> None:
        ordered.number(done)
        lanes.name(start.child, getattr(done, "get_name", str)(), "Task-")
        if done.cancelled():
            start.tell("cancelled")
        else:
            start.end(getattr(done, "_exception", None))  # to ask for it would be to have seen it

    if task.done():  # at once, where the loop starts its tasks eagerly
        lane_ended(task)
    else:
        task.add_done_callback(lane_ended)


def _create_server(original: Any) -> Any:
    """Give a server of uvloop a lane: it serves all connections in the context that it was made in, in no task."""
    made = lanes.era()

    @functools.wraps(original)
    async def create_server(self: Any, *args: Any, **options: Any) -> Any:
        start = lanes.begin(spawning.serves) if made == lanes.era() else None
        if start is None:
            return await original(self, *args, **options)
        tokens = start.enter()
        try:
            server = await original(self, *args, **options)
        finally:
            lanes.leave(tokens)
        from playhead.capture.clients import unseen  # here: a program without a server does not need it

        unseen.serving(server)
        return server

    return create_server


class _InOrder:
    """What `asyncio.as_completed` was given, as tasks, made in that order and not in that of a set."""

    def __init__(self, tasks: Any, given: Any) -> None:
        self._tasks, self._given = tasks, given

    def __iter__(self) -> Any:
        return iter([self._tasks.ensure_future(each) for each in dict.fromkeys(self._given)])


def _in_order(tasks: Any, original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, aws: Any, timeout: Any) -> None:
        original(self, _InOrder(tasks, aws), timeout)

    return __init__


def _as_completed(tasks: Any, original: Any) -> Any:
    @functools.wraps(original)
    def as_completed(fs: Any, *, timeout: Any = None) -> Any:
        refused = tasks.futures.isfuture(fs) or tasks.coroutines.iscoroutine(fs)
        return original(fs if refused else _InOrder(tasks, fs), timeout=timeout)

    return as_completed


def _call_soon_threadsafe(original: Any) -> Any:
    made = lanes.era()
    asyncio_tasks = sys.modules["asyncio.tasks"]
    handing_over = _inner_code(asyncio_tasks.run_coroutine_threadsafe)

    @functools.wraps(original)
    def call_soon_threadsafe(self: Any, callback: Any, *args: Any, **options: Any) -> Any:
        is_one = handing_over is not None and getattr(callback, "__code__", None) is handing_over
        if made != lanes.era() or not is_one or options.get("context") is not None:
            return original(self, callback, *args, **options)
        coro = callback.__closure__[callback.__code__.co_freevars.index("coro")].cell_contents
        start = lanes.begin() if isinstance(coro, CoroutineType) else None
        if start is None or start.child is None:
            return original(self, callback, *args, **options)
        tokens = [*start.enter(), (_handed_over, _handed_over.set((weakref.ref(coro), start)))]
        try:
            return original(self, callback, *args, **options)
        finally:
            lanes.leave(tokens)

    return call_soon_threadsafe


def _inner_code(function: Any) -> CodeType | None:
    """Return the code of the function that `asyncio.run_coroutine_threadsafe` has the loop call."""
    for constant in function.__code__.co_consts:
        if isinstance(constant, CodeType) and {"coro", "loop"} <= set(constant.co_freevars):
            return constant
    return None
