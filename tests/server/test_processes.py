"""A server has several processes: some write runs, one reads what was written into the indexes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.otlp import JSON, exported, model_span, span, span_id, trace_id
from tests.server.serving import Server, children, until, verified

from playhead._api.receiving.carrying import carried, unpacked
from playhead._api.receiving.open_runs import Piece
from playhead.ingest.otlp.grouping import Group
from playhead.ingest.otlp.spans import Emitter, LogRecord, Span

_MANY = 60  # traces, so that each process has some of them


def requests(traces: int, named: str = "run") -> bytes:
    """Return a request with two spans of each trace, children first."""
    spans = []
    for number in range(traces):
        trace, root = trace_id(f"{named} {number}"), span_id(f"{named} {number}")
        spans += [model_span(trace, span_id(f"{named} call {number}"), root, 1), span(trace, root)]
    return exported(spans)


def runs_of(server: Server) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = server.client().found("/api/runs", limit=1000)["runs"]
    return runs


@pytest.mark.parametrize("writers", [1, 2, 4])
def test_runs_are_whole_however_many_processes_write_them(store: Path, writers: int) -> None:
    with Server(store, "--quiet", "0.3", "--writers", str(writers)) as server:
        assert len(children(server.pid)) == writers  # one for the indexes, and the others
        client = server.client()
        for _ in range(2):  # sent again, nothing is written twice
            assert client.ask("POST", "/v1/traces", requests(_MANY), JSON).status == 200
        ended = until(
            lambda: [run for run in runs_of(server) if run["status"] == "ok"][_MANY - 1 :] and runs_of(server)
        )
        assert len(ended) == _MANY
        assert {run["model_calls"] for run in ended} == {1}
        verified(client, [run["id"] for run in ended])
        held = _held_by(server.processes(), store)
        assert not held  # all are over


def _held_by(pids: list[int], store: Path) -> list[str]:
    """Return the timelines that these processes have open."""
    found = []
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                target = os.readlink(descriptor)
            except OSError:
                continue
            if target.startswith(str(store)) and target.endswith("timeline.jsonl"):
                found.append(target)
    return found


def test_every_writer_has_runs_and_none_has_those_of_another(store: Path) -> None:
    with Server(store, "--writers", "3") as server:
        assert server.client().ask("POST", "/v1/traces", requests(_MANY), JSON).status == 200
        held = {pid: set(_held_by([pid], store)) for pid in server.processes()}
        assert sum(bool(runs) for runs in held.values()) == 3
        assert sum(map(len, held.values())) == len(set().union(*held.values())) == _MANY


def test_a_trace_stays_whole_when_a_session_is_named_late_also_after_a_restart(store: Path) -> None:
    with Server(store, "--writers", "4") as server:
        for number in range(12):
            trace, root = trace_id(f"late {number}"), span_id(f"late {number}")
            first = exported([span(trace, span_id(f"first {number}"), root)])
            late = exported([span(trace, root, None, "agent", **{"session.id": f"session {number}"})])
            assert server.client().ask("POST", "/v1/traces", first, JSON).status == 200
            if number % 4 == 3:
                server.kill()
                server.start()
            assert server.client().ask("POST", "/v1/traces", late, JSON).status == 200
        assert len(runs_of(server)) == 12


def test_what_was_acknowledged_is_there_when_a_writer_is_killed_and_the_server_says_what_to_do(store: Path) -> None:
    with Server(store, "--quiet", "0.3", "--writers", "2") as server:
        client = server.client()
        assert client.ask("POST", "/v1/traces", requests(_MANY), JSON).status == 200
        _, writer = children(server.pid)
        os.kill(writer, signal.SIGKILL)
        told = client.ask("POST", "/v1/traces", requests(_MANY, "more"), JSON)
        assert told.status >= 500
        assert "start the server again" in told.json()["error"]["hint"].lower()
        assert client.get("/health").status == 503
        until(lambda: {run["status"] for run in runs_of(server)} >= {"ok", "crashed"})  # the other half is looked after
        assert "writes runs is gone" in str(client.get("/health").json())
        server.kill()
        server.start()
        client = server.client()
        for name in ("run", "more"):
            assert client.ask("POST", "/v1/traces", requests(_MANY, name), JSON).status == 200
        ended = until(
            lambda: [run for run in runs_of(server) if run["status"] == "ok"][2 * _MANY - 1 :] and runs_of(server)
        )
        assert len(ended) == 2 * _MANY
        assert {run["model_calls"] for run in ended} == {1}
        verified(client, [run["id"] for run in ended], torn=True)


def test_runs_are_found_when_the_process_that_reads_for_the_indexes_is_killed(store: Path) -> None:
    with Server(store, "--quiet", "0.3") as server:
        minder = children(server.pid)[0]
        os.kill(minder, signal.SIGKILL)
        client = server.client()
        assert client.ask("POST", "/v1/traces", requests(2), JSON).status == 200
        assert len(runs_of(server)) == 2
        until(lambda: all(run["status"] == "ok" for run in runs_of(server)))
        assert until(
            lambda: client.found("/api/runs", q="answer")["runs"] or client.found("/api/runs", q="agent")["runs"]
        )
        assert "the server does it itself" in until(server.log)


def test_the_indexes_are_current_before_anybody_asks(store: Path) -> None:
    import sqlite3

    def known() -> int:
        with sqlite3.connect(f"file:{store / 'playhead.db'}?mode=ro", uri=True) as database:
            (count,) = database.execute("SELECT count(*) FROM calls").fetchone()
            return int(count)

    with Server(store) as server:
        assert server.client().ask("POST", "/v1/traces", requests(_MANY), JSON).status == 200
        until(lambda: known() == _MANY)
        until(lambda: (store / "search.db").exists())


def test_no_process_outlives_a_server_that_is_killed(store: Path) -> None:
    with Server(store, "--writers", "3") as server:
        started = children(server.pid)
        assert len(started) == 3
        server.kill()
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in started), wait_s=5)


def test_a_server_that_is_stopped_ends_its_processes_and_is_quick_about_it(store: Path) -> None:
    with Server(store, "--writers", "3") as server:
        started = children(server.pid)
        assert server.client().ask("POST", "/v1/traces", requests(_MANY), JSON).status == 200
        for pid in started:
            os.kill(pid, signal.SIGTERM)  # as a service manager does with all of them
        began_s = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began_s < 10
        assert not any(Path(f"/proc/{pid}").exists() for pid in started)
        server.start()
        assert {run["status"] for run in runs_of(server)} == {"ok"}  # what was over was ended


_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary()
_values = st.recursive(_scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(
    attributes=st.dictionaries(st.text(), _values, max_size=5),
    start_ns=st.integers(0, 2**64 - 1),
    unknown=st.dictionaries(st.text(), _values, max_size=2),
    is_new=st.booleans(),
)
def test_spans_are_carried_to_another_process_as_they_are(
    attributes: dict[str, Any], start_ns: int, unknown: dict[str, Any], is_new: bool
) -> None:
    emitter = Emitter({"attributes": {"service.name": "shop"}}, {"name": "scope"})
    one = Span(
        trace="4bf92f3577b34da6a3ce929d0e0e4736", span="00f067aa0ba902b7", name="work", start_ns=start_ns,
        attributes=attributes, unknown=unknown, emitter=emitter, events=[{"name": "e", "attributes": attributes}],
    )  # fmt: skip
    log = LogRecord(trace=one.trace, span=one.span, time_ns=start_ns, body=attributes, emitter=emitter)
    piece = Piece("run_01m7txbk2egzayfc2ahkfnxwna", is_new, Group("trace", one.trace), one.trace, [one], [log])
    digests = one.digest(), log.digest()
    (found,) = unpacked(carried([piece]))
    assert found[:4] == piece[:4]
    assert (found.spans[0].digest(), found.logs[0].digest()) == digests
    assert repr(found.spans[0].attributes) == repr(attributes)
    assert found.spans[0].emitter == emitter
