from __future__ import annotations

import hashlib
import re
import sqlite3
import time
from pathlib import Path

import pytest
from tests.store.registry.conftest import HandClock

from playhead import _limits
from playhead.errors import KeyRefused, NotFound, UsageError
from playhead.store import layout
from playhead.store.registry.database import Registry
from playhead.store.registry.keys import Keys


@pytest.fixture
def keys(registry: Registry) -> Keys:
    return Keys(registry)


def refusal(keys: Keys, token: str) -> str:
    with pytest.raises(KeyRefused) as caught:
        keys.authenticate(token)
    return caught.value.message


def test_a_key_opens_its_project_with_its_scopes(keys: Keys) -> None:
    made = keys.create("search-team", ["ingest", "read"], "ci")
    assert re.fullmatch(r"ph_[0-9a-hjkmnp-tv-z]{16}_[A-Za-z0-9_-]{43}", made.token)
    key = keys.authenticate(made.token)
    assert (key.id, key.project, key.scopes, key.name) == (made.key.id, "search-team", ("ingest", "read"), "ci")
    assert [key.allows(scope) for scope in ("ingest", "read", "admin")] == [True, True, False]


def test_admin_may_do_everything_and_is_kept_as_given(keys: Keys) -> None:
    key = keys.authenticate(keys.create("default", ["admin"]).token)
    assert key.scopes == ("admin",)
    assert all(key.allows(scope) for scope in ("ingest", "read", "admin"))


def test_a_secret_is_nowhere_in_the_store(keys: Keys, root: Path) -> None:
    token = keys.create("default", ["read"]).token
    secret = token.split("_", 2)[2]
    held = b"".join(path.read_bytes() for path in root.rglob("*") if path.is_file())
    assert secret.encode() not in held
    assert hashlib.sha256(secret.encode()).hexdigest().encode() in held


def test_a_wrong_id_and_a_wrong_secret_are_refused_alike(keys: Keys) -> None:
    token = keys.create("default", ["read"]).token
    _, id, secret = token.split("_", 2)
    wrong = [f"ph_{'0' * 16}_{secret}", f"ph_{id}_{secret[:-1]}", f"ph_{id}_", f"ph_{id}", "", "ph", f"xx_{id}_{secret}",
             token + "\n", token.upper(), "ph_\ud800_x", f"ph_{id}_\ud800", "ph_' OR 1=1 --_x"]  # fmt: skip
    assert {refusal(keys, one) for one in wrong} == {"the API key is not known"}


def test_only_who_has_the_secret_learns_that_a_key_was_revoked_or_has_expired(keys: Keys, clock: HandClock) -> None:
    revoked = keys.create("default", ["read"])
    expiring = keys.create("default", ["read"], expires=clock.now_us + 60_000_000)
    assert keys.authenticate(expiring.token).expires_us == expiring.key.expires_us
    assert keys.revoke(revoked.key.id).revoked_us is not None
    clock.pass_s(60)
    assert refusal(keys, revoked.token) == f"the API key {revoked.key.id} was revoked"
    assert refusal(keys, expiring.token) == f"the API key {expiring.key.id} has expired"
    for made in (revoked, expiring):
        assert refusal(keys, made.token[:-1] + ("A" if made.token[-1] != "A" else "B")) == "the API key is not known"


def test_unknown_ids_are_compared_as_well(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []
    monkeypatch.setattr("hmac.compare_digest", lambda one, other: compared.append((len(one), len(other))) or False)
    keys.create("default", ["read"])
    refusal(keys, "ph_0000000000000000_x")
    assert compared == [(64, 64)]


def test_revoking_the_last_key_does_not_open_the_door(keys: Keys) -> None:
    assert not keys.any()
    made = keys.create("default", ["read"])
    first = keys.revoke(made.key.id)
    assert keys.any()
    assert keys.revoke(made.key.id) == first, "the first time counts"
    with pytest.raises(NotFound):
        keys.revoke("0" * 16)


def test_revocation_by_another_process_is_seen_at_once(keys: Keys, root: Path) -> None:
    made = keys.create("default", ["read"])
    assert keys.authenticate(made.token)
    with Registry(root) as other:
        Keys(other).revoke(made.key.id)
    assert "revoked" in refusal(keys, made.token)


def test_keys_are_listed_by_project(keys: Keys) -> None:
    ids = [keys.create(project, ["read"]).key.id for project in ("default", "mail", "default")]
    assert [key.id for key in keys.list()] == ids
    assert [key.id for key in keys.list("default")] == [ids[0], ids[2]]
    assert keys.list("nobody") == []


def test_the_last_use_is_kept_at_most_once_a_minute(keys: Keys, registry: Registry, clock: HandClock) -> None:
    made = keys.create("default", ["read"])
    first = keys.authenticate(made.token).used_us
    assert keys.list()[0].used_us == first is not None
    clock.pass_s(30)
    assert keys.authenticate(made.token).used_us == first
    clock.pass_s(40)
    assert keys.authenticate(made.token).used_us == keys.list()[0].used_us != first
    assert Keys(registry).authenticate(made.token).used_us == keys.list()[0].used_us


def test_noting_the_last_use_is_never_in_the_way(keys: Keys, root: Path) -> None:
    made = keys.create("default", ["read"])
    other = sqlite3.connect(layout.registry(root), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    before = time.monotonic()
    assert keys.authenticate(made.token).id == made.key.id
    assert time.monotonic() - before < _limits.REGISTRY_WAIT_S / 10
    other.execute("ROLLBACK")
    other.close()
    assert keys.list()[0].used_us is None


@pytest.mark.parametrize("name", ["", "-a", "A", "a_b", "a.b", "../x", "a" * 64, "ä", "con", "a\n"])
def test_a_project_that_is_no_folder_name_is_refused(keys: Keys, root: Path, name: str) -> None:
    with pytest.raises(UsageError, match="not the name of a project"):
        keys.create(name, ["read"])
    assert not root.exists()


def test_projects_are_stores_of_their_own(root: Path) -> None:
    assert layout.project_root(root, "default") == root
    assert layout.project_root(root, "0-a") == root / "projects" / "0-a"


def test_what_no_key_can_be_is_refused(keys: Keys, clock: HandClock) -> None:
    for scopes in ([], ["write"], ["read", "root"]):
        with pytest.raises(UsageError, match="scope"):
            keys.create("default", scopes)
    with pytest.raises(UsageError, match="expired already"):
        keys.create("default", ["read"], expires=clock.now_us)
    with pytest.raises(UsageError, match="characters"):
        keys.create("default", ["read"], "x" * 201)
    assert keys.create("default", ["read", "read"]).key.scopes == ("read",)
