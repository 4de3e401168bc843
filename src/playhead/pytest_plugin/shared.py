"""Watch what fixtures ask that several tests share: they are set up before the cassette of a test, and end after it.

Nothing of it can be on a cassette. While the tests are answered from theirs, it is refused; while they are recorded, it
is named. Servers of this machine are no matter of ours here, since such fixtures start them, but for models.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

from playhead.capture import answering, clients, dialects
from playhead.capture.clients.unseen import without_secrets
from playhead.errors import DeviationError
from playhead.pytest_plugin import keys, network

_LOOPBACK = ("localhost", "ip6-localhost", "::1")

_watching: list[Watch] = []  # the innermost last: a fixture may ask for another one
_suspended = False  # a cassette answers or records


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Leave it to a cassette: what is set up now is set up in the course of its test."""
    global _suspended
    _suspended = True
    try:
        yield
    finally:
        _suspended = False


class Watch:
    """What one fixture does, while it is set up or taken down."""

    def __init__(
        self,
        fixture: str,
        scope: str,
        *,
        allow: Iterable[str],
        providers: Iterable[str],
        note: Callable[[str], None] | None,
    ) -> None:
        """Refuse what it asks of the world; with `note`, tell there the first of it and let it be."""
        self._fixture, self._allow, self._note = f"the fixture `{fixture}` (scope {scope})", frozenset(allow), note
        self._providers = frozenset(providers)  # whose clients it may make
        self._noted = False
        self._refused: DeviationError | None = None
        self._closing = contextlib.ExitStack()

    def __enter__(self) -> None:
        self.begin()

    def __exit__(self, *error: object) -> None:
        self.end()

    def begin(self) -> None:
        """Watch from now on, unless a cassette does."""
        if _suspended:
            return
        self._closing.enter_context(keys.placeholders(self._providers))
        self._closing.callback(setattr, answering, "left_alone", answering.left_alone)
        answering.left_alone = self._allow
        _watching.append(self)
        self._closing.callback(_watching.remove, self)
        if len(_watching) == 1:
            clients.install()
            self._closing.callback(clients.uninstall)
            network.refuse(_connects)
            self._closing.callback(network.allow)
            answering.unrecorded = _asks
            self._closing.callback(setattr, answering, "unrecorded", None)

    def end(self) -> None:
        """Watch no longer; where something was refused, and somebody caught that, it is raised here."""
        self._closing.close()
        if self._refused is not None:
            refused, self._refused = self._refused, None
            raise refused

    def met(self, what: str, host: str) -> None:
        """Take in that it asks something of the world."""
        if self._note is None:
            text = (
                f"{self._fixture} {what}: tests share it, so it is on no cassette, and the network is refused\n"
                "  do        Give the fixture the scope of a function, then what it asks is on the cassette of each;\n"
                f"            or let it be: `@pytest.mark.cassette(allow=[{host!r}])`."
            )
            self._refused = DeviationError(text, deviation={"type": "fixture", "text": text, "detail": what})
            raise self._refused
        if not self._noted:
            self._noted = True
            self._note(f"{self._fixture} {what}")


def _asks(method: str, url: str) -> None:
    """Take in a request over HTTP that belongs to no run."""
    host = urlsplit(url).hostname or ""
    if _watching and not answering.is_left_alone(url) and not (_is_here(host) and dialects.find(method, url) is None):
        _watching[-1].met(f"asks {method} {without_secrets(url)}", host)


def _connects(host: str, port: Any) -> None:
    if _watching and not answering.leaves_alone(host, port) and not _is_here(host):
        _watching[-1].met(f"connects to {host if port is None else f'{host}:{port}'}", host)


def _is_here(host: str) -> bool:
    return host in _LOOPBACK or (host.startswith("127.") and host.replace(".", "").isdecimal())
