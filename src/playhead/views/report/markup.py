"""Write single values as HTML, so that nothing of a run is acted on."""

from __future__ import annotations

from html import escape
from typing import Any

import orjson

_GOOD = frozenset({"ok", "intact", "complete", "allow", "self-consistent", "signed", "witnessed", "faithful"})
_BAD = frozenset({"error", "crashed", "broken", "missing", "deny", "high", "deviated"})
_WARNING = frozenset({"cancelled", "running", "ask", "medium"})


def e(value: Any) -> str:
    """Return a text as it is shown: markup in it is none, and what cannot be seen is written out."""
    return "" if value is None else escape(str(value).translate(_UNSEEN), quote=True)


def badge(name: str, value: Any, place: str = "") -> str:
    """Return a name and a value in a frame, or nothing where there is no value; a script finds the value at a place."""
    found = f' id="{e(place)}"' if place else ""
    return (
        "" if value is None else f'<span class="badge">{e(name)}: <b class="{tone(value)}"{found}>{e(value)}</b></span>'
    )


def tone(value: Any) -> str:
    """Return the class of a word: whether it is good or bad news."""
    return "ok" if value in _GOOD else "bad" if value in _BAD else "warn" if value in _WARNING else "dim"


def as_json(value: Any) -> str:
    """Return a value as JSON that can be read."""
    return orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()


def link(number: int, seq: Any) -> str:
    """Return a link to an event of the first or the second run; a dash where there is none."""
    return "–" if seq is None else f'<a href="#e{number}-{e(seq)}">{e(seq)}</a>'


_UNSEEN = {
    code: f"\\u{code:04x}"
    for code in (*range(9), *range(11, 32), *range(127, 160), 0xAD, 0x061C, 0x180E, 0x200B, 0x200E, 0x200F,
                 *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF, *range(0xFFF9, 0xFFFC), *range(0xD800, 0xE000),
                 *range(0xE0000, 0xE01F0))  # the last ones hide whole texts
}  # fmt: skip
