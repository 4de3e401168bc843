"""Say which processes are started, from what the interpreter tells right before it is done."""

from __future__ import annotations

import os
from typing import Any

from playhead.capture import execs, obstacles, untold
from playhead.capture.effects_files import Effect, absolute


def _process(
    by: str, name: Any, argv: Any, folder: Any = None, environment: Any = None, *, search: bool = True
) -> Effect | None:
    inside = None if folder is None else absolute(folder)
    target = obstacles.program(os.fsdecode(name), inside, environment, search=search)
    if target is None:
        return None
    words = [argv] if isinstance(argv, (str, bytes, os.PathLike)) else argv
    detail: dict[str, Any] = {"argv": [_word(word) for word in words], "by": by}
    return "process.started", target, detail | ({"cwd": inside} if inside else {})


def _word(word: Any) -> str:
    return os.fsdecode(word) if isinstance(word, (str, bytes, os.PathLike)) else repr(word)  # which is refused


def popen(args: tuple[Any, ...]) -> Effect | None:
    """Say what subprocess starts."""
    return _process("subprocess.Popen", *args)


def system(args: tuple[Any, ...]) -> Effect | None:
    """Say what the shell is asked to start."""
    return _process("os.system", "/bin/sh", ["sh", "-c", args[0]])


def posix_spawned(args: tuple[Any, ...]) -> Effect | None:
    """Say what `os.posix_spawn` starts, or `os.posix_spawnp`, which looks for it."""
    search = untold.searches()
    if search is None:  # nobody told: what lies here is more probably meant than a program of the same name
        search = obstacles.program(os.fsdecode(args[0]), None, None, search=False) is None
    execs.tell(args[0], "{}, by os.posix_spawn", search=search)
    return _process("os.posix_spawn", args[0], args[1], search=search)


def became(args: tuple[Any, ...]) -> Effect | None:
    """Say what this process becomes; whoever looks for the program tells of each place."""
    return _process("os.exec", execs.name_of(args[0]), args[1], search=False)


def spawned(args: tuple[Any, ...]) -> Effect | None:
    """Say what multiprocessing starts."""
    return _process("multiprocessing", *args, search=False)


def looped(args: tuple[Any, ...]) -> Effect | None:
    """Say what uvloop starts."""
    return _process("uvloop", *args)


def signalled(args: tuple[Any, ...], *, group: bool = False) -> Effect | None:
    """Say which process is sent a signal."""
    process, number = args
    if not number or not obstacles.can_signal(process, group=group):
        return None
    return "process.signalled", str(process), {"signal": int(number), **({"group": True} if group else {})}
