"""Refuse the network while a test is answered from its cassette: what is not on it shall not be asked of the world."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from playhead.capture import answering, audit
from playhead.errors import DeviationError

_ADDRESSED = ("socket.connect", "socket.sendto", "socket.sendmsg")
_NAMED = ("socket.getaddrinfo", "socket.gethostbyname")
_HERE = ("localhost", "ip6-localhost")  # that are looked up without asking anybody

_listening: list[tuple[str, Any]] = []


def refuse(check: Callable[[str, Any], None] | None = None) -> None:
    """Refuse every address but those that are left alone, in all threads, until `allow` is called.

    With `check`, that is asked in its place: it is given host and port, and raises where they are to be refused.
    """
    check = check or _check
    _listening.extend((event, functools.partial(_addressed, check)) for event in _ADDRESSED)
    _listening.extend((event, functools.partial(_looked_up, check)) for event in _NAMED)
    for event, listener in _listening:
        audit.listen(event, listener)


def allow() -> None:
    """Allow it again."""
    while _listening:
        audit.unlisten(*_listening.pop())


def _addressed(check: Callable[[str, Any], None], args: tuple[Any, ...]) -> None:
    address = args[1]
    if isinstance(address, tuple) and len(address) >= 2:  # others stay on this machine: files, pipes of the kernel
        check(str(address[0]), address[1])


def _looked_up(check: Callable[[str, Any], None], args: tuple[Any, ...]) -> None:
    host = args[0].decode("ascii", "replace") if isinstance(args[0], bytes) else args[0]
    if isinstance(host, str) and host and host not in _HERE and not _is_number(host):
        check(host, args[1] if len(args) > 1 else None)


def _is_number(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdecimal()


def _check(host: str, port: Any) -> None:
    place = host if port is None else f"{host}:{port}"
    if not answering.leaves_alone(host, port):
        text = (
            f"the test wants to connect to {place}, and is answered from its cassette: the network is refused\n"
            "  do        Record it anew with --playhead=all if this is new. A server that the test runs itself is\n"
            f"            declared: `@pytest.mark.cassette(allow=[{host!r}])`."
        )
        raise DeviationError(text, deviation={"type": "network", "text": text, "detail": place})
