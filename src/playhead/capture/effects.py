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
from playhead.capture import abandoned, audit, callers, guard, obstacles, scope, sockets
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches
from playhead.capture.redact_names import is_secret_name

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

Effect = tuple[str, str, dict[str, Any]]  # what, target, detail
Describe = Callable[[tuple[Any, ...]], Effect | None]

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_IMPORTER = frozenset({"_frozen_importlib_external", "importlib._bootstrap_external"})
# Parts of ours that stand between the program and what it calls: what happens below them is the program's doing.
_BETWEEN = (
    "playhead._api.recording",
    "playhead.capture.audit",
    "playhead.capture.children",
    "playhead.capture.clients",
    "playhead.capture.effects",
    "playhead.capture.frameworks",
    "playhead.capture.hooks",
    "playhead.capture.lanes",
    "playhead.capture.processes",
    "playhead.capture.sources",
    "playhead.capture.spans",
    "playhead.capture.variables",
)
_FOLDED = ("file.", "mode.", "owner.", "socket.")  # what a loop may do very often, and each time the same
_SPAWNED, LOOPED = "playhead.spawned", "playhead.looped"  # by multiprocessing, by uvloop: Python tells nothing of it

_lock = threading.Lock()
_open = 0
_patches = Patches()
_watch: AfterImport | None = None
# How often each effect was seen in a run, by the span and the lane that caused it.
_times: weakref.WeakKeyDictionary[Recording, dict[tuple[str | None, ...], int]] = weakref.WeakKeyDictionary()


def install() -> None:
    """Begin to listen; counted, so that every call needs one `uninstall`."""
    global _open, _watch
    with _lock:
        _open += 1
        if _open == 1:
            for event, listener in _listeners():
                audit.listen(event, listener)
            _watch = AfterImport({"multiprocessing.util": _patch_multiprocessing})
            _watch.install()


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


def _listeners() -> list[tuple[str, audit.Listener]]:
    return [*_LISTENERS.items(), ("socket.connect", sockets.connected)]


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


def _telling(describe: Describe) -> audit.Listener:
    def listener(args: tuple[Any, ...]) -> None:
        if not _is_ours(sys._getframe(2)) and (effect := describe(args)) is not None:
            _record(*effect)

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
        if name in _IMPORTER or (sort == callers.OURS and not name.startswith(_BETWEEN)):
            return True
        frame = frame.f_back
    return False


def _record(what: str, target: str, detail: dict[str, Any]) -> None:
    """Record an effect where it belongs; one that comes again and again in a span and lane, less and less often."""
    where = scope.live()
    if where is None or not where.recording.captures:
        return
    recording = where.recording
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


def _absolute(path: Any, folder: int = -1) -> str | None:
    """Return a path as it is meant now; None for the number of an open file."""
    if isinstance(path, int):
        return None
    text = os.fsdecode(path)
    if folder >= 0 and not os.path.isabs(text):
        try:
            text = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), text)
        except OSError:
            return text  # no Linux, and so not to be found out
    try:
        return os.path.abspath(text)
    except OSError:  # the working directory is gone
        return text


# Files.


def _written(args: tuple[Any, ...]) -> Effect | None:
    path, _, flags = args
    if (target := _absolute(path)) is None:
        return None
    there = obstacles.look(target)
    if not obstacles.can_write(target, there, flags):
        return None
    mode = "a" if flags & os.O_APPEND else "w" if flags & os.O_TRUNC else "x" if flags & os.O_EXCL else "r+"
    return "file.written", target, {"mode": mode, **({"created": True} if there is None else {})}


_tell_written = _telling(_written)


def _opened(args: tuple[Any, ...]) -> None:
    if isinstance(args[2], int) and args[2] & _WRITES:  # most are read
        _tell_written(args)


def _truncated(args: tuple[Any, ...]) -> Effect | None:
    target = _absolute(args[0])
    if target is None or not obstacles.can_write(target, obstacles.look(target), 0):
        return None
    return "file.written", target, {"mode": "r+", "length": args[1]}


def _database(args: tuple[Any, ...]) -> Effect | None:
    """Take a database that is opened for writing as written: what is then done to it is not seen."""
    text = os.fsdecode(args[0])
    path, _, query = text.removeprefix("file:").partition("?") if text.startswith("file:") else (text, "", "")
    if path in ("", ":memory:") or {"mode=ro", "mode=memory", "immutable=1"} & set(query.split("&")):
        return None
    if (target := _absolute(path)) is None:
        return None
    there = obstacles.look(target)
    if not obstacles.can_write(target, there, os.O_CREAT):
        return None
    return "file.written", target, {"mode": "sqlite", **({"created": True} if there is None else {})}


def _renamed(args: tuple[Any, ...]) -> Effect | None:
    source, target = _absolute(args[0], args[2]), _absolute(args[1], args[3])
    if source is None or target is None or not obstacles.can_rename(source, target):
        return None
    return "file.renamed", source, {"to": target}


def _linked(args: tuple[Any, ...]) -> Effect | None:
    source, target = _absolute(args[0], args[2]), _absolute(args[1], args[3])
    if source is None or target is None or not obstacles.can_link(source, target):
        return None
    return "link.created", target, {"to": source}


def _symlinked(args: tuple[Any, ...]) -> Effect | None:
    target = _absolute(args[1], args[2])
    if target is None or not obstacles.can_create(target):
        return None
    return "link.created", target, {"to": os.fsdecode(args[0]), "symbolic": True}


def _deleted(args: tuple[Any, ...]) -> Effect | None:
    target = _absolute(args[0], args[1])
    return None if target is None or not obstacles.can_delete(target) else ("file.deleted", target, {})


def _folder_created(args: tuple[Any, ...]) -> Effect | None:
    target = _absolute(args[0], args[2])
    return None if target is None or not obstacles.can_create(target) else ("directory.created", target, {})


def _folder_deleted(args: tuple[Any, ...]) -> Effect | None:
    target = _absolute(args[0], args[1])
    return None if target is None or not obstacles.can_delete_folder(target) else ("directory.deleted", target, {})


def _mode_changed(args: tuple[Any, ...]) -> Effect | None:
    target = _absolute(args[0], args[2])
    there = None if target is None else obstacles.look(target)
    if target is None or there is None or not obstacles.can_change(there) or there.st_mode & 0o7777 == args[1]:
        return None
    return "mode.changed", target, {"mode": f"{args[1]:04o}"}


def _owner_changed(args: tuple[Any, ...]) -> Effect | None:
    target = _absolute(args[0], args[3])
    if target is None or not obstacles.can_change(obstacles.look(target)):
        return None
    return "owner.changed", target, {"owner": [args[1], args[2]]}


# Processes.


def _process(by: str, name: Any, argv: Any, folder: Any = None, environment: Any = None) -> Effect | None:
    inside = None if folder is None else _absolute(folder)
    target = obstacles.program(os.fsdecode(name), inside, environment)
    if target is None:
        return None
    words = [argv] if isinstance(argv, (str, bytes, os.PathLike)) else argv
    detail: dict[str, Any] = {"argv": [os.fsdecode(word) for word in words], "by": by}
    return "process.started", target, detail | ({"cwd": inside} if inside else {})


def _popen(args: tuple[Any, ...]) -> Effect | None:
    return _process("subprocess.Popen", *args)


def _system(args: tuple[Any, ...]) -> Effect | None:
    return _process("os.system", "/bin/sh", ["sh", "-c", args[0]])


def _posix_spawned(args: tuple[Any, ...]) -> Effect | None:
    # From the listener's point of view: subprocess has told of it itself.
    return None if _told_by("subprocess") else _process("os.posix_spawn", args[0], args[1])


def _told_by(module: str) -> bool:
    frame = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(_BETWEEN):
        frame = frame.f_back
    return frame.f_globals.get("__name__") == module


def _became(args: tuple[Any, ...]) -> Effect | None:
    return _process("os.exec", args[0], args[1])


def _spawned(args: tuple[Any, ...]) -> Effect | None:
    return _process("multiprocessing", *args)


def _looped(args: tuple[Any, ...]) -> Effect | None:
    return _process("uvloop", *args)


def _signalled(args: tuple[Any, ...], *, group: bool = False) -> Effect | None:
    process, number = args
    if not number or not obstacles.can_signal(process, group=group):
        return None
    return "process.signalled", str(process), {"signal": int(number), **({"group": True} if group else {})}


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
        kind = getattr(socket.type, "name", str(socket.type)).removeprefix("SOCK_").lower()
        return what, _destination(address), {"type": kind, "attempted": True}

    return describe


def _destination(address: Any) -> str:
    if isinstance(address, (str, bytes)):
        name = os.fsdecode(address)
        return "@" + name[1:] if name.startswith("\0") else _absolute(name) or name
    if isinstance(address, tuple) and len(address) >= 2 and isinstance(address[0], str):
        host = f"[{address[0]}]" if ":" in address[0] else address[0]
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

    native.library_loaded(args[0], sys._getframe(2))


_LISTENERS: dict[str, audit.Listener] = {
    "open": _opened,
    "os.truncate": _telling(_truncated),
    "sqlite3.connect": _telling(_database),
    "os.rename": _telling(_renamed),
    "os.link": _telling(_linked),
    "os.symlink": _telling(_symlinked),
    "os.remove": _telling(_deleted),
    "os.mkdir": _telling(_folder_created),
    "os.rmdir": _telling(_folder_deleted),
    "os.chmod": _telling(_mode_changed),
    "os.chown": _telling(_owner_changed),
    "subprocess.Popen": _telling(_popen),
    "os.system": _telling(_system),
    "os.posix_spawn": _telling(_posix_spawned),
    "os.exec": _telling(_became),
    _SPAWNED: _telling(_spawned),
    LOOPED: _telling(_looped),
    "os.kill": _telling(_signalled),
    "os.killpg": _telling(functools.partial(_signalled, group=True)),
    "socket.connect": _telling(_of_a_socket("socket.connected")),
    "socket.sendto": _telling(_of_a_socket("socket.connected")),
    "socket.sendmsg": _telling(_of_a_socket("socket.connected")),
    "socket.bind": _telling(_of_a_socket("socket.bound")),
    "os.putenv": _telling(_variable_set),
    "os.unsetenv": _telling(_variable_removed),
    "ctypes.dlopen": _library_loaded,
}
