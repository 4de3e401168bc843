"""Tell http.client's adapter what urllib3 means to send, before it has a connection to send it over.

With it a request to a server that refuses, or whose certificate is bad, is recorded as well, and every request has its
body before the first byte leaves. Each attempt of a retry is an exchange of its own.
"""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from playhead.capture.clients.http_client import Wanted, address, connecting, never_sent, wanted
from playhead.capture.patches import Patches
from playhead.capture.scope import place

MODULES = ("urllib3.connectionpool",)


def patch(module: ModuleType, patches: Patches) -> None:
    """Put the recorder into the pools."""
    patches.replace(module.HTTPConnectionPool, "urlopen", _urlopen)
    for name in ("_validate_conn", "_prepare_proxy"):  # where a secure connection is made before there is a request
        patches.replace(module.HTTPSConnectionPool, name, _connecting)
    connection = sys.modules["urllib3.connection"]
    for name in ("HTTPConnection", "HTTPSConnection"):
        kind = getattr(connection, name, None)
        if isinstance(kind, type) and "connect" in kind.__dict__:
            patches.replace(kind, "connect", connecting)


def _urlopen(original: Any) -> Any:
    @functools.wraps(original)
    def urlopen(self: Any, method: Any, url: Any, body: Any = None, headers: Any = None, *args: Any, **kw: Any) -> Any:
        if place() is None:
            return original(self, method, url, body, headers, *args, **kw)
        token = wanted.set(Wanted(method, url, headers or self.headers, body))
        try:
            return original(self, method, url, body, headers, *args, **kw)
        finally:
            wanted.reset(token)

    return urlopen


def _connecting(original: Any) -> Any:
    @functools.wraps(original)
    def connects(self: Any, conn: Any) -> Any:
        try:
            return original(self, conn)
        except BaseException as error:
            asked = wanted.get()
            if asked is not None:
                url = asked.target
                if not url.startswith(("http://", "https://")):
                    url = address(self.scheme, self.host, self.port, url)
                never_sent(url, error)
            raise

    return connects
