"""Let programs that a recorded program starts be attached too, without the program seeing it.

What they need lies in the environment of the process but not in `os.environ`: whoever passes no environment on hands it
down unseen. Where the program makes an environment of its own, it is added on the way out.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from playhead import _launched
from playhead._ids import is_run_id
from playhead.capture import audit, scope, telling
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches

VARIABLE = "PLAYHEAD_ATTACH"
SEED = "PYTHONHASHSEED"
_BY_C = ("os.exec", "os.posix_spawn", "os.system")  # which may hand on the environment of the process


class Handed(NamedTuple):
    """What a process gets from the one that started it, in one variable."""

    folder: str  # the one to put on PYTHONPATH
    tag: str  # of the Python that the packages are for
    report: str  # the file in which to say what went wrong
    parent: str  # the run that the starting process belongs to; empty for the launcher's own
    process: int  # the process that already records into it, 0 for none
    ear: str  # where to tell what is secret, as `telling` writes it; may be empty
    rules: str  # what the launcher was told to redact, as `settings.handed_on` writes it; may be empty
    seed: str  # of hashes, which the launcher chose; empty where it was chosen before
    hidden: str  # names of the variables that the launcher has set, and the program is not to see, with commas
    plan: str  # of a replay: the file that says what to answer with; empty where the program meets the world
    held: str  # not empty where a policy is enforced: a Python that cannot attach does not run
    packages: tuple[str, ...]
    at: str = ""  # the span in the run by which it was started, or else in which; empty where that is not known

    @classmethod
    def read(cls, folder: str, fields: Sequence[str]) -> Handed:
        """Read what `value` wrote."""
        parent, _, rest = fields[2].partition("/")
        process, _, at = rest.partition("/")
        known = is_run_id(parent) and process.isdecimal()
        run, number = (parent, int(process)) if known else ("", 0)
        span = at if at.isdecimal() else ""
        tag, report, _, ear, rules, seed, hidden, plan, held, *packages = fields
        return cls(folder, tag, report, run, number, ear, rules, seed, hidden, plan, held, tuple(packages), span)

    def value(self) -> str:
        """Return the content of the variable."""
        parent = f"{self.parent}/{self.process}/{self.at}".rstrip("/") if self.parent else ""
        told = (self.tag, self.report, parent, self.ear, self.rules, self.seed, self.hidden, self.plan, self.held)
        return os.pathsep.join((*told, *self.packages))

    def by(self, run: str, process: int) -> Handed:
        """Return what a process of this run hands on."""
        return self._replace(parent=run, process=process, at=self.at if run == self.parent else "")

    def run_of_process(self, process: int) -> str | None:
        """Return the run that this very process was recorded in before it became another program."""
        return self.parent if self.parent and process == self.process else None

    def variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return what to set in an environment, so that a Python started with it attaches."""
        search = environment.get("PYTHONPATH", "")
        path = self.folder + os.pathsep + search if search else self.folder
        fixed = {SEED: self.seed} if self.seed and SEED not in environment else {}
        set_before = {name: value for name, value in _launched.variables.items() if name not in environment}
        shown = ",".join(name for name in self.hidden.split(",") if name in set_before or not _launched.variables)
        return {"PYTHONPATH": path, VARIABLE: self._replace(hidden=shown).value(), **fixed, **set_before}


class _Starting(threading.local):
    """What a thread is starting right now: the run and the span of a process."""

    at: tuple[str, str | None] | None = None


starting = _Starting()
_now: Handed | None = None
_patches = Patches()


def pass_on(handed: Handed) -> None:
    """Let every program that is started from now on have this."""
    global _now
    first, _now = _now is None, handed
    _put(handed)
    if first:
        for event in _BY_C:
            audit.listen(event, _put_here)
        for name, make in (("execve", _execve), ("posix_spawn", _posix_spawn), ("posix_spawnp", _posix_spawn)):
            if hasattr(os, name):
                _patches.replace(os, name, make)
        _watch.install()


def _put(handed: Handed) -> None:
    """Put it into the environment of the process, and not into `os.environ`."""
    for name, value in handed.variables(os.environ).items():
        os.putenv(name, value)


def _put_here(_: tuple[Any, ...]) -> None:
    """Put it there again before C hands that on: the program may have set one of the variables meanwhile."""
    if _now is not None:
        _put(_here(_now))


def _here(handed: Handed) -> Handed:
    """Return what is handed on, with the span of what this thread is starting, or else the one that it is in."""
    if starting.at is not None:
        run, span = starting.at
    else:
        where = scope.opened()
        run, span = ("", None) if where is None else (where.recording.id, where.span)
    return handed._replace(at=span or "") if run == handed.parent else handed


def passing_on() -> bool:
    """Say whether a Python that is started now will be attached."""
    return _now is not None


def holds() -> bool:
    """Say whether a policy is enforced in the run that this process belongs to, and in what it starts."""
    return _now is not None and bool(_now.held)


def stop() -> None:
    """Pass nothing on any more, and restore what was patched."""
    global _now
    if _now is not None:
        for event in _BY_C:
            audit.unlisten(event, _put_here)
    _now = None
    for name in ("PYTHONPATH", SEED, VARIABLE, *_launched.variables):
        if name in os.environ:
            os.putenv(name, os.environ[name])
        else:
            os.unsetenv(name)
    _watch.uninstall()
    _patches.restore()


def completed(environment: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return an environment with what a Python needs to attach; as it was where it has that, or is none."""
    try:
        texts = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
    except (AttributeError, TypeError):
        return environment  # whoever gets it says what is wrong with it
    if _now is None or _has_all(texts, _now):
        return environment
    ours = {name: value for name, value in os.environ.items() if name.startswith("PLAYHEAD_")}
    return {**ours, **texts, **_here(_now).variables(texts)}


def _has_all(environment: Mapping[str, str], handed: Handed) -> bool:
    """Say whether an environment has what a Python needs to attach, and not just a part that somebody left of it."""
    return bool(environment.get(VARIABLE)) and handed.folder in environment.get("PYTHONPATH", "").split(os.pathsep)


def _fork_exec(original: Any) -> Any:
    def fork_exec(*arguments: Any) -> Any:
        kept, listed = arguments[3], arguments[5]  # b"NAME=value", or None for the environment of the process
        if listed is None and _is_tracker(arguments[0]):
            plain = [b"%b=%b" % pair for pair in os.environb.items()]  # which has nothing of ours
            return original(*arguments[:5], plain, *arguments[6:])
        if _now is not None and (ear := telling.descriptor()) is not None:
            kept = tuple(sorted({*kept, ear}))  # also where all others are closed
        pairs = dict(os.environb) if listed is None else dict(entry.partition(b"=")[::2] for entry in listed)
        entries = [b"%b=%b" % (os.fsencode(name), os.fsencode(value)) for name, value in completed(pairs).items()]
        return original(*arguments[:3], kept, arguments[4], entries, *arguments[6:])

    return fork_exec


def _is_tracker(argv: Any) -> bool:
    """Say whether this is the process by which multiprocessing cleans up: it runs no code of the program's."""
    return any(
        b"from multiprocessing.resource_tracker import " in os.fsencode(part)
        for part in argv
        if isinstance(part, (str, bytes))
    )


def _execve(original: Any) -> Any:
    def execve(path: Any, argv: Any, env: Any) -> Any:
        return original(path, argv, completed(env))

    return execve


def _posix_spawn(original: Any) -> Any:
    def posix_spawn(path: Any, argv: Any, env: Any, /, **options: Any) -> Any:
        return original(path, argv, env if env is None else completed(env), **options)

    return posix_spawn


def _patch_subprocess(module: ModuleType) -> None:
    if hasattr(module, "_fork_exec"):
        _patches.replace(module, "_fork_exec", _fork_exec)
        # From 3.13 on it prefers posix_spawn, which closes the socket on which a program tells what is secret.
        _patches.replace(module, "_USE_POSIX_SPAWN", lambda _: False)


def _patch_multiprocessing(module: ModuleType) -> None:
    import _posixsubprocess  # it calls that one, with `spawn` and `forkserver`

    _patches.replace(_posixsubprocess, "fork_exec", _fork_exec)


_watch = AfterImport({"subprocess": _patch_subprocess, "multiprocessing.util": _patch_multiprocessing})
