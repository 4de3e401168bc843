"""Put it together: find the route, let in who may, read the request, call the handler, write the answer."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.routing import Match
from starlette.routing import Route as Way

from playhead import _limits
from playhead.errors import Busy, NotAllowed, NotThere, PlayheadError, StoreError
from playhead.server import answering, asking
from playhead.server.access import Access
from playhead.server.answering import Answer, Streamed
from playhead.server.asking import Ask, Gone, Receive
from playhead.server.caring import Caretaker
from playhead.server.counting import Counters
from playhead.server.projects import Projects
from playhead.server.routing import Route, load

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
logger = logging.getLogger("playhead.server")

_GRPC = "/opentelemetry.proto.collector."
_TOLD = frozenset({400, 401, 403, 413, 415, 429, 503})

SECURITY = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "cache-control": "no-store",
}


class Application:
    """Answer requests, as ASGI asks for it."""

    def __init__(
        self, projects: Projects, access: Access, caretaker: Caretaker, *, inflated_max: int | None = None
    ) -> None:
        self.projects = projects
        self.access = access
        self.caretaker = caretaker
        self.counters = Counters()
        self.stopping = asyncio.Event()
        self._inflated_max = inflated_max or _limits.BODY_INFLATED_BYTES_MAX
        self._ways = [(Way(route.path, _none, methods=[route.method]), route) for route in load()]
        self._pools = {
            "reading": ThreadPoolExecutor(_limits.READERS_MAX, "playhead-read"),
            "writing": ThreadPoolExecutor(_limits.WRITERS_MAX, "playhead-write"),
        }
        self.streams_open = 0
        self._bytes_in_flight = 0
        self._refusals: dict[int, tuple[float, int]] = {}  # by status, when one was told, and how many were not since
        self._waiting = {"reading": 0, "writing": 0}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._answer(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        async with _lifespan(self):
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        began_s = time.perf_counter()
        named, status = "unknown", 500
        try:
            route, path = self._route(scope)
            named = f"{route.method} {route.path}"
            answer = await self._begun(await self._handled(route, path, scope, receive))
        except PlayheadError as problem:
            answer = answering.refused(problem)
            self._tell(scope, answer.status, problem)
        except Gone:
            return
        except OSError as problem:
            logger.exception("%s %s", scope["method"], scope["path"])
            answer = answering.refused(StoreError(f"the disk refused: {problem.strerror}"))
        except Exception as problem:
            logger.exception("%s %s: %s", scope["method"], scope["path"], type(problem).__name__)
            answer = answering.broken()
        status = answer.status
        try:
            await self._send(answer, scope["method"], receive, send)
        finally:
            self.counters.count(named, status, time.perf_counter() - began_s)

    def _route(self, scope: Scope) -> tuple[Route, dict[str, str]]:
        allowed = []
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        # As it was sent: an id from outside may have a slash in it, which stands there as %2F.
        raw = scope["raw_path"].decode("latin-1")
        sent = {**scope, "path": raw.rstrip("/") if raw.startswith("/v1/") else raw}  # some exporters add a slash
        for way, route in self._ways:
            match, found = way.matches(sent)
            if match is Match.NONE:
                continue
            if route.method == method:
                return route, {name: unquote(value) for name, value in (found.get("path_params") or {}).items()}
            allowed.append(route.method)
        if allowed:
            problem = f"{scope['method']} cannot be done at {scope['path'][:200]}"
            raise NotAllowed(problem, allowed=tuple(allowed))
        if raw.startswith(_GRPC):
            raise NotThere(
                "OTLP over gRPC is not taken here", hint="Set OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf and send again."
            )
        raise NotThere(f"there is nothing at {scope['path'][:200]}", hint="/docs of this server lists every address.")

    def _tell(self, scope: Scope, status: int, problem: PlayheadError) -> None:
        """Log a refusal that whoever runs the server should know of: of each sort one a second, however many come."""
        if status not in _TOLD:
            return
        now_s = time.monotonic()
        said_s, untold = self._refusals.get(status, (0.0, 0))
        if now_s - said_s < 1:
            self._refusals[status] = said_s, untold + 1
            return
        self._refusals[status] = now_s, 0
        more = f" (and {untold} more like it)" if untold else ""
        client = (scope.get("client") or ("somewhere",))[0]
        path = scope["path"][:200].encode("unicode_escape").decode("ascii")
        logger.warning("%s %s from %s: %d, %s%s", scope["method"], path, client, status, problem.message, more)

    async def _handled(self, route: Route, path: dict[str, str], scope: Scope, receive: Receive) -> Answer | Streamed:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        demanded = self.access.demanded()
        self.access.check_origin(scope["method"], headers, demanded)
        caller = self.access.caller(route, headers, demanded)
        items = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        query = asking.read_query(items, route.query)
        held = _Held()
        try:
            body = b""
            if route.method in ("POST", "PUT") or route.takes:
                body = await self._body(route, headers, receive, held)
            base = f"{scope.get('scheme', 'http')}://{headers.get('host', '')}"
            project = self.projects.get(caller.project)
            ask = Ask(route, path, query, headers, body, caller, project, base, self)
            return _as_answer(await self._call(route, ask))
        finally:
            self._bytes_in_flight -= held.bytes

    async def _body(self, route: Route, headers: Mapping[str, str], receive: Receive, held: _Held) -> bytes:
        """Read a body; Busy where more is being worked on, or on its way, than the memory is meant for."""
        if self._waiting["writing"] >= _limits.WRITES_WAITING_MAX:
            raise Busy("too much is being taken in at once")

        def hold(size: int) -> None:
            self._bytes_in_flight += size - held.bytes
            held.bytes = size
            if self._bytes_in_flight > _limits.BODIES_BYTES_MAX:
                raise Busy("too much is being taken in at once")

        body = await asking.read_body(receive, headers, self._inflated_max, hold)
        asking.check_media(route, headers, body)
        return body

    async def _call(self, route: Route, ask: Ask) -> Any:
        if route.runs == "loop":
            found = route.handler(ask)
            return await found if asyncio.iscoroutine(found) else found
        if self._waiting[route.runs] >= _limits.REQUESTS_WAITING_MAX:
            raise Busy("too many requests are waiting")
        self._waiting[route.runs] += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pools[route.runs], route.handler, ask)
        finally:
            self._waiting[route.runs] -= 1

    async def _begun(self, answer: Answer | Streamed) -> Answer | Streamed:
        """Make the first piece of an answer, as long as it can still be said that this fails."""
        if isinstance(answer, Streamed) and isinstance(pieces := answer.pieces, Iterator):
            loop = asyncio.get_running_loop()
            first = await loop.run_in_executor(self._pools["reading"], next, pieces, b"")
            answer.pieces = itertools.chain([first], pieces)
        return answer

    async def _send(self, answer: Answer | Streamed, method: str, receive: Receive, send: Send) -> None:
        headers = {**SECURITY, "content-type": answer.media, **answer.headers}
        if isinstance(answer, Answer):
            headers["content-length"] = str(len(answer.body))
        raw = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": answer.status, "headers": raw})
        if method == "HEAD":
            await send({"type": "http.response.body", "body": b""})
        elif isinstance(answer, Answer):
            await send({"type": "http.response.body", "body": answer.body})
        else:
            await self._stream(answer, receive, send)

    async def _stream(self, answer: Streamed, receive: Receive, send: Send) -> None:
        """Send an answer piece by piece, for as long as somebody is there to whom it goes."""

        async def every() -> None:
            async for piece in _pieces(answer.pieces, self._pools["reading"]):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        self.streams_open += 1
        sending, gone = asyncio.ensure_future(every()), asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({sending, gone}, return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            self.streams_open -= 1
            for task in (sending, gone):
                task.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)

    def close(self) -> None:
        """Finish what was accepted, and let go of everything."""
        for pool in self._pools.values():
            pool.shutdown(wait=True, cancel_futures=False)
        self.caretaker.stop()
        self.projects.close()


class _Held:
    """How much of the body of one request is in memory."""

    bytes = 0


async def _left(receive: Receive) -> None:
    """Wait until whoever asked is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


@asynccontextmanager
async def _lifespan(application: Application) -> AsyncIterator[None]:
    application.caretaker.start()
    try:
        yield
    finally:
        await asyncio.get_running_loop().run_in_executor(None, application.close)


async def _none(request: Any) -> None:
    """Stand in for what Starlette would call: only its patterns of addresses are used."""


def _as_answer(found: Any) -> Answer | Streamed:
    return found if isinstance(found, (Answer, Streamed)) else answering.answered(found)


async def _pieces(pieces: Iterator[bytes] | AsyncIterator[bytes], pool: ThreadPoolExecutor) -> AsyncIterator[bytes]:
    if isinstance(pieces, AsyncIterator):
        async for piece in pieces:
            yield piece
        return
    loop = asyncio.get_running_loop()
    while piece := await loop.run_in_executor(pool, next, pieces, b""):
        yield piece
