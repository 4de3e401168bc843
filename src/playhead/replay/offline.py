"""Refuse the network in a replay, in every thread and in every process that is forked.

The interpreter tells of what its own sockets are about to do. What libraries of C and Rust do with sockets of their own
is refused where they are called; where the system allows it, a network namespace (namespace.py) holds the rest.
"""

from __future__ import annotations

import functools
import os
from pathlib import Path
from types import ModuleType
from typing import Any

from playhead.capture import answering, audit
from playhead.capture.clients import unseen
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches
from playhead.capture.sockets import text_of
from playhead.errors import NetworkRefused
from playhead.replay.blocked import Blocked

# Those of them with an address, and those with a name to be looked up.
_ADDRESSED = ("socket.bind", "socket.connect", "socket.sendmsg", "socket.sendto")
_NAMED = ("socket.getaddrinfo", "socket.gethostbyaddr", "socket.gethostbyname", "socket.getnameinfo")
_BY_THE_LOOP = ("create_connection", "create_datagram_endpoint", "create_server")
_BY_THE_LOOP_UNIX = ("create_unix_connection", "create_unix_server")
_CALLS = ("__call__", "with_call", "future")

_present: Offline | None = None


class Offline:
    """Says no to whoever wants the network; sockets in the scratch folder are between processes of the replay."""

    def __init__(self, scratch: Path) -> None:
        self._blocked = Blocked(scratch)
        self._scratch = os.path.join(os.path.realpath(scratch), "")
        self._patches = Patches()
        self._arriving = AfterImport(dict.fromkeys(unseen.MODULES, self._arrived))
        listeners = [(event, functools.partial(self._addressed, event)) for event in _ADDRESSED]
        self._listeners = listeners + [(event, functools.partial(self._looked_up, event)) for event in _NAMED]

    def _begin(self) -> None:
        for event, listener in self._listeners:
            audit.listen(event, listener, last=True)  # after the recorder: it keeps what was tried
        self._arriving.install()

    def _end(self) -> None:
        self._arriving.uninstall()
        self._patches.restore()
        for event, listener in self._listeners:
            audit.unlisten(event, listener)

    def _addressed(self, event: str, args: tuple[Any, ...]) -> None:
        _, address = args
        if address is None or _is_open():
            return  # it goes where the socket is connected to, and that was asked before
        if isinstance(address, (str, bytes)) and os.path.abspath(os.fsdecode(address)).startswith(self._scratch):
            return
        self.refuse(event, text_of(address))

    def _looked_up(self, event: str, args: tuple[Any, ...]) -> None:
        if _is_open():
            return
        first = args[0]
        name = text_of(first) if isinstance(first, (str, bytes, tuple)) else "?"
        self.refuse(event, f"{name}:{args[1]}" if event == "socket.getaddrinfo" and args[1] is not None else name)

    def refuse(self, what: str, target: str) -> None:
        """Keep that somebody wanted it, and say no."""
        refusal = NetworkRefused(f"a replay uses no network, and {what} wants {target}", target=target)
        self._blocked.refuse(what, refusal)

    # Libraries with sockets of their own.

    def _arrived(self, module: ModuleType) -> None:
        if module.__name__.startswith("grpc"):
            for name, kind in list(vars(module).items()):
                if name.endswith("MultiCallable") and kind.__module__ == module.__name__:
                    for call in _CALLS:
                        if call in kind.__dict__:
                            self._patches.replace(kind, call, self._calling)
        elif module.__name__ == "uvloop":
            for name in (*_BY_THE_LOOP, *_BY_THE_LOOP_UNIX):
                self._patches.cover(module.Loop, name, functools.partial(self._looping, name))
        else:
            for kind in (module.Session, module.AsyncSession):
                self._patches.replace(kind, "request", self._requesting)

    def _calling(self, original: Any) -> Any:
        @functools.wraps(original)
        def calling(caller: Any, *args: Any, **options: Any) -> Any:
            if _is_open():
                return original(caller, *args, **options)
            target, method = (getattr(caller, name, b"") for name in ("_target", "_method"))
            return self.refuse("grpc", "".join(map(_text, (target, method))))

        return calling

    def _looping(self, what: str, original: Any) -> Any:
        @functools.wraps(original)
        def looping(loop: Any, *args: Any, **options: Any) -> Any:
            if options.get("sock") is not None or _is_open():
                return original(loop, *args, **options)  # one of Python's, which was asked about when it was connected
            named = [options[name] for name in ("host", "port", "path") if options.get(name) is not None]
            return self.refuse(f"uvloop {what}", ":".join(str(part) for part in (*args[1:3], *named)))

        return looping

    def _requesting(self, original: Any) -> Any:
        @functools.wraps(original)
        def request(session: Any, method: Any, url: Any, *args: Any, **options: Any) -> Any:
            if _is_open():
                return original(session, method, url, *args, **options)
            return self.refuse("curl_cffi", unseen.without_secrets(str(url), path=False))

        return request


def install(scratch: Path) -> Offline:
    """Refuse the network from now on; what was refused is kept in the scratch folder."""
    global _present
    if _present is not None:
        raise RuntimeError("the network is refused already")
    _present = Offline(scratch)
    _present._begin()
    return _present


def uninstall() -> None:
    """Allow it again."""
    global _present
    offline, _present = _present, None
    if offline is not None:
        offline._end()


def _is_open() -> bool:
    """Say whether the program has left its tape, and may use the network."""
    return answering.player is not None and answering.player.lets_out()


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
