"""Act right after a module has been imported by somebody else, and never import it ourselves."""

from __future__ import annotations

import importlib.machinery
import sys
import threading
from collections.abc import Callable, Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any

Hook = Callable[[ModuleType], None]


class AfterImport(MetaPathFinder):
    """Call a hook for each named module: at once where it is there already, else when its import has ended."""

    def __init__(self, hooks: dict[str, Hook]) -> None:
        self._hooks = hooks
        self._waiting: set[str] = set()
        self._half_there = False
        self._looking = threading.local()

    def install(self) -> None:
        """Begin to watch."""
        self._waiting = set(self._hooks)
        sys.meta_path.insert(0, self)
        self._look_around()

    def _look_around(self) -> None:
        self._half_there = False
        for name in list(self._waiting):
            module = sys.modules.get(name)
            if module is not None and getattr(module.__spec__, "_initializing", False):
                self._half_there = True  # being imported right now, perhaps by the code that opened the run
            elif module is not None:
                self._arrived(module, name)

    def uninstall(self) -> None:
        """Stop watching."""
        self._waiting.clear()
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module that is waited for as everybody else would, and watch it being executed."""
        if self._half_there:
            self._look_around()
        if name not in self._waiting or getattr(self._looking, "now", False):
            return None
        self._looking.now = True
        try:
            spec = _found(name, path, target, self)
        finally:
            self._looking.now = False
        loader: Any = None if spec is None else spec.loader
        if loader is not None and hasattr(loader, "__dict__") and not isinstance(loader, type):
            execute = loader.exec_module

            def exec_module(module: ModuleType) -> None:
                del loader.exec_module  # a loader that is looked at later is what it would have been
                execute(module)
                self._arrived(module, name)

            loader.exec_module = exec_module
        return spec

    def _arrived(self, module: ModuleType, name: str) -> None:
        if name in self._waiting:
            self._waiting.discard(name)
            self._hooks[name](module)


def _found(
    name: str, path: Sequence[str] | None, target: ModuleType | None, but: MetaPathFinder
) -> importlib.machinery.ModuleSpec | None:
    for finder in sys.meta_path:
        look: Any = getattr(finder, "find_spec", None)
        if finder is not but and look is not None and (spec := look(name, path, target)) is not None:
            found: importlib.machinery.ModuleSpec = spec
            return found
    return None
