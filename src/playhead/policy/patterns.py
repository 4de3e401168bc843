"""Say which patterns of a policy can never mean anything, and what to write in their place."""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence

from playhead.policy import hosts

_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_WILD = re.compile(r"[*?]")


def problem_of(capability: str, pattern: str) -> str | None:
    """Say why a pattern can never fit, and what to write; None where it can."""
    if not pattern.strip():
        return "it is empty: write '*' for anything"
    if pattern != pattern.strip():
        return f"it has blanks around it: write {pattern.strip()!r}"
    if capability == "net.connect":
        return hosts.problem_of(pattern)
    if capability.startswith("fs."):
        return _problem_of_path(pattern)
    return None


def _problem_of_path(pattern: str) -> str | None:
    if "\0" in pattern:
        return "no path has a null character"
    if (scheme := _SCHEME.match(pattern)) is not None:
        return f"a path has no scheme: write {pattern[scheme.end() :]!r}"
    if pattern.startswith("//"):
        return f"a path begins with one stroke: write {'/' + pattern.lstrip('/')!r}"
    wild = _WILD.search(pattern)
    parts = pattern[pattern.rfind("/", 0, wild.start()) + 1 :].removesuffix("/").split("/") if wild else []
    if {"", ".", ".."} & set(parts[1:]):
        return "after a wildcard there is no '//', '/./' and '/../': write the path without them"
    return None


_EVERYTHING = {"fs.write": "**", "fs.delete": "**"}  # what everything fits, where it is not `*`


def doubts(capabilities: Mapping[str, Mapping[str, Sequence[str]]], known: Sequence[str], search: str) -> Iterator[str]:
    """Yield what in a policy is probably not what was meant."""
    for name, table in capabilities.items():
        place = f'capabilities."{name}"'
        if name not in known and (close := difflib.get_close_matches(name, known, 1, 0.8)):
            yield f"{place} is asked by nothing but playhead.check; was {close[0]!r} meant?"
        if table.get("deny") and not table.get("allow"):
            everything = f'allow = ["{_EVERYTHING.get(name, "*")}"]'
            yield f"{place} allows nothing, so all of it is denied; to deny no more than that, add {everything}"
        for pattern in table.get("allow", ()):
            over = next((how for how in ("deny", "ask") if pattern in table.get(how, ())), None)
            if over is not None:
                yield f"{place}: allow {pattern!r} means nothing, since {over} has it too"
            program = pattern.partition(" ")[0]
            if name == "process.exec" and not _is_there(program, search):
                yield f"{place}: allow {pattern!r} fits nothing, since the search path has no program {program!r}"


def _is_there(program: str, search: str) -> bool:
    return "/" in program or bool(_WILD.search(program)) or shutil.which(program, path=search or None) is not None
