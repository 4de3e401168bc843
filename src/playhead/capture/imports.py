"""Act right after a module has been imported by somebody else, and never import it ourselves."""

from __future__ import annotations

import importlib.machinery
import sys
import threading
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

Hook = Callable[[ModuleType], None]


class AfterImport:
    """Call a hook for each named module: at once where it is there already, else whenever its code has been run."""

    def __init__(self, hooks: dict[str, Hook]) -> None:
        self._hooks = hooks
        self._waiting: set[str] = set()  # those that have not arrived
        self._installed = False
        self._half_there = False
        self._looking = threading.local()

    def install(self) -> None:
        """Begin to watch."""
        self._waiting = set(self._hooks)
        self._installed = True
        sys.meta_path.insert(0, self)
        self._look_around()

    def _look_around(self) -> None:
        self._half_there = False
        for name in list(self._waiting):
            module = sys.modules.get(name)
            if not isinstance(module, ModuleType):
                continue  # not there, or something that a test put in its place
            if getattr(getattr(module, "__spec__", None), "_initializing", False):
                self._half_there = True  # being imported right now, perhaps by the code that opened the run
            else:
                self._arrived(module, name)

    def uninstall(self) -> None:
        """Stop watching."""
        self._installed = False
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module that is waited for as everybody else would, and watch it being executed."""
        if self._half_there:
            self._look_around()
        if name not in self._hooks or getattr(self._looking, "now", False):
            return None
        self._looking.now = True
        try:
            spec = _found(name, path, target, self)
        finally:
            self._looking.now = False
        if spec is not None:
            self._watch(spec.loader, name)
        return spec

    def _watch(self, loader: Any, name: str) -> None:
        """Let a loader tell when it has run the code of a module; one that allows no such thing is left alone."""
        execute = getattr(loader, "exec_module", None)
        if execute is None or isinstance(loader, type) or not hasattr(loader, "__dict__"):
            return

        def exec_module(module: ModuleType) -> None:
            if loader.__dict__.get("exec_module") is exec_module:
                del loader.exec_module  # a loader that is looked at later is what it would have been
            execute(module)
            if self._installed and module.__name__ == name:  # some loaders load more than one
                self._arrived(module, name)

        loader.__dict__["exec_module"] = exec_module

    def _arrived(self, module: ModuleType, name: str) -> None:
        self._waiting.discard(name)
        self._hooks[name](module)


def _found(
    name: str, path: Sequence[str] | None, target: ModuleType | None, but: AfterImport
) -> importlib.machinery.ModuleSpec | None:
    for finder in sys.meta_path:
        look: Any = getattr(finder, "find_spec", None)
        if finder is not but and look is not None and (spec := look(name, path, target)) is not None:
            found: importlib.machinery.ModuleSpec = spec
            return found
    return None
