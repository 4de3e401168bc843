"""Hash tasks and futures by the order in which they were made, so that every run goes through sets of them alike.

By itself Python takes their addresses. This is for a process that is recorded from its beginning, and for good: an
object must not change its hash while it is in a set.
"""

from __future__ import annotations

import itertools
from types import ModuleType
from typing import Any

from playhead.capture import hooks
from playhead.capture.imports import AfterImport

_HASH = "_playhead_hash"
_made = itertools.count(1)


def install() -> None:
    """Do so from now on; those which are there already stay as they are."""
    AfterImport({"concurrent.futures._base": _of_threads, "_asyncio": _of_loops}).install()


def _of_threads(module: ModuleType) -> None:
    kind: Any = module.Future
    before = kind.__init__

    def __init__(self: Any, *args: Any, **options: Any) -> None:
        self.__dict__[_HASH] = next(_made)
        before(self, *args, **options)

    def __hash__(self: Any) -> int:
        number: int | None = self.__dict__.get(_HASH)
        return object.__hash__(self) if number is None else number

    __init__.__wrapped__ = before  # type: ignore[attr-defined]
    kind.__init__, kind.__hash__ = __init__, __hash__


def _of_loops(module: ModuleType) -> None:
    if hooks.compiled is not None:  # a type of C, which Python code cannot change
        for kind in (module.Future, module.Task):
            hooks.compiled.hash_by_order(kind)
