"""Record what a program does outside itself: to files, processes, sockets, its environment.

The interpreter tells of each in an audit event, in the thread that does it and right before it is done. So it is on
record even where the program dies of it. What can be seen to fail is left out (obstacles.py); whether a connection is
answered cannot be seen, and says `attempted`. Nothing is recorded of what the recorder does for itself.
"""

from __future__ import annotations

import contextvars
import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from playhead import _limits
from playhead.capture import (
    abandoned,
    audit,
    callers,
    effects_files,
    effects_processes,
    enforcing,
    execs,
    guard,
    lookups,
    scope,
    sockets,
    untold,
)
from playhead.capture.effects_files import Effect, absolute
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches
from playhead.event.secret_names import is_secret_name
from playhead.policy import hosts

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

Describe = Callable[[tuple[Any, ...]], Effect | None]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_IMPORTER = frozenset({"_frozen_importlib_external", "importlib._bootstrap_external"})
# Parts of ours that stand between the program and what it calls: what happens below them is the program's doing.
_BETWEEN = (
    "playhead._api.recording",
    "playhead.capture.answered",
    "playhead.capture.around",
    "playhead.capture.audit",
    "playhead.capture.children",
    "playhead.capture.clients",
    "playhead.capture.effects",
    "playhead.capture.enforcing",
    "playhead.capture.frameworks",
    "playhead.capture.hooks",
    "playhead.capture.lanes",
    "playhead.capture.looks",
    "playhead.capture.lookups",
    "playhead.capture.processes",
    "playhead.capture.sources",
    "playhead.capture.spans",
    "playhead.capture.untold",
    "playhead.capture.variables",
    "playhead.capture.queues",
    "playhead.capture.waits",
    "playhead.replay.attached",
    "playhead.replay.loops",
    "playhead.replay.session",
    "playhead.replay.offline",
    "playhead.replay.overlay",
)
# What a loop may do very often, and each time the same.
_FOLDED = ("attribute.", "file.", "mode.", "owner.", "socket.", "times.")
# Audit events of our own, where Python has none: processes of multiprocessing and of uvloop. For files: untold.py.
_SPAWNED, LOOPED = "playhead.spawned", "playhead.looped"

_lock = threading.Lock()
_open = 0
_patches = Patches()
_watch: AfterImport | None = None
# How often each effect was seen in a run, by the span and the lane that caused it.
_times: weakref.WeakKeyDictionary[Recording, dict[tuple[str | None, ...], int]] = weakref.WeakKeyDictionary()
# Runs that keep no effects, and what the process records into beside them.
_without: weakref.WeakKeyDictionary[Recording, scope.Ambient | None] = weakref.WeakKeyDictionary()


def install() -> None:
    """Begin to listen; counted, so that every call needs one `uninstall`."""
    global _open, _watch
    with _lock:
        _open += 1
        if _open == 1:
            for event, listener in _listeners():
                audit.listen(event, listener)
            _watch = AfterImport(
                {"multiprocessing.util": _patch_multiprocessing, "socket": lookups.install, "uvloop": lookups.of_uvloop}
            )
            _watch.install()
            untold.install()


def uninstall() -> None:
    """Stop listening when the last run has closed."""
    global _open, _watch
    with _lock:
        _open -= 1
        if _open == 0 and _watch is not None:
            for event, listener in _listeners():
                audit.unlisten(event, listener)
            _watch.uninstall()
            _watch = None
            _patches.restore()
            untold.uninstall()
            enforcing.uninstall()
            lookups.uninstall()


def leave_out(recording: Recording, beside: scope.Ambient | None) -> None:
    """Keep no effects in a run: in that of a test they are what the machine makes of it.

    They belong to the run of the process `beside` it, if there is one, and are held to the policy of that.
    """
    _without[recording] = beside


def _listeners() -> list[tuple[str, audit.Listener]]:
    return [*_LISTENERS.items(), *sockets.LISTENERS, ("os.exec", execs.becoming)]


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _telling(describe: Describe, capability: str | None = None) -> audit.Listener:
    """Return what records an effect; `capability` is that which a policy is asked about, if any."""

    def listener(args: tuple[Any, ...]) -> None:
        try:
            if not _is_ours(sys._getframe(1).f_back) and (effect := describe(args)) is not None:
                _record(*effect)
        except Exception as problem:
            if capability is not None:
                enforcing.unjudged(capability, args[0] if args else None, problem)
            raise

    return listener


def _is_ours(frame: FrameType | None) -> bool:
    """Say whether the recorder does this, or the import system, which may write what it compiled."""
    while frame is not None:
        name = frame.f_globals.get("__name__")
        if not isinstance(name, str):
            return False
        sort = callers.sort_of(name)
        if sort == callers.AGENT:
            return False
        if name in _IMPORTER and _is_importing(frame):
            return True
        if sort == callers.OURS and not name.startswith(_BETWEEN):
            return True
        frame = frame.f_back
    return False


def _is_importing(frame: FrameType | None) -> bool:
    """Say whether the import system acts for itself: it runs a module, or keeps what it compiled of one.

    It does not where somebody else has something written by it, as `py_compile` does.
    """
    while frame is not None and frame.f_globals.get("__name__") in _IMPORTER:
        if frame.f_code.co_name in ("exec_module", "get_code"):
            return True
        frame = frame.f_back
    return False


def _record(what: str, target: str, detail: dict[str, Any], is_sure: bool = True) -> None:
    """Record an effect where it belongs; one that comes again and again in a span and lane, less and less often.

    About one of which it is not sure that it happens, a policy is asked alone.
    """
    where = scope.live()
    if where is not None and where.recording in _without:
        beside = _without[where.recording]
        where = None if beside is None else beside.scope()
    if where is None or not where.recording.captures:
        return
    recording = where.recording
    enforcing.effect(where, what, target, detail)
    if not is_sure:
        return
    try:
        times = _count(recording, (where.span, where.lane.path, what, target)) if what.startswith(_FOLDED) else 1
        if times > _limits.EFFECT_REPEATS_MAX and not _is_power_of_ten(times):
            return
        if what == "environment.changed" and is_secret_name(target) and "set" in detail:
            recording.redactor.learn(detail["set"])
            recording.count_redacted({"env": 1})
            detail = {"set": {target: "[redacted:env]"}}  # also where it is too short to be looked for elsewhere
        if times > 1:
            detail = {**detail, "times": times}
        fields = {"what": what, "target": target, **({"detail": detail} if detail else {})}
        if abandoned.collecting():
            later = functools.partial(recording.emit_fields, "effect.observed", fields, parent=where.span)
            abandoned.leave(functools.partial(contextvars.copy_context().run, later))
        else:
            recording.emit_fields("effect.observed", fields, parent=where.span)
    except Exception as problem:
        guard.absorb(problem, recording, "effect.observed", inside=True)


def _count(recording: Recording, effect: tuple[str | None, ...]) -> int:
    seen = _times.setdefault(recording, {})
    seen[effect] = times = seen.get(effect, 0) + 1
    return times


def _is_power_of_ten(number: int) -> bool:
    return str(number).strip("0") == "1"


# Files.


def _opened(args: tuple[Any, ...]) -> None:
    if isinstance(args[2], int) and args[2] & _WRITES:  # most are read
        _tell_written((*args, _beyond(sys._getframe(1))))


_tell_written = _telling(effects_files.written, "fs.write")


def _connected(args: tuple[Any, ...]) -> None:
    _tell_database((*args, _beyond(sys._getframe(1))))


_tell_database = _telling(effects_files.database, "fs.write")


def _connection_made(args: tuple[Any, ...]) -> None:
    if enforcing.is_enforced(scope.live()) and not _is_ours(sys._getframe(1).f_back):
        untold.watch_database(args[0])


def _beyond(frame: FrameType) -> FrameType:
    """Return the frame of the program's own, or a library's, that called: past what stands between."""
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_BETWEEN):
        frame = frame.f_back
    return frame


# Processes.


def _posix_spawned(args: tuple[Any, ...]) -> Effect | None:
    # From the listener's point of view: subprocess has told of it itself.
    told = _beyond(sys._getframe(1)).f_globals.get("__name__") == "subprocess"
    return None if told else effects_processes.posix_spawned(args)


def _patch_multiprocessing(module: ModuleType) -> None:
    _patches.replace(module, "spawnv_passfds", _spawning)


def _spawning(original: Any) -> Any:
    @functools.wraps(original)
    def spawnv_passfds(path: Any, args: Sequence[Any], passfds: Any) -> Any:
        sys.audit(_SPAWNED, path, args)
        return original(path, args, passfds)

    return spawnv_passfds


# Sockets, and the environment.


def _of_a_socket(what: str) -> Describe:
    def describe(args: tuple[Any, ...]) -> Effect | None:
        socket, address = args
        if address is None:
            return None  # connected before
        target = _destination(address)
        detail: dict[str, Any] = {"type": sockets.sort_of(socket), "attempted": True}
        if what == "socket.connected" and isinstance(address, tuple):
            host = hosts.connected_to(target)
            if hosts.address_of(host.name) is None:
                enforcing.lookup(host.name, host.port)  # which C does, and we, to know what it leads to
            if names := lookups.names_of(target):
                detail["names"] = names
        return what, target, detail

    return describe


def _destination(address: Any) -> str:
    if isinstance(address, (str, bytes)):
        name = os.fsdecode(address)
        return "@" + name[1:] if name.startswith("\0") else absolute(name) or name
    if isinstance(address, tuple) and len(address) >= 2 and isinstance(address[0], (str, bytes, bytearray)):
        name = address[0] if isinstance(address[0], str) else os.fsdecode(bytes(address[0]))
        host = f"[{name}]" if ":" in name else name
        return f"{host}:{address[1]}"
    return str(address)


def _variable_set(args: tuple[Any, ...]) -> Effect | None:
    name, value = os.fsdecode(args[0]), os.fsdecode(args[1])
    # In a field of its own name, so that what has the name of a secret is taken for one.
    return None if os.environ.get(name) == value else ("environment.changed", name, {"set": {name: value}})


def _variable_removed(args: tuple[Any, ...]) -> Effect | None:
    name = os.fsdecode(args[0])
    return ("environment.changed", name, {"removed": True}) if name in os.environ else None


def _library_loaded(args: tuple[Any, ...]) -> None:
    from playhead.capture.clients import native  # here: few programs do this, and every one that is recorded is here

    native.library_loaded(args[0], sys._getframe(1).f_back)


_LISTENERS: dict[str, audit.Listener] = {
    "open": _opened,
    "os.truncate": _telling(effects_files.truncated, "fs.write"),
    "sqlite3.connect": _connected,
    "os.rename": _telling(effects_files.renamed, "fs.delete"),
    "os.link": _telling(effects_files.linked, "fs.write"),
    "os.symlink": _telling(effects_files.symlinked, "fs.write"),
    "os.remove": _telling(effects_files.deleted, "fs.delete"),
    "os.mkdir": _telling(effects_files.folder_created, "fs.write"),
    "os.rmdir": _telling(effects_files.folder_deleted, "fs.delete"),
    "os.chmod": _telling(effects_files.mode_changed, "fs.write"),
    "os.chown": _telling(effects_files.owner_changed, "fs.write"),
    "os.utime": _telling(effects_files.times_changed, "fs.write"),
    "os.setxattr": _telling(effects_files.attribute_changed, "fs.write"),
    "os.removexattr": _telling(effects_files.attribute_changed, "fs.write"),
    untold.MADE: _telling(effects_files.made, "fs.write"),
    untold.OPENED: _opened,
    untold.CONNECTED: _connection_made,
    untold.ATTACHED: _telling(effects_files.attached, "fs.write"),
    "subprocess.Popen": _telling(effects_processes.popen, "process.exec"),
    "os.system": _telling(effects_processes.system, "process.exec"),
    "os.posix_spawn": _telling(_posix_spawned, "process.exec"),
    "os.exec": _telling(effects_processes.became, "process.exec"),
    _SPAWNED: _telling(effects_processes.spawned, "process.exec"),
    LOOPED: _telling(effects_processes.looped, "process.exec"),
    "os.kill": _telling(effects_processes.signalled),
    "os.killpg": _telling(functools.partial(effects_processes.signalled, group=True)),
    "socket.connect": _telling(_of_a_socket("socket.connected"), "net.connect"),
    "socket.sendto": _telling(_of_a_socket("socket.connected"), "net.connect"),
    "socket.sendmsg": _telling(_of_a_socket("socket.connected"), "net.connect"),
    "socket.bind": _telling(_of_a_socket("socket.bound"), "fs.write"),
    "os.putenv": _telling(_variable_set),
    "os.unsetenv": _telling(_variable_removed),
    "ctypes.dlopen": _library_loaded,
}
