"""Files, listings and what else the file system tells: content by digest, each answer again only when it is another."""

from __future__ import annotations

import errno
import os
import stat
import sys
import time
from types import ModuleType
from typing import Any

from playhead import _limits
from playhead.capture import audit, calling, hooks
from playhead.capture.hooks import What
from playhead.capture.repeats import after, again
from playhead.capture.sources import contents

LOOKING = frozenset({"os.stat", "os.lstat"})
_RACY_NS = 50_000_000  # a file changed so short a time ago may change again without another time of change
_BETWEEN = ("playhead.capture.hooks", "playhead.replay.overlay")  # in a replay, between the program and what opens

Answer = dict[str, Any]

_absolute: dict[str, str] = {}  # paths as they are meant, while the program stays in its folder
_excluded: tuple[int, tuple[str, ...]] = (-1, ())
_tokens: dict[tuple[int, ...], bytes] = {}  # of the content of files, by what tells that they are the same


def watch() -> None:
    """Watch what asks the file system."""
    asked = [(os.listdir, _listed), (os.scandir, _scanned), (os.stat, _looked), (os.lstat, _looked)]
    asked += [(os.access, _allowed), (os.readlink, _linked)]
    for function, notice in asked:
        hooks.watch(function, f"os.{function.__name__}", What.CALL, None, notice)
    hooks.watch(os.DirEntry.__dict__["stat"], "os.DirEntry.stat", What.CALL, None, _entry_looked)
    for name in (
        "getcwd",
        "cpu_count",
        "getlogin",
        "uname",
        "getloadavg",
        "get_terminal_size",
        "statvfs",
        "sysconf",
        "times",
    ):
        if hasattr(os, name):
            hooks.watch(getattr(os, name), f"os.{name}", What.CALL, None, _told)
    hooks.watch(os.open, "open", What.CALL, None, _opened_by_number)
    for event, listener in _LISTENERS.items():
        audit.listen(event, listener)


def unwatch() -> None:
    """Stop listening."""
    for event, listener in _LISTENERS.items():
        audit.unlisten(event, listener)


def _socket_arrived(module: ModuleType) -> None:
    hooks.watch(module.gethostname, "socket.gethostname", What.CALL, None, _told)


def _resource_arrived(module: ModuleType) -> None:
    hooks.watch(module.getrusage, "resource.getrusage", What.CALL, None, _told)


ARRIVING = {"_socket": _socket_arrived, "resource": _resource_arrived}


# Content.


def _opened(args: tuple[Any, ...]) -> None:
    path, mode, flags = args
    if mode is None or isinstance(path, int) or not _can_read(flags):
        return  # `os.open` is watched itself: only there it is told relative to which folder
    _note("open", os.fsdecode(path))


def _can_read(flags: Any) -> bool:
    """Say whether something that was there before can be read from what is opened like this."""
    if not isinstance(flags, int) or flags & (os.O_WRONLY | os.O_TRUNC | os.O_DIRECTORY | getattr(os, "O_PATH", 0)):
        return False
    return not (flags & os.O_CREAT and flags & os.O_EXCL)


def _opened_by_number(
    of: str, by: str, pack: Any, span: Any, owner: Any, args: Any, named: Any, result: Any, error: BaseException | None
) -> None:
    flags = args[1] if len(args) > 1 else (named or {}).get("flags")
    if _can_read(flags):
        _keep_content(of, by, pack, span, asked_path(args, named))


def _connected(args: tuple[Any, ...]) -> None:
    text = os.fsdecode(args[0])
    if text.startswith("file:"):
        from urllib.parse import unquote

        text = unquote(text.removeprefix("file:").partition("?")[0])
        text = "/" + text.lstrip("/") if text.startswith("//") else text
    if text in ("", ":memory:"):
        return
    contents.is_database(text)
    _note("sqlite3.connect", text)
    if os.path.exists(f"{text}-wal"):  # what is committed, and not yet in the file itself
        _note("sqlite3.connect", f"{text}-wal")


def _note(of: str, path: str) -> None:
    frame = sys._getframe(2).f_back  # past the listener and the hook: whoever opens it
    while frame is not None and str(frame.f_globals.get("__name__")).startswith(_BETWEEN):
        frame = frame.f_back
    if frame is None or path.startswith(not_the_agents()):
        return
    place = hooks.here(of, frame)
    if place is None or (of == "open" and calling.names_argument(frame, "opener")):
        return  # what an opener opens is told when it does, by `os.open`
    if not path.startswith("/") or "/." in path or "//" in path:  # the usual one is as it should be
        whole = _absolute.get(path)
        if whole is None:
            if len(_absolute) > _limits.FILES_KNOWN_MAX:
                _absolute.clear()
            whole = _absolute[path] = os.path.abspath(path)
        path = whole
    _keep_content(*place, path)


def _keep_content(source: str, by: str, pack: Any, span: Any, path: str) -> None:
    if path == os.devnull or path.startswith(not_the_agents()):
        return
    tap = pack.tap
    answer, content = _content(path, tap)
    known = (pack.lane, by, source, path)
    if content is None and again(pack, known, answer):
        return
    value, size = {"path": path, **answer, **after(pack, known, answer)}, len(path) + 128
    if content is not None:
        value["content"] = _as_text(content)
        size += len(content)
    pack.add(source, by, value, size, span)


def _content(path: str, tap: Any) -> tuple[Answer, bytes | None]:
    """Return what is to be said of a file; and what it holds, unless the run has that already, by its digest."""
    import hashlib  # here: a program that reads nothing need not load it for us

    try:
        facts = os.stat(path)
        if not stat.S_ISREG(facts.st_mode):
            return _special(path, facts, tap), None
        identity = (facts.st_dev, facts.st_ino, facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns)
        token = _tokens.get(identity) if facts.st_size else None
        if token in tap.seen and time.time_ns() - facts.st_mtime_ns > _RACY_NS:
            return tap.seen[token], None
        if facts.st_size > _limits.FILE_BYTES_MAX:
            return _too_large(path, facts.st_size, tap), None
        content = contents.read(path, facts)
        if len(content) > _limits.FILE_BYTES_MAX:
            return _too_large(path, len(content), tap), None
        # One that does not know its size is no file, but an answer, as those in /proc and /sys.
        live = len(content) != facts.st_size
        if live and contents.read(path, facts) != content:
            raise contents.Unread("another content each time it is read")
    except contents.Unread as problem:
        contents.tell(tap, path, str(problem))
        return {"special": "-"}, None
    except (OSError, ValueError) as problem:
        return {"error": error_name(problem)}, None
    token = hashlib.sha256(content).digest()
    if live:
        answer, new = _answer(path, content, token, tap)
        return {**answer, "live": True}, new
    if len(_tokens) > _limits.FILES_KNOWN_MAX:
        _tokens.clear()
    _tokens[identity] = token
    return _answer(path, content, token, tap)


def _answer(path: str, content: bytes, token: bytes, tap: Any) -> tuple[Answer, bytes | None]:
    import hashlib

    if token in tap.seen:
        return tap.seen[token], None
    kept = tap.seen.get("kept", 0) + len(content)
    if kept > _limits.FILES_BYTES_MAX:
        return _too_large(path, len(content), tap, "after files of FILES_BYTES_MAX in this run"), None
    tap.seen["kept"] = kept
    if tap.owner is None:
        return {"size": len(content)}, content  # by whose rules it is redacted is not known yet, so each time in full
    clean = tap.owner.clean(content)
    # The digest is of what is kept: that of a secret could be guessed.
    answer = {"size": len(content), "digest": hashlib.sha256(clean).hexdigest()}
    tap.seen[token] = answer
    return answer, clean


def _locking(args: tuple[Any, ...]) -> None:
    """Note which file a program locks; listens to the audit events of it."""
    try:
        contents.locks(args[0] if isinstance(args[0], int) else args[0].fileno())
    except (OSError, AttributeError, ValueError, TypeError):
        pass  # the function itself will say what is wrong


def _special(path: str, facts: os.stat_result, tap: Any) -> Answer:
    if stat.S_ISDIR(facts.st_mode):
        return {"error": "EISDIR"}
    sort = stat.filemode(facts.st_mode)[0]
    sorts = {"p": "a pipe", "c": "a device", "b": "a device", "s": "a socket"}
    contents.tell(tap, path, sorts.get(sort, "no plain file"))
    return {"special": sort}


def _too_large(path: str, size: int, tap: Any, why: str = "more than FILE_BYTES_MAX") -> Answer:
    contents.tell(tap, path, f"{size} bytes, {why}")
    return {"size": size, "omitted": True}


def _as_text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def not_the_agents() -> tuple[str, ...]:
    """Return the folders whose files are not the agent's to read: those of Python and of installed packages."""
    global _excluded
    if _excluded[0] != len(sys.path):
        roots = {os.path.dirname(os.__file__), os.path.join(sys.prefix, "lib"), os.path.join(sys.base_prefix, "lib")}
        roots = {root for root in roots if "python" in os.path.basename(root) or root.startswith(sys.prefix + os.sep)}
        if sys.prefix == sys.base_prefix:
            roots = {os.path.dirname(os.__file__)}
        packages = {entry for entry in sys.path if os.path.basename(entry) in ("site-packages", "dist-packages")}
        _excluded = len(sys.path), tuple(os.path.join(root, "") for root in roots | packages)
    return _excluded[1]


def _moved(args: tuple[Any, ...]) -> None:
    _absolute.clear()


_LISTENERS = {
    "os.chdir": _moved,
    "os.fchdir": _moved,
    "open": _opened,
    "sqlite3.connect": _connected,
    "fcntl.fcntl": _locking,
    "fcntl.lockf": _locking,  # not `flock`, whose locks are those of the open file
    "os.lockf": _locking,
}


# Answers.


def _told(
    of: str, by: str, pack: Any, span: Any, owner: Any, args: Any, named: Any, result: Any, error: BaseException | None
) -> None:
    value = list(result) if isinstance(result, tuple) else result
    answer = {"value": value} if error is None else {"error": error_name(error)}
    plain = [arg if type(arg) in (str, int) else repr(arg) for arg in args]
    asked: Answer = {"path": asked_path(args, named)} if of.endswith("statvfs") else {"asked": plain} if args else {}
    _keep(pack, (pack.lane, by, of, *map(repr, asked.values())), answer, of, by, {**asked, **answer}, span)


def _listed(
    of: str, by: str, pack: Any, span: Any, owner: Any, args: Any, named: Any, result: Any, error: BaseException | None
) -> None:
    path = asked_path(args, named)
    answer = {"names": [os.fsdecode(name) for name in result]} if error is None else {"error": error_name(error)}
    _keep(pack, (pack.lane, by, of, path), answer, of, by, {"path": path, **answer}, span)


def _scanned(
    of: str, by: str, pack: Any, span: Any, owner: Any, args: Any, named: Any, result: Any, error: BaseException | None
) -> None:
    path = asked_path(args, named)
    answer: Answer = {"error": error_name(error)} if error is not None else {"entries": _entries(path)}
    _keep(pack, (pack.lane, by, of, path), answer, of, by, {"path": path, **answer}, span)


def _entries(path: str) -> list[list[str]]:
    """List a folder once more, in the same order, with what each entry is: what was asked for can be read only once."""
    try:
        with os.scandir(path) as entries:
            return [[entry.name, _sort(entry)] for entry in entries]
    except OSError:
        return []  # gone meanwhile


def _sort(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "l"
    return "d" if entry.is_dir(follow_symlinks=False) else "f" if entry.is_file(follow_symlinks=False) else "?"


def _looked(
    of: str, by: str, pack: Any, span: Any, owner: Any, args: Any, named: Any, result: Any, error: BaseException | None
) -> None:
    if args and isinstance(args[0], int):
        return  # of a file that is open already, and whose content is known
    path = asked_path(args, named)
    link = {"link": True} if of.endswith("lstat") or (named or {}).get("follow_symlinks") is False else {}
    _keep_facts(of, by, pack, span, path, link, result, error)


def _entry_looked(
    of: str, by: str, pack: Any, span: Any, entry: Any, args: Any, named: Any, result: Any, error: BaseException | None
) -> None:
    link = {"link": True} if (named or {}).get("follow_symlinks") is False else {}
    _keep_facts(of, by, pack, span, os.path.abspath(os.fsdecode(entry.path)), link, result, error)


def _keep_facts(
    of: str, by: str, pack: Any, span: Any, path: str, link: Answer, result: Any, error: BaseException | None
) -> None:
    known = (pack.lane, by, of, path, bool(link))
    if error is not None:
        told: Any = error_name(error)
        answer: Answer = {"error": told}
    else:
        told = (*result[:7], result.st_mtime_ns, result.st_ctime_ns)  # not when it was read: that may be our doing
        if again(pack, known, told):
            return
        # As in os.stat_result: mode, ino, dev, nlink, uid, gid, size; and atime, mtime, ctime in s and ns.
        times = (result.st_atime_ns, result.st_mtime_ns, result.st_ctime_ns)
        answer = {"stat": [*result[:7], *(part for ns in times for part in divmod(ns, 10**9))]}
    _keep(pack, known, told, of, by, {"path": path, **link, **answer}, span)


def _allowed(
    of: str, by: str, pack: Any, span: Any, owner: Any, args: Any, named: Any, result: Any, error: BaseException | None
) -> None:
    path, mode = asked_path(args, named), args[1] if len(args) > 1 else (named or {}).get("mode")
    answer = {"value": result} if error is None else {"error": error_name(error)}
    _keep(pack, (pack.lane, by, of, path, mode), answer, of, by, {"path": path, "mode": mode, **answer}, span)


def _linked(
    of: str, by: str, pack: Any, span: Any, owner: Any, args: Any, named: Any, result: Any, error: BaseException | None
) -> None:
    path = asked_path(args, named)
    answer = {"to": os.fsdecode(result)} if error is None else {"error": error_name(error)}
    _keep(pack, (pack.lane, by, of, path), answer, of, by, {"path": path, **answer}, span)


def _keep(pack: Any, known: tuple[Any, ...], told: Any, of: str, by: str, value: Any, span: Any) -> None:
    """Keep an answer, unless this module has had the same one in this lane before, or packages are what it is about."""
    seen = pack.tap.seen
    if "path" in value and value["path"].startswith(not_the_agents()):
        return
    if not again(pack, known, told):
        if len(seen) > _limits.FILES_KNOWN_MAX:
            seen.clear()
        value = {**value, **after(pack, known, told)}
        size = sum(map(len, value["names"])) if "names" in value else 64 + 24 * len(value.get("entries", ()))
        pack.add(of, by, value, size + 64, span)


def asked_path(args: tuple[Any, ...], named: dict[str, Any] | None) -> str:
    """Return the path that was asked for, as it is meant now."""
    if args and type(args[0]) is str and args[0].startswith("/") and "/." not in args[0] and "//" not in args[0]:
        return args[0]  # the usual one is as it should be
    named = named or {}
    path = args[0] if args else named.get("path", ".")
    if path is None:
        path = "."
    if isinstance(path, int):
        return _of_number(path, str(path))
    try:
        text = os.fsdecode(path)
    except TypeError:
        return repr(path)
    folder = named.get("dir_fd")
    if isinstance(folder, int) and not os.path.isabs(text):
        return os.path.join(_of_number(folder, ""), text)
    try:
        return os.path.abspath(text)
    except OSError:  # the working directory is gone
        return text


def _of_number(number: int, otherwise: str) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        return otherwise  # no Linux, and so not to be found out


def error_name(problem: BaseException) -> str:
    number = getattr(problem, "errno", None)
    return errno.errorcode.get(number, type(problem).__name__) if number else type(problem).__name__
