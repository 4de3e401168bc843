"""Say when a server answers, and tell those who are being told of news when it stops."""

from __future__ import annotations

import socket
from collections.abc import Callable

import uvicorn

from playhead.server.application import Application


class Announcing(uvicorn.Server):
    """A server that says so."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to listen."""
        await super().startup(sockets)
        if self.started:
            self._ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let answers that never end come to theirs, and wait for the others."""
        application = self.config.app
        assert isinstance(application, Application)
        application.stopping.set()
        await super().shutdown(sockets)
