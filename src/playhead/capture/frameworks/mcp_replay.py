"""Be the server of an MCP client in a replay: nothing is started or connected, and what it said comes from the tape.

The client's own code runs, on streams in memory: it numbers its requests, knows whose progress is told, gives up in
time. What it asks is answered with what was answered then; what the server said by itself comes at its turn, so that
the callbacks of the agent run again.
"""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from playhead.capture.scope import live, muted
from playhead.event.rebuilt import Rebuilder

if TYPE_CHECKING:
    from playhead.capture.answering import Answer, Player, Said
    from playhead.capture.frameworks.mcp_messages import Message, Server

_TIMED_OUT = (408, -32001)  # which the client says by itself, by the release
_GREETINGS = ("initialize", "notifications/initialized")
_numbers = itertools.count(1)


async def played(
    player: Player,
    server: Server | None,
    sending: Callable[[], Message | None],
    parts: int,
    real: Callable[[], AsyncGenerator[Any, None]],
) -> AsyncGenerator[Any, None]:
    """Yield the streams of a connection, once, as the generator of a transport does: `parts` of them.

    The `real` one is opened where the world is to answer: the server is greeted as this one was.
    """
    import anyio

    said: Any
    said, heard = anyio.create_memory_object_stream(float("inf"))
    if server is not None and server.keeps_context:
        said, heard = _with_context(said, heard)
    async with anyio.create_task_group() as tasks:
        playing = _Played(player, tasks, said, sending, real)
        playing.connected(server)
        yield (heard, playing, lambda: None)[:parts]
        tasks.cancel_scope.cancel()


def _with_context(said: Any, heard: Any) -> tuple[Any, Any]:
    """Return streams that keep the context of the sender, where the release has such."""
    streams = sys.modules.get("mcp.shared._context_streams")
    return (said, heard) if streams is None else (streams.ContextSendStream(said), streams.ContextReceiveStream(heard))


async def direct(player: Player, call: Message, client: Any, original: Callable[[], Any]) -> Any:
    """Answer a call of a server in this process, which is not run; the client hears what that said by itself.

    It is run, as the `original` does, where the world is to answer.
    """
    answer = player.answer(call.span)
    if answer is None and player.asks_world:
        return await original()
    if answer is None:
        player.cannot_answer("a server of MCP in this process was asked something, and nobody recorded that it was")
    for one in player.said(answer.span, None):
        await player.wait_async(one.at_us)
        params = Rebuilder().value(one.data.get("params"))
        if one.kind == "mcp.requested":
            await client._dispatch_request(one.data["method"], params, None)
        else:
            await client._dispatch_notify(one.data["method"], params)
    await player.wait_async(answer.ended_us)
    result, error = result_of(answer), answer.data.get("error")
    if result is None and error is not None:
        if "code" not in error:
            raise Rebuilder().error(error)
        raise sys.modules["mcp.shared.exceptions"].MCPError.from_error_data(error_data(error))
    return {} if result is None else result


class _Played:
    """What the client writes to."""

    def __init__(
        self,
        player: Player,
        tasks: Any,
        said: Any,
        sending: Callable[[], Message | None],
        open_real: Callable[[], AsyncGenerator[Any, None]],
    ) -> None:
        self._player, self._tasks, self._said, self._sending = player, tasks, said, sending
        self._open_real = open_real
        self._greeting: list[Any] = []  # what the client said first
        self._real: Any = None  # what it writes to, where a server is behind it

    def connected(self, server: Server | None) -> None:
        """Say what the server said without being asked."""
        scope = live()
        named = None if scope is None or server is None else server.told(scope.recording)
        self._say_all(self._player.said(None, named), None)

    async def send(self, item: Any) -> None:
        """Take a message; a request is answered at its turn."""
        message = getattr(item, "message", item)
        message = getattr(message, "root", message)
        asked = getattr(message, "id", None)
        if getattr(message, "method", None) in _GREETINGS:
            self._greeting.append(item)
        if asked is None or not hasattr(message, "method"):
            if self._real is not None:
                await self._real.send(item)
            return
        call = self._sending()
        answer = None if call is None else self._player.answer(call.span)
        if answer is None and call is not None and self._player.asks_world:
            await self._ask(item)
            return
        if answer is None:
            self._player.cannot_answer(f"the MCP client asked for {message.method}, and nobody recorded that it does")
        self._say_all(self._player.said(answer.span, None), asked)
        reply = _reply(answer, asked)
        if reply is not None:
            self._at(answer.ended_us, reply)

    def _say_all(self, told: Sequence[Said], asked: Any) -> None:
        for one in told:
            self._at(one.at_us, _told(one.data, one.kind == "mcp.requested", asked))

    def _at(self, at_us: int, message: Any) -> None:
        """Say something at its turn, from a task in the context of whoever asked, that has no lane."""

        async def say() -> None:
            await self._player.wait_async(at_us)
            await self._said.send(message)

        with _quiet():
            self._tasks.start_soon(say)

    # A server behind it.

    async def _ask(self, item: Any) -> None:
        """Hand something to the server, which is started for it."""
        if self._real is None:
            import anyio

            greeted = anyio.Event()
            with _quiet():
                self._tasks.start_soon(self._serve, greeted)
            await greeted.wait()
        await self._real.send(item)

    async def _serve(self, greeted: Any) -> None:
        """Greet a server as the one on the tape was, and pass on what it says."""
        async with contextlib.asynccontextmanager(self._open_real)() as streams:
            heard, real = streams[0], streams[1]
            first, *rest = self._greeting
            await real.send(first)
            while _id_of(await heard.receive()) != _id_of(first):
                pass  # what it says by itself before that is not for this session
            for item in rest:
                await real.send(item)
            self._real = real
            greeted.set()
            async for message in heard:
                await self._said.send(message)

    # What else is done with such a stream.

    async def aclose(self) -> None:
        """End: nothing more is asked."""

    def close(self) -> None:
        """End: nothing more is asked."""

    def clone(self) -> Self:
        """Return it: there is only one."""
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: Any) -> None:
        return None


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    token = muted.set(True)
    try:
        yield
    finally:
        muted.reset(token)


def _id_of(item: Any) -> Any:
    message = getattr(item, "message", item)
    return getattr(getattr(message, "root", message), "id", None)


# Messages of either release: in mcp 1 each has a `root`.


def _types() -> Any:
    return sys.modules.get("mcp_types") or sys.modules["mcp.types"]


def _session_message(message: Any) -> Any:
    wrap = getattr(_types(), "JSONRPCMessage", None)
    if isinstance(wrap, type):
        message = wrap(message)
    outer = getattr(sys.modules.get("mcp.shared.message"), "SessionMessage", None)
    return message if outer is None else outer(message)


def result_of(answer: Answer) -> Any:
    """Return the result that came; None where none did."""
    data = answer.data
    return Rebuilder().value(data.get("output" if answer.kind.startswith("tool.") else "result"))


def _reply(answer: Answer, asked: Any) -> Any:
    """Return the message that answered; None where none came, and the client gave up, or was cancelled."""
    types, result, error = _types(), result_of(answer), answer.data.get("error")
    if result is not None:
        return _session_message(types.JSONRPCResponse(jsonrpc="2.0", id=asked, result=result))
    code = error.get("code") if isinstance(error, Mapping) else None
    if code is None and error is not None:
        return None
    if code in _TIMED_OUT and "timed out" in str(error and error.get("message")).lower():
        return None
    if error is None:
        return _session_message(types.JSONRPCResponse(jsonrpc="2.0", id=asked, result={}))
    return _session_message(types.JSONRPCError(jsonrpc="2.0", id=asked, error=error_data(error)))


def error_data(error: Mapping[str, Any]) -> Any:
    """Return the error of JSON-RPC that was recorded."""
    return _types().ErrorData(
        code=error["code"], message=str(error.get("message")), data=Rebuilder().value(error.get("data"))
    )


def _told(data: Mapping[str, Any], asks: bool, asked: Any) -> Any:
    """Return what the server said by itself: a notification, a request, or something that is no message."""
    if data.get("error") is not None:
        return Rebuilder().error(data["error"])
    types, params = _types(), Rebuilder().value(data.get("params"))
    if isinstance(params, dict) and "progressToken" in params and asked is not None:
        params["progressToken"] = asked  # the number of the request, which may be another one now
    fields = {"jsonrpc": "2.0", "method": data["method"], **({} if params is None else {"params": params})}
    if asks:
        return _session_message(types.JSONRPCRequest(id=f"playhead-{next(_numbers)}", **fields))
    return _session_message(types.JSONRPCNotification(**fields))
