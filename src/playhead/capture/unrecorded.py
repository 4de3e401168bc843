"""Let pass what an agent sends out about itself, unrecorded; in a replay it is kept in, and answered all the same."""

from __future__ import annotations

from typing import Any

from playhead.capture import answering
from playhead.capture.clients.replies import EMPTY, Reply
from playhead.capture.exchange import Exchange
from playhead.capture.headers import Pairs
from playhead.capture.scope import Scope


class Unrecorded(Exchange):
    """A request of which nothing is recorded, nor of what is done for it below."""

    __slots__ = ()

    def __init__(self, scope: Scope, method: str, url: str, headers: Pairs) -> None:
        super().__init__(scope, method, url, headers)
        self._opened = self._ended = True
        if answering.player is not None:
            answering.player.blocked("telemetry", f"{method} {url.partition('?')[0]}")

    def sent(self, *args: Any, **named: Any) -> None:
        """Record nothing."""

    def head(self, *args: Any, **named: Any) -> None:
        """Record nothing."""

    def chunk(self, *args: Any, **named: Any) -> None:
        """Record nothing."""

    def reply(self) -> Reply:
        """Return an answer that says nothing but that all is well."""
        return Reply(EMPTY)

    async def reply_async(self) -> Reply:
        """Do the same in an event loop."""
        return self.reply()
