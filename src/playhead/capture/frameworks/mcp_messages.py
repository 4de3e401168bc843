"""Record the messages between an MCP client and its server, whichever release of the client passes them on.

A request and its answer are one call: `tools/call` is a tool, anything else is `mcp.requested` and `mcp.answered`. What
the server asks of the agent is one too, the other way round. Notifications are points.
"""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import Context
from typing import TYPE_CHECKING, Any, Self

from playhead.capture import guard, redact_http
from playhead.capture.redact import Redactor
from playhead.capture.scope import Scope, ambient_lane, current, live, muted, place
from playhead.capture.spans import Span, ToolCall
from playhead.event import kinds
from playhead.event.plain import describe_error

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

Read = Callable[[], tuple[str, Any]]  # the method and the params of a message

_OWN_META = "io.modelcontextprotocol/"  # what the protocol itself says with every request: versions, abilities


class Server:
    """Which server is spoken to: by its command line or its address, neither with secrets."""

    def __init__(self, text: str, secrets: Mapping[str, str] | None = None) -> None:
        self._text = text
        self._is_address = secrets is None
        self._secrets = dict(secrets or {})
        self._told: tuple[Any, str] | None = None
        self.keeps_context = self._is_address  # its streams pass on the context of the sender

    @classmethod
    def of_command(cls, command: str, args: Sequence[str], env: Mapping[str, str] | None) -> Server:
        """Describe a server that is started as a process."""
        secrets = dict(env or {})
        for name, value in zip(args, [*args[1:], ""], strict=True):
            before, equals, after = name.partition("=")
            secrets[before] = after if equals else value  # `--token x`, `--token=x`, `-e TOKEN=x`
        return cls(shlex.join([command, *args]), secrets)

    def told(self, recording: Recording) -> str:
        """Return what is recorded of it; from now on its secrets are known wherever they stand."""
        redactor = recording.redactor
        if self._told is None or self._told[0] is not redactor:
            redactor.learn(self._secrets)
            counts: dict[str, int] = {}
            clean = redact_http.url if self._is_address else Redactor.redact_text
            self._told = redactor, clean(redactor, self._text, counts)
            recording.count_redacted(counts)
        return self._told[1]


IN_PROCESS = "in-process"


class Message(Span):
    """A request that is answered. `id` is that of JSON-RPC, once it is known."""

    id: Any = None
    _from_server = False
    _failure: Any = None  # an exception with the error of JSON-RPC, or that error itself

    def of(self, conversation: Conversation, recording: Recording) -> Self:
        """Say in which conversation and in which run this is; return the message itself."""
        self._conversation, self._recording = conversation, recording
        return self

    @property
    def inside(self) -> Scope | None:
        """Return the scope of what happens because of it."""
        return self._inside

    def answered(self, result: Any) -> None:
        """Take in the answer."""
        raise NotImplementedError

    def refused(self, error: Any) -> None:
        """Take in that the answer is an error, and end."""
        self._failure = error
        self.end()

    def begin(self) -> None:
        try:
            super().begin()
        except Exception as problem:
            guard.absorb(problem, self._recording, "a request of MCP", inside=True)
        if not self._from_server:
            self._conversation.asking[self] = None

    def end(self, error: BaseException | None = None) -> None:
        self._conversation.asking.pop(self, None)
        self._failure = getattr(error, "error", None) or self._failure
        try:
            super().end(error)
        except Exception as problem:
            guard.absorb(problem, self._recording, "an answer of MCP", inside=True)

    def _ended(
        self, status: kinds.Status, described: dict[str, Any] | None
    ) -> tuple[kinds.Status, dict[str, Any] | None]:
        """Add what JSON-RPC says of an error."""
        code, data = getattr(self._failure, "code", None), getattr(self._failure, "data", None)
        if not isinstance(code, int):
            return status, described
        described = described or {"type": "McpError", "message": str(getattr(self._failure, "message", ""))}
        described["code"] = int(code)
        if data is not None:
            described["data"] = data
        return "error" if status == "ok" else status, described


class Request(Message):
    """Any request but the call of a tool."""

    def __init__(self, method: str, params: Any, *, from_server: bool = False) -> None:
        super().__init__()
        self._method, self._params, self._from_server = method, params, from_server
        self._result: Any = None

    def answered(self, result: Any) -> None:
        self._result = result

    def opening(self, scope: Scope) -> kinds.Payload:
        return kinds.McpRequested(
            method=self._method,
            params=self._params,
            server=self._conversation.told(scope.recording),
            from_server=self._from_server,
        )

    def closing(self, status: kinds.Status, error: dict[str, Any] | None) -> kinds.Payload:
        status, error = self._ended(status, error)
        return kinds.McpAnswered(status=status, result=self._result, error=error)


class Tool(Message, ToolCall):
    """The call of a tool."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        super().__init__(str(params.get("name")), params.get("arguments") or {}, [])
        self._params = params

    def answered(self, result: Any) -> None:
        self.output = result

    def _is_told(self, scope: Scope) -> bool:
        super()._is_told(scope)  # which notes that the framework's tool has begun
        return False  # what crosses to the server is a fact of its own, whichever tool is around it

    def opening(self, scope: Scope) -> kinds.Payload:
        called = super().opening(scope)
        assert isinstance(called, kinds.ToolCalled)
        called.server = self._conversation.told(scope.recording)
        more = {name: value for name, value in self._params.items() if name not in ("name", "arguments", "_meta")}
        meta = self._params.get("_meta")
        if isinstance(meta, Mapping):
            own = {name: value for name, value in meta.items() if not name.startswith(_OWN_META)}
            more.update({"_meta": own} if own else {})
        called.params = more or None
        return called

    def closing(self, status: kinds.Status, error: dict[str, Any] | None) -> kinds.Payload:
        if status == "ok" and isinstance(self.output, Mapping) and self.output.get("isError") is True:
            status, error = "error", {"type": "ToolError", "message": _texts(self.output.get("content"))}
        return super().closing(*self._ended(status, error))


class Conversation:
    """One connection of a client to a server."""

    def __init__(self, server: Server | None = None) -> None:
        self.server = server
        self.asking: dict[Message, None] = {}  # our requests that are not answered yet

    def told(self, recording: Recording) -> str | None:
        """Return how the server is called in a run."""
        return None if self.server is None else self.server.told(recording)

    def ask(self, read: Read) -> Message | None:
        """Return the span for a request of the agent; None where nothing is to be recorded."""
        scope = watched()
        if scope is None:
            return None
        try:
            method, params = read()
            is_tool = method == "tools/call" and isinstance(params, Mapping)
            return (Tool(params) if is_tool else Request(method, params)).of(self, scope.recording)
        except Exception as problem:
            guard.absorb(problem, scope.recording, "a request of MCP", inside=True)
            return None

    def asked(self, read: Read) -> Message | None:
        """Return the span for a request of the server; to be called inside `at`."""
        scope = watched()
        if scope is None:
            return None
        try:
            return Request(*read(), from_server=True).of(self, scope.recording)
        except Exception as problem:
            guard.absorb(problem, scope.recording, "a request of an MCP server", inside=True)
            return None

    def notify(self, read: Read) -> None:
        """Record that the agent tells the server something."""
        self._point(lambda: _notification(*read()))

    def notified(self, read: Read, context: Context | None = None) -> None:
        """Record that the server tells the agent something."""
        with self.at(context):
            self._point(lambda: _notification(*read(), from_server=True))

    def unreadable(self, problem: Exception) -> None:
        """Record that something came which is no message."""
        with self.at():
            self._point(lambda: kinds.McpNotified(error=describe_error(problem), from_server=True))

    def _point(self, make: Callable[[], kinds.McpNotified]) -> None:
        scope = watched()
        if scope is None:
            return
        try:
            notified = make()
            notified.server = self.told(scope.recording)
            scope.recording.emit(notified, parent=self._progressing(notified, scope) or scope.span)
        except Exception as problem:
            guard.absorb(problem, scope.recording, "a notification of MCP", inside=True)

    def _progressing(self, notified: kinds.McpNotified, scope: Scope) -> str | None:
        """Return the span of the call whose progress this tells of."""
        token = notified.params.get("progressToken") if isinstance(notified.params, Mapping) else None
        if token is None or not notified.from_server:
            return None
        named = (call for call in self.asking if call.inside is not None and str(call.id) == str(token))
        return next((call.span for call in named if call.inside and call.inside.recording is scope.recording), None)

    @contextlib.contextmanager
    def at(self, context: Context | None = None) -> Iterator[None]:
        """Make current, for what the server sent, the scope of the call that it belongs to, in the lane of the reader.

        That is the one whose context the transport kept for it; else the only one that is under way; else it is
        where the connection was opened.
        """
        here = place()
        scope = self._belongs(context, here)
        if scope is None or scope is here:
            yield
            return
        lane = here.lane if here is not None and here.recording is scope.recording else scope.lane
        reset = current.set(Scope(scope.recording, scope.span, lane))
        try:
            yield
        finally:
            current.reset(reset)

    def _belongs(self, context: Context | None, here: Scope | None) -> Scope | None:
        calls = [call.inside for call in self.asking if call.inside is not None]
        there = None if context is None else context.get(current)
        named = None if there is None else next((call for call in calls if call.span == there.span), None)
        if named is not None:
            return named
        return calls[-1] if len(calls) == 1 or (calls and here is None) else here


def watched() -> Scope | None:
    """Return where a message that passes now is recorded; None where it is not."""
    scope = live()
    return None if scope is None or muted.get() or not scope.recording.captures else scope


def given_back(context: Context) -> None:
    """Prepare a context that a transport kept with a message for the agent's code: not muted, in the reader's lane."""
    if context.get(muted):
        context.run(muted.set, False)
    here, there = place(), context.get(current)
    if here is not None and there is not None and here.recording is there.recording:
        context.run(current.set, Scope(there.recording, there.span, here.lane))
    context.run(ambient_lane.set, ambient_lane.get())


def _notification(method: str, params: Any, *, from_server: bool = False) -> kinds.McpNotified:
    return kinds.McpNotified(method=method, params=params, from_server=from_server)


def _texts(content: Any) -> str:
    parts = content if isinstance(content, list) else []
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, Mapping) and "text" in part)
