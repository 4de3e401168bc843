"""Name conversations over sockets of Python that no adapter understands: databases, mail, protocols of one's own.

Named is where a connection leads, or datagrams go, and what listens, as soon as somebody connects to it. The line is
that of the agent's code which connected, or which made what listens.
"""

from __future__ import annotations

import os
import sys
import weakref
from types import FrameType
from typing import Any

from playhead.capture import answering, callers

# Whose traffic is recorded above the socket, or named by its own adapter. Their servers call the agent's code.
_UNDERSTOOD = frozenset(
    "aiohappyeyeballs aiohttp http httpcore httpcore2 httpx httpx2 mcp requests urllib3 websocket websockets".split()  # noqa: SIM905
)
_SERVING = ("aiohttp.web", "http.server", "mcp.server", "websockets.asyncio.server", "websockets.sync.server")
# What talks for purposes of its own: log lines, parts of one program, names of hosts, telemetry.
_FOR_ITSELF = frozenset({"datadog", "ddtrace", "dns", "logging", "multiprocessing", "statsd"})
_DATAGRAMS = "dgram"
_SORTS = {1: "stream", 2: _DATAGRAMS, 3: "raw", 4: "rdm", 5: "seqpacket"}  # as on Linux and macOS

_bound: dict[int, tuple[Any, str]] = {}  # by identity, what listens and the line that made it


def connected(args: tuple[Any, ...]) -> None:
    """Note where a connection leads that will not be recorded; listens to the audit event of it."""
    socket, address = args
    if address is not None and not is_left_alone(address) and _is_strange(sys._getframe(1)):
        _tell(f"datagrams to {text_of(address)}" if _sends_datagrams(socket) else text_of(address))


def sent(args: tuple[Any, ...]) -> None:
    """Note where datagrams go; listens to the audit events of them."""
    socket, address = args
    if address is None or _line(socket) is not None or is_left_alone(address):
        return
    if _is_strange(sys._getframe(1)):
        _tell(f"datagrams to {text_of(address)}")


def bound(args: tuple[Any, ...]) -> None:
    """Keep who made what will listen, and note where datagrams are awaited; listens to the audit event of it."""
    socket, address = args
    if is_left_alone(address) or not _is_strange(sys._getframe(1)):
        return
    from playhead.capture.clients import unseen  # here: most programs need none of it

    try:
        key = id(socket)
        _bound[key] = (weakref.ref(socket, lambda _: _bound.pop(key, None)), unseen.used_at(sys._getframe(1)))
    except TypeError:
        return  # one of C, which cannot be kept, and nobody uses
    if _sends_datagrams(socket) and not (isinstance(address, tuple) and address[1:2] == (0,)):  # else it only asks
        _tell(f"datagrams that come to {text_of(address)}")


def made(args: tuple[Any, ...]) -> None:
    """Note that somebody connected to what listens; listens to the audit event of new sockets."""
    frame = sys._getframe(2).f_back  # whoever made it
    if frame is None or frame.f_code.co_name != "accept" or frame.f_globals.get("__name__") != "socket":
        return
    listening = frame.f_locals.get("self")
    line = _line(listening)
    if line is not None or _is_strange(frame):
        try:
            address = _in_c().getsockname(listening)
        except (OSError, TypeError):
            return
        if not is_left_alone(address):
            _tell(f"connections to {text_of(address)}", line)


def _tell(where: str, line: str | None = None) -> None:
    from playhead.capture.clients import unseen  # here: most programs need none of it

    unseen.tell("socket", lambda: where, line=line)


def _line(socket: Any) -> str | None:
    found = _bound.get(id(socket))
    return found[1] if found is not None and found[0]() is socket else None


def _in_c() -> Any:
    """Return the class of C, whose methods run no code of the program's, whatever its own sockets are."""
    import _socket

    return _socket.socket


def _sends_datagrams(socket: Any) -> bool:
    return sort_of(socket) == _DATAGRAMS


def sort_of(socket: Any) -> str:
    """Return what sort of socket this is: `stream`, `dgram`."""
    try:
        number: int = _in_c().type.__get__(socket) & 0xF
    except TypeError:
        return "?"  # something that only looks like one
    return _SORTS.get(number, str(number))


def is_left_alone(address: Any) -> bool:
    """Say whether what goes on there is nobody's business."""
    return isinstance(address, tuple) and len(address) >= 2 and answering.leaves_alone(str(address[0]), address[1])


def text_of(address: Any) -> str:
    """Return an address as it is named."""
    if isinstance(address, (str, bytes)):
        name = os.fsdecode(address)
        return "@" + name[1:] if name.startswith("\0") else name
    if isinstance(address, tuple) and len(address) >= 2:
        return f"{address[0]}:{address[1]}"
    return str(address)


def _is_strange(frame: FrameType | None) -> bool:
    """Say whether code asks for this that no adapter of ours knows."""
    agent = False
    while frame is not None:
        module = frame.f_globals.get("__name__")
        name = module if isinstance(module, str) else ""
        top = name.partition(".")[0]
        if top in _UNDERSTOOD and not name.startswith(_SERVING):
            return False
        if not agent:
            if top in _FOR_ITSELF or name.startswith("playhead.testing"):
                return False
            agent = callers.sort_of(top) == callers.AGENT
        frame = frame.f_back
    return agent


LISTENERS = (
    ("socket.connect", connected),
    ("socket.sendto", sent),
    ("socket.sendmsg", sent),
    ("socket.bind", bound),
    ("socket.__new__", made),
)
