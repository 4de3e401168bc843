"""Lend Playhead to a program whose own environment does not have it: Playhead, what it is made of, and nothing else.

Loaded from its file by attach/sitecustomize.py, before anything of Playhead can be imported. What Playhead is made of
is lent to Playhead alone: a library that uses orjson where it finds it must not find it because it is recorded.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

MADE_OF = ("msgspec", "orjson", "rfc8785")
NAMES = ("playhead", *MADE_OF)


class Loan:
    """Find what is lent, for those it is lent to."""

    def __init__(self, folders: Sequence[str]) -> None:
        self._folders = list(folders)
        self._lent: set[str] = set()  # packages of MADE_OF that come from our folders
        self._kept: dict[str, ModuleType] = {}  # their modules, while nobody may see them
        self._open = 0

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Answer the import system."""
        root = name.partition(".")[0]
        if root == "playhead":
            spec = PathFinder.find_spec(name, self._folders if path is None else path, target)
            if spec is not None and type(spec.loader) is SourceFileLoader:
                spec.loader = Borrower(self, name, spec.loader.path)
            return spec
        if path is not None or name not in MADE_OF or not (self._open or _asked_by_us()):
            return None
        if PathFinder.find_spec(name) is not None:
            return None  # the environment has its own
        self._lent.add(name)
        if name in self._kept:
            sys.modules.update(self._kept)
            return ModuleSpec(name, Known(self._kept[name]))  # type: ignore[arg-type]
        return PathFinder.find_spec(name, self._folders, target)

    def show(self) -> None:
        """Let what is lent be imported, while a module of Playhead is."""
        self._open += 1
        if self._open == 1:
            sys.modules.update(self._kept)

    def hide(self) -> None:
        """Let nobody see it any more; whoever has imported it keeps it."""
        self._open -= 1
        if self._open == 0:
            for name in [name for name in sys.modules if name.partition(".")[0] in self._lent]:
                self._kept[name] = sys.modules.pop(name)


class Borrower(SourceFileLoader):
    """Load a module of Playhead with what it is made of in sight."""

    def __init__(self, loan: Loan, name: str, path: str) -> None:
        super().__init__(name, path)
        self._loan = loan

    def exec_module(self, module: ModuleType) -> None:
        """Run the module."""
        self._loan.show()
        try:
            super().exec_module(module)
        finally:
            self._loan.hide()


class Known:
    """Load a module that was loaded before."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return it."""
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        """Undo what the import system changed in it."""
        module.__spec__ = self._spec


def _asked_by_us() -> bool:
    """Say whether the import that is going on was written in Playhead, or in what it is made of."""
    frame = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(("importlib", "_frozen_imp")):
        frame = frame.f_back
    return frame.f_globals.get("__name__", "").partition(".")[0] in NAMES


def lend(tag: str, folders: Sequence[str]) -> None:
    """Make `playhead` importable; ImportError where it cannot be, since compiled code fits one Python only.

    `tag` says for which Python the folders were filled.
    """
    if PathFinder.find_spec("playhead") is not None:
        return
    here = sys.implementation.cache_tag
    if here != tag:
        raise ImportError(f"Playhead is not installed for this Python, and the launcher's is for {tag}, not {here}")
    sys.meta_path.insert(0, Loan(folders))
