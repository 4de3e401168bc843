"""Remember which addresses hosts have: a connection is seen by the number that it goes to, a request names a host.

Only what the program itself looks up is known, by `socket.getaddrinfo`, which nearly everything uses that is Python.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead import _limits
from playhead.capture.patches import Patches
from playhead.policy import resources

_patches = Patches()
_names: dict[str, set[str]] = {}  # by address


def install(socket: ModuleType) -> None:
    """Begin to remember."""
    if not _patches.done:
        _patches.replace(socket, "getaddrinfo", _remembering)


def uninstall() -> None:
    """Leave the names of hosts alone, when the last run has closed."""
    _patches.restore()
    _names.clear()


def names_of(place: str) -> list[str]:
    """Return the hosts that were looked up and lead to an address, `host:port`."""
    address = resources.host_of(place).name
    return sorted(_names.get(address, ()))


def _remembering(original: Callable[..., Any]) -> Callable[..., Any]:
    def getaddrinfo(host: Any, port: Any, *args: Any, **options: Any) -> Any:
        found = original(host, port, *args, **options)
        if isinstance(host, (str, bytes)) and host:
            name = resources.host_of(os.fsdecode(host)).name
            for *_, address in found:
                number = resources.host_of(str(address[0])).name
                if number != name:
                    _remember(number, name)
        return found

    return getaddrinfo


def _remember(number: str, name: str) -> None:
    known = _names.get(number)
    if known is None:
        if len(_names) >= _limits.LOOKUPS_MAX:
            _names.pop(next(iter(_names)), None)  # another thread may have been quicker
        known = _names.setdefault(number, set())
    known.add(name)
