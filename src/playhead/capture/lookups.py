"""Remember which addresses hosts have: a connection is seen by the number that it goes to, a request names a host.

Only what the program itself looks up is remembered, by the functions of `socket`, which nearly everything uses that is
Python. A socket that is given a name has C look it up, which tells nobody: then it is looked up here as well.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any

from playhead import _limits
from playhead.capture.patches import Patches
from playhead.policy import hosts

_PASSIVE = 1  # AI_PASSIVE, everywhere
_NUMERIC = 1 if sys.platform == "linux" else 2  # NI_NUMERICHOST


class _Asked(threading.local):
    """Whether a thread looks up an address to listen at, right now, or one that is only to be written as a number."""

    to_listen = False
    numeric = False


_asked = _Asked()
_patches = Patches()
_names: dict[str, set[str]] = {}  # by address
_getaddrinfo: Callable[..., Any] | None = None  # Python's own


def install(socket: ModuleType) -> None:
    """Begin to remember."""
    global _getaddrinfo
    if _getaddrinfo is None:
        _getaddrinfo = socket.getaddrinfo
        _patches.replace(socket, "getaddrinfo", _remembering)
        _patches.replace(socket, "gethostbyname", _remembering_one)
        _patches.replace(socket, "gethostbyname_ex", _remembering_one)
        _patches.replace(socket, "getnameinfo", _naming)


def of_uvloop(uvloop: ModuleType) -> None:
    """Remember what its loop looks up for others, as for aiohttp; for itself it does so in C, where nobody sees it."""
    _patches.cover(uvloop.Loop, "getaddrinfo", _remembering_later)


def to_listen() -> bool:
    """Say whether an address is looked up to listen at it, in this thread."""
    return _asked.to_listen


def is_numeric() -> bool:
    """Say whether an address is only to be written as a number, in this thread: then nobody is asked for its name."""
    return _asked.numeric


def uninstall() -> None:
    """Leave the names of hosts alone, when the last run has closed."""
    global _getaddrinfo
    _patches.restore()
    _getaddrinfo = None
    _names.clear()


def names_of(place: str) -> list[str]:
    """Return how else the host is called that a connection to `host:port` leads to, as far as that is known."""
    if place.startswith(("/", "@")):
        return []
    name = hosts.connected_to(place).name
    found = {name, *(_addresses(name) if hosts.address_of(name) is None else ())}
    return sorted({*found, *(other for one in found for other in _names.get(one, ()))} - {name})


def _addresses(name: str) -> set[str]:
    if _getaddrinfo is None:
        return set()
    try:
        found = _getaddrinfo(name, None)
    except (OSError, UnicodeError):
        return set()  # and nobody can connect to it
    return {hosts.host_of(str(address[0])).name for *_, address in found}


def _remembering(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        flags = args[3] if len(args) > 3 else options.get("flags", 0)
        before, _asked.to_listen = _asked.to_listen, isinstance(flags, int) and bool(flags & _PASSIVE)
        try:
            found = original(host, port, *args, **options)
        finally:
            _asked.to_listen = before
        _remember(host, (address[0] for *_, address in found))
        return found

    return getaddrinfo


def _remembering_later(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def getaddrinfo(self: Any, host: Any, port: Any, **options: Any) -> Any:
        if not options.get("flags", 0) & _PASSIVE:
            sys.audit("socket.getaddrinfo", host, port, *(options.get(name, 0) for name in ("family", "type", "proto")))
        found = await original(self, host, port, **options)
        _remember(host, (address[0] for *_, address in found))
        return found

    return getaddrinfo


def _remembering_one(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def gethostbyname(host: Any) -> Any:
        found = original(host)
        _remember(host, [found] if isinstance(found, str) else found[2])
        return found

    return gethostbyname


def _naming(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def getnameinfo(*given: Any) -> Any:
        flags = given[1] if len(given) > 1 else 0
        before, _asked.numeric = _asked.numeric, isinstance(flags, int) and bool(flags & _NUMERIC)
        try:
            return original(*given)
        finally:
            _asked.numeric = before

    return getnameinfo


def _remember(host: Any, addresses: Iterable[Any]) -> None:
    if not isinstance(host, (str, bytes)) or not host:
        return
    name = hosts.host_of(os.fsdecode(host)).name
    for address in addresses:
        number = hosts.host_of(str(address)).name
        if number == name:
            continue
        known = _names.get(number)
        if known is None:
            if len(_names) >= _limits.LOOKUPS_MAX:
                _names.pop(next(iter(_names)), None)  # another thread may have been quicker
            known = _names.setdefault(number, set())
        known.add(name)
