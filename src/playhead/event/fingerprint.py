"""Keep apart values that cannot be written in full."""

from __future__ import annotations

import hashlib
from typing import Any

from playhead import _limits
from playhead.event.plain import Mark, mark

_SETS_DEPTH_MAX = 20


def fingerprint(value: Any, _members: dict[int, tuple[Any, str]] | None = None, _depth: int = 0) -> str:
    """Return a digest of a value that is too deep or too large to be written: two different ones stay different.

    It goes by content; only where parts are shared very often, by where they first stood. Like `mark`, it never raises.
    """
    digest = hashlib.sha256()
    path: set[int] = set()
    seen: dict[int, int] = {}  # id of a container → its number
    kept: list[Any] = []  # so that no id is used twice
    todo: list[tuple[Any, bool]] = [(value, False)]
    members = {} if _members is None else _members  # of sets: id → the member, and its digest
    left = made = _limits.FINGERPRINT_CONTAINERS_MAX
    while todo:
        node, leaving = todo.pop()
        if leaving:
            path.discard(id(node))
            continue
        again = id(node) in seen
        left -= again
        if id(node) in path or (again and left < 0):
            digest.update(f"again {seen[id(node)]}\0".encode())
            continue
        if type(node) in (set, frozenset):
            digest.update(f"set {len(node)} {_digests(node, members, _depth)}\0".encode())
            continue
        parts = _fingerprint_part(node, digest)
        if parts is None:  # looked at through its mark, of which an object may make new ones without end
            made -= 1
            parts = [mark(node)] if made > 0 else []
        if parts:
            path.add(id(node))
            seen.setdefault(id(node), len(seen))
            kept.append(node)
            todo.append((node, True))
            todo.extend((part, False) for part in parts)
    return digest.hexdigest()[:32]


def _digests(node: Any, members: dict[int, tuple[Any, str]], depth: int) -> list[str]:
    """Return the digests of the members of a set, in an order of their own; of sets within sets within sets, none."""
    if depth > _SETS_DEPTH_MAX:
        return []
    for item in node:
        if id(item) not in members:
            members[id(item)] = item, fingerprint(item, members, depth + 1)
    return sorted(members[id(item)][1] for item in node)


def _fingerprint_part(node: Any, digest: Any) -> list[Any] | None:
    """Add one part to a digest, and return what is inside it; None for an object, of which nothing is known here."""
    kind = type(node)
    if kind is str:
        digest.update(b"str " + node.encode("utf-8", "surrogatepass") + b"\0")
    elif kind is int:
        digest.update(f"int {node:x}\0".encode())
    elif kind is bytes:
        digest.update(b"bytes " + node + b"\0")
    elif node is None or kind is bool or kind is float:
        digest.update(f"{node!r}\0".encode())
    elif kind is list or kind is tuple:
        digest.update(f"{kind.__name__} {len(node)}\0".encode())
        return list(node)
    elif kind is dict or kind is Mark:
        digest.update(f"dict {len(node)}\0".encode())
        return [part for pair in node.items() for part in pair]
    else:
        return None
    return []
