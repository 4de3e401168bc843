"""Variables of the environment: what a module was told of each, and again only when it is told something else."""

from __future__ import annotations

import functools
import os
import sys
from types import FrameType
from typing import Any

from playhead.capture import answering, hooks
from playhead.capture.patches import Patches
from playhead.capture.repeats import after, again

_OF = "os.environ"
_ALL = "*"  # in place of a name: which ones there are
changed: set[bytes] = set()  # variables that a program which is replayed has set or deleted itself


def patch(patches: Patches) -> None:
    """Watch `os.environ`, and `os.environb`, which is of the same class."""
    patches.replace(os._Environ, "__getitem__", _getitem)
    patches.replace(os._Environ, "__setitem__", _changing)
    patches.replace(os._Environ, "__delitem__", _changing)
    patches.replace(os._Environ, "__iter__", _iter)
    patches.replace(os._Environ, "__len__", _len)
    patches.replace(os._Environ, "__repr__", _repr)


def _getitem(original: Any) -> Any:
    @functools.wraps(original)
    def __getitem__(self: Any, key: Any) -> Any:
        if answering.player is not None:
            return _recorded(self, key, sys._getframe(1))
        try:
            value = original(self, key)
        except KeyError:
            _note(sys._getframe(1), key, None)
            raise
        _note(sys._getframe(1), key, value)
        return value

    return __getitem__


def told(name: str, frame: FrameType) -> str | None:
    """Return what the code of a frame would be told of a variable, and keep that as if it had asked."""
    if answering.player is None:
        _note(frame, name, value := os.environ.get(name))
        return value
    try:
        return str(_recorded(os.environ, name, frame))
    except KeyError:
        return None


def _changing(original: Any) -> Any:
    @functools.wraps(original)
    def change(self: Any, key: Any, *value: Any) -> Any:
        if answering.player is not None:
            changed.add(self.encodekey(key))
        return original(self, key, *value)

    return change


def _recorded(variables: Any, key: Any, frame: FrameType) -> Any:
    """Return what was told of a variable when it was recorded, unless the program has set it since."""
    place, known, value = hooks.here(_OF, frame), False, None
    encoded = variables.encodekey(key)
    if place is not None and answering.player is not None and encoded not in changed:
        _, by, pack, _ = place
        known, value = answering.player.variable(_OF, by, pack.lane, os.fsdecode(encoded))
    if not known:
        value = variables._data.get(encoded)
        value = None if value is None else os.fsdecode(value)
    if place is not None:
        _keep(place, os.fsdecode(encoded), value)
    if value is None:
        raise KeyError(key)
    return variables.decodevalue(os.fsencode(value))


def _iter(original: Any) -> Any:
    @functools.wraps(original)
    def __iter__(self: Any) -> Any:
        names = _names(sys._getframe(1), self)
        return original(self) if answering.player is None else map(self.decodekey, names)

    return __iter__


def _len(original: Any) -> Any:
    @functools.wraps(original)
    def __len__(self: Any) -> Any:
        return len(_names(sys._getframe(1), self))

    return __len__


def _repr(original: Any) -> Any:
    @functools.wraps(original)
    def __repr__(self: Any) -> Any:
        frame = sys._getframe(1)
        names = _names(frame, self)
        if answering.player is not None:
            return f"environ({{{', '.join(_shown(self, name, frame) for name in names)}}})"
        for name, value in list(self._data.items()):
            _note(frame, name, value)
        return original(self)

    return __repr__


def _shown(variables: Any, name: bytes, frame: FrameType) -> str:
    key = variables.decodekey(name)
    try:
        value = _recorded(variables, key, frame)
    except KeyError:  # whose value nobody was told
        value = variables.decodevalue(b"")
    return f"{key!r}: {value!r}"


def _names(frame: FrameType, variables: Any) -> list[bytes]:
    """Return all names, and keep them; in a replay those that were kept, and what the program made of them since."""
    names = list(variables._data)
    place = hooks.here(_OF, frame)
    if place is None:
        return names
    if answering.player is not None:
        _, by, pack, _ = place
        known, told = answering.player.variable(_OF, by, pack.lane, _ALL)
        if known:
            recorded = list(map(os.fsencode, told))
            there = [name for name in recorded if name not in changed or name in variables._data]
            names = there + [name for name in names if name in changed and name not in recorded]
    _keep(place, _ALL, list(map(os.fsdecode, names)))
    return names


def _note(frame: FrameType, key: Any, value: Any) -> None:
    place = hooks.here(_OF, frame)
    if place is not None:
        _keep(place, os.fsdecode(key), None if value is None else os.fsdecode(value))


def _keep(place: tuple[str, str, Any, str | None], name: str, value: Any) -> None:
    _, by, pack, span = place
    known = (pack.lane, by, name)
    if not again(pack, known, value):
        # Under its own name, so that what has the name of a secret is taken for one; no variable has an empty name.
        times = after(pack, known, value).get("after")
        kept = {name: value} if times is None else {name: value, "": times}
        pack.add(_OF, by, kept, len(name) + len(str(value)) + 8, span)
