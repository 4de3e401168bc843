"""Say how the server is, and what it can be asked."""

from __future__ import annotations

import time
from typing import Any

from playhead._version import __version__
from playhead.errors import Busy, StoreError
from playhead.server.answering import Answer, answered
from playhead.server.asking import Ask
from playhead.server.routing import route

_BEGAN_S = time.monotonic()


@route("GET", "/health", scope="open", group="Server", limited=False)
def health(ask: Ask) -> Answer:
    """Say whether the server can do its work: the store can be written, and its index and registry can be read.

    `{status, version, uptime_s}`; 503 with what is wrong where it cannot.
    """
    problems = ask.server.projects.problems()
    if problems:
        raise Unwell(problems)
    return answered({"status": "ok", "version": __version__, "uptime_s": round(time.monotonic() - _BEGAN_S, 3)})


class Unwell(Busy):
    """The server cannot do its work."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("; ".join(problems), after_s=5)
        self.hint = "The log of the server says more."
        self.code = StoreError.code


@route("GET", "/metrics", scope="admin", group="Server", media=("text/plain",), limited=False)
def metrics(ask: Ask) -> Answer:
    """Return counters for Prometheus: answers by route and status, how long they took, what was taken in.

    They are of the whole server; `playhead_runs_open` is of the project of whoever asks.
    """
    lines = [
        "# HELP playhead_up Whether the server answers.", "# TYPE playhead_up gauge", "playhead_up 1",
        *ask.server.counters.lines(),
        "# TYPE playhead_runs_open gauge",
        f'playhead_runs_open{{project="{ask.project.name}"}} {ask.project.intake.open_count}',
        "# TYPE playhead_streams_open gauge", f"playhead_streams_open {ask.server.streams_open}",
    ]  # fmt: skip
    return Answer(("\n".join(lines) + "\n").encode(), media="text/plain; version=0.0.4; charset=utf-8")


@route("GET", "/openapi.json", scope="open", group="Server", limited=False)
def openapi(ask: Ask) -> Any:
    """Return the description of this API, as OpenAPI 3.1."""
    from playhead.server.openapi import document

    return document()


@route("GET", "/docs", scope="open", group="Server", media=("text/html",), limited=False)
def docs(ask: Ask) -> Answer:
    """Show that description to people."""
    from playhead.server.pages import reference

    return reference()


@route("GET", "/api", scope="open", group="Server", limited=False)
def about(ask: Ask) -> dict[str, Any]:
    """Say what this server is, and whether a key is needed: `{name, version, keys, docs}`."""
    return {"name": "playhead", "version": __version__, "keys": ask.server.access.demanded(), "docs": "/docs"}


@route("GET", "/", scope="open", group="Server", media=("text/html",), limited=False)
def front(ask: Ask) -> Answer:
    """Show where to go on."""
    from playhead.server.pages import front_page

    return front_page(ask.server.access.demanded(), ask.base)
