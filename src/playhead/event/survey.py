"""Look through a value that is plain already, as most are, and note what is long. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from playhead import _limits
from playhead.event import speed

if TYPE_CHECKING:
    from playhead.event.plainer import Plainer

_MIN = _limits.REFERENCE_BYTES_MIN
_EXACT = _limits.INTEGER_EXACT_MAX
TextKey = str | int
SURVEYED_MAX = 100_000  # parts that the fast walk looks at


class NotPlain(Exception):
    """The fast walk met something that it does not handle."""


def survey(plainer: Plainer, value: dict[str, Any]) -> None:
    """Look through a value that is plain already, as most are; raise NotPlain at the first thing that is not.

    One loop over a growing list, since in Python calls cost more than looking: this is half of recording.
    """
    todo: list[Any] = [value]
    parts = depth = 0
    level_end = 1
    long, usual, key = plainer.long, plainer.keys.usual, speed.text_key
    for at, node in enumerate(todo):
        if at == level_end:
            depth, level_end = depth + 1, len(todo)
        before = len(todo) + len(long)
        items: Any = node
        if type(node) is dict:
            if not node.keys() <= usual:
                _look_at_keys(plainer, node)
            items = node.values()
        small = 10 * len(node)
        for item in items:
            kind = type(item)
            if kind is str:
                size = len(item)
                if size > _MIN:
                    long.append(item if key is None else key(item))
                else:
                    small += size
            elif kind is dict or kind is list:
                todo.append(item)
            elif item is None or kind is bool or (kind is int and -_EXACT <= item <= _EXACT):
                continue
            elif kind is float and item - item == 0.0:
                plainer.floats.append(item)
            else:
                raise NotPlain
        if type(node) is dict:
            if small > _MIN:
                plainer.dense[id(node)] = node
        elif node and (small > _MIN or len(todo) + len(long) > before) and first_text(node) is None:
            plainer.lists.append(node)
        parts += len(node)
        if parts > SURVEYED_MAX or depth > plainer.depth_max:
            raise NotPlain  # perhaps a cycle


def survey_compiled(plainer: Plainer, value: dict[str, Any], compiled: Callable[..., speed.Surveyed | None]) -> None:
    """Do the same in C."""
    seen = compiled(value, plainer.keys.usual, _MIN, _EXACT, SURVEYED_MAX, plainer.depth_max)
    if seen is None:
        raise NotPlain
    plainer.long, plainer.lists, dense, plainer.floats, unusual = seen
    for node in unusual:
        _look_at_keys(plainer, node)
    plainer.dense = {id(node): node for node in dense}


def _look_at_keys(plainer: Plainer, value: dict[Any, Any]) -> None:
    for key in value:
        if key not in plainer.keys.usual and not plainer.key_is_plain(key, value):
            raise NotPlain


def text_key(text: str) -> TextKey:
    """Return what a long text is looked up by; texts with the same key may differ.

    The compiled part makes a number of it, so that the text need not be kept. Without that, a text is its own key.
    """
    return text if speed.text_key is None else speed.text_key(text)


def first_text(array: list[Any]) -> str | None:
    """Return the long text that an array begins with, alone or as a field of its first item; None if there is none."""
    first = array[0]
    for item in first.values() if type(first) is dict else (first,):
        if type(item) is str and len(item) > _MIN:
            return item
    return None
