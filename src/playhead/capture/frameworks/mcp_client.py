"""Record what goes over MCP, at the part of the client that owns the two streams of messages; mcp 1 and mcp 2.

In mcp 1 that is the session, in mcp 2 its dispatcher. Every transport ends there, so each message is seen once, also by
a client that was made, or a function that was imported, before the run. What a transport sends over HTTP for it is the
same message again: it is muted, in the tasks that the transport starts too.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from contextvars import Context, ContextVar
from types import ModuleType
from typing import Any

from playhead.capture import answering
from playhead.capture.frameworks import mcp_replay
from playhead.capture.frameworks.mcp_messages import IN_PROCESS, Conversation, Message, Server, given_back
from playhead.capture.patches import Patches
from playhead.capture.scope import current, muted

_TRANSPORTS = {
    "mcp.client.stdio": ("stdio_client",),
    "mcp.client.streamable_http": ("streamable_http_client", "streamablehttp_client"),
    "mcp.client.sse": ("sse_client",),
}
_OF_THREE = ("streamablehttp_client", "streamable_http_client")  # in mcp 1: and how to get the id of the session
MODULES = ("mcp.client.session", "mcp.shared.direct_dispatcher", *_TRANSPORTS)

_servers: dict[int, Server] = {}  # of open transports, by the identity of the stream that is written to
_conversations: weakref.WeakKeyDictionary[Any, Conversation] = weakref.WeakKeyDictionary()
_sending: ContextVar[Message | None] = ContextVar("playhead_mcp_sending", default=None)


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder into the module, as its release of the library has it."""
    if module.__name__ in _TRANSPORTS:
        for name in _TRANSPORTS[module.__name__]:
            if hasattr(module, name):
                patches.replace_inner(getattr(module, name), "func", _transport)
    elif module.__name__ == "mcp.shared.direct_dispatcher":
        _patch_direct(module.DirectDispatcher, patches)
    elif hasattr(module, "BaseSession"):
        _patch_session(module.BaseSession, module.ClientSession, patches)
    else:
        _patch_dispatcher(module.JSONRPCDispatcher, patches)


def _conversation(owner: Any) -> Conversation:
    found = _conversations.get(owner)
    if found is None:
        found = _conversations[owner] = Conversation()
    if found.server is None:
        stream = getattr(owner, "_write_stream", None)
        found.server = Server(IN_PROCESS) if stream is None else _servers.get(id(stream))
    return found


async def _quietly(step: Any) -> Any:
    """Await a step of a transport without recording its traffic, which is that of messages that are recorded."""
    scope = current.get()
    if scope is not None and not scope.recording.captures:
        return await step
    token = muted.set(True)
    try:
        return await step
    finally:
        muted.reset(token)


# Transports.


def _transport(original: Any) -> Any:
    """Mute what a transport does. `original` is the generator function inside of its context manager."""

    @functools.wraps(original)
    def transport(*args: Any, **kwargs: Any) -> Any:
        server = _server(args, kwargs)
        if answering.player is not None and not answering.player.is_in_world():
            is_first = hasattr(sys.modules["mcp.client.session"], "BaseSession")
            parts = 3 if is_first and original.__name__ in _OF_THREE else 2
            real = functools.partial(original, *args, **kwargs)
            return _Muted(mcp_replay.played(answering.player, server, _sending.get, parts, real), server)
        return _Muted(original(*args, **kwargs), server)

    return transport


def _server(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Server | None:
    target = args[0] if args else kwargs.get("server", kwargs.get("url"))
    if isinstance(target, str):
        return Server(target)
    command, arguments = getattr(target, "command", None), getattr(target, "args", None)
    if not isinstance(command, str):
        return None
    return Server.of_command(command, [str(part) for part in arguments or ()], getattr(target, "env", None))


class _Muted:
    """The generator of a context manager, of which every piece runs muted, and what is between them does not.

    Tasks that it starts take the muted context with them.
    """

    def __init__(self, inner: Any, server: Server | None) -> None:
        self._inner, self._server = inner, server
        self._stream: int | None = None

    def __aiter__(self) -> _Muted:
        return self

    async def __anext__(self) -> Any:
        self._forget()
        streams = await _quietly(self._inner.__anext__())
        if self._server is not None and isinstance(streams, tuple) and len(streams) > 1:
            self._stream = id(streams[1])
            _servers[self._stream] = self._server
        return streams

    async def athrow(self, *error: Any) -> Any:
        self._forget()
        return await _quietly(self._inner.athrow(*error))

    async def aclose(self) -> None:
        self._forget()
        await _quietly(self._inner.aclose())

    def _forget(self) -> None:
        if self._stream is not None:
            _servers.pop(self._stream, None)
            self._stream = None


# mcp 1: the session.


def _patch_session(base: Any, client: Any, patches: Patches) -> None:
    waiting: weakref.WeakKeyDictionary[Any, dict[Any, Message]] = weakref.WeakKeyDictionary()  # for our answers
    patches.replace(base, "send_request", functools.partial(_send_request, client))
    patches.replace(base, "send_notification", functools.partial(_send_notification, client))
    patches.replace(base, "_send_response", functools.partial(_send_response, waiting))
    patches.replace(client, "_received_request", functools.partial(_received_request, waiting))
    patches.replace(client, "_received_notification", _received_notification)
    patches.replace(client, "_handle_incoming", _handle_incoming)


class _Noting:
    """A type of results that tells a call what was validated: the answer as it came."""

    def __init__(self, inner: Any, call: Message) -> None:
        self._inner, self._call = inner, call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def model_validate(self, value: Any, *args: Any, **kwargs: Any) -> Any:
        self._call.answered(value)
        return self._inner.model_validate(value, *args, **kwargs)


def _send_request(client: Any, original: Any) -> Any:
    @functools.wraps(original)
    async def send_request(self: Any, request: Any, result_type: Any, *args: Any, **kwargs: Any) -> Any:
        call = _conversation(self).ask(lambda: _of_model(request)) if isinstance(self, client) else None
        if call is None:
            return await original(self, request, result_type, *args, **kwargs)
        with call:
            call.id = self._request_id
            token = _sending.set(call)
            try:
                return await original(self, request, _Noting(result_type, call), *args, **kwargs)
            finally:
                _sending.reset(token)

    return send_request


def _send_notification(client: Any, original: Any) -> Any:
    @functools.wraps(original)
    async def send_notification(self: Any, notification: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, client):
            _conversation(self).notify(lambda: _of_model(notification))
        return await original(self, notification, *args, **kwargs)

    return send_notification


def _received_request(waiting: Any, original: Any) -> Any:
    @functools.wraps(original)
    async def received_request(self: Any, responder: Any) -> Any:
        conversation = _conversation(self)
        with conversation.at():
            call = conversation.asked(lambda: _of_model(responder.request))
            if call is None:
                return await original(self, responder)
            call.begin()
            waiting.setdefault(self, {})[responder.request_id] = call
            try:
                with call.current():
                    return await original(self, responder)
            except BaseException as error:
                waiting[self].pop(responder.request_id, call).end(error)
                raise

    return received_request


def _send_response(waiting: Any, original: Any) -> Any:
    @functools.wraps(original)
    async def send_response(self: Any, request_id: Any, response: Any) -> Any:
        call = waiting.get(self, {}).pop(request_id, None)
        if call is not None:
            if hasattr(response, "code") and hasattr(response, "message"):
                call.refused(response)
            else:
                call.answered(_plain(response))
                call.end()
        return await original(self, request_id, response)

    return send_response


def _received_notification(original: Any) -> Any:
    @functools.wraps(original)
    async def received_notification(self: Any, notification: Any) -> Any:
        _conversation(self).notified(lambda: _of_model(notification))
        return await original(self, notification)

    return received_notification


def _handle_incoming(original: Any) -> Any:
    @functools.wraps(original)
    async def handle_incoming(self: Any, req: Any) -> Any:
        if isinstance(req, Exception):
            _conversation(self).unreadable(req)
        return await original(self, req)

    return handle_incoming


def _of_model(message: Any) -> tuple[str, Any]:
    data = _plain(message)
    return str(data.get("method")), data.get("params")


def _plain(model: Any) -> Any:
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)  # as the session does


# mcp 2: the dispatcher, which servers have too.


def _patch_dispatcher(dispatcher: Any, patches: Patches) -> None:
    _check(dispatcher)
    patches.replace(dispatcher, "send_raw_request", _send_raw_request)
    patches.replace(dispatcher, "notify", _notify)
    patches.replace(dispatcher, "_write", _write)
    patches.replace(dispatcher, "_dispatch", _dispatch)


def _patch_direct(dispatcher: Any, patches: Patches) -> None:
    """A server inside the process is called directly: there are no streams, and nothing is written."""
    _check(dispatcher)
    patches.replace(dispatcher, "send_raw_request", _send_raw_request)
    patches.replace(dispatcher, "notify", _notify)
    patches.replace(dispatcher, "_dispatch_request", _dispatch_request)
    patches.replace(dispatcher, "_dispatch_notify", _dispatch_notify)


def _check(dispatcher: Any) -> None:
    if "_on_notify_intercept" not in dispatcher.__init__.__code__.co_names:
        raise AttributeError(f"{dispatcher.__name__} does not say whose it is")


def _of_client(dispatcher: Any) -> Conversation | None:
    """Return the conversation of a client's dispatcher; None for that of a server, which speaks for itself."""
    owner = getattr(dispatcher._on_notify_intercept, "__self__", None)
    kind = getattr(sys.modules.get("mcp.client.session"), "ClientSession", None)
    return _conversation(dispatcher) if kind is not None and isinstance(owner, kind) else None


def _send_raw_request(original: Any) -> Any:
    @functools.wraps(original)
    async def send_raw_request(self: Any, method: Any, params: Any, *args: Any, **kwargs: Any) -> Any:
        conversation = _of_client(self)
        call = None if conversation is None else conversation.ask(lambda: (method, params))
        if call is None:
            return await original(self, method, params, *args, **kwargs)
        with call:
            token = _sending.set(call)
            try:
                if answering.player is not None and not hasattr(self, "_write_stream"):
                    asked = functools.partial(original, self, method, params, *args, **kwargs)
                    result = await mcp_replay.direct(answering.player, call, self, asked)
                else:
                    result = await original(self, method, params, *args, **kwargs)
            finally:
                _sending.reset(token)
            call.answered(result)
            return result

    return send_raw_request


def _notify(original: Any) -> Any:
    @functools.wraps(original)
    async def notify(self: Any, method: Any, params: Any, *args: Any, **kwargs: Any) -> Any:
        conversation = _of_client(self)
        if conversation is not None:
            conversation.notify(lambda: (method, params))
        return await original(self, method, params, *args, **kwargs)

    return notify


def _write(original: Any) -> Any:
    @functools.wraps(original)
    async def write(self: Any, message: Any, *args: Any, **kwargs: Any) -> Any:
        if _of_client(self) is None:
            return await original(self, message, *args, **kwargs)
        call = _sending.get()
        if call is not None and call.id is None:
            call.id = getattr(message, "id", None)
        # The stream keeps the context of the writer for the tasks that send the message.
        return await _quietly(original(self, message, *args, **kwargs))

    return write


def _dispatch(original: Any) -> Any:
    @functools.wraps(original)
    async def dispatch(self: Any, item: Any, on_request: Any, on_notify: Any, sender_ctx: Any) -> Any:
        if sender_ctx is not None:
            given_back(sender_ctx)
        conversation = _of_client(self)
        if conversation is not None:
            message: Any = getattr(item, "message", None)
            if isinstance(item, Exception):
                conversation.unreadable(item)
            elif hasattr(message, "method") and hasattr(message, "id"):
                on_request = _answering(conversation, on_request, sender_ctx)
            elif hasattr(message, "method"):
                conversation.notified(lambda: (message.method, message.params), sender_ctx)
        return await original(self, item, on_request, on_notify, sender_ctx)

    return dispatch


def _dispatch_request(original: Any) -> Any:
    @functools.wraps(original)
    async def dispatch_request(self: Any, method: Any, params: Any, opts: Any) -> Any:
        conversation = _of_client(self)
        if conversation is None:
            return await original(self, method, params, opts)

        async def ask(_: Any, method: Any, params: Any) -> Any:
            return await original(self, method, params, opts)

        return await _answering(conversation, ask, None)(None, method, params)

    return dispatch_request


def _dispatch_notify(original: Any) -> Any:
    @functools.wraps(original)
    async def dispatch_notify(self: Any, method: Any, params: Any) -> Any:
        conversation = _of_client(self)
        if conversation is not None:
            conversation.notified(lambda: (method, params))
        return await original(self, method, params)

    return dispatch_notify


def _answering(conversation: Conversation, on_request: Callable[..., Any], context: Context | None) -> Any:
    async def answer(dispatch_context: Any, method: Any, params: Any) -> Any:
        with conversation.at(context):
            call = conversation.asked(lambda: (method, params))
            if call is None:
                return await on_request(dispatch_context, method, params)
            with call:
                result = await on_request(dispatch_context, method, params)
                call.answered(result)
                return result

    return answer
