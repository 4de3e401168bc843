"""A key of one project reads, changes and learns nothing of another one, whatever it asks."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from tests.server.otlp import JSON, exported, logs, model_span, span, span_id, trace_id
from tests.server.serving import Client, Server, Told, in_path, make_key, until

from playhead.server.routing import Route, load

_ROUTES = load()
_SECRET = "zebrafish"  # in the names of everything that one of the two projects has
_CONTENT = "tapirs"  # in what it holds, and in no name


class _Held(NamedTuple):
    """What one project holds, and what each of it could be asked for by."""

    token: str
    client: Client
    names: dict[str, str]


def _fill(server: Server, project: str, marker: str, content: str) -> _Held:
    token = make_key(server.store, project)
    client = server.client(token)
    names: dict[str, str] = {}
    for number in (1, 2):
        trace, root = trace_id(f"{marker} {number}"), span_id(f"{marker} {number}")
        spans = [
            model_span(trace, span_id(f"{marker} {number} model"), root, 1, note=f"{content} said"),
            span(trace, root, None, f"{marker}-agent", large=f"{content} " * 8000, **{"session.id": f"{marker}-session-{number}"}),
        ]  # fmt: skip
        assert client.ask("POST", "/v1/traces", exported(spans, **{"service.name": marker}), JSON).status == 200
    runs = until(lambda: len(found := client.found("/api/runs", status="ok")["runs"]) == 2 and found)
    run = runs[0]["id"]
    names |= {"run": run, "prefix": run[:-2], "name": f"{marker}-agent", "session": f"{marker}-session-1",
              "trace": trace_id(f"{marker} 1"), "span": span_id(f"{marker} 1")}  # fmt: skip
    lines = client.get(f"/api/runs/{run}/lines").body.decode()
    digest = re.search(r'"\$blob":"([0-9a-f]{64})"', lines)
    assert digest is not None, "the large value is a blob"
    names["blob"] = digest[1]
    told = client.ask("PUT", f"/api/runs/{run}/artifacts/{marker}.txt", content.encode(), {"Content-Type": "application/octet-stream"})  # fmt: skip
    assert told.status == 201
    names["artifact"] = f"{marker}.txt"
    made = client.post("/api/cassettes", {"run_id": run, "name": f"{marker} cassette"}).json()
    names |= {"cassette": made["id"], "digest": made["digest"]}
    assert client.post("/api/cassettes", {"run_id": run}).status == 201
    for _ in range(2):
        job = client.post(f"/api/cassettes/{made['id']}/replay", {"new_run_id": None}).json()
    names |= {"job": job["job_id"], "target": job["run_id"]}
    named = client.post(f"/api/cassettes/{made['id']}/replay", {"new_run_id": f"{marker}-again"}).json()
    until(lambda: client.found(f"/api/jobs/{named['job_id']}")["status"] == "completed")
    until(lambda: client.found(f"/api/jobs/{job['job_id']}")["status"] == "completed")
    names["target name"] = f"{marker}-again"
    names["key"] = client.post("/api/keys", {"scopes": ["read"], "name": f"{marker} key"}).json()["id"]
    for sort in ("runs", "cassettes", "jobs"):
        names[f"{sort} cursor"] = client.found(f"/api/{sort}", limit=1)["next"]
    return _Held(token, client, names)


@contextlib.contextmanager
def _two_projects(store: Path, project: str) -> Iterator[tuple[Server, _Held, _Held]]:
    with Server(store, "--quiet", "0.3", "--rate", "0") as server:
        ours = _fill(server, project, "giraffe", "leaves")
        yield server, ours, _fill(server, "beta", _SECRET, _CONTENT)
        assert "Traceback" not in server.log(), server.log()


_PROJECTS = ["default", pytest.param("alpha", marks=pytest.mark.hard)]


@pytest.fixture(scope="module", params=_PROJECTS)
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, _Held, _Held]]:
    """Return two projects, of which one only reads."""
    with _two_projects(tmp_path_factory.mktemp("apart") / "store", request.param) as found:
        yield found


@pytest.fixture(scope="module", params=_PROJECTS)
def attacked(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, _Held, _Held]]:
    """Return two projects, of which one writes whatever it can."""
    with _two_projects(tmp_path_factory.mktemp("attacked") / "store", request.param) as found:
        yield found


def _like(value: str) -> str:
    """Return what looks the same and names nothing: every letter behind the first ones is another one."""
    if _SECRET in value:
        return value.replace(_SECRET, "zebrawood")
    if "_" in value[:5]:
        kept = value.index("_") + 6
        return value[:kept] + "".join("0" if letter != "0" else "1" for letter in value[kept:])
    return "".join("a" if letter != "a" else "b" for letter in value)


def _variants(route: Route, value: str) -> Iterator[tuple[str, bytes | None, dict[str, str]]]:
    """Yield every way in which a value can be put into a request of a route: path, parameters, body, headers."""
    places = re.findall(r"\{(\w+)", route.path)
    own = {"seq": "0", "name": "x", "digest": "0" * 64, "id": "x", "run": "@last"}
    pattern = route.path.replace(":path", "")
    base = pattern.format(**own)
    media = {"Content-Type": route.takes[0]} if route.takes else {}
    body = b"{}" if route.takes else None
    for name in places:
        for rest in ("@last", value):
            yield pattern.format(**{**own, "run": rest, name: in_path(value)}), body, media
    for field in route.query.__struct_fields__ if route.query is not None else ():
        others = {"left": "@last", "right": "@last", "q": "x"}
        asked = {name: one for name, one in others.items() if name in route.query.__struct_fields__ and name != field}  # type: ignore[union-attr]
        yield (
            base + "?" + "&".join(f"{name}={in_path(one)}" for name, one in {**asked, field: value}.items()),
            body,
            media,
        )
    if route.body is not None:
        fields = {field.name: field for field in msgspec.structs.fields(route.body)}
        sample: dict[str, Any] = {"sql": "SELECT 1", "run_id": "@last", "scopes": ["read"], "why": "x", "key": "x"}
        for name in fields:
            document = {one: sample[one] for one, field in fields.items() if field.required} | {name: value}
            for own_value in (value, "@last"):
                yield (
                    pattern.format(**{**own, **{place: in_path(own_value) for place in places}}),
                    json.dumps(document).encode(),
                    media,
                )
    yield base, body, {**media, "Last-Event-ID": value, "If-None-Match": value}


_ASKED = [one for one in _ROUTES if not one.path.endswith("/follow") and one.group not in ("Sessions",)]
_READING = [one for one in _ASKED if one.method == "GET"]
_WRITING = [one for one in _ASKED if one.method != "GET"]


def _ask_both(ours: _Held, theirs: _Held, route: Route) -> Iterator[tuple[str, str, Told]]:
    """Ask for everything that another project has, and for what looks like it and is nowhere: the answer is the same."""
    for what, value in theirs.names.items():
        for (path, body, headers), (path_like, body_like, _) in zip(
            _variants(route, value), _variants(route, _like(value)), strict=True
        ):
            told = ours.client.ask(route.method, path, body, headers)
            other = ours.client.ask(route.method, path_like, body_like, headers)
            asked = f"{what}: {route.method} {path} {body!r}"
            assert told.status < 500, asked
            assert told.status == other.status, (asked, told, other)
            assert _CONTENT.encode() not in told.body, (asked, told)
            yield asked, value, told


@pytest.mark.parametrize("route", _READING, ids=lambda route: f"{route.method} {route.path}")
def test_what_another_project_has_is_as_if_it_were_not_there(both: tuple[Server, _Held, _Held], route: Route) -> None:
    _, ours, theirs = both
    for asked, value, told in _ask_both(ours, theirs, route):
        said = told.body.replace(value.encode(), b"VALUE")
        for own in (_SECRET, *theirs.names.values()):
            assert own.encode() not in said, (asked, own, said[:500])


def test_questions_in_sql_know_of_one_project_alone(both: tuple[Server, _Held, _Held]) -> None:
    _, ours, theirs = both
    tables = [
        row[0] for row in ours.client.post("/api/query", {"sql": "SELECT name FROM sqlite_master"}).json()["rows"]
    ]
    assert "runs" in tables
    asked = [f'SELECT * FROM "{table}"' for table in tables]
    asked += [
        f"SELECT * FROM {table}" for table in ("beta.runs", "keys", "cassettes", "jobs", "cassette_parts", "sessions")
    ]
    for sql in asked:
        told = ours.client.post("/api/query", {"sql": sql, "replays": True})
        assert told.status in (200, 422)
        assert _SECRET.encode() not in told.body, sql
        assert theirs.names["run"].encode() not in told.body, sql


def test_lists_searches_and_metrics_tell_of_one_project_alone(both: tuple[Server, _Held, _Held]) -> None:
    _, ours, theirs = both
    for path in ("/api/runs", "/api/cassettes", "/api/jobs", "/api/keys", "/api/stats?by=run", "/api/audit", "/metrics", "/health",
                 "/api/search?q=session", f"/api/search?q={_SECRET}", f"/api/runs?q={_SECRET}", f"/api/runs?text={_SECRET}"):  # fmt: skip
        said = ours.client.get(path).body
        assert _SECRET.encode() not in said, path
        assert b"beta" not in said, path
        for value in theirs.names.values():
            assert value.encode() not in said, (path, value)


def _timelines(root: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
    return {name: content for name, content in found.items() if ".db" not in name}


@pytest.mark.parametrize("project", _PROJECTS)
def test_what_is_sent_under_ids_of_another_project_goes_to_ones_own(store: Path, project: str) -> None:
    with _two_projects(store, project) as found:
        _intrude(*found)


def _intrude(server: Server, ours: _Held, theirs: _Held) -> None:
    there = server.store / "projects" / "beta"
    before = _timelines(there)
    names = theirs.names
    for number, resource in enumerate((
        {"session.id": names["session"]}, {"playhead.run.id": names["run"]}, {"playhead.run.id": names["session"]},
        {"service.instance.id": names["session"], "telemetry.sdk.name": None}, {},
    )):  # fmt: skip
        id = names["span"] if number % 2 else span_id(f"intruder {number}")
        sent = span(names["trace"], id, None, "intruder")
        assert ours.client.ask("POST", "/v1/traces", exported([sent], **resource), JSON).status == 200
        record = {"traceId": names["trace"], "spanId": id, "body": {"stringValue": "intruder"}}
        assert ours.client.ask("POST", "/v1/logs", logs([record], **resource), JSON).status == 200
    said = {
        "run_id": names["session"],
        "spans": [{"span_id": "1", "name": "intruder", "started_at": "2026-01-01T00:00:00Z"}],
    }
    assert ours.client.post("/ingest", said).status == 202
    lines = theirs.client.get(f"/api/runs/{names['run']}/lines").body
    ours.client.ask("POST", f"/api/runs/{names['run']}/lines", lines, {"Content-Type": "application/x-ndjson"})
    for path, document in (("finish", {}), ("invalidate", {"why": "x"})):
        ours.client.post(f"/api/runs/{names['name']}/{path}", document)
    assert _timelines(there) == before
    assert b"intruder" not in b"".join(_timelines(there).values())


def test_nobody_is_told_of_the_news_of_another_project(both: tuple[Server, _Held, _Held]) -> None:
    import socket

    _, ours, theirs = both
    with socket.create_connection((ours.client.host, ours.client.port), timeout=1.5) as listening:
        asked = f"GET /api/follow?limit=1000 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {ours.token}\r\n\r\n"
        listening.sendall(asked.encode())
        assert theirs.client.ask("POST", "/v1/traces", exported([span(trace_id("news"), span_id("news"), name=_SECRET)]), JSON).status == 200  # fmt: skip
        said = b""
        try:
            while data := listening.recv(65_536):
                said += data
        except TimeoutError:
            pass
    assert b"giraffe" in said
    assert _SECRET.encode() not in said
    assert ours.client.get(f"/api/runs/{theirs.names['run']}/follow").status == 404


@pytest.mark.parametrize("route", _WRITING, ids=lambda route: f"{route.method} {route.path}")
def test_what_another_project_has_cannot_be_changed_and_its_ids_are_free(
    attacked: tuple[Server, _Held, _Held], route: Route
) -> None:
    server, ours, theirs = attacked
    there = server.store / "projects" / "beta"
    before = _timelines(there)
    listed = [theirs.client.found(path) for path in ("/api/cassettes", "/api/jobs", "/api/keys")]
    for _ in _ask_both(ours, theirs, route):
        pass
    assert _timelines(there) == before
    for now, then in zip(
        (theirs.client.found(path) for path in ("/api/cassettes", "/api/jobs", "/api/keys")), listed, strict=True
    ):
        for one in (*now.get("keys", ()), *then.get("keys", ())):
            del one["used"]
        assert now == then
