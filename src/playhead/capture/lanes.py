"""Carry the scope into threads, executors and tasks, and give each a lane when it is spawned.

Patched while a run is open, restored by identity when the last one closes. Pool workers get no lane: when they start is
a matter of chance. The work submitted to them does.
"""

from __future__ import annotations

import contextvars
import functools
import os
import threading
from collections.abc import Callable
from types import CodeType, ModuleType
from typing import Any

from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches
from playhead.capture.scope import Scope, ambient, ambient_lane, current, muted, policies

_lock = threading.Lock()
_open = 0
_patches = Patches()
_watch: AfterImport | None = None
_era = 0  # of patches: what an earlier one put below somebody else's is not to speak again
_submitting = threading.local()
_forking: contextvars.Context | None = None
laneless: set[CodeType] = set()  # coroutines that a framework starts as often as chance has it, and that tell nothing


def install() -> None:
    """Patch the places where concurrent work begins; counted, so that every call needs one `uninstall`."""
    global _open, _watch, _era
    with _lock:
        _open += 1
        if _open == 1:
            _era += 1
            _patches.replace(threading.Thread, "start", _start)
            # Imported by whoever uses them: asyncio loads ssl, which a program may want to patch before that.
            _watch = AfterImport({"concurrent.futures.thread": _patch_executor, "asyncio.base_events": _patch_loop})
            _watch.install()


def uninstall() -> None:
    """Restore what was there before the first `install`."""
    global _open, _watch
    with _lock:
        _open -= 1
        if _open == 0 and _watch is not None:
            _watch.uninstall()
            _watch = None
            _patches.restore()


def _patch_executor(module: ModuleType) -> None:
    _patches.replace(module.ThreadPoolExecutor, "submit", _submit)


def _patch_loop(module: ModuleType) -> None:
    _patches.replace(module.BaseEventLoop, "create_task", _create_task)


def child_context() -> contextvars.Context | None:
    """Return the context for work that begins here: with a lane of its own if a run is open; None if nothing is."""
    scope, process = current.get(), ambient()
    if scope is None and process is None and not policies.get():
        return None
    if getattr(_submitting, "given", False):
        return None  # the context that the work will run in is made
    context = contextvars.copy_context()
    if muted.get():
        return context  # tasks of an HTTP client are as many as chance has it, and tell nothing
    if scope is not None:
        # What begins inside a turn belongs to it, but for where a conversation goes on in one task after another.
        turns = scope.recording.turns
        inside = scope if scope.span in turns.single else turns.inside(scope)
        context.run(current.set, Scope(scope.recording, inside.span, scope.lane.spawn()))
    elif process is not None:
        lane = process.lane_here().spawn()
        context.run(ambient_lane.set, lane)
        if process.recording is not None and process.recording.turns.open and (there := process.scope()) is not None:
            inside = there.recording.turns.inside(there)
            if inside is not there:
                context.run(current.set, Scope(there.recording, inside.span, lane))
    return context


def submitted(submit: Callable[..., Any], *args: Any, lane: bool = True, **kwargs: Any) -> Any:
    """Call what submits work in a copy of its context, so that this copy has the one lane of the work; or no own lane.

    For executors that copy the context themselves: the lane that the pool below would give is not seen in the copy.
    """
    recorded = current.get() is not None or ambient() is not None
    context = contextvars.copy_context() if recorded and not lane else child_context()
    if context is None:
        return submit(*args, **kwargs)
    before = getattr(_submitting, "given", False)
    _submitting.given = True
    try:
        return context.run(submit, *args, **kwargs)
    finally:
        _submitting.given = before


def _start(original: Any) -> Any:
    era = _era

    @functools.wraps(original)
    def start(self: threading.Thread) -> None:
        if era == _era and not getattr(_submitting, "now", False):
            context, run = child_context(), self.run
            if context is not None:
                self.run = lambda: context.run(run)  # type: ignore[method-assign]
        original(self)

    return start


def _submit(original: Any) -> Any:
    era = _era

    @functools.wraps(original)
    def submit(self: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        context = child_context() if era == _era else None
        if context is None:
            return original(self, function, *args, **kwargs)
        _submitting.now = True
        try:
            return original(self, context.run, function, *args, **kwargs)
        finally:
            _submitting.now = False

    return submit


def _create_task(original: Any) -> Any:
    era = _era

    @functools.wraps(original)
    def create_task(self: Any, coro: Any, **options: Any) -> Any:
        if era != _era or options.get("context") is not None or getattr(coro, "cr_code", None) in laneless:
            return original(self, coro, **options)
        if (context := child_context()) is not None:
            # The task copies the context that it is made in. A task factory of the agent may know no `context`.
            return context.run(original, self, coro, **options)
        return original(self, coro, **options)

    return create_task


def _before_fork() -> None:
    global _forking
    _forking = child_context()


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    if (process := ambient()) is not None:
        process.after_fork()
    if _forking is not None:
        current.set(_forking.get(current))
        ambient_lane.set(_forking.get(ambient_lane))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork_in_child)
