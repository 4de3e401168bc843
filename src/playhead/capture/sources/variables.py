"""Variables of the environment: what a module was told of each, and again only when it is told something else."""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType
from typing import Any

from playhead.capture import hooks
from playhead.capture.patches import Patches

_OF = "os.environ"
_MISSING = object()


def patch(patches: Patches) -> None:
    """Watch `os.environ`, and `os.environb`, which is of the same class."""
    patches.replace(os._Environ, "__getitem__", _getitem)
    patches.replace(os._Environ, "__iter__", _looking_at_all)
    patches.replace(os._Environ, "__len__", _looking_at_all)
    patches.replace(os._Environ, "__repr__", _repr)


def _getitem(original: Any) -> Any:
    @functools.wraps(original)
    def __getitem__(self: Any, key: Any) -> Any:
        try:
            value = original(self, key)
        except KeyError:
            _note(sys._getframe(1), key, None)
            raise
        _note(sys._getframe(1), key, value)
        return value

    return __getitem__


def _looking_at_all(original: Any) -> Any:
    @functools.wraps(original)
    def look(self: Any) -> Any:
        _note_names(sys._getframe(1), self)
        return original(self)

    return look


def _repr(original: Any) -> Any:
    @functools.wraps(original)
    def __repr__(self: Any) -> Any:
        frame = sys._getframe(1)
        _note_names(frame, self)
        for name, value in list(self._data.items()):
            _note(frame, name, value)
        return original(self)

    return __repr__


def _note_names(frame: FrameType, variables: Any) -> None:
    place = hooks.here(_OF, frame)
    if place is not None:
        _keep(place, "*", list(map(os.fsdecode, list(variables._data))))


def _note(frame: FrameType, key: Any, value: Any) -> None:
    place = hooks.here(_OF, frame)
    if place is not None:
        _keep(place, os.fsdecode(key), None if value is None else os.fsdecode(value))


def _keep(place: tuple[str, str, Any, str | None], name: str, value: Any) -> None:
    _, by, pack, span = place
    seen, known = pack.tap.seen, (pack.lane, by, name)
    if seen.get(known, _MISSING) != value:
        seen[known] = value
        # Under its own name, so that what has the name of a secret is taken for one.
        pack.add(_OF, by, {name: value}, len(name) + len(str(value)) + 8, span)
