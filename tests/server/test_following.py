"""News come as they are made, lines that were sealed elsewhere are taken as they are, and contents are handed out safely."""

from __future__ import annotations

import hashlib
import http.client
import json
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.server.otlp import JSON, exported, span, span_id, trace_id
from tests.server.serving import Client, Server, playhead, until, verified

from playhead._ids import new_run_id
from playhead.event import envelope

_LINES = {"Content-Type": "application/x-ndjson"}
_BYTES = {"Content-Type": "application/octet-stream"}


class _Listening:
    """Read server-sent events in a thread."""

    def __init__(self, client: Client, path: str, headers: dict[str, str] | None = None) -> None:
        self._connection = http.client.HTTPConnection(client.host, client.port, timeout=30)
        self._connection.request("GET", path, headers=headers or {})
        self._socket = self._connection.sock
        self._answer = self._connection.getresponse()
        assert self._answer.status == 200
        assert self._answer.getheader("content-type") == "text/event-stream"
        self.events: list[tuple[str, str | None, Any]] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        fields: dict[str, str] = {}
        try:
            for line in self._answer:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    fields[name] = value
                elif "data" in fields:
                    self.events.append((fields["event"], fields.get("id"), json.loads(fields["data"])))
                    fields = {}
        except (OSError, ValueError, AttributeError):
            pass

    @property
    def over(self) -> bool:
        return not self._thread.is_alive()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(10)
        self._connection.close()


def _send(client: Client, *spans: dict[str, Any]) -> None:
    assert client.ask("POST", "/v1/traces", exported(spans), JSON).status == 200


def test_a_run_is_followed_while_it_grows_until_it_ends(client: Client) -> None:
    trace = trace_id("follow")
    _send(client, span(trace, span_id("follow 1"), span_id("follow"), at=1))
    listening = _Listening(client, f"/api/runs/{trace}/follow")
    until(lambda: len(listening.events) == 4)
    _send(client, span(trace, span_id("follow 2"), span_id("follow"), at=2))
    until(lambda: len(listening.events) == 6, wait_s=5)
    assert not listening.over
    _send(client, span(trace, span_id("follow"), None))
    until(lambda: listening.over, wait_s=10)
    *lines, (name, _, end) = listening.events
    assert (name, end["status"]) == ("end", "ok")
    assert [int(str(id)) for _, id, _ in lines] == list(range(len(lines)))
    kept = [json.loads(line) for line in client.get(f"/api/runs/{trace}/lines").body.splitlines()]
    assert [data for _, _, data in lines] == kept
    again = _Listening(client, f"/api/runs/{trace}/follow", {"Last-Event-ID": "5"})
    until(lambda: again.over)
    assert [data for name, _, data in again.events if name == "line"] == kept[6:]
    later = _Listening(client, f"/api/runs/{trace}/follow?start=7")
    until(lambda: later.over)
    assert [data for name, _, data in later.events if name == "line"] == kept[7:]
    for odd in ("x", "-1", "9" * 50, "99999"):
        other = _Listening(client, f"/api/runs/{trace}/follow", {"Last-Event-ID": odd})
        until(lambda other=other: other.over)


def test_the_list_of_runs_is_followed(client: Client) -> None:
    listening = _Listening(client, "/api/follow")
    time.sleep(0.5)
    trace = trace_id("list")
    _send(client, span(trace, span_id("list"), None))
    until(lambda: [one for _, _, one in listening.events if one["external_id"] == trace and one["status"] == "ok"])
    listening.close()


def test_whoever_follows_does_not_keep_a_server_from_stopping(store: Path) -> None:
    with Server(store) as server:
        client = server.client()
        _send(client, span(trace_id("open"), span_id("open 1"), span_id("open")))
        waiting = [_Listening(client, path) for path in ("/api/follow", f"/api/runs/{trace_id('open')}/follow")]
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 5
        until(lambda: all(one.over for one in waiting))


# Lines that were sealed elsewhere.


@pytest.fixture
def sealed(tmp_path: Path) -> tuple[str, list[bytes]]:
    """Return a run that was recorded elsewhere, and its lines."""
    import playhead as ours

    with ours.record("elsewhere", store=tmp_path / "elsewhere") as run:
        for number in range(5):
            with ours.step(f"step {number}"):
                pass
    timeline = tmp_path / "elsewhere" / "runs" / run.id / "timeline.jsonl"
    return run.id, timeline.read_bytes().splitlines(keepends=True)


def _append(client: Client, run: str, lines: list[bytes], **query: Any) -> tuple[int, Any]:
    told = client.ask("POST", f"/api/runs/{run}/lines", b"".join(lines), _LINES, **query)
    return told.status, told.json() if told.status < 300 else told.error


def test_sealed_lines_are_appended_as_they_are(client: Client, sealed: tuple[str, list[bytes]], tmp_path: Path) -> None:
    run, lines = sealed
    status, told = _append(client, run, lines[:3])
    assert (status, told["events"], told["added"]) == (201, 3, 3)
    assert client.found(f"/api/runs/{run}")["run"]["status"] in ("running", "crashed")
    assert _append(client, run, lines[:3])[1]["added"] == 0, "the same again"
    status, told = _append(client, run, lines[1:6], start=1)
    assert (status, told["added"], told["events"]) == (200, 3, 6)
    status, told = _append(client, run, lines[8:])
    assert (status, told["code"]) == (416, "lines_missing")
    assert "6" in told["message"]
    assert _append(client, run, lines[6:])[1]["events"] == len(lines)
    assert client.get(f"/api/runs/{run}/lines").body == b"".join(lines)
    assert client.get(f"/api/runs/{run}/lines", start=len(lines[0])).body == b"".join(lines[1:])
    assert client.found(f"/api/runs/{run}/verify")["integrity"]["reason"] == "content_altered", (
        "its policy is not here yet"
    )
    for name in ("policy_snapshot.json", "context_pack.json"):
        path = tmp_path / "elsewhere" / "runs" / run / name
        told = client.ask("PUT", f"/api/runs/{run}/files/{name}", b"{}", _BYTES)
        assert told.status == 422, "only what the events name"
        client.ask("PUT", f"/api/runs/{run}/files/{name}", path.read_bytes(), _BYTES)
    verified(client, [run])


def _forged(run: str, *rows: tuple[Any, ...], **more: Any) -> list[bytes]:
    """Seal lines as anybody can who knows how: sound, whatever they say."""
    lines, prev = [], envelope.genesis(run)
    for seq, (kind, data, *own) in enumerate(rows):
        head = {"v": 1, "run": run, "seq": seq, "time": "2026-01-01T00:00:00.000000Z", "elapsed_us": seq, "kind": kind, "span": None,
                "parent": None, "lane": "0", "key": None, "data": data, "prev": prev, **more, **(own[0] if own else {})}  # fmt: skip
        body = json.dumps(head, separators=(",", ":"), ensure_ascii=False).encode()[:-1]
        prev = hashlib.sha256(body).hexdigest()
        lines.append(body + b',"hash":"%b"}\n' % prev.encode())
    return lines


def test_a_run_that_two_went_on_with_is_answered_with_both_heads(
    client: Client, sealed: tuple[str, list[bytes]]
) -> None:
    run, lines = sealed
    _append(client, run, lines[:4])
    other = _forged(run, ("run.started", {"name": "other"}), ("note.added", {"text": "x"}))
    status, told = _append(client, run, other)
    assert (status, told["code"]) == (409, "conflict")
    assert told["detail"]["here"]["head"] == json.loads(lines[3])["hash"]
    assert told["detail"]["sent"] == json.loads(other[-1])["hash"]
    assert client.get(f"/api/runs/{run}/lines").body == b"".join(lines[:4])


def test_damaged_lines_and_lines_of_another_run_are_refused(client: Client, sealed: tuple[str, list[bytes]]) -> None:
    run, lines = sealed
    bad = [lines[0][:100] + b"!" + lines[0][101:], *lines[1:]]
    assert _append(client, run, bad)[0] == 422
    assert _append(client, run, [lines[0], lines[2]])[0] == 422
    assert _append(client, run, [b"".join(lines)[:-5]])[0] == 422
    assert _append(client, run, [b"\n"])[0] == 422
    assert _append(client, run, [])[0] in (400, 422)
    assert _append(client, run, [lines[0], b"\xff\n"])[0] == 422
    assert _append(client, new_run_id(), lines)[0] == 422
    assert _append(client, "run_x", lines)[0] == 422
    assert _append(client, "..%2fx", lines)[0] in (404, 422)
    assert _append(client, run, lines[3:])[0] == 416
    assert _append(client, run, lines, start=2)[0] == 422
    assert client.get(f"/api/runs/{run}").status == 404, "nothing was begun"


def test_a_run_that_is_sealed_here_takes_no_lines_from_elsewhere(client: Client) -> None:
    trace = trace_id("ours")
    _send(client, span(trace, span_id("ours 1"), span_id("ours")))
    run = client.found(f"/api/runs/{trace}")["run"]["id"]
    lines = client.get(f"/api/runs/{run}/lines").body.splitlines(keepends=True)
    assert _append(client, run, lines)[0] == 409


_DEEP: Any = 1
for _ in range(900):
    _DEEP = [_DEEP]
_ODD: dict[str, list[tuple[str, Any]]] = {
    "no fields": [("run.started", {}), ("model.invoked", {}), ("model.responded", {}), ("run.finished", {})],
    "wrong types": [
        ("run.started", {"name": 7, "agent": "x", "tags": [], "environment": 1, "external_id": {}, "received": [], "origin": 5, "redaction": 1, "sdk": []}),
        ("artifact.created", {"name": "../../../etc/passwd", "digest": "0" * 64, "size": "x", "media": 5}),
        ("policy.checked", {"capability": 1, "context": "x"}), ("effect.observed", []), ("gap.noted", {"count": "x"}),
        ("git.committed", {"files": 7}), ("ci.reported", {"test": 1}), ("run.finished", {"status": 7, "events": "x", "root": 1}),
    ],
    "received, wrong": [
        ("run.started", {"name": "x", "received": {"by": "otlp", "rule": "trace", "trace": 7}, "external_id": "odd"}),
        ("span.revised", {"opens": "x", "opened": 1, "closed": [], "elapsed_us": "x"}), ("emitter.described", {"digest": []}),
        ("log.emitted", {"otlp": 7}),
    ],
    "references": [
        ("run.started", {"name": {"$same": "0#/name"}, "input": {"$extends": "0#/input", "keep": 1, "then": []}}),
        ("note.added", {"text": {"$blob": "0" * 64, "as": "json"}}), ("note.added", {"text": {"$same": "1#/text"}}),
    ],
    "multiplied": [("run.started", {"x0": [1] * 9}), *(("note.added", {f"x{n}": [{"$same": f"{n - 1}#/x{n - 1}"}] * 9}) for n in range(1, 40))],
    "deep": [("run.started", {"name": _DEEP}), ("note.added", {"text": _DEEP})],
    "marks": [("run.started", {"name": {"$float": "x"}, "input": {"$bytes": 7}}), ("note.added", {"text": {"$commit": "x"}})],
    "unknown kinds": [("run.started", {"name": "x"}), ("moon.landed", {"a": 1}), ("", {}), ("a.b.c", None), ("x\n", {})],
    "no beginning": [("note.added", {"text": "x"}), ("run.started", {}), ("run.started", {})],
}  # fmt: skip


_MORE: dict[str, dict[str, Any]] = {
    "": {}, "early": {"elapsed_us": -(2**53)}, "late": {"elapsed_us": 2**53 - 1, "lane": "x", "span": "s"},
}  # fmt: skip
# What is multiplied is read up to the limit each time, by each route: half a minute.
_CASES = [
    pytest.param(rows, more, id=f"{what} {when}".strip(), marks=[pytest.mark.hard] if what == "multiplied" else [])
    for what, rows in _ODD.items()
    for when, more in _MORE.items()
]


@pytest.mark.parametrize(("rows", "more"), _CASES)
def test_lines_that_anybody_sealed_break_no_route_that_reads_them(
    client: Client, rows: list[tuple[str, Any]], more: dict[str, Any]
) -> None:
    from tests.server.test_hostile import _ROUTES, _address

    run = new_run_id()
    status, _ = _append(client, run, _forged(run, *rows, **more))
    if status >= 400:
        assert status in (400, 422)
        assert client.get(f"/api/runs/{run}").status in (200, 404)
        return
    for route in _ROUTES:
        if route.method == "GET" and "{run}" in route.path and not route.path.endswith("/follow"):
            for seq in ("0", "1", str(len(rows) - 1)):
                told = client.get(_address(route, run=run, seq=seq, name="../../../etc/passwd"))
                assert told.status < 500, (route.path, told)
                assert b"root:" not in told.body
    assert client.get("/api/diff", left=run, right=run).status < 500
    for form in ("html", "md", "json"):
        assert client.get(f"/api/runs/{run}/report", form=form).status < 500
    for path in ("/api/runs", "/api/stats", "/api/audit", "/api/search?q=x", "/api/stats?by=run", "/api/runs?q=x"):
        assert client.get(path).status == 200, path
    for path, body in (("/api/cassettes", {"run_id": run, "unfinished": True}), (f"/api/runs/{run}/finish", {})):
        told = client.post(path, body)
        assert told.status < 500, told
        if path == "/api/cassettes" and told.status == 201:
            job = client.post(f"/api/cassettes/{told.json()['id']}/replay", {}).json()["job_id"]
            ended = until(
                lambda job=job: (one := client.found(f"/api/jobs/{job}"))["status"] not in ("queued", "running") and one
            )
            assert ended["status"] == "completed" or ended["error"]["code"] != "internal", ended
    assert client.get("/health").status == 200


def test_a_run_that_cannot_be_ended_keeps_no_other_one_from_its_end(store: Path) -> None:
    run = new_run_id()
    received = {"by": "otlp", "rule": "trace", "trace": trace_id("forged")}
    told = {"otlp": {"digest": "0" * 16, "told": {"root": True}}, "status": {"a": 1}}
    rows = [
        ("run.started", {"name": "x", "received": received, "external_id": trace_id("forged")}),
        ("step.started", {"name": "x"}),
        ("step.finished", told, {"elapsed_us": 2**53 - 1}),
    ]
    lines = _forged(run, *rows, time="9999-12-31T23:59:59.000000Z", span="0123456789abcdef")
    with Server(store, "--quiet", "0.3") as server:
        assert _append(server.client(), run, lines)[0] == 201
        assert server.stop() == 0
        server.start()
        client = server.client()
        time.sleep(1)
        _send(client, span(trace_id("other"), span_id("other")))
        until(lambda: client.found(f"/api/runs/{trace_id('other')}")["run"]["status"] == "ok", wait_s=10)
        assert client.post(f"/api/runs/{run}/finish", {}).status in (200, 404, 409, 422)
        _send(client, span(trace_id("forged"), span_id("forged")))
        verified(client, [trace_id("other")])
        assert "Exception in thread" not in server.log(), server.log()


# Contents.


@pytest.fixture
def run(client: Client) -> str:
    id = new_run_id()
    named = [("a.html", "text/html", b"<script>alert(1)</script>"), ("b.svg", "image/svg+xml", b"<svg onload='x'/>"), ("c.png", "image/png", b"\x89PNG"),
             ("d.txt", "text/plain", b"0123456789"), ("e.js", "text/javascript", b"x"), ("f.xml", "application/xml", b"<x/>"), ("g.pdf", "application/pdf", b"%PDF"),
             ("h.md", "text/markdown; charset=x", b"# x"), ("i\r\nX-Evil: 1.txt", "text/plain\r\nX-Evil: 1", b"x"), ("é \"q\".txt", "TEXT/HTML", b"x"),
             ("j.json", "application/json", b"{}"), ("k", None, b"x")]  # fmt: skip
    rows = [("artifact.created", {"name": name, "role": "file", "media": media, "digest": hashlib.sha256(data).hexdigest(), "size": len(data)})
            for name, media, data in named]  # fmt: skip
    assert _append(client, id, _forged(id, ("run.started", {"name": "contents"}), *rows))[0] == 201
    for name, _, data in named:
        client.ask("PUT", f"/api/runs/{id}/artifacts/{_quoted(name)}", data, _BYTES)
    return id


def _quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name)


def test_no_content_is_handed_out_in_a_form_that_a_browser_runs(client: Client, run: str) -> None:
    listed = client.found(f"/api/runs/{run}/artifacts")["artifacts"]
    assert len(listed) == 12
    seen = 0
    for one in listed:
        told = client.get(f"/api/runs/{run}/artifacts/{_quoted(one['name'])}")
        assert "x-evil" not in told.headers
        if told.status != 200:
            assert "\r" in one["name"] or '"' in one["name"], (one, told)
            continue
        seen += 1
        assert told.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in told.headers["content-security-policy"]
        shown = told.headers["content-type"].partition(";")[0]
        assert shown in ("application/octet-stream", "image/png", "text/plain", "application/json"), one
        if shown == "application/octet-stream":
            assert told.headers["content-disposition"].startswith("attachment")
        assert hashlib.sha256(told.body).hexdigest() == one["digest"]
    assert seen >= 10


@pytest.mark.parametrize(
    ("asked", "status", "body"),
    [("bytes=0-3", 206, b"0123"), ("bytes=4-", 206, b"456789"), ("bytes=-3", 206, b"789"), ("bytes=5-5", 206, b"5"), ("bytes=0-99", 206, b"0123456789"),
     ("bytes=-99", 206, b"0123456789"), ("bytes=10-", 416, None), ("bytes=5-4", 416, None), ("bytes=99-100", 416, None), ("bytes=-0", 416, None),
     ("bytes=0-1,3-4", 200, b"0123456789"), ("bytes=-", 200, b"0123456789"), ("lines=1-2", 200, b"0123456789"), ("bytes=a-b", 200, b"0123456789"),
     ("bytes=" + "9" * 40 + "-", 200, b"0123456789")],
)  # fmt: skip
def test_a_range_of_an_artifact_is_what_was_asked_for(
    client: Client, run: str, asked: str, status: int, body: bytes | None
) -> None:
    told = client.get(f"/api/runs/{run}/artifacts/d.txt", {"Range": asked})
    assert told.status == status
    assert told.headers["accept-ranges"] == "bytes"
    if body is None:
        assert told.headers["content-range"] == "bytes */10"
        assert told.error["message"]
    else:
        assert told.body == body
        assert told.headers["etag"] == f'"{hashlib.sha256(b"0123456789").hexdigest()}"'


def test_what_was_altered_behind_the_server_is_not_handed_out(client: Client, server: Server, run: str) -> None:
    (server.store / "runs" / run / "artifacts" / "d.txt").write_bytes(b"9876543210")
    told = client.get(f"/api/runs/{run}/artifacts/d.txt")
    assert (told.status, told.error["code"]) == (409, "altered")
    digest = hashlib.sha256(b"blob").hexdigest()
    assert client.ask("PUT", f"/api/blobs/{digest}", b"blob", _BYTES).status == 201
    assert client.get(f"/api/blobs/{digest}").body == b"blob"
    blob = server.store / "blobs" / digest[:2] / digest
    blob.chmod(0o600)
    blob.write_bytes(b"bolb")
    assert client.get(f"/api/blobs/{digest}").error["code"] == "altered"
    blob.unlink()
    assert client.get(f"/api/blobs/{digest}").status in (404, 410)
    assert client.ask("PUT", f"/api/blobs/{digest}", b"other", _BYTES).status == 422


@pytest.mark.parametrize(
    "name", ["../x", "a/../../x", "/etc/x", "a\0b", "con", "x" * 300, ".", "a//b", "a\\b", " a", "timeline.jsonl"]
)
def test_no_artifact_is_kept_outside_of_its_run(client: Client, server: Server, run: str, name: str) -> None:
    before = {path for path in server.store.rglob("*") if "artifacts" not in path.parts}
    told = client.ask("PUT", f"/api/runs/{run}/artifacts/{_quoted(name)}", b"evil", _BYTES)
    assert told.status in (201, 404, 422), told
    after = {path for path in server.store.rglob("*") if "artifacts" not in path.parts}
    assert not [path for path in after - before if path.is_file() and path.read_bytes() == b"evil"]


def test_a_store_that_is_served_is_the_same_to_the_command_line(client: Client, server: Server) -> None:
    trace = trace_id("command line")
    _send(client, span(trace, span_id("command line")))
    until(lambda: client.found(f"/api/runs/{trace}")["run"]["status"] == "ok")
    code, found = playhead("verify", trace, "--store", str(server.store))
    assert code == 0
    assert found["integrity"]["verdict"] == "intact"
