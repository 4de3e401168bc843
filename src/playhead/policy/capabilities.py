"""Say which capabilities something needs that is done outside the process."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from playhead.policy import commands, hosts, pushes

_WRITTEN = frozenset(
    {"directory.created", "file.created", "file.written", "link.created", "mode.changed", "owner.changed"}
    | {"times.changed"}
)
_DELETED = frozenset({"directory.deleted", "file.deleted"})
_DEVICES = ("/dev/null", "/dev/tty", "/dev/std", "/dev/fd/", "/dev/pts/", "/proc/self/fd/")


def needed(what: str, target: str, detail: Any, names: Iterable[str] = ()) -> list[tuple[str, list[str]]]:
    """Return which capabilities an effect needs, each with the names of what it is used on.

    `names` are the hosts that are known to lead to an address.
    """
    detail = detail if isinstance(detail, dict) else {}
    if what in _WRITTEN and not target.startswith(_DEVICES):
        found = [("fs.write", [target])]
        if what == "link.created" and not detail.get("symbolic"):
            found.append(("fs.write", [str(detail.get("to"))]))  # another name for it, by which it may be written
        return found
    if what in _DELETED:
        return [("fs.delete", [target])]
    if what == "file.renamed":
        return [("fs.delete", [target]), ("fs.write", [str(detail.get("to"))])]
    if what == "process.started":
        argv = detail.get("argv")
        return _of_command([target, *(str(word) for word in argv[1:])] if isinstance(argv, list) else [target], detail)
    if what == "socket.connected":
        if target.startswith(("/", "@")):
            return [("net.connect", [hosts.UNIX + target])]
        host = hosts.connected_to(target)
        return [("net.connect", [*(str(host._replace(name=name)) for name in names), str(host)])]
    return []


def _of_command(argv: list[str], detail: dict[str, Any]) -> list[tuple[str, list[str]]]:
    cwd = detail.get("cwd")
    folder = cwd if isinstance(cwd, str) else None
    pushed = pushes.pushed_to(argv, folder)
    push = [] if pushed is None else [("git.push", [pushed])]
    return [("process.exec", [commands.command_of(argv, folder)]), *push]
