"""Name the transports that a run uses and nobody can see into: gRPC, and curl by way of curl_cffi."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from playhead.capture import guard, telemetry
from playhead.capture.patches import Patches
from playhead.capture.scope import live, muted, wrapped

MODULES = ("grpc._channel", "grpc.aio._channel", "curl_cffi.requests.session")

_CALLS = ("__call__", "with_call", "future")
_TELEMETRY = "/opentelemetry.proto.collector."


def patch(module: ModuleType, patches: Patches) -> None:
    """Watch for the first call, rather than for the import, which may be somebody's habit."""
    if module.__name__.startswith("grpc"):
        for kind in [kind for name, kind in vars(module).items() if name.endswith("MultiCallable")]:
            for name in _CALLS:
                if name in kind.__dict__ and kind.__module__ == module.__name__:
                    patches.replace(kind, name, _calling)
    else:
        patches.replace(module.Session, "request", _requesting)
        patches.replace(module.AsyncSession, "request", _requesting)


def tell(source: str, where: Callable[[], str | None]) -> None:
    """Note in the current run, once for each place, that something goes on there which is not recorded.

    `where` names the place; None where it is of no interest after all.
    """
    scope = live()
    if scope is None or muted.get() or not (scope.recording.captures or wrapped.get()):
        return
    try:
        if (place := where()) is not None:
            scope.recording.not_captured(source, place)
    except Exception as problem:
        guard.absorb(problem, scope.recording, f"a gap ({source})", count=0, inside=True)


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
        headers = options.get("headers")
        pairs = headers.items() if isinstance(headers, Mapping) else ()
        if not telemetry.is_export(str(method), str(url), [(str(name), str(value)) for name, value in pairs]):
            tell("curl_cffi", lambda: without_secrets(str(url), path=False))
        return original(self, method, url, *args, **options)

    return request


def without_secrets(url: str, *, path: bool = True) -> str:
    """Return an address without what may be secret in it: user, password, query."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path if path else "", "", ""))


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
