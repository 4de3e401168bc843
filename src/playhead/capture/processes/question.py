"""Say what was asked for when a process is started: the data of `process.started`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from io import IOBase
from typing import TYPE_CHECKING, Any

from playhead import _limits
from playhead.capture.processes.pipes import Pipe

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

_PIPE, _STDOUT, _DEVNULL = -1, -2, -3  # as subprocess has them
_NAMES = ("stdin", "stdout", "stderr")
# What else makes it another question; by what these are where nobody gives them.
_OPTIONS: dict[str, Any] = {
    "executable": None,
    "cwd": None,
    "user": None,
    "group": None,
    "extra_groups": None,
    "umask": -1,
    "start_new_session": False,
    "process_group": None,
}


def question(args: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of `process.started` for what Popen was given."""
    fields: dict[str, Any] = {"argv": _argv(args)}
    if given.get("shell"):
        fields["shell"] = True
    fields["cwd"] = _folder(given.get("cwd"))
    if options := {
        name: _plain(given[name]) for name, usual in _OPTIONS.items() if given.get(name, usual) not in (usual, None)
    }:
        fields["options"] = options
    env = given.get("env")
    if env is not None and (changed := _difference(env)):
        fields["env"] = changed
    if streams := {name: _said(given[name]) for name in _NAMES if given.get(name) is not None}:
        fields["streams"] = streams
    return fields


def given_file(recording: Recording, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is known of a file that a process gets as its stdin: the field `stdin_file`, or nothing."""
    number = _number(given.get("stdin"))
    try:
        facts = None if number is None else os.fstat(number)
        if number is None or facts is None or not stat.S_ISREG(facts.st_mode):
            return {}
        at = os.lseek(number, 0, os.SEEK_CUR)
        size = max(0, facts.st_size - at)
        if size > _limits.GIVEN_FILE_BYTES_MAX:
            return {"stdin_file": {"size": size}}
        content = os.pread(number, size, at)
    except OSError:
        return {}  # one that is not open, or not to be read: which the process will find, too
    from playhead.capture.written import digest  # here: few programs do this

    return {"stdin_file": {"size": len(content), "digest": digest(recording, content)}}


def piped(given: Mapping[str, Any]) -> list[str]:
    """Return the streams for which the agent gets a pipe."""
    return [name for name in _NAMES if given.get(name) == _PIPE]


def by_hand(given: Mapping[str, Any]) -> set[str]:
    """Return the outputs that go to a pipe, a socket or a terminal of the agent's own, and so past us."""
    return {name for name in _NAMES[1:] if (number := _number(given.get(name))) is not None and _talks(number)}


def inherited(given: Mapping[str, Any]) -> list[int]:
    """Return the descriptors of this process that the other one gets for its outputs."""
    found: list[int] = []
    for usual, name in enumerate(_NAMES[1:], 1):
        target = given.get(name)
        number = usual if target is None else target if isinstance(target, int) else _number(target, own=True)
        if number is not None and number >= 0:
            found.append(number)
    return found


def _number(target: Any, *, own: bool = False) -> int | None:
    """Return the descriptor that a stream was given; None where it is none, or the pipe of another process.

    Those that are our own standard streams count where `own` says so.
    """
    if isinstance(target, int):
        return target if own or target > 2 else None
    if not isinstance(target, IOBase) or target.closed:
        return None
    raw = getattr(getattr(target, "buffer", target), "raw", target)
    if isinstance(raw, Pipe):
        return None
    try:
        number = target.fileno()
    except OSError:  # it has none, which is for subprocess to refuse
        return None
    return number if own or number > 2 else None


def _talks(number: int) -> bool:
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(number)


def _argv(args: Any) -> list[str]:
    whole = isinstance(args, (str, bytes, os.PathLike)) or not isinstance(args, Iterable)
    return [_text(part) for part in ([args] if whole else args)]


def _text(part: Any) -> str:
    return os.fsdecode(part) if isinstance(part, (str, bytes, os.PathLike)) else repr(part)


def _plain(value: Any) -> Any:
    if isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (bytes, os.PathLike)):
        return os.fsdecode(value)
    return [_plain(item) for item in value] if isinstance(value, Iterable) else repr(value)


def _folder(given: Any) -> str | None:
    try:
        here = os.getcwd()
    except OSError:  # deleted under us, which is legal
        here = ""
    if isinstance(given, (str, bytes, os.PathLike)):
        return os.path.join(here, os.fsdecode(given))
    return here or None


def _difference(given: Any) -> dict[str, str | None]:
    """Return what of an environment differs from our own: values, and None for a variable that is not handed on."""
    own: Mapping[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]  # decoding each one takes its time
    if given is os.environ:
        return {}
    try:
        encoded = {os.fsencode(name): os.fsencode(value) for name, value in given.items()}
    except (AttributeError, TypeError):
        return {}  # whoever gets it says what is wrong with it
    out: dict[str, str | None] = {
        os.fsdecode(name): os.fsdecode(value) for name, value in encoded.items() if own.get(name) != value
    }
    out.update((os.fsdecode(name), None) for name in list(own) if name not in encoded)
    return out


def _said(target: Any) -> str:
    """Say where a stream leads."""
    if isinstance(target, int):
        return {_PIPE: "pipe", _STDOUT: "stdout", _DEVNULL: "null"}.get(target, f"descriptor {target}")
    name = getattr(target, "name", None)
    return os.fsdecode(name) if isinstance(name, (str, bytes)) else f"descriptor {name}" if name is not None else "file"
