"""Name conversations over sockets of Python that no adapter understands: databases, mail, protocols of one's own."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from playhead.capture import callers

# Whose traffic is recorded above the socket, or named by its own adapter.
_UNDERSTOOD = frozenset(
    "aiohappyeyeballs aiohttp http httpcore httpcore2 httpx httpx2 mcp requests urllib3 websocket websockets".split()  # noqa: SIM905
)
_FOR_ITSELF = frozenset({"logging", "multiprocessing"})


def connected(args: tuple[Any, ...]) -> None:
    """Note where a connection leads that will not be recorded; listens to the audit event of it."""
    _, address = args
    if isinstance(address, tuple) and len(address) >= 2 and _is_strange(sys._getframe(1)):
        from playhead.capture.clients import unseen  # here: most programs need none of it

        unseen.tell("socket", lambda: f"{address[0]}:{address[1]}")


def _is_strange(frame: FrameType | None) -> bool:
    """Say whether code asks for this that no adapter of ours knows."""
    agent = False
    while frame is not None:
        module = frame.f_globals.get("__name__")
        top = module.partition(".")[0] if isinstance(module, str) else ""
        if top in _UNDERSTOOD or top in _FOR_ITSELF:
            return False
        agent = agent or callers.sort_of(top) == callers.AGENT
        frame = frame.f_back
    return agent
