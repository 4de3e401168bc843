"""Let each lane draw names of temporary files of its own: threads that share one source of names take each other's.

Which folder they are in is found out once, by whoever needs it first, which is chance. So nothing is recorded of how
`tempfile` tries folders out; only which ones the program's variables name.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType, NoneType
from typing import Any

from playhead.capture import scope
from playhead.capture.patches import Patches
from playhead.capture.sources import variables

_VARIABLES = ("TMPDIR", "TEMP", "TMP")

_patches = Patches()


def unwatch() -> None:
    """Put back what was there."""
    _patches.restore()


def _arrived(module: ModuleType) -> None:
    shared = module._RandomNameSequence
    named: list[str] = []  # folders, by variables: filled in under the lock of the module

    def own_names(original: Callable[[], Any]) -> Any:
        def _get_candidate_names() -> Any:
            lane = _lane()
            if lane is None or type(module._name_sequence) not in (shared, NoneType):
                return original()  # nobody watches, or the program has names of its own
            if lane.names is None:
                lane.names = shared()
            return lane.names

        return _get_candidate_names

    def in_silence(original: Callable[..., str]) -> Any:
        def _get_default_tempdir(*args: Any, **options: Any) -> str:  # newer ones take a list of folders
            asking = sys._getframe(1)
            named[:] = filter(None, (variables.told(name, asking) for name in _VARIABLES))
            return original(*args, **options)

        return _get_default_tempdir

    def as_told(original: Callable[[], list[str]]) -> Any:
        def _candidate_tempdir_list() -> list[str]:
            return [*named, *original()]

        return _candidate_tempdir_list

    _patches.replace(module, "_get_candidate_names", own_names)
    _patches.replace(module, "_get_default_tempdir", in_silence)
    _patches.replace(module, "_candidate_tempdir_list", as_told)


def _lane() -> scope.Lane | None:
    """Return the lane that runs here, if what it reads is kept."""
    lane = None if scope.muted.get() else scope.lane_here()
    return None if lane is None or lane.reads is None else lane


ARRIVING = {"tempfile": _arrived}
