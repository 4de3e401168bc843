"""Name a place in a value by a path: `output.items.0.price`, or as a JSON pointer, `/output/items/0/price`."""

from __future__ import annotations

from typing import Any

import orjson

from playhead.errors import UsageError


def parts(path: str) -> list[str]:
    """Return the names on a path."""
    if path.startswith("/"):
        return [part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/")]
    return path.split(".")


def put(value: Any, path: str, new: Any, *, creates: bool = False) -> None:
    """Put something at a path of a value; UsageError where the path leads nowhere.

    `creates` makes objects on the way that are not there.
    """
    *way, last = parts(path)
    at: Any = value
    gone: list[str] = []
    for part in way:
        at = _step(at, part, path, gone, creates)
        gone.append(part)
    if isinstance(at, dict):
        if last not in at and not creates:
            raise UsageError(f"nothing is at {path}", hint=_there_is(at, gone))
        at[last] = new
    elif isinstance(at, list) and last.lstrip("-").isdecimal() and -len(at) <= int(last) < len(at):
        at[int(last)] = new
    elif isinstance(at, list) and last == "-":
        at.append(new)
    else:
        raise UsageError(f"nothing is at {path}", hint=_there_is(at, gone))


def _step(at: Any, part: str, path: str, gone: list[str], creates: bool) -> Any:
    if isinstance(at, dict) and (part in at or creates):
        return at.setdefault(part, {})
    if isinstance(at, list) and part.lstrip("-").isdecimal() and -len(at) <= int(part) < len(at):
        return at[int(part)]
    raise UsageError(f"nothing is at {path}", hint=_there_is(at, gone))


def _there_is(at: Any, gone: list[str]) -> str:
    where = ".".join(gone) or "the top"
    if isinstance(at, dict):
        return f"At {where} are: {', '.join(map(str, at)) or 'no names'}."
    if isinstance(at, list):
        return (
            f"At {where} is a list of {len(at)}: its items are 0 to {len(at) - 1}."
            if at
            else f"The list at {where} is empty."
        )
    return f"At {where} is a {type(at).__name__}, which has no parts."


def assignment(text: str) -> tuple[str, Any]:
    """Read `path=value`: the value is JSON where it is that, and else the text itself."""
    path, equals, value = text.partition("=")
    if not equals or not path:
        raise UsageError(f"not an assignment: {text!r}", hint="Write path=value, for instance output.status=failed.")
    try:
        return path, orjson.loads(value)
    except orjson.JSONDecodeError:
        return path, value
