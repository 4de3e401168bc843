"""Name the transports that a run uses and nobody can see into: gRPC, curl by way of curl_cffi, the loop of uvloop."""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable, Mapping
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from playhead.capture import answering, callers, guard, sockets
from playhead.capture.patches import Patches
from playhead.capture.scope import live, muted, wrapped

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

MODULES = ("grpc._channel", "grpc.aio._channel", "curl_cffi.requests.session", "uvloop")

_CALLS = ("__call__", "with_call", "future")
_TELEMETRY = "/opentelemetry.proto.collector."
# What the loop of uvloop does by itself, without a socket of Python's; of its processes see processes/uvloops.py.
_BY_THE_LOOP = {
    "create_connection": "a connection",
    "create_datagram_endpoint": "datagrams",
    "create_unix_connection": "a connection",
}
_INSTALLED = ("site-packages", "dist-packages")

_told: weakref.WeakKeyDictionary[Recording, set[tuple[str, str]]] = weakref.WeakKeyDictionary()


def patch(module: ModuleType, patches: Patches) -> None:
    """Watch for the first call, rather than for the import, which may be somebody's habit."""
    if module.__name__.startswith("grpc"):
        for kind in [kind for name, kind in vars(module).items() if name.endswith("MultiCallable")]:
            for name in _CALLS:
                if name in kind.__dict__ and kind.__module__ == module.__name__:
                    patches.replace(kind, name, _calling)
    elif module.__name__ == "uvloop":
        for name, what in _BY_THE_LOOP.items() if answering.player is None else ():  # in a replay it is asyncio's
            patches.cover(module.Loop, name, functools.partial(_looping, what))
    else:
        patches.replace(module.Session, "request", _requesting)
        patches.replace(module.AsyncSession, "request", _requesting)


def tell(source: str, where: Callable[[], str | None], library: str = "", line: str | None = None) -> None:
    """Note in the current run, once for each place, that something goes on there which is not recorded.

    `where` names the place; None where it is of no interest after all. The line that led there is named with it.
    """
    scope = live()
    if scope is None or muted.get() or not (scope.recording.captures or wrapped.get()):
        return
    recording = scope.recording
    try:
        if (place := where()) is not None and (source, place) not in _told.setdefault(recording, set()):
            _told[recording].add((source, place))
            used = line or used_at(sys._getframe(1), library)
            recording.not_captured(source, f"{place} at {used}" if used else place)
    except Exception as problem:
        guard.absorb(problem, recording, f"a gap ({source})", count=0, inside=True)


def used_at(frame: FrameType | None, library: str = "") -> str:
    """Return module and line of the agent's code that led here; of a library that it uses where it has none."""
    first = ""
    while frame is not None:
        module = frame.f_globals.get("__name__")
        if isinstance(module, str) and callers.sort_of(module) == callers.AGENT:
            place = f"{module}:{frame.f_lineno}"
            if not any(folder in frame.f_code.co_filename for folder in _INSTALLED):
                return place
            if module.partition(".")[0] != library:
                first = first or place
        frame = frame.f_back
    return first


def _calling(original: Any) -> Any:
    @functools.wraps(original)
    def calling(self: Any, *args: Any, **options: Any) -> Any:
        method = _text(self._method)
        if not method.startswith(_TELEMETRY):
            tell("grpc", lambda: f"{_text(getattr(self, '_target', b''))}{method}")
        return original(self, *args, **options)

    return calling


def _requesting(original: Any) -> Any:
    @functools.wraps(original)
    def request(self: Any, method: Any, url: Any, *args: Any, **options: Any) -> Any:
        from playhead.capture import telemetry  # here: it loads what is known of every provider

        headers = options.get("headers")
        pairs = headers.items() if isinstance(headers, Mapping) else ()
        if not telemetry.is_export(str(method), str(url), [(str(name), str(value)) for name, value in pairs]):
            tell("curl_cffi", lambda: without_secrets(str(url), path=False))
        return original(self, method, url, *args, **options)

    return request


def _looping(what: str, original: Any) -> Any:
    @functools.wraps(original)
    def looping(self: Any, *args: Any, **options: Any) -> Any:
        if options.get("sock") is None:  # else it was connected by Python, which tells of it
            _by_the_loop(what, args if what == "a connection" else (), options)
        return original(self, *args, **options)

    return looping


def serving(server: Any) -> None:
    """Name a server of uvloop, whose connections are accepted without a socket of Python's."""
    for socket in server.sockets:
        if not sockets.is_left_alone(socket.getsockname()):
            tell("uvloop", functools.partial(_served_at, socket))


def _served_at(socket: Any) -> str:
    return f"connections to {sockets.text_of(socket.getsockname())}"


def _by_the_loop(what: str, args: tuple[Any, ...], options: dict[str, Any]) -> None:
    named = (options[name] for name in ("host", "port", "path") if options.get(name) is not None)
    to = ":".join(str(part) for part in (*args[1:3], *named))
    tell("uvloop", lambda: f"{what} to {to}" if to else what)


def without_secrets(url: str, *, path: bool = True) -> str:
    """Return an address without what may be secret in it: user, password, query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path if path else "", "", ""))


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
