"""Give work that is handed to a pool of threads or processes a lane at that moment, and tell when it is done.

What goes to another process is a `functools.partial` that says beside its function where it belongs: any Python can
read it, and one without us calls the function. A worker that has us does so in the lane.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

from playhead.capture import answering, children, handing, lanes, lanes_jobs, spawning
from playhead.capture.patches import Patches
from playhead.capture.scope import Lane, ambient, current, place

_START = "_playhead_start"  # where a future or a result of a pool keeps what was begun
_SEEN = "_playhead_seen"  # in a pool of processes whose workers began under our eyes
_MARK = "_playhead"  # where a function on its way to another process says where it belongs


class _Applying(threading.local):
    start: lanes.Start | None = None  # the work whose result is being made


_applying = _Applying()
_completing = threading.Lock()


def patch(module: ModuleType, patches: Patches) -> None:
    """Put ourselves where work is handed in, where workers take it, and where results come back."""
    if module.__name__ == "concurrent.futures.thread":
        patches.replace(module.ThreadPoolExecutor, "submit", _submit)
        patches.replace(module._WorkItem, "run", lanes_jobs.run)
    elif module.__name__ == "concurrent.futures.process":
        patches.replace(module.ProcessPoolExecutor, "submit", _submit_to_process)
        patches.replace(module._ExecutorManagerThread, "process_result_item", _process_result_item)
        patches.replace(module._ExecutorManagerThread, "terminate_broken", _terminate_broken)
        patches.replace(module, "_process_worker", _process_worker)
    else:
        each = functools.partial(_guarded_task_generation, module)
        patches.replace(module.ApplyResult, "__init__", _result)
        patches.replace(module.Pool, "_repopulate_pool", _repopulate_pool)
        patches.replace(module.Pool, "apply_async", functools.partial(_apply_async, module))
        patches.replace(module.Pool, "_guarded_task_generation", each)
        patches.replace(module, "worker", functools.partial(_worker, module))
        for kind in (module.ApplyResult, module.MapResult, module.IMapIterator, module.IMapUnorderedIterator):
            patches.replace(kind, "_set", _set)


# Threads


def _submit(original: Any) -> Any:
    made = lanes.era()

    @functools.wraps(original)
    def submit(self: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        start = lanes.begin() if made == lanes.era() else None
        if start is None:
            return original(self, function, *args, **kwargs)
        if any(kind.__module__ == "concurrent.futures.interpreter" for kind in type(self).__mro__):
            _not_followed("interpreters")  # what goes there must be read by an interpreter that knows nothing of us
            return original(self, function, *args, **kwargs)
        lanes_jobs.settle_inside(function, start)
        # Without a first task for its workers, all that they ever run is handed in here.
        quiet, lanes.local.quiet = lanes.local.quiet, getattr(self, "_initializer", self) is None
        try:
            future = original(self, start.carry().hand_in, function, *args, **kwargs)
        finally:
            lanes.local.quiet = quiet
        _tell_if_cancelled(future, start)
        return lanes_jobs.cancelled_as_then(future, start.child)

    return submit


def _tell_if_cancelled(future: Any, start: lanes.Start) -> None:
    """Be called when a future is done that was cancelled before anybody began with it."""
    if start.child is None or lanes.on_end is None:
        return

    def lane_ended(done: Any) -> None:
        if done.cancelled():
            _is_deferred([start], lambda: None)  # nobody is to wait for it
            start.tell("cancelled")

    future.add_done_callback(lane_ended)


def _not_followed(what: str) -> None:
    scope = place()
    if scope is not None:
        scope.recording.not_captured(what, "concurrent.futures")


# Pools of multiprocessing: of processes, and of threads


def _apply_async(module: Any, original: Any) -> Any:
    made = lanes.era()

    @functools.wraps(original)
    def apply_async(self: Any, func: Any, *args: Any, **options: Any) -> Any:
        start = lanes.begin() if made == lanes.era() else None
        if start is None:
            return original(self, func, *args, **options)
        if isinstance(self, module.ThreadPool):
            return original(self, functools.partial(start.carry().run, func), *args, **options)
        _name_unseen(self)
        _applying.start = start
        try:
            return original(self, _marked(func, start), *args, **options)
        finally:
            _applying.start = None

    return apply_async


def _repopulate_pool(original: Any) -> Any:
    @functools.wraps(original)
    def repopulate_pool(self: Any) -> Any:
        self.__dict__[_SEEN] = True
        return original(self)

    return repopulate_pool


def _name_unseen(pool: Any) -> None:
    """Say that the workers of a pool which began before any run cannot record what they do for this one."""
    if _SEEN not in pool.__dict__ and not children.passing_on():
        where = f"a pool from before the run, {spawning.agents_line(sys._getframe(1))}"
        scope = place()
        if scope is not None:
            scope.recording.not_captured("multiprocessing", where)


def _result(original: Any) -> Any:
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **options: Any) -> None:
        if _applying.start is not None:  # before it is on its way: what comes back may be faster than we are
            self.__dict__[_START] = {0: [_applying.start]}
        original(self, *args, **options)

    return __init__


def _guarded_task_generation(module: Any, original: Any) -> Any:
    """Give a whole `map` a lane, in which what it maps is gone through, and every item one below that."""
    made = lanes.era()

    @functools.wraps(original)
    def generation(self: Any, job: Any, func: Any, iterable: Any) -> Any:
        start = lanes.begin() if made == lanes.era() else None
        tasks = original(self, job, func, iterable)
        if start is None:
            return tasks
        begun: dict[int, list[lanes.Start]] = {}
        in_threads = isinstance(self, module.ThreadPool)
        if not in_threads:
            _name_unseen(self)
            if (result := self._cache.get(job)) is not None:
                result.__dict__[_START] = begun
        return _in_lanes(module, start.carry(), tasks, None if in_threads else begun)

    return generation


def _in_lanes(
    module: Any, start: lanes.Start, tasks: Iterator[Any], begun: dict[int, list[lanes.Start]] | None
) -> Iterator[Any]:
    """Yield the tasks of a map, each with the lanes of its items. Runs in a thread of the pool."""
    while (task := start.within(next, tasks, None)) is not None:
        job, number, func, args, options = task
        if func is module._helper_reraises_exception:
            yield task
            continue
        batched = func in (module.mapstar, module.starmapstar)
        items = [_item(start) for _ in range(len(args[0][1]) if batched else 1)]
        if begun is not None:
            begun[number] = items
            yield job, number, _marked(func, items[0]), args, options
        elif batched:
            yield job, number, func, ((_Each(items, args[0][0]), args[0][1]),), options
        else:
            yield job, number, functools.partial(items[0].run, func), args, options


def _item(start: lanes.Start) -> lanes.Start:
    return start if start.child is None else start.at(start.child.spawn())


class _Each:
    """Call a function for one item after the other, each in its lane."""

    def __init__(self, items: list[lanes.Start], function: Any) -> None:
        self._items, self._function = iter(items), function

    def __call__(self, *args: Any) -> Any:
        return next(self._items).run(self._function, *args)


def _set(original: Any) -> Any:
    @functools.wraps(original)
    def set_result(self: Any, i: int, outcome: tuple[bool, Any]) -> Any:
        begun = self.__dict__.get(_START, {}).pop(i, ())

        def settle() -> Any:
            for start in begun:
                start.end(None if outcome[0] else outcome[1])
            return original(self, i, outcome)

        return settle() if not _is_deferred(begun, settle) else None

    return set_result


def _is_deferred(begun: Sequence[lanes.Start], settle: Callable[[], object]) -> bool:
    """Say whether a result that came from another process is settled later, in a replay: when it is its turn."""
    last = begun[-1].child if begun else None
    return last is not None and answering.player is not None and answering.player.came(last.path, settle)


def _worker(module: Any, original: Any) -> Any:
    @functools.wraps(original)
    def worker(inqueue: Any, *args: Any, **options: Any) -> Any:
        return original(_Inbox(inqueue, functools.partial(_task_in_lane, module)), *args, **options)

    return worker


def _task_in_lane(module: Any, task: Any) -> Any:
    job, number, func, args, options = task
    start = _marked_start(func)
    if start is None:
        return task
    function = _plain(func)
    if function in (module.mapstar, module.starmapstar):
        items = _following(start, len(args[0][1]))
        return job, number, function, ((_Each(items, args[0][0]), args[0][1]),), options
    return job, number, functools.partial(start.run, function), args, options


def _following(start: lanes.Start, count: int) -> list[lanes.Start]:
    """Return the lanes of a batch, of which the first one is known."""
    if start.child is None:
        return [start] * count
    before, _, first = start.child.path.rpartition(".")
    return [start.at(Lane(f"{before}.{int(first) + each}", start.child.tap)) for each in range(count)]


# Pools of processes of concurrent.futures


def _submit_to_process(original: Any) -> Any:
    made = lanes.era()

    @functools.wraps(original)
    def submit(self: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        start = lanes.begin() if made == lanes.era() else None
        if start is None:
            return original(self, function, *args, **kwargs)
        if not self._processes:
            self.__dict__[_SEEN] = True
        _name_unseen(self)
        future = original(self, _marked(function, start), *args, **kwargs)
        _tell_if_cancelled(future, start)
        return future

    return submit


def _process_result_item(original: Any) -> Any:
    @functools.wraps(original)
    def process_result_item(self: Any, result_item: Any) -> Any:
        item = self.pending_work_items.get(getattr(result_item, "work_id", None))

        def settle() -> Any:
            _end(item, result_item)
            # In the lane of the work: it may be awaited with a callback, and this thread is the pool's.
            return begun[0].within(original, self, result_item) if begun else original(self, result_item)

        def settle_later() -> None:
            settle()
            with getattr(self, "shutdown_lock", _completing):
                if not self.thread_wakeup._closed:
                    self.thread_wakeup.wakeup()  # it may wait for this one to be the last

        function = getattr(item, "fn", None)
        begun = [function.start] if isinstance(function, _Marked) else []
        return settle() if not _is_deferred(begun, settle_later) else None

    return process_result_item


def _terminate_broken(original: Any) -> Any:
    @functools.wraps(original)
    def terminate_broken(self: Any, cause: Any) -> Any:
        for item in list(self.pending_work_items.values()):
            _end(item, None)
        return original(self, cause)

    return terminate_broken


def _end(item: Any, result: Any) -> None:
    function = getattr(item, "fn", None)
    if isinstance(function, _Marked):
        if result is None:
            _is_deferred([function.start], lambda: None)
            function.start.tell("error")
        else:
            function.start.end(result.exception)


def _process_worker(original: Any) -> Any:
    @functools.wraps(original)
    def worker(call_queue: Any, *args: Any, **options: Any) -> Any:
        return original(_Inbox(call_queue, _call_in_lane), *args, **options)

    return worker


def _call_in_lane(item: Any) -> Any:
    start = _marked_start(item.fn)
    if start is not None:
        item.fn = functools.partial(start.run, _plain(item.fn))
    return item


# What goes to another process


class _Marked(functools.partial):  # type: ignore[type-arg]
    """A function, and where it belongs; to other processes goes a plain partial with that as an attribute."""

    start: lanes.Start

    def __reduce__(self) -> Any:
        state = (self.func, self.args, self.keywords, {_MARK: self.__dict__[_MARK]})
        return functools.partial, (self.func,), state


def _marked(function: Any, start: lanes.Start) -> Any:
    told = handing.tell(start)
    if told is None:
        return function
    marked = _Marked(function)
    marked.start = start
    if answering.player is not None and start.child is not None:
        answering.player.expect(start.child.path, lambda: False)
    marked.__dict__[_MARK] = told
    return marked


def _marked_start(function: Any) -> lanes.Start | None:
    """Return what a worker is to do its work with."""
    told = function.__dict__.get(_MARK) if type(function) is functools.partial else None
    if told is not None:
        return handing.start(told)
    # Handed in while no run was open; the one that the worker was started in may have ended.
    return lanes.Start(((current, None),)) if ambient() is None else None


def _plain(marked: Any) -> Any:
    """Return the function that was marked; one that was a partial itself has become one with ours."""
    if type(marked) is not functools.partial or _MARK not in marked.__dict__:
        return marked
    if marked.args or marked.keywords:
        return functools.partial(marked.func, *marked.args, **marked.keywords)
    return marked.func


class _Inbox:
    """The queue from which a worker takes its work, with each piece made ready."""

    def __init__(self, queue: Any, ready: Callable[[Any], Any]) -> None:
        self._queue, self._ready = queue, ready

    def get(self, *args: Any, **options: Any) -> Any:
        """Return the next piece; None is the end."""
        found = self._queue.get(*args, **options)
        return found if found is None else self._ready(found)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)
