"""Keep API keys: who may do what in which project.

A key is shown once, as `ph_<id>_<secret>`; of the secret only its SHA-256 is kept, which is enough for 32 random bytes.
What is looked up is the id, and what is compared, in constant time, are digests; with an id that nobody has, the same
is done with a digest that nothing has.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from playhead import _limits
from playhead._ids import is_key_id, new_key_id
from playhead.errors import KeyRefused, NotFound, UsageError
from playhead.store import layout
from playhead.store.registry.database import Registry

SCOPES = ("ingest", "read", "admin")
_PREFIX = "ph"
_SECRET_BYTES = 32
_NOBODYS = hashlib.sha256(b"").hexdigest()  # no token has an empty secret
COLUMNS = "k.id, k.project, k.scopes, k.name, k.created_us, k.expires_us, k.used_us, k.revoked_us"


@dataclass(frozen=True)
class Key:
    """An API key as it is kept, without its secret. All times are microseconds since 1970."""

    id: str
    project: str
    scopes: tuple[str, ...]
    name: str | None
    created_us: int
    expires_us: int | None
    used_us: int | None
    revoked_us: int | None

    def allows(self, scope: str) -> bool:
        """Say whether the key may do this; `admin` may do everything."""
        return scope in self.scopes or "admin" in self.scopes

    def works_at(self, now_us: int) -> bool:
        """Say whether the key is neither revoked nor expired."""
        return self.revoked_us is None and (self.expires_us is None or now_us < self.expires_us)


@dataclass(frozen=True)
class Created:
    """A new key, with the one token that will ever be shown."""

    key: Key
    token: str


class Keys:
    """Make, check and revoke keys."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._noted: dict[str, int] = {}  # when the use of a key was last written, or that was tried

    def create(
        self, project: str, scopes: Iterable[str], name: str | None = None, expires: int | None = None
    ) -> Created:
        """Make a key for a project; `expires` is a moment in microseconds since 1970."""
        layout.project_name(project)
        chosen = _scopes(scopes)
        now = self._registry.clock.wall_us()
        if name is not None and len(name) > _limits.KEY_NAME_CHARACTERS_MAX:
            raise UsageError(f"the name of a key has at most {_limits.KEY_NAME_CHARACTERS_MAX} characters")
        if expires is not None and expires <= now:
            raise UsageError("a key that has expired already is of no use", hint="Name a moment that is to come.")
        key = Key(new_key_id(), project, chosen, name or None, now, expires, None, None)
        secret = base64.urlsafe_b64encode(os.urandom(_SECRET_BYTES)).rstrip(b"=").decode()
        with self._registry.writing() as connection:
            connection.execute(
                "INSERT INTO keys (id, project, scopes, name, secret, created_us, expires_us)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key.id, project, " ".join(chosen), key.name, _digest(secret), now, expires),
            )
        return Created(key, f"{_PREFIX}_{key.id}_{secret}")

    def authenticate(self, token: str) -> Key:
        """Return the key of a token; KeyRefused where it is not known, was revoked or has expired.

        Whether the id or the secret was wrong is not said. That a key was revoked is said to whoever has its secret.
        """
        prefix, _, rest = token.partition("_")
        id, _, secret = rest.partition("_")
        row = None
        with self._registry.reading() as connection:
            if connection is not None and is_key_id(id):
                sql = f"SELECT {COLUMNS}, k.secret FROM keys k WHERE k.id = ?"
                row = connection.execute(sql, (id,)).fetchone()
        right = hmac.compare_digest(_digest(secret), _NOBODYS if row is None else str(row[-1]))
        if row is None or not right or prefix != _PREFIX:
            raise KeyRefused("the API key is not known")
        key = key_of(row)
        now = self._registry.clock.wall_us()
        if key.revoked_us is not None:
            raise KeyRefused(f"the API key {key.id} was revoked")
        if not key.works_at(now):
            raise KeyRefused(f"the API key {key.id} has expired")
        return self._used(key, now)

    def revoke(self, id: str) -> Key:
        """Revoke a key for good, and return it; one that was revoked before stays as it was."""
        now = self._registry.clock.wall_us()
        if is_key_id(id) and self.any():
            with self._registry.writing() as connection:
                connection.execute("UPDATE keys SET revoked_us = ? WHERE id = ? AND revoked_us IS NULL", (now, id))
                row = connection.execute(f"SELECT {COLUMNS} FROM keys k WHERE k.id = ?", (id,)).fetchone()
            if row is not None:
                return key_of(row)
        raise NotFound(f"there is no key {id[:80]!r}", hint="`playhead keys list` lists the keys of this store.")

    def list(self, project: str | None = None) -> list[Key]:
        """Return the keys of a project, or all, the oldest first; also those that no longer work."""
        with self._registry.reading() as connection:
            if connection is None:
                return []
            sql = f"SELECT {COLUMNS} FROM keys k WHERE ? IS NULL OR k.project = ? ORDER BY k.created_us, k.id"
            return [key_of(row) for row in connection.execute(sql, (project, project))]

    def any(self) -> bool:
        """Say whether there is any key, also one that no longer works: then one is asked of everybody."""
        with self._registry.reading() as connection:
            return connection is not None and connection.execute("SELECT 1 FROM keys LIMIT 1").fetchone() is not None

    def _used(self, key: Key, now: int) -> Key:
        """Note that a key was used, now and then, and never at the expense of whoever uses it."""
        every = int(_limits.KEY_USED_EVERY_S * 1_000_000)
        last = max(key.used_us or 0, self._noted.get(key.id, 0))
        if now - last < every:
            return key
        self._noted[key.id] = now
        self._registry.noting("UPDATE keys SET used_us = ? WHERE id = ?", (now, key.id))
        return replace(key, used_us=now)


def key_of(row: sqlite3.Row | tuple[Any, ...]) -> Key:
    """Return the key of a row that has COLUMNS."""
    id, project, scopes, name, created_us, expires_us, used_us, revoked_us = row[:8]
    return Key(id, project, tuple(scopes.split()), name, created_us, expires_us, used_us, revoked_us)


def _scopes(given: Iterable[str]) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys([given] if isinstance(given, str) else given))
    if not chosen or set(chosen) - set(SCOPES):
        wrong = next((scope for scope in chosen if scope not in SCOPES), None)
        said = "a key needs a scope" if wrong is None else f"there is no scope {wrong[:80]!r}"
        raise UsageError(said, hint=f"The scopes are {', '.join(SCOPES)}; admin may do everything.")
    return chosen


def _digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
