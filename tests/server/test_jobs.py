"""Cassettes in the database and jobs that feed them in: done once, or not at all, and it is said why."""

from __future__ import annotations

import json
import shutil
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from tests.server.otlp import JSON, exported, model_span, span, span_id, trace_id
from tests.server.serving import Client, Server, playhead, until, verified

from playhead import _limits
from playhead._ids import new_run_id
from playhead.store.files import FileStore
from playhead.store.registry.database import Registry
from playhead.store.registry.jobs import Jobs

_BYTES = {"Content-Type": "application/octet-stream"}


def _run(client: Client, name: str, spans: int = 4) -> str:
    trace = trace_id(name)
    made = [model_span(trace, span_id(f"{name} {n}"), span_id(name), n) for n in range(1, spans)]
    for at in range(0, len(made), 500):
        assert client.ask("POST", "/v1/traces", exported(made[at : at + 500]), JSON).status == 200
    assert client.ask("POST", "/v1/traces", exported([span(trace, span_id(name), None, name)]), JSON).status == 200
    found = until(lambda: (run := client.found(f"/api/runs/{trace}")["run"])["status"] == "ok" and run)
    id: str = found["id"]
    return id


def _cassette(client: Client, run: str) -> dict[str, Any]:
    told = client.post("/api/cassettes", {"run_id": run})
    assert told.status == 201
    found: dict[str, Any] = told.json()
    assert told.headers["location"] == f"/api/cassettes/{found['id']}"
    return found


def _ended(client: Client, job: str) -> dict[str, Any]:
    found: dict[str, Any] = until(
        lambda: (one := client.found(f"/api/jobs/{job}"))["status"] not in ("queued", "running") and one, wait_s=60
    )
    return found


@pytest.fixture
def made(client: Client, request: pytest.FixtureRequest) -> dict[str, Any]:
    return _cassette(client, _run(client, request.node.name))


def test_a_cassette_is_the_run_as_it_is_and_can_be_taken_away(
    client: Client, made: dict[str, Any], tmp_path: Path
) -> None:
    told = client.get(f"/api/cassettes/{made['id']}/download")
    assert told.status == 200
    assert told.headers["content-disposition"].startswith("attachment")
    (tmp_path / "a.cassette").write_bytes(told.body)
    assert playhead("verify", str(tmp_path / "a.cassette"))[0] == 0
    assert client.ask("HEAD", f"/api/cassettes/{made['id']}/download").status == 200
    sent = client.ask("POST", "/api/cassettes/upload", told.body, {"Content-Type": "application/zip"}, name="again")
    assert sent.status == 201
    again = sent.json()
    assert {name: again[name] for name in ("digest", "head", "events", "run_id")} == {
        name: made[name] for name in ("digest", "head", "events", "run_id")
    }
    assert again["name"] == "again"


def test_a_cassette_of_a_run_whose_root_has_ended_is_made_at_once(store: Path) -> None:
    with Server(store, "--quiet", "600") as server:
        client, trace = server.client(), trace_id("at once")
        inner = model_span(trace, span_id("at once 1"), span_id("at once"), 1)
        assert client.ask("POST", "/v1/traces", exported([inner]), JSON).status == 200
        early = client.post("/api/cassettes", {"run_id": trace})
        assert (early.status, "unfinished" in early.error["hint"], "--" in early.error["hint"]) == (422, True, False)
        assert client.found(f"/api/runs/{trace}")["run"]["status"] == "running"
        root = span(trace, span_id("at once"), None, "at once")
        assert client.ask("POST", "/v1/traces", exported([root]), JSON).status == 200
        cassette = _cassette(client, trace)
        found = _ended(client, client.post(f"/api/cassettes/{cassette['id']}/replay", {}).json()["job_id"])
        assert found["result"]["completeness"]["verdict"] == "complete"
        late = model_span(trace, span_id("at once 2"), span_id("at once"), 2)
        assert client.ask("POST", "/v1/traces", exported([late]), JSON).status == 200
        assert _cassette(client, trace)["head"]["seq"] > cassette["head"]["seq"]


def test_a_cassette_that_was_changed_on_its_way_is_refused(client: Client, made: dict[str, Any]) -> None:
    body = client.get(f"/api/cassettes/{made['id']}/download").body
    for at in (len(body) // 3, len(body) // 2, len(body) - 30):
        bad = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
        told = client.ask("POST", "/api/cassettes/upload", bad, _BYTES)
        assert told.status in (409, 422), told
        assert told.error["message"]


def test_nothing_of_a_download_stays_behind(client: Client, server: Server, made: dict[str, Any]) -> None:
    import socket
    import tempfile

    def left() -> list[Path]:
        return [path for path in Path(tempfile.gettempdir()).glob("playhead-*") if list(path.glob("download*"))]

    until(lambda: not left())
    for _ in range(3):
        client.ask("HEAD", f"/api/cassettes/{made['id']}/download")
        with socket.create_connection((client.host, client.port)) as leaving:
            leaving.sendall(f"GET /api/cassettes/{made['id']}/download HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    client.get(f"/api/cassettes/{made['id']}/download")
    until(lambda: not left(), wait_s=5)


def test_a_job_goes_from_queued_to_completed_and_says_what_came_of_it(client: Client, made: dict[str, Any]) -> None:
    told = client.post(f"/api/cassettes/{made['id']}/replay", {"new_run_id": "fed.again:1"})
    assert told.status == 202
    job = told.json()
    assert (job["status"], job["run_id"]) == ("queued", "fed.again:1")
    assert told.headers["location"] == f"/api/jobs/{job['job_id']}"
    found = _ended(client, job["job_id"])
    assert found["status"] == "completed", (found["error"], found["attempts"])
    assert found["progress"]["done"] == found["progress"]["total"] == made["events"]
    assert found["attempts"] == 1
    assert found["created"] <= found["started"] <= found["finished"]
    result = found["result"]
    assert (result["mode"], result["executed"], result["hash_valid"]) == ("reingest", False, True)
    assert (result["integrity"]["verdict"], result["completeness"]["verdict"]) == ("intact", "complete")
    assert (result["fidelity"]["verdict"], result["diff"]) == ("faithful", [])
    assert result["run_id"] == "fed.again:1"
    run = client.found("/api/runs/fed.again:1")["run"]
    assert run["id"] == result["run"]
    verified(client, [run["id"]])
    assert client.found("/api/jobs", status="completed")["jobs"]


def test_an_id_that_a_run_has_is_refused(client: Client, made: dict[str, Any]) -> None:
    path = f"/api/cassettes/{made['id']}/replay"
    assert client.post(path, {"new_run_id": made["run_id"]}).status == 409
    assert client.post(path, {"new_run_id": made["external_id"]}).status == 409
    first = client.post(path, {"new_run_id": "taken"})
    assert (first.status, client.post(path, {"new_run_id": "taken"}).status) == (202, 409)
    _ended(client, first.json()["job_id"])
    assert client.post(path, {"new_run_id": "taken"}).error["code"] == "conflict"
    for bad in ("", "a b", "../x", "a\n", "x" * 129, "é"):
        assert client.post(path, {"new_run_id": bad}).status == 422, bad


def test_what_has_ended_is_not_cancelled(client: Client, made: dict[str, Any]) -> None:
    job = client.post(f"/api/cassettes/{made['id']}/replay", {}).json()["job_id"]
    _ended(client, job)
    told = client.ask("DELETE", f"/api/jobs/{job}")
    assert (told.status, told.error["detail"]) == (409, {"status": "completed"})


def test_pages_of_cassettes_and_jobs_have_each_once(client: Client, made: dict[str, Any]) -> None:
    for _ in range(3):
        client.post(f"/api/cassettes/{made['id']}/replay", {})
        _cassette(client, made["run_id"])
    for name in ("one more", "and one"):
        _run(client, name)
    for sort in ("cassettes", "jobs", "runs"):
        seen: list[str] = []
        cursor = None
        while True:
            page = client.found(f"/api/{sort}", limit=2, **({} if cursor is None else {"cursor": cursor}))
            seen += [one["id"] for one in page[sort]]
            cursor = page["next"]
            if cursor is None:
                break
        assert len(seen) == len(set(seen)) >= 2
        assert seen == sorted(seen, reverse=True)


# With a server of its own, which is disturbed.


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return a store with a cassette that takes a while to feed in; tests take copies of it."""
    store = tmp_path_factory.mktemp("long") / "store"
    with Server(store, "--quiet", "0.3") as server:
        client = server.client()
        id = _cassette(client, _run(client, "long", 3000))["id"]
    return store, id


@pytest.fixture
def copied(long_run: tuple[Path, str], store: Path) -> tuple[Path, str]:
    shutil.copytree(long_run[0], store)
    return store, long_run[1]


@pytest.mark.parametrize("target", [{}, {"new_run_id": "a-name-of-mine"}], ids=["its own id", "a name"])
def test_a_job_whose_server_is_killed_is_done_once_by_the_next(
    copied: tuple[Path, str], target: dict[str, str]
) -> None:
    store, cassette = copied
    with Server(store, "--lease", "2") as server:
        client = server.client()
        job = client.post(f"/api/cassettes/{cassette}/replay", target).json()["job_id"]
        until(
            lambda: (
                (client.found(f"/api/jobs/{job}")["progress"]["done"] or 0) > 0
                or len(list((store / "runs").iterdir())) > 1
            ),
            every_s=0.005,
        )
        server.kill()
        assert len(list((store / "runs").iterdir())) == 2, "it was in the middle of it"
        server.start()
        client = server.client()
        found = _ended(client, job)
        assert found["status"] == "completed", (found["error"], found["attempts"])
        assert found["attempts"] == 2
        assert len(list((store / "runs").iterdir())) == 2, "the half of a run is gone"
        verified(client, [found["result"]["run_id"]])
        assert found["result"]["fidelity"]["verdict"] == "faithful"
        assert client.ask("DELETE", f"/api/jobs/{job}").status == 409


@pytest.mark.parametrize("left", ["a folder", "an empty timeline", "a torn line", "its first line", "somebody's run"])
def test_what_a_killed_worker_left_is_removed_and_nobody_elses_run(copied: tuple[Path, str], left: str) -> None:
    store, cassette = copied
    (other,) = (store / "runs").iterdir()
    run = new_run_id()
    with Registry(store) as registry:
        jobs = Jobs(registry)
        job = jobs.add("default", "reingest", {"cassette": cassette, "run": run, "as": run}, target_run=run).id
    folder = store / "runs" / run
    folder.mkdir()
    line = (other / "timeline.jsonl").read_bytes().partition(b"\n")[0]
    timeline = {"an empty timeline": b"", "a torn line": line[:100], "somebody's run": line + b"\n"}.get(left)
    if left == "its first line":
        folder.rmdir()
        ledger = FileStore(store).ledger(run, create=True)
        ledger.append("run.started", b'{"name":"x","origin":{"mode":"reingest","job":"%b"}}' % job.encode())
        ledger.close()
    elif timeline is not None:
        (folder / "timeline.jsonl").write_bytes(timeline)
    with Server(store) as server:
        found = _ended(server.client(), job)
        if left == "somebody's run":
            assert (found["status"], found["error"]["code"]) == ("failed", "conflict")
            assert (folder / "timeline.jsonl").read_bytes() == timeline
        else:
            assert found["status"] == "completed", found["error"]
            verified(server.client(), [run])


def test_a_job_whose_server_is_told_to_stop_is_done_by_the_next(copied: tuple[Path, str]) -> None:
    store, cassette = copied
    with Server(store, "--lease", "2") as server:
        client = server.client()
        jobs = [client.post(f"/api/cassettes/{cassette}/replay", {}).json()["job_id"] for _ in range(2)]
        until(lambda: len(list((store / "runs").iterdir())) > 1, every_s=0.005)
        assert server.stop() == 0
        server.start()
        client = server.client()
        for job in jobs:
            found = _ended(client, job)
            assert found["status"] == "completed", (found["error"], found["attempts"])
            verified(client, [found["result"]["run_id"]])
        assert len(list((store / "runs").iterdir())) == 3


def test_a_job_outlasts_its_lease_while_its_worker_is_alive(
    copied: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from playhead.server import working
    from playhead.server.projects import Projects

    store, cassette = copied
    projects = Projects(store)

    def silent(*_: Any, **__: Any) -> dict[str, Any]:
        """Say nothing for longer than the lease, as reading, verifying and comparing a long run does."""
        time.sleep(4)
        return {"run": "run_1", "diff": []}

    monkeypatch.setattr(working, "reingest", silent)
    stopping = threading.Event()
    worker = threading.Thread(target=working.Worker(projects, 0, stopping, 2).work)
    try:
        jobs = Jobs(projects.registry)
        id = jobs.add("default", "reingest", {"cassette": cassette, "run": "run_1", "as": "run_1"}).id
        worker.start()
        until(lambda: jobs.get("default", id).status not in ("queued", "running"))
        found = jobs.get("default", id)
        assert (found.status, found.attempts) == ("completed", 1), found.error
    finally:
        stopping.set()
        worker.join()
        projects.close()


def test_a_server_that_is_told_to_stop_gives_its_job_back(copied: tuple[Path, str]) -> None:
    store, cassette = copied
    with Server(store, "--lease", "600") as server:
        client = server.client()
        job = client.post(f"/api/cassettes/{cassette}/replay", {}).json()["job_id"]
        until(lambda: len(list((store / "runs").iterdir())) > 1, every_s=0.005)
        assert server.stop() == 0
        server.start()
        found = _ended(server.client(), job)  # and not when the lease has run out
        assert (found["status"], found["attempts"]) == ("completed", 1), found["error"]


def test_very_many_deviations_are_counted_and_the_first_are_told(store: Path, tmp_path: Path) -> None:
    secret = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"
    with Server(tmp_path / "open", variables={"PLAYHEAD_REDACT_OFF": "openai-key"}) as server:
        client, trace = server.client(), trace_id("many")
        told = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
        made = [
            span(trace, span_id(f"many {n}"), span_id("many"), f"t{n}", at=n + 1, **told,
                 **{"gen_ai.tool.call.arguments": json.dumps({"q": f"{secret} {n}{'x' * 500}"})})
            for n in range(800)
        ]  # fmt: skip
        for at in range(0, len(made), 400):
            assert client.ask("POST", "/v1/traces", exported(made[at : at + 400]), JSON).status == 200
        assert client.post(f"/api/runs/{trace}/finish", {}).status == 200
        body = client.get(f"/api/cassettes/{_cassette(client, trace)['id']}/download").body
    with Server(store) as server:  # which takes out what the other one kept
        client = server.client()
        cassette = client.ask("POST", "/api/cassettes/upload", body, _BYTES).json()["id"]
        found = _ended(client, client.post(f"/api/cassettes/{cassette}/replay", {}).json()["job_id"])
        assert found["status"] == "completed", found["error"]
        result = found["result"]
        assert (result["hash_valid"], result["fidelity"]["verdict"]) == (True, "deviated")
        assert 0 < len(result["diff"]) < result["fidelity"]["count"] == 800
        assert result["diff_left_off"] == 800 - len(result["diff"])
        assert result["fidelity"]["first"] == result["diff"][0]
        assert secret in result["diff"][0]["val_a"]
        assert "[redacted:openai-key]" in result["diff"][0]["val_b"]


def test_a_job_is_cancelled_while_it_waits_and_while_it_runs(copied: tuple[Path, str]) -> None:
    store, cassette = copied
    with Server(store) as server:
        client = server.client()
        jobs = [client.post(f"/api/cassettes/{cassette}/replay", {}).json()["job_id"] for _ in range(3)]
        until(lambda: client.found(f"/api/jobs/{jobs[0]}")["status"] == "running", every_s=0.005)
        for job in (jobs[2], jobs[0]):
            assert client.ask("DELETE", f"/api/jobs/{job}").json()["status"] == "cancelled"
            assert client.ask("DELETE", f"/api/jobs/{job}").status == 409
        assert _ended(client, jobs[1])["status"] == "completed"
        assert [client.found(f"/api/jobs/{job}")["status"] for job in jobs] == ["cancelled", "completed", "cancelled"]
        assert len(list((store / "runs").iterdir())) == 2, "nothing is left of what was cancelled"


def test_the_database_itself_refuses_to_change_a_cassette(copied: tuple[Path, str]) -> None:
    with sqlite3.connect(copied[0] / "server.db") as database:
        for sql in ("UPDATE cassettes SET name = 'x'", "DELETE FROM cassettes", "UPDATE cassette_parts SET content = x'00'",
                    "DELETE FROM cassette_parts", "UPDATE cassettes SET digest = 'x'", "REPLACE INTO cassette_parts SELECT cassette, number, x'00' FROM cassette_parts"):  # fmt: skip
            with pytest.raises(sqlite3.Error):
                database.execute(sql)
            database.rollback()
    database.close()


def test_a_cassette_that_was_changed_behind_the_server_is_never_used(copied: tuple[Path, str]) -> None:
    store, cassette = copied
    database = store / "server.db"
    with sqlite3.connect(database) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        (piece,) = opened.execute("SELECT substr(content, 30001, 64) FROM cassette_parts").fetchone()
    opened.close()
    content = database.read_bytes()
    assert content.count(piece) == 1
    database.write_bytes(content.replace(piece, bytes(byte ^ 1 for byte in piece)))
    with Server(store) as server:
        client = server.client()
        job = client.post(f"/api/cassettes/{cassette}/replay", {}).json()["job_id"]
        found = _ended(client, job)
        assert (found["status"], found["error"]["code"]) == ("failed", "altered")
        assert found["error"]["message"]
        assert found["error"]["hint"]
        assert client.get(f"/api/cassettes/{cassette}/download").error["code"] == "altered"
        assert len(list((store / "runs").iterdir())) == 1


def test_a_job_that_kills_its_workers_is_given_up(copied: tuple[Path, str]) -> None:
    store, cassette = copied
    with Server(store, "--lease", "0.2") as server:
        job = server.client().post(f"/api/cassettes/{cassette}/replay", {}).json()["job_id"]
        for _ in range(_limits.JOB_ATTEMPTS_MAX):
            until(lambda: server.client().found(f"/api/jobs/{job}")["status"] == "running", every_s=0.005)
            server.kill()
            server.start()
        found = _ended(server.client(), job)
        assert found["status"] in ("failed", "completed"), found
        if found["status"] == "failed":
            assert found["error"]["code"] == "worker_lost"


@pytest.mark.parametrize("lease", ["0", "-1", "x", "nan"])
def test_a_lease_that_is_none_is_refused(store: Path, lease: str) -> None:
    from tests.warm import playhead as called

    done = called(store.parent, "serve", "--lease", lease, "--port", "0", "--store", str(store))
    assert (done.returncode, "--lease" in done.stderr) == (2, True)
