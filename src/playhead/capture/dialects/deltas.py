"""Put together what came in pieces."""

from __future__ import annotations

from typing import Any

# Sent whole, often again with every chunk, and never continued.
_WHOLE = frozenset({"id", "index", "type", "role", "format", "status"})
_NO_INDEX = -1
_DEPTH_MAX = 8  # no protocol nests its deltas deeper; what does is taken as a whole


class Pieces(list[str]):
    """A text that grows."""


class Grown(dict[str, Any]):
    """An object that grows."""


class Rows(list[Any]):
    """A list that grows; `at` finds the entries that grow themselves by their index."""

    __slots__ = ("at",)

    def __init__(self) -> None:
        super().__init__()
        self.at: dict[int, Grown] = {}


def grow(held: Grown, delta: dict[str, Any], depth: int = 0) -> None:
    """Merge a delta: texts are continued, lists get longer, objects are merged, everything else is replaced."""
    for key, value in delta.items():
        kind = type(value)
        if kind is str:
            old = held.get(key)
            if type(old) is Pieces and key != "name":
                old.append(value)
            else:
                _grow_text(held, key, value, old)
        elif value is None:
            held.setdefault(key, None)
        elif kind is dict and depth < _DEPTH_MAX and key != "arguments":  # never in pieces where they are no text
            inner = held.get(key)
            if type(inner) is not Grown:
                inner = held[key] = Grown()
            grow(inner, value, depth + 1)
        elif kind is list and depth < _DEPTH_MAX:
            entries = held.get(key)
            if type(entries) is not Rows:
                entries = held[key] = Rows()
            _grow_rows(entries, value, depth + 1, calls=key == "tool_calls")
        else:
            held[key] = value


def _grow_text(held: Grown, key: str, value: str, old: Any) -> None:
    if key in _WHOLE:
        if value or old is None:  # some servers send an empty id with every chunk but the first
            held[key] = value
    elif type(old) is not Pieces:
        held[key] = Pieces((value,))
    elif joined(old) != value:  # some servers repeat the name of the tool
        old.append(value)


def _grow_rows(held: Rows, entries: list[Any], depth: int, calls: bool) -> None:
    for entry in entries:
        if type(entry) is not dict:
            held.append(entry)
            continue
        index = entry.get("index")
        if type(index) is not int:
            if not calls:
                held.append(entry)
                continue
            index = _NO_INDEX
        grown = held.at.get(index)
        if grown is None or (calls and _begins_another(entry, grown, index)):
            grown = held.at[index] = Grown()
            held.append(grown)
        grow(grown, entry, depth)


def _begins_another(entry: dict[str, Any], grown: Grown, index: int) -> bool:
    """Say whether a delta begins a tool call of its own.

    Some compatible servers give no index, or 0 to each of several calls: a named call under another id is another one.
    """
    function = entry.get("function")
    if type(function) is not dict or not function.get("name"):
        return False
    identity = entry.get("id")
    return bool(identity != grown.get("id") if identity else index == _NO_INDEX)


def heard(held: dict[str, Any], document: dict[str, Any]) -> None:
    """Take over each field that says anything but null: the last word counts."""
    if None not in document.values():
        held.update(document)
        return
    for key, value in document.items():
        if value is not None or key not in held:
            held[key] = value


def joined(pieces: list[str]) -> str:
    """Join pieces of text, and the two halves of a character that was cut between them."""
    whole = "".join(pieces)
    try:
        whole.encode()
    except UnicodeEncodeError:
        return whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return whole


def settled(value: Any) -> Any:
    """Return what has grown as plain JSON values; what was only taken over is the same object."""
    kind = type(value)
    if kind is Pieces:
        return joined(value)
    if kind is Grown:
        return {key: settled(inner) for key, inner in value.items()}
    if kind is Rows:
        return [settled(inner) for inner in value]
    return value
