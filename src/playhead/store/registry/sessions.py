"""Keep browser sessions: who has shown a key in a browser need not show it again for a while.

A session is no more than its key: where that was revoked or has expired, so has the session.
"""

from __future__ import annotations

import base64
import hashlib
import os

from playhead import _limits
from playhead._ids import is_key_id
from playhead.errors import KeyRefused, NotFound
from playhead.store.registry.database import Registry
from playhead.store.registry.keys import COLUMNS, Key, key_of

_TOKEN_BYTES = 32


class Sessions:
    """Begin, find and end sessions."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def begin(self, key_id: str) -> str:
        """Begin a session of a key, and return its token, of which only the SHA-256 is kept."""
        token = base64.urlsafe_b64encode(os.urandom(_TOKEN_BYTES)).rstrip(b"=").decode()
        now = self._registry.clock.wall_us()
        until = now + int(_limits.BROWSER_SESSION_S * 1_000_000)
        with self._registry.writing() as connection:
            sql = f"SELECT {COLUMNS} FROM keys k WHERE k.id = ?"
            row = connection.execute(sql, (key_id,)).fetchone() if is_key_id(key_id) else None
            if row is None:
                raise NotFound(f"there is no key {key_id[:80]!r}")
            if not key_of(row).works_at(now):
                raise KeyRefused(f"the API key {key_id} was revoked or has expired")
            connection.execute("DELETE FROM sessions WHERE expires_us <= ?", (now,))
            connection.execute("INSERT INTO sessions VALUES (?, ?, ?, ?)", (_digest(token), key_id, now, until))
        return token

    def find(self, token: str) -> Key | None:
        """Return the key of a session; None where the session, or its key, is no longer good."""
        now = self._registry.clock.wall_us()
        with self._registry.reading() as connection:
            if connection is None:
                return None
            sql = f"SELECT {COLUMNS} FROM sessions s JOIN keys k ON k.id = s.key WHERE s.token = ? AND s.expires_us > ?"
            row = connection.execute(sql, (_digest(token), now)).fetchone()
        key = None if row is None else key_of(row)
        return key if key is not None and key.works_at(now) else None

    def end(self, token: str) -> None:
        """End a session, if there is one."""
        with self._registry.reading() as connection:
            if connection is None:
                return
        with self._registry.writing() as connection:
            connection.execute("DELETE FROM sessions WHERE token = ?", (_digest(token),))


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
