"""Give all that runs beside something else a lane when it is begun, carry the scope into it, and tell when it ends.

Patched while a run is open, restored by identity when the last one closes. A lane is given where the agent asks for the
work: when a task is created, when something is handed to a pool, when a thread or process is started. The workers of
pools get no number: when they start is a matter of chance. The agent's own context variables are what they would be
without us: only ours are set where the work begins.
"""

from __future__ import annotations

import _thread
import functools
import importlib
import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import CodeType, FrameType, ModuleType
from typing import Any

from playhead.capture import answering, forks, guard, hooks, looks, printing, spawning, waits, writing
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches
from playhead.capture.scope import Lane, Scope, ambient, ambient_lane, current, muted, policies, wrapped
from playhead.store import forking

# By the file that patches it: the modules that are waited for. Imported by whoever uses them: asyncio loads ssl, which
# a program may want to patch before that.
WATCHED: dict[str, tuple[str, ...]] = {
    "lanes_asyncio": ("asyncio", "asyncio.base_events", "asyncio.base_subprocess", "uvloop"),
    "lanes_pools": ("concurrent.futures.thread", "multiprocessing.pool", "concurrent.futures.process"),
    "lanes_futures": ("concurrent.futures._base", "concurrent.futures", "queue"),
    "lanes_processes": (
        "multiprocessing.process",
        "multiprocessing.spawn",
        "multiprocessing.popen_fork",
        "multiprocessing.popen_forkserver",
    ),
    "lanes_trio": ("trio._core._run", "trio._threads", "anyio._backends._asyncio"),
    "writing": ("logging",),
}
Tokens = list[tuple[ContextVar[Any], Token[Any]]]
_CARRIED: tuple[ContextVar[Any], ...] = (current, ambient_lane, policies, muted, wrapped, printing.here)

_lock = threading.RLock()
_open = 0
_patches = Patches()
_watch: AfterImport | None = None
_era = 0  # of patches: what an earlier one put below somebody else's is not to speak again
laneless: set[CodeType] = set()  # coroutines that a framework starts as often as chance has it, and that tell nothing
# Called when a lane ends, in whichever thread that happens, with the lane that waits for it, the lane itself, and "ok",
# "error" or "cancelled".
on_end: Callable[[Lane | None, Lane, str], None] | None = None


class _Local(threading.local):
    quiet = False  # a pool starts its workers now, and what they do is carried into them piece by piece
    given: Start | None = None  # what was begun further up, for work that is handed down now
    starting: Start | None = None  # the process that is being started
    ending: tuple[Start, BaseException | None] | None = None  # work that is done, whose future is told next


local = _Local()
_forking: dict[int, Start | None] = {}  # by thread: two may fork at once


class Start:
    """Work that begins: what it finds in its context that its starter does not have, and its lane."""

    __slots__ = ("_carried", "changed", "child", "parent")

    def __init__(
        self, changed: tuple[tuple[ContextVar[Any], Any], ...], parent: Lane | None = None, child: Lane | None = None
    ) -> None:
        self.changed = changed
        self.parent, self.child = parent, child
        self._carried = changed

    def carry(self) -> Start:
        """Take along what the context here holds of ours, for a thread, which begins with nothing."""
        if self.child is not None:
            writing.watch()
        values: dict[ContextVar[Any], Any] = {variable: variable.get() for variable in _CARRIED}
        values.update(self.changed)
        self._carried = tuple(values.items())
        return self

    def at(self, lane: Lane) -> Start:
        """Return the same with another lane: that of one item among many."""
        changed = tuple(
            (variable, value._replace(lane=lane) if isinstance(value, Scope) else lane)
            for variable, value in self.changed
        )
        other = Start(changed, self.parent, lane)
        values: dict[ContextVar[Any], Any] = dict(self._carried)
        values.update(changed)
        other._carried = tuple(values.items())
        return other

    def enter(self) -> Tokens:
        """Have what changes in force in the present context; `leave` ends that."""
        return [(variable, variable.set(value)) for variable, value in self.changed]

    def settle(self) -> None:
        """Have it in force in the present context for good."""
        for variable, value in self._carried:
            variable.set(value)

    def within(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call something in the present context, with all that was taken along in force."""
        tokens = [(variable, variable.set(value)) for variable, value in self._carried]
        try:
            return function(*args, **kwargs)
        finally:
            leave(tokens)

    def run(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Do the work in its lane and tell when it has ended."""
        return self.within(self.finish, function, *args, **kwargs)

    def finish(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Do the work and tell when it has ended, before whoever waits for it can go on."""
        if self.child is None or on_end is None:
            return function(*args, **kwargs)
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            self.wait_for_turn()
            self.end(error)
            raise
        self.wait_for_turn()
        self.end(None)
        return result

    def wait_for_turn(self) -> None:
        """Return when it is time for the work to end, in a replay."""
        if self.child is not None and answering.player is not None:
            answering.player.ending(self.child.path)

    def hand_in(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Do the work in its lane, and leave it to the future that gets its result to tell when it has ended."""
        try:
            result = self.within(function, *args, **kwargs)
        except BaseException as error:
            local.ending = self, error
            raise
        local.ending = self, None
        return result

    def end(self, error: BaseException | None) -> None:
        """Tell how the work ended."""
        if self.child is not None and on_end is not None:
            if error is None:
                ended(self.parent, self.child, "ok")
                return
            from playhead.capture.spans import outcome  # here: a program that records nothing does not need it

            ended(self.parent, self.child, outcome(error))

    def tell(self, outcome: str) -> None:
        """Tell how the work ended, where there is no exception to see it from."""
        if self.child is not None:
            ended(self.parent, self.child, outcome)


def leave(tokens: Tokens) -> None:
    """Take back what was put in force."""
    for variable, token in tokens:
        variable.reset(token)


def name(lane: Lane | None, given: str, default: str) -> None:
    """Keep the name of a task or thread, if it is not one that Python made of a number: `Task-5`, `Thread-2 (work)`."""
    if lane is not None and not (given.startswith(default) and given[len(default) :][:1].isdecimal()):
        lane.name = given


def ended(parent: Lane | None, child: Lane, outcome: str) -> None:
    """Tell whoever listens that what ran in a lane is over; the parent is None where it is in another process."""
    if on_end is not None:
        on_end(parent, child, outcome)


def begin(ask: Callable[[FrameType | None], int] = spawning.asked) -> Start | None:
    """Prepare for work that begins here: with a lane of its own if a run is open; None if there is nothing to carry."""
    scope, process = current.get(), ambient()
    if scope is None and process is None:
        return Start(()) if policies.get() else None
    if local.given is not None:
        return local.given
    if muted.get():
        return Start(())  # the tasks of an HTTP client are as many as chance has it, and tell nothing
    how = ask(sys._getframe(1))
    lane = scope.lane if scope is not None else process.lane_here()  # type: ignore[union-attr]
    if how == spawning.SAME:
        return Start(())
    child = lane.spawn() if how == spawning.OWN else lane.aside()
    start = Start(_in_lane(scope, child))
    if how == spawning.OWN:
        start.parent, start.child = lane, child
    return start


def _in_lane(scope: Scope | None, lane: Lane) -> tuple[tuple[ContextVar[Any], Any], ...]:
    """Return what to set for work in a lane. What begins inside a turn belongs to it."""
    if scope is not None:
        # But for where a conversation goes on in one task after another.
        turns = scope.recording.turns
        inside = scope if scope.span in turns.single else turns.inside(scope)
        return ((current, Scope(scope.recording, inside.span, lane)),)
    process = ambient()
    if process is not None and process.recording is not None and process.recording.turns.open:
        there = process.scope()
        if there is not None and (inside := there.recording.turns.inside(there)) is not there:
            return (ambient_lane, lane), (current, Scope(there.recording, inside.span, lane))
    return ((ambient_lane, lane),)


def is_here(there: Callable[[ContextVar[Any]], Any]) -> bool:
    """Say whether a context, asked for one variable after the other, speaks in the lane that the present one does."""
    scope, other = current.get(), there(current)
    if scope is not None or other is not None:
        return scope is not None and other is not None and scope.lane is other.lane
    return ambient_lane.get() is there(ambient_lane)


def submitted(submit: Callable[..., Any], *args: Any, lane: bool = True, **kwargs: Any) -> Any:
    """Call what submits work with the one lane of the work in force, or the lane that is here.

    For executors that copy the context themselves: the lane that the pool below would give is not seen in the copy.
    """
    if current.get() is None and ambient() is None:
        return submit(*args, **kwargs)
    start = begin() if lane else Start(())
    assert start is not None, "something is recorded"
    before, local.given = local.given, start
    tokens = start.enter()
    try:
        return submit(*args, **kwargs)
    finally:
        leave(tokens)
        local.given = before


def install() -> None:
    """Patch the places where concurrent work begins; counted, so that every call needs one `uninstall`."""
    global _open, _watch, _era
    with _lock:
        _open += 1
        if _open == 1:
            _era += 1
            _patches.replace(threading.Thread, "start", _start)
            waits.patch(_patches)
            looks.patch(_patches)
            for name in ("start_new_thread", "start_new"):
                if hasattr(_thread, name):
                    _patches.replace(_thread, name, _start_new_thread)
            _watch = AfterImport(
                {name: functools.partial(_patch, part) for part, names in WATCHED.items() for name in names}
            )
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


def era() -> int:
    """Return which patches are the present ones."""
    return _era


def _patch(part: str, module: ModuleType) -> None:
    with _lock:
        if _open:
            try:
                importlib.import_module(f"playhead.capture.{part}").patch(module, _patches)
            except Exception as problem:  # a release of the library that has another shape than those we know
                guard.not_captured(problem, f"lanes of {module.__name__}", forks.recordings())


def _start(original: Any) -> Any:
    made = _era

    @functools.wraps(original)
    def start(self: threading.Thread) -> None:
        begun = None if made != _era or local.quiet else begin(spawning.started)
        if begun is None:
            original(self)
            return
        begun.carry()
        name(begun.child, getattr(self, "_name", ""), "Thread-")  # which one that is not initialised has not
        own, run = self.__dict__.get("run"), self.run

        def restore() -> None:
            """Let the thread have the method again that it would have without us."""
            if self.__dict__.get("run") is in_lane:
                del self.run
                if own is not None:
                    self.run = own  # type: ignore[method-assign]

        def in_lane() -> None:
            restore()
            begun.run(run)

        self.run = in_lane  # type: ignore[method-assign]
        hook = self.__dict__.get("_invoke_excepthook")
        if hook is not None:  # is called when `run` has ended, for what that raised
            self.__dict__["_invoke_excepthook"] = functools.partial(begun.within, hook)
        try:
            original(self)
        except BaseException:
            restore()
            raise

    return start


class _InLane:
    """What a thread without an object does, in its lane; it is told by the name of what the agent gave."""

    def __init__(self, begun: Start, function: Any) -> None:
        self._begun, self._function = begun, function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._begun.run(self._function, *args, **kwargs)

    def __repr__(self) -> str:
        return repr(self._function)


def _start_new_thread(original: Any) -> Any:
    made = _era

    @functools.wraps(original)
    def start_new_thread(*given: Any) -> Any:
        sound = 2 <= len(given) <= 3 and callable(given[0]) and isinstance(given[1], tuple)  # else it is refused
        mine = sys._getframe(1).f_globals.get("__name__") == "playhead.store.syncer"
        begun = begin(spawning.started) if sound and made == _era and not local.quiet and not mine else None
        if begun is None:
            return original(*given)
        return original(_InLane(begun.carry(), given[0]), *given[1:])

    return start_new_thread


def _before_fork() -> None:
    process = ambient()
    if process is not None and current.get() is None:
        process.scope()  # both sides write into one run, which has to be there before
    _forking[threading.get_ident()] = local.starting or begin(spawning.started)


def _after_fork_in_parent() -> None:
    _forking.pop(threading.get_ident(), None)


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.RLock()
    start = _forking.pop(threading.get_ident(), None)
    _forking.clear()
    local.starting = local.given = None
    local.quiet = False
    process = ambient()
    if process is not None:
        process.after_fork()
    if start is None:
        return
    start.settle()
    if process is not None and start.changed and (lane := ambient_lane.get()) is not None:
        process.lane = lane  # for threads that bring no context
        hooks.process(lane)


forking.register(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
