"""Say which capabilities something needs that is done outside the process."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from playhead.policy import resources
from playhead.policy.paths import Touch

# What is done to files, but for what has a line of its own below, and whether the name is meant or what it leads to.
_FILES: dict[str, tuple[str, Touch]] = {
    "attribute.changed": ("fs.write", "both"),
    "directory.deleted": ("fs.delete", "name"),
    "file.created": ("fs.write", "name"),
    "file.deleted": ("fs.delete", "name"),
    "file.written": ("fs.write", "target"),
    "link.created": ("fs.write", "name"),
    "mode.changed": ("fs.write", "both"),
    "owner.changed": ("fs.write", "both"),
    "times.changed": ("fs.write", "both"),
}
# What is written by the number by which it is open is told by its name if it has one: these are pipes and terminals.
_NO_FILE = re.compile(r"/dev/(?:null|tty|std(?:in|out|err)|(?:fd|pts)/\d+)|/proc/[^/]+/(?:task/\d+/)?fd/\d+")


class Need(NamedTuple):
    """A capability that something needs."""

    capability: str
    names: list[str]  # of what it is used on; a host may have several
    touch: Touch | None = None  # of files: what is done to the path
    holds: str | None = None  # the folder whose contents get this name, or lose it


def needed(what: str, target: str, detail: Any, names: Iterable[str] = ()) -> list[Need]:
    """Return which capabilities an effect needs, each with the names of what it is used on.

    `names` are the hosts that are known to lead to an address.
    """
    detail = detail if isinstance(detail, dict) else {}
    return _of_file(what, target, detail) or [Need(*one) for one in _of_others(what, target, detail, names)]


def _of_file(what: str, target: str, detail: dict[str, Any]) -> list[Need]:
    if what == "file.written" and _NO_FILE.fullmatch(target):
        return []
    if what == "directory.created":
        return [_need("fs.write", f"{target}/", "name")]  # with a slash: a folder of which all is allowed may be made
    if what == "socket.bound" and target.startswith("/"):
        return [_need("fs.write", target, "name")]
    if what == "file.renamed":
        moved = target if os.path.isabs(target) else None
        return [
            _need("fs.delete", target, "name", moved),
            _need("fs.write", str(detail.get("to")), "name", moved),
        ]
    if what not in _FILES:
        return []
    capability, touch = _FILES[what]
    found = [_need(capability, target, touch)]
    if what == "link.created" and not detail.get("symbolic"):
        found.append(_need("fs.write", str(detail.get("to")), "both"))  # one more name, by which it may be written
    return found


def _need(capability: str, path: str, touch: Touch, holds: str | None = None) -> Need:
    """Return what is needed for a path; one that is not absolute is in a folder of which nobody was told."""
    return Need(capability, [path], touch if os.path.isabs(path) else "unknown", holds)


def _of_others(what: str, target: str, detail: dict[str, Any], names: Iterable[str]) -> list[tuple[str, list[str]]]:
    if what == "process.started":
        argv = detail.get("argv")
        return _of_command([target, *(str(word) for word in argv[1:])] if isinstance(argv, list) else [target], detail)
    if what == "socket.connected":
        if target.startswith(("/", "@")):
            return [("net.connect", [f"unix:{target}"])]
        host = resources.host_of(target)
        return [("net.connect", [*(str(host._replace(name=name)) for name in names), str(host)])]
    return []


def _of_command(argv: list[str], detail: dict[str, Any]) -> list[tuple[str, list[str]]]:
    cwd = detail.get("cwd")
    pushed = resources.is_push(argv)
    push = [] if pushed is None else [("git.push", [pushed])]
    return [("process.exec", [resources.command_of(argv, cwd if isinstance(cwd, str) else None)]), *push]
