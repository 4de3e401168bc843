"""Say who asks, and what they may: by a key, or by the session of a browser that logged in with one."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from playhead import _limits
from playhead.errors import Forbidden, KeyRefused, TooMany
from playhead.server.projects import DEFAULT, Projects
from playhead.server.routing import Route
from playhead.store.registry.keys import Key, Keys
from playhead.store.registry.sessions import Sessions

COOKIE = "playhead_session"
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}
_SAFE = ("GET", "HEAD")


class Caller(NamedTuple):
    """Who asks."""

    project: str
    key: Key | None  # None where no key is demanded
    session: str | None = None  # of a browser

    def may(self, scope: str) -> bool:
        """Say whether something may be asked."""
        return self.key is None or scope == "open" or self.key.allows(scope)


class Access:
    """Let in who may come in."""

    def __init__(self, projects: Projects, *, hosts: frozenset[str] | None, rate_per_s: float) -> None:
        self.keys = Keys(projects.registry)
        self.sessions = Sessions(projects.registry)
        self._hosts = hosts  # names by which a server without keys may be called; None for any
        self._rates = Rates(rate_per_s)

    def demanded(self) -> bool:
        """Say whether a key is needed: as soon as there is one."""
        return self.keys.any()

    def check_origin(self, method: str, headers: Mapping[str, str], demanded: bool) -> None:
        """Refuse what a page of somebody else sends through the browser of whoever runs this server."""
        host = headers.get("host", "")
        if not demanded and self._hosts is not None and _name_of(host) not in self._hosts:
            raise Forbidden(
                f"this server is not called {host[:100]!r}",
                hint="Without keys it answers to localhost alone. `playhead keys create` makes a key.",
            )
        origin = headers.get("origin")
        foreign = origin is not None and _host_of(origin) != host.lower()
        if method not in _SAFE and (foreign or headers.get("sec-fetch-site") in ("cross-site", "same-site")):
            raise Forbidden("a page of another origin asks", hint="Pages of other origins may not ask this server.")

    def caller(self, route: Route, headers: Mapping[str, str], demanded: bool) -> Caller:
        """Return who asks; KeyRefused, Forbidden or TooMany where they may not."""
        if not demanded or route.scope == "open":
            return Caller(DEFAULT, None)
        key, session = self._key(headers)
        caller = Caller(key.project, key, session)
        if not caller.may(route.scope):
            raise Forbidden(
                f"this key may not do that: it has the scope {' and '.join(sorted(key.scopes))}, not {route.scope}"
            )
        if route.limited:
            self._rates.count(key.id)
        return caller

    def _key(self, headers: Mapping[str, str]) -> tuple[Key, str | None]:
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if not given and "%20" in scheme:  # as the environment variables of OpenTelemetry have it
            scheme, _, given = unquote(scheme).partition(" ")
        if scheme.lower() == "bearer" and given:
            return self.keys.authenticate(given.strip()), None
        bare = scheme if scheme.startswith("ph_") else headers.get("x-api-key", "")  # as others have it
        if bare and not given:
            return self.keys.authenticate(bare.strip()), None
        if (token := session_of(headers)) is not None and (key := self.sessions.find(token)) is not None:
            return key, token
        raise KeyRefused("a key is needed", hint="Send it as `Authorization: Bearer ph_…`.")


class Rates:
    """Count how often each key asks: so many a second, and as many at once as ten seconds allow."""

    def __init__(self, per_s: float) -> None:
        self._per_s = per_s
        self._most = per_s * _limits.RATE_BURST_S
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # by key, how many, and as of when
        self._lock = threading.Lock()

    def count(self, key: str) -> None:
        """Count one request; TooMany where there were too many."""
        if self._per_s <= 0:
            return
        with self._lock:
            now_s = time.monotonic()
            left, as_of_s = self._left.get(key, (self._most, now_s))
            left = min(self._most, left + (now_s - as_of_s) * self._per_s)
            if left < 1:
                self._left[key] = left, now_s
                after_s = int((1 - left) / self._per_s) + 1
                raise TooMany(f"this key asked more than {self._per_s:g} times a second", after_s=after_s)
            self._left[key] = left - 1, now_s
            self._left.move_to_end(key)
            while len(self._left) > _limits.RATE_KEYS_MAX:
                self._left.popitem(last=False)


def session_of(headers: Mapping[str, str]) -> str | None:
    """Return the session that a browser says it has."""
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None or not found.value else found.value


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach what listens there."""
    return host in _LOOPBACK or host.startswith("127.")


def loopback_names(host: str) -> frozenset[str]:
    """Return the names by which a server that only this machine can reach is called."""
    return frozenset({*_LOOPBACK, host.lower()})


def _host_of(origin: str) -> str | None:
    """Return host and port of an origin; None for what is none."""
    try:
        return urlsplit(origin).netloc.lower() or None
    except ValueError:
        return None


def _name_of(host: str) -> str:
    """Return a host without its port."""
    name = host.lower()
    if name.startswith("["):
        return name[1:].partition("]")[0]
    return name.partition(":")[0]
