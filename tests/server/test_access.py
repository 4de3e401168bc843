"""Who may ask what: keys, their scopes and their end, browsers, and a server that nobody has locked yet."""

from __future__ import annotations

import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.server.otlp import JSON, exported, span, span_id, trace_id
from tests.server.serving import Client, Server, Told, make_key, until

from playhead.server.routing import Route, load

_ROUTES = load()
_GUARDED = [route for route in _ROUTES if route.scope != "open"]


def _named(route: Route) -> str:
    return f"{route.method} {route.path}"


def _ask(client: Client, route: Route, headers: dict[str, str] | None = None) -> Told:
    path = route.path.replace(":path", "").format(run="@nobody", seq="0", name="x", digest="0" * 64, id="x")
    media = {"Content-Type": route.takes[0]} if route.takes else {}
    return client.ask(route.method, path, b"{}" if route.takes else None, {**media, **(headers or {})})


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server that has keys."""
    store = tmp_path_factory.mktemp("locked") / "store"
    make_key(store)
    with Server(store, "--quiet", "0.3", "--rate", "0") as server:
        yield server
        assert "Traceback" not in server.log(), server.log()


@pytest.fixture(scope="module")
def tokens(locked: Server) -> dict[str, str]:
    return {scope: make_key(locked.store, "default", scope) for scope in ("ingest", "read", "admin")}


@pytest.mark.parametrize("route", _GUARDED, ids=_named)
def test_a_route_is_asked_with_a_key_of_its_scope_and_with_no_other(
    locked: Server, tokens: dict[str, str], route: Route
) -> None:
    told = _ask(locked.client(), route)
    assert (told.status, told.error["code"]) == (401, "key_refused")
    assert told.headers["www-authenticate"].startswith("Bearer")
    for scope, token in tokens.items():
        if route.path.endswith("/follow") and "{" not in route.path and scope in (route.scope, "admin"):
            continue  # it has no end
        told = _ask(locked.client(token), route)
        assert (told.status == 403) == (scope not in (route.scope, "admin")), (scope, told)
        if told.status == 403:
            assert told.error["code"] == "forbidden"
        else:
            assert told.status != 401


@pytest.mark.parametrize(
    "sent",
    ["", "Bearer", "Bearer ", "Basic YTpi", "Bearer ph_x_y", "Bearer ph_{id}_", "Bearer ph_{id}_AAAA", "Bearer {upper}", "bearer  x",
     "Bearer {token}x", "Bearer {token},x", "Bearer \xff", "{token}x", "Bearer%20", "Bearer ph_" + "x" * 5000 + "_y"],
)  # fmt: skip
def test_what_is_no_key_is_refused(locked: Server, tokens: dict[str, str], sent: str) -> None:
    token = tokens["read"]
    header = sent.format(id=token.split("_")[1], token=token, upper=token.upper())
    told = locked.client().get("/api/runs", {"Authorization": header})
    assert (told.status, told.error["code"]) == (401, "key_refused")


@pytest.mark.parametrize("name", ["Authorization", "X-API-Key"])
def test_a_key_may_be_sent_bare_as_other_tools_have_it(locked: Server, tokens: dict[str, str], name: str) -> None:
    assert locked.client().get("/api/runs", {name: tokens["read"]}).status == 200
    assert locked.client().get("/api/runs", {name: tokens["read"] + "x"}).status == 401


def test_a_key_may_be_sent_as_the_variables_of_opentelemetry_have_it(locked: Server, tokens: dict[str, str]) -> None:
    assert locked.client().get("/api/runs", {"Authorization": f"Bearer%20{tokens['read']}"}).status == 200


def test_a_key_that_expired_or_was_revoked_is_refused_at_once(locked: Server, tokens: dict[str, str]) -> None:
    soon = make_key(locked.store, "default", "read", expires_us=time.time_ns() // 1000 + 400_000)
    assert locked.client(soon).get("/api/runs").status == 200
    time.sleep(0.5)
    assert locked.client(soon).get("/api/runs").status == 401
    admin = locked.client(tokens["admin"])
    made = admin.post("/api/keys", {"scopes": ["read"], "expires": "1h"}).json()
    asking = locked.client(made["token"])
    assert asking.get("/api/runs").status == 200
    assert admin.ask("DELETE", f"/api/keys/{made['id']}").status == 200
    assert "revoked" in asking.get("/api/runs").error["message"]
    listed = {key["id"]: key for key in admin.found("/api/keys")["keys"]}
    assert listed[made["id"]]["revoked"]
    assert made["token"] not in admin.get("/api/keys").body.decode()


@pytest.mark.parametrize("expires", ["99999999999d", "9999-12-31T23:59:59-23:59", "yesterday", "-1h", "2001-01-01"])
def test_a_key_never_has_an_end_that_is_no_moment_to_come(locked: Server, tokens: dict[str, str], expires: str) -> None:
    admin = locked.client(tokens["admin"])
    assert admin.post("/api/keys", {"scopes": ["read"], "expires": expires}).status == 422
    assert admin.get("/api/keys").status == 200


# Browsers.


def _login(server: Server, token: str, **headers: str) -> tuple[Told, str]:
    body = b'{"key":"%b"}' % token.encode()
    told = server.client().ask("POST", "/api/session", body, {**JSON, **headers})
    return told, told.headers.get("set-cookie", "")


def test_a_browser_that_showed_a_key_goes_on_by_a_cookie_that_no_script_reads(
    locked: Server, tokens: dict[str, str]
) -> None:
    told, cookie = _login(locked, tokens["read"])
    assert told.status == 200
    assert told.json() == {"project": "default", "scopes": ["read"]}
    flags = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= flags
    assert "secure" in _login(locked, tokens["read"], **{"X-Forwarded-Proto": "https"})[1].lower()
    assert tokens["read"] not in cookie
    sent = {"Cookie": f"other=1; {cookie.partition(';')[0]}"}
    client = locked.client()
    assert client.get("/api/runs", sent).status == 200
    assert client.get("/api/session", sent).json()["session"] == {"project": "default", "scopes": ["read"]}
    assert client.get("/api/keys", sent).status == 403
    ended = client.ask("DELETE", "/api/session", None, sent)
    assert "max-age=0" in ended.headers["set-cookie"].lower()
    assert client.get("/api/runs", sent).status == 401
    assert client.get("/api/session", sent).json()["session"] is None


def test_a_session_is_no_more_than_its_key(locked: Server, tokens: dict[str, str]) -> None:
    admin = locked.client(tokens["admin"])
    made = admin.post("/api/keys", {"scopes": ["ingest", "read"]}).json()
    sent = {"Cookie": _login(locked, made["token"])[1].partition(";")[0]}
    assert locked.client().get("/api/runs", sent).status == 200
    admin.ask("DELETE", f"/api/keys/{made['id']}")
    assert locked.client().get("/api/runs", sent).status == 401
    assert _login(locked, made["token"])[0].status == 401


@pytest.mark.parametrize("key", ["", "x", "ph_a_b", "\0", "é" * 100])
def test_nobody_logs_in_with_what_is_no_key(locked: Server, key: str) -> None:
    told = locked.client().post("/api/session", {"key": key})
    assert told.status in (401, 422)
    assert "set-cookie" not in told.headers


@pytest.mark.parametrize(
    "cookie", ["playhead_session=", "playhead_session=x", "playhead_session=" + "a" * 3000, "\xff=\xfe", ";;;", "a"]
)
def test_a_cookie_that_is_none_of_ours_lets_nobody_in(locked: Server, cookie: str) -> None:
    assert locked.client().get("/api/runs", {"Cookie": cookie}).status == 401


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),
        ({"Origin": "SELF"}, True),
        ({"Origin": "SELF", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "none"}, True),
        ({"Origin": "http://evil.example"}, False),
        ({"Origin": "null"}, False),
        ({"Origin": "http://["}, False),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Origin": "SELF", "Sec-Fetch-Site": "cross-site"}, False),
    ],
    ids=str,
)
def test_a_page_of_another_origin_changes_nothing(
    locked: Server, tokens: dict[str, str], headers: dict[str, str], allowed: bool
) -> None:
    cookie = _login(locked, tokens["admin"])[1].partition(";")[0]
    sent = {name: locked.address if value == "SELF" else value for name, value in headers.items()}
    for method, path in (
        ("POST", "/v1/traces"),
        ("POST", "/api/query"),
        ("DELETE", "/api/keys/x"),
        ("POST", "/api/session"),
    ):
        told = locked.client().ask(method, path, b"{}", {**JSON, **sent, "Cookie": cookie})
        assert (told.status == 403) != allowed, (method, path, told)


# A server without keys.


@pytest.mark.parametrize(
    ("host", "allowed"),
    [("localhost:4000", True), ("127.0.0.1", True), ("[::1]:80", True), ("LOCALHOST", True), ("evil.example", False),
     ("localhost.evil.example", False), ("127.0.0.1.evil.example", False), ("", False), ("10.0.0.1", False), ("[", False)],
)  # fmt: skip
def test_without_keys_only_names_of_this_machine_are_answered(client: Client, host: str, allowed: bool) -> None:
    for path in ("/api/runs", "/", "/health"):
        told = client.get(path, {"Host": host})
        assert (told.status == 403) != allowed, (host, path, told)


def test_without_keys_a_name_that_was_allowed_is_answered(store: Path) -> None:
    with Server(store, "--name", "playhead.internal") as server:
        assert server.client().get("/api/runs", {"Host": "playhead.internal:80"}).status == 200
        assert server.client().get("/api/runs", {"Host": "other.internal"}).status == 403


def test_a_server_is_locked_at_once_by_the_first_key_and_stays_so(store: Path) -> None:
    with Server(store) as server:
        client = server.client()
        assert client.get("/api/runs").status == 200
        assert client.found("/api")["keys"] is False
        token = make_key(server.store)
        assert client.get("/api/runs").status == 401
        assert client.ask("POST", "/v1/traces", exported([span(trace_id(1), span_id(1))]), JSON).status == 401
        asking = server.client(token)
        assert asking.get("/api/runs", {"Host": "anything.example"}).status == 200
        id = asking.found("/api/keys")["keys"][0]["id"]
        assert asking.ask("DELETE", f"/api/keys/{id}").status == 422, "a key does not lock itself out"
        from playhead.store.registry.database import Registry
        from playhead.store.registry.keys import Keys

        with Registry(server.store) as registry:
            Keys(registry).revoke(id)
        assert client.get("/api/runs").status == 401
        assert asking.get("/api/runs").status == 401


def test_a_server_whose_keys_are_taken_away_lets_nobody_in(store: Path) -> None:
    token = make_key(store)
    with Server(store) as server:
        assert server.client(token).get("/api/runs").status == 200
        database = server.store / "server.db"
        database.rename(database.with_suffix(".away"))
        for asking in (server.client(), server.client(token)):
            assert asking.get("/api/runs").status == 503
            assert asking.get("/health").status == 503


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no disk to be had that is full")
def test_a_disk_that_is_full_is_said_when_somebody_asks_if_all_is_well(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playhead.server import projects

    kept = projects.Projects(store)
    kept.get(projects.DEFAULT)
    assert kept.problems() == []
    assert list(store.glob("tmp*")) == []
    full = Path("/dev/full")
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: full.open("wb"))
    (told,) = kept.problems()
    assert "No space left" in told
    kept.close()


# How much is asked.


def test_a_key_that_asks_too_often_is_told_when_to_come_back(store: Path) -> None:
    tokens = [make_key(store) for _ in range(2)]
    with Server(store, "--rate", "2") as server:
        client = server.client(tokens[0])
        told = [client.get("/api/runs") for _ in range(20)]
        refused = next(one for one in told if one.status == 429)
        assert refused.error["code"] == "too_many"
        assert int(refused.headers["retry-after"]) >= 1
        assert [one.status for one in told].count(200) in range(7, 13)
        assert server.client(tokens[1]).get("/api/runs").status == 200, "another key is another one"
        assert client.get("/health").status == 200
        until(lambda: client.get("/api/runs").status == 200, wait_s=5)


def test_listeners_that_left_cost_nothing(server: Server, client: Client) -> None:
    def listening() -> int:
        lines = client.get("/metrics").body.decode().splitlines()
        return int(next(line for line in lines if line.startswith("playhead_streams_open ")).split()[1])

    before = listening()
    waiting = [socket.create_connection((client.host, client.port)) for _ in range(20)]
    for connection in waiting:
        connection.sendall(b"GET /api/follow HTTP/1.1\r\nHost: localhost\r\n\r\n")
    until(lambda: listening() == before + 20)
    for connection in waiting:
        connection.close()
    until(lambda: listening() == before, wait_s=5)
