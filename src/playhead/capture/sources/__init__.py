"""Name what gives a program something that another run of it would not get; one small file for each sort."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import TYPE_CHECKING

from playhead.capture import forks, guard, temporary
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches
from playhead.capture.sources import alarms, clocks, files, generators, loops, stdin, variables

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

_patches = Patches()
_arriving: AfterImport | None = None
_unlike: dict[str, Exception] = {}  # by name: modules that are not as we know them, and what was wrong


def watch_all() -> None:
    """Watch all of them, each as soon as its module is there."""
    global _arriving
    clocks.watch()
    files.watch()
    stdin.watch()
    alarms.watch()
    variables.patch(_patches)
    arriving = {**clocks.ARRIVING, **generators.ARRIVING, **files.ARRIVING, **loops.ARRIVING, **temporary.ARRIVING}
    _arriving = AfterImport({name: partial(_watch, hook) for name, hook in arriving.items()})
    _arriving.install()


def unwatch_all() -> None:
    """Wait for nothing any more, and restore what is not restored by `hooks`."""
    global _arriving
    if _arriving is not None:
        _arriving.uninstall()
        _arriving = None
    _unlike.clear()
    files.unwatch()
    loops.unwatch()
    temporary.unwatch()
    _patches.restore()


def tell_unlike(recording: Recording) -> None:
    """Say in a run which modules were there before it, and cannot be watched."""
    for name, problem in list(_unlike.items()):
        guard.not_captured(problem, name, [recording])


def _watch(hook: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Watch a module that has arrived; a program may have one of its own by that name, or something in its place."""
    try:
        hook(module)
        _unlike.pop(module.__name__, None)
    except Exception as problem:
        # Nothing is missing where it is the program's own code: what that reads is seen where it does.
        own = _is_instead_of_pythons(module)
        guard.not_captured(problem, module.__name__, () if own else forks.recordings())
        if not own:
            _unlike[module.__name__] = problem.with_traceback(None)


def _is_instead_of_pythons(module: ModuleType) -> bool:
    path = getattr(module, "__file__", None)
    python = os.path.join(os.path.dirname(os.__file__), "")
    return module.__name__ in sys.stdlib_module_names and path is not None and not path.startswith(python)
