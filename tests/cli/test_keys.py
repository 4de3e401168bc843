from __future__ import annotations

import re

import pytest

from playhead._clock import moment_us, parse_utc
from playhead._ids import is_key_id
from playhead.errors import KeyRefused
from playhead.store import layout
from playhead.store.registry.database import Registry
from playhead.store.registry.keys import Keys


@pytest.fixture
def keys(store):
    with Registry(store) as registry:
        yield Keys(registry)


def test_a_token_is_shown_once_alone_on_stdout_and_how_to_use_it_beside(ask, store, keys):
    said = ask("keys", "create", "--name", "ci", "--project", "search-team", "--scope", "ingest")
    assert said.code == 0
    token = said.out.removesuffix("\n")
    key = keys.authenticate(token)
    assert (key.name, key.project, key.scopes, key.expires_us) == ("ci", "search-team", ("ingest",), None)
    for told in ("Authorization: Bearer", "PLAYHEAD_API_KEY=", "OTEL_EXPORTER_OTLP_HEADERS=", f"revoke {key.id}"):
        assert told in said.err
    assert token not in said.err
    for later in (ask("keys", "list"), ask("keys", "list", "--json"), ask("keys", "revoke", key.id)):
        assert token.split("_", 2)[2] not in later.out + later.err


def test_a_key_may_send_and_read_in_the_default_project_where_nothing_else_is_said(ask, keys):
    made = ask("keys", "create", "--json").json
    assert (made["project"], made["scopes"], made["status"], made["name"]) == (
        "default",
        ["ingest", "read"],
        "active",
        None,
    )
    assert is_key_id(made["id"])
    assert keys.authenticate(made["token"]).id == made["id"]
    assert ask("keys", "create", "--scope", "admin", "--scope", "read", "--json").json["scopes"] == ["admin", "read"]


def test_a_key_expires_after_a_while_or_at_a_date(ask, keys):
    made = ask("keys", "create", "--expires", "90d", "--json").json
    assert parse_utc(made["expires"]) - parse_utc(made["created"]) == pytest.approx(90 * 86400 * 1e6, abs=10e6)
    assert (
        ask("keys", "create", "--expires", "2099-01-31T09:30Z", "--json").json["expires"]
        == "2099-01-31T09:30:00.000000Z"
    )
    assert "until 2099-01-31 09:30 UTC" in ask("keys", "create", "--expires", "2099-01-31T09:30Z").err
    for wrong in ("1999-01-01", "soon", "0d", "-1d"):
        said = ask("keys", "create", f"--expires={wrong}")
        assert said.code == 2, wrong
        assert said.out == ""


def test_the_list_shows_every_key_and_what_became_of_it(ask, keys, store):
    active, revoked, expired = (ask("keys", "create", "--name", name, "--json").json for name in ("a", "r", "e"))
    keys.authenticate(active["token"])
    ask("keys", "revoke", revoked["id"])
    with keys._registry.writing() as connection:
        connection.execute("UPDATE keys SET expires_us = ? WHERE id = ?", (moment_us("2020-01-01"), expired["id"]))
    found = ask("keys", "list", "--json").json
    assert [(key["id"], key["status"]) for key in found] == [
        (active["id"], "active"), (revoked["id"], "revoked"), (expired["id"], "expired")]  # fmt: skip
    fields = {"id", "name", "project", "scopes", "status", "created", "expires", "used", "revoked"}
    assert all(set(key) == fields for key in found)
    assert found[0]["used"]
    assert found[1]["revoked"]
    lines = ask("keys", "list").out.splitlines()
    assert lines[0].split() == ["id", "name", "project", "scopes", "status", "created", "expires", "last", "used"]
    assert [re.split(r"\s{2,}", line)[4] for line in lines[1:]] == ["active", "revoked", "expired"]


def test_the_list_can_be_of_one_project(ask):
    ids = {name: ask("keys", "create", "--project", name, "--json").json["id"] for name in ("mail", "default")}
    assert [key["id"] for key in ask("keys", "list", "--project", "mail", "--json").json] == [ids["mail"]]
    assert ask("keys", "list", "--project", "nobody").out.startswith("No keys.\n")
    assert ask("keys", "list", "--project", "No Body").code == 2


def test_a_revoked_key_is_named_and_refused_from_then_on(ask, keys):
    made = ask("keys", "create", "--name", "ci", "--scope", "admin", "--json").json
    said = ask("keys", "revoke", made["id"])
    assert (said.code, said.out) == (0, f"revoked {made['id']} (ci), which might do everything in project default\n")
    with pytest.raises(KeyRefused):
        keys.authenticate(made["token"])
    again = ask("keys", "revoke", made["id"], "--json")
    assert (again.code, again.json["status"]) == (0, "revoked")


def test_what_cannot_be_revoked_is_told(ask, store):
    said = ask("keys", "revoke", "0" * 16, "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "not_found")
    assert not store.exists()
    made = ask("keys", "create", "--json").json
    assert ask("keys", "revoke", "0" * 16).code == 2
    said = ask("keys", "revoke", made["token"])
    assert said.code == 2
    assert made["id"] in said.err
    assert made["token"].split("_", 2)[2] not in said.err


def test_asking_for_keys_makes_no_store(ask, store, tmp_path):
    said = ask("keys", "list")
    assert said.code == 0
    assert "the server asks nobody" in said.out
    assert ask("keys", "list", "--json").json == []
    assert not store.exists()
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "file").touch()
    for what in (("list",), ("create",), ("revoke", "0" * 16)):
        assert ask("keys", *what, "--store", str(tmp_path / "mine")).code == 2
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["file"]
    assert ask("keys", "list", "--store", str(tmp_path / "nowhere")).code == 2


def test_the_first_key_makes_the_store(ask, tmp_path):
    assert ask("keys", "create", "--store", str(tmp_path / "new")).code == 0
    assert layout.is_store(tmp_path / "new")


@pytest.mark.parametrize("wrong", [("--project", "A b"), ("--scope", "write"), ("--name", "x" * 201)])
def test_what_no_key_can_be_is_a_usage_error(ask, store, wrong):
    assert ask("keys", "create", *wrong).code == 2
    assert not store.exists()


def test_a_name_that_would_move_the_cursor_is_shown_as_an_escape(ask):
    made = ask("keys", "create", "--name", "a\x1b[2Jb\nc", "--json").json
    assert "\x1b" not in ask("keys", "list").out
    assert ask("keys", "list").out.count("\n") == 2
    assert "\x1b" not in ask("keys", "revoke", made["id"]).out
