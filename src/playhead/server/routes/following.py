"""Tell of news as they come: server-sent events, which a browser and curl understand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any

import msgspec
import orjson

from playhead import _limits
from playhead._api.listing import list_runs, told
from playhead.server.answering import Streamed, encoded
from playhead.server.asking import Ask
from playhead.server.finding import reader_of, run_of
from playhead.server.routes.events import Seq
from playhead.server.routing import Query, route
from playhead.store.reader import RunReader

SSE = "text/event-stream"


class FollowQuery(Query):
    """From where on."""

    start: Seq = 0  # the first event that is told; a browser that comes back says where it was by itself


@route("GET", "/api/runs/{run}/follow", group="Following", query=FollowQuery, media=(SSE,), runs="loop", limited=False)
async def follow_run(ask: Ask) -> Streamed:
    """Follow a run: each line as it is sealed, as the event `line` whose id is its seq; `end` when the run ended.

    Whoever comes back with `Last-Event-ID` goes on after it.
    """
    loop = asyncio.get_running_loop()
    run = await loop.run_in_executor(None, run_of, ask.project, ask.path["run"])
    last = ask.headers.get("last-event-id", "")
    start = int(last) + 1 if last.isdecimal() and len(last) <= _limits.BACK_DIGITS_MAX else ask.query.start
    follower = _Follower(reader_of(run), start, lambda: run.status)
    return Streamed(_told(ask, follower.news), media=SSE, headers={"x-accel-buffering": "no"})


class NewsQuery(Query):
    """How many runs are told at first."""

    limit: Annotated[int, msgspec.Meta(ge=0, le=_limits.PAGE_MAX)] = 0  # of those that are there already


@route("GET", "/api/follow", group="Following", query=NewsQuery, media=(SSE,), runs="loop", limited=False)
async def follow_runs(ask: Ask) -> Streamed:
    """Follow the list of runs: each run that is new, grew or ended, as the event `run`, as GET /api/runs has it."""
    return Streamed(_told(ask, _Changes(ask, ask.query.limit).news), media=SSE, headers={"x-accel-buffering": "no"})


async def _told(ask: Ask, news: Callable[[], Iterator[tuple[str, str | None, bytes]]]) -> AsyncIterator[bytes]:
    """Send what is new, and now and then a sign of life; until the end, or until the server stops."""
    loop = asyncio.get_running_loop()
    yield b": playhead\nretry: 1000\n\n"
    quiet = 0.0
    while not ask.server.stopping.is_set():
        found = await loop.run_in_executor(None, lambda: list(news()))
        for name, id, data in found:
            head = f"event: {name}\n" + (f"id: {id}\n" if id is not None else "")
            yield head.encode() + b"data: " + data + b"\n\n"
            if name == "end":
                return
        quiet = 0.0 if found else quiet + _limits.FOLLOW_INTERVAL_S
        if quiet >= _limits.FOLLOW_ALIVE_S:
            quiet = 0.0
            yield b": alive\n\n"
        try:
            await asyncio.wait_for(ask.server.stopping.wait(), _limits.FOLLOW_INTERVAL_S)
        except TimeoutError:
            pass


class _Follower:
    """Know how far a run was told."""

    def __init__(self, reader: RunReader, start: int, status: Callable[[], str]) -> None:
        self._reader = reader
        self._next = start
        self._status = status

    def news(self) -> Iterator[tuple[str, str | None, bytes]]:
        # Asked before reading: what a writer that is gone has written is then in the file.
        status = self._status()
        for number, line in enumerate(self._reader.lines_from(self._next)):
            yield "line", str(self._next), line
            self._next += 1
            if number == _limits.EVENTS_PAGE_MAX:
                return
        if status != "running":
            yield "end", None, orjson.dumps({"run": self._reader.id, "status": status})


class _Changes:
    """Know in which form each run of a list was told."""

    def __init__(self, ask: Ask, limit: int) -> None:
        self._ask = ask
        self._limit = limit
        self._told: dict[str, Any] | None = None

    def news(self) -> Iterator[tuple[str, str | None, bytes]]:
        runs = list_runs(self._ask.project.index, limit=_limits.PAGE_MAX)
        before, self._told = self._told, {run["id"]: (run["status"], run["events"]) for run in runs}
        if before is None:
            runs = runs[: self._limit]
            before = {}
        for run in reversed(runs):
            if before.get(run["id"]) != (run["status"], run["events"]):
                yield "run", None, encoded(told(run))
