from __future__ import annotations

from pathlib import Path

import pytest
from tests.store.registry.conftest import HandClock

from playhead import _limits
from playhead.errors import KeyRefused, NotFound
from playhead.store.registry.database import Registry
from playhead.store.registry.keys import Keys
from playhead.store.registry.sessions import Sessions


@pytest.fixture
def sessions(registry: Registry) -> Sessions:
    return Sessions(registry)


@pytest.fixture
def keys(registry: Registry) -> Keys:
    return Keys(registry)


def test_a_session_stands_for_its_key_until_it_is_ended(sessions: Sessions, keys: Keys, root: Path) -> None:
    key = keys.create("mail", ["read"]).key
    token, other = sessions.begin(key.id), sessions.begin(key.id)
    assert token != other
    assert sessions.find(token) == key
    assert sessions.find(token[:-1]) is None
    sessions.end(token)
    assert sessions.find(token) is None
    assert sessions.find(other) == key
    assert token.encode() not in b"".join(path.read_bytes() for path in root.glob("server.db*"))


def test_a_session_ends_with_its_key(sessions: Sessions, keys: Keys, clock: HandClock) -> None:
    revoked, expiring = (
        keys.create("mail", ["read"]).key,
        keys.create("mail", ["read"], expires=clock.now_us + 10**9).key,
    )
    tokens = [sessions.begin(key.id) for key in (revoked, expiring)]
    keys.revoke(revoked.id)
    assert sessions.find(tokens[0]) is None
    assert sessions.find(tokens[1]) is not None
    clock.pass_s(1000)
    assert sessions.find(tokens[1]) is None
    for key in (revoked, expiring):
        with pytest.raises(KeyRefused):
            sessions.begin(key.id)
    with pytest.raises(NotFound):
        sessions.begin("0" * 16)


def test_a_session_has_an_end_and_is_then_removed(
    sessions: Sessions, keys: Keys, clock: HandClock, registry: Registry
) -> None:
    key = keys.create("mail", ["read"]).key
    token = sessions.begin(key.id)
    clock.pass_s(_limits.BROWSER_SESSION_S - 1)
    assert sessions.find(token) == key
    clock.pass_s(1)
    assert sessions.find(token) is None
    sessions.begin(key.id)
    with registry.reading() as connection:
        assert connection is not None
        assert connection.execute("SELECT count(*) FROM sessions").fetchone() == (1,)
