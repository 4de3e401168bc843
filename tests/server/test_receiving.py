"""What comes is written once, in whatever order, batches and forms; and is the run that its senders meant."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

import pytest
from tests.server.otlp import JSON, PROTOBUF, as_protobuf, export, exported, logs, model_span, span, span_id, trace_id
from tests.server.serving import Client, Server, in_path, playhead, until, verified


def _send(client: Client, *spans: dict[str, Any], **resource: Any) -> dict[str, Any]:
    told = client.ask("POST", "/v1/traces", exported(spans, **resource), JSON)
    assert told.status == 200, told
    answer: dict[str, Any] = told.json()
    return answer


def _lines(client: Client, run: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in client.get(f"/api/runs/{in_path(run)}/lines").body.splitlines()]


def _over(client: Client, run: str) -> dict[str, Any]:
    def over() -> dict[str, Any] | None:
        found: dict[str, Any] = client.found(f"/api/runs/{in_path(run)}")["run"]
        return found if found["status"] not in ("running", "crashed") else None

    found = until(over)
    assert found is not None
    return found


def _tree(name: str, spans: int = 12) -> list[dict[str, Any]]:
    trace = trace_id(name)
    made = [span(trace, span_id(f"{name} 0"), None, f"agent {name}")]
    for place in range(1, spans):
        id, parent = span_id(f"{name} {place}"), span_id(f"{name} {(place - 1) // 2}")
        made.append(
            model_span(trace, id, parent, place) if place % 3 == 0 else span(trace, id, parent, f"s{place}", place)
        )
    return made


# Once.


def test_the_same_request_again_changes_no_byte(server: Server, client: Client) -> None:
    spans = _tree("again")
    body, packed = exported(spans), as_protobuf(export(spans))
    assert client.ask("POST", "/v1/traces", body, JSON).status == 200
    _over(client, trace_id("again"))
    before = client.get(f"/api/runs/{trace_id('again')}/lines").body
    for sent, headers in (
        (body, JSON),
        (packed, PROTOBUF),
        (exported(spans[::-1]), JSON),
        (exported(spans[3:5]), JSON),
    ):
        assert client.ask("POST", "/v1/traces", sent, headers).status == 200
    time.sleep(0.6)
    assert client.get(f"/api/runs/{trace_id('again')}/lines").body == before


def test_a_span_that_says_something_else_is_a_revision_and_the_old_line_stays(client: Client) -> None:
    trace, id = trace_id("else"), span_id("else 1")
    _send(client, span(trace, id, span_id("else"), "first", 1, result="old"))
    before = client.get(f"/api/runs/{trace}/lines").body
    _send(client, span(trace, id, span_id("else"), "second", 1, result="new"))
    after = client.get(f"/api/runs/{trace}/lines").body
    assert after.startswith(before)
    (revision,) = [event for event in _lines(client, trace) if event["kind"] == "span.revised"]
    assert revision["span"] == id
    assert revision["data"]["why"] == "sent_again"
    _send(client, span(trace, span_id("else"), None, "root"))
    _over(client, trace)
    verified(client, [trace])
    assert client.found(f"/api/runs/{trace}")["run"]["events"] == len(_lines(client, trace))
    for name, sent in (("first", "old"), ("second", "new")):
        _send(client, span(trace, id, span_id("else"), name, 1, result=sent))
    assert client.get(f"/api/runs/{trace}/lines").body.startswith(after)
    assert [event["kind"] for event in _lines(client, trace)].count("span.revised") == 1, "both forms are known"


def test_the_order_and_the_batches_of_spans_make_no_difference_to_what_is_told(client: Client) -> None:
    told = []
    for seed in range(4):
        chance = random.Random(seed)
        spans = json.loads(json.dumps(_tree("order", 20)).replace(trace_id("order"), trace_id(f"order {seed}")))
        if seed:
            chance.shuffle(spans)
        while spans:
            size = chance.choice((1, 2, 7, 20))
            batch, spans = spans[:size], spans[size:]
            _send(client, *batch)
        trace = trace_id(f"order {seed}")
        _send(client)
        shown = until(lambda trace=trace: _whole(client, trace, 20))
        counts = client.found(f"/api/runs/{trace}/stats")["total"]
        told.append((shown, counts, client.found("/api/diff", left=trace_id("order 0"), right=trace)["deviations"]))
        verified(client, [trace])
    for one in told[1:]:
        for place in range(3):
            assert one[place] == told[0][place]
    assert told[0][2] == []


def _whole(client: Client, trace: str, spans: int) -> dict[str, Any] | None:
    run = _over(client, trace)
    if sum("otlp" in event["data"] for event in _lines(client, trace)) < spans:
        return None
    return {name: run[name] for name in ("name", "status", "model_calls", "tokens") if name in run}


def test_what_a_run_is_said_to_be_is_as_it_stands_now_and_as_the_command_line_has_it(
    client: Client, server: Server
) -> None:
    trace, root = trace_id("joined"), span_id("joined")
    around = model_span(trace, span_id("joined around"), root, 1, **{"gen_ai.response.id": "resp_1", "more": "x" * 99})
    within = model_span(
        trace, span_id("joined within"), span_id("joined around"), 1, **{"gen_ai.response.id": "resp_1"}
    )
    for one in (within, around, span(trace, root, None, "joined")):  # as they end, each in a request of its own
        _send(client, one)
    _over(client, trace)
    found = client.found(f"/api/runs/{trace}")
    assert [row["kind"] for row in found["timeline"]].count("model") == 1, "two accounts of one call"
    assert (found["run"]["model_calls"], found["run"]["tokens_in"]) == (1, 11)
    (listed,) = [run for run in client.found("/api/runs", limit=1000)["runs"] if run["external_id"] == trace]
    assert (listed["model_calls"], listed["tokens_in"]) == (1, 11)
    shown = playhead("show", trace, "--store", str(server.store))[1]
    assert {name: shown[name] for name in ("run", "timeline", "readiness")} == {
        name: found[name] for name in ("run", "timeline", "readiness")
    }


def test_a_session_that_is_named_too_late_is_not_taken_for_the_run_of_its_trace(store: Path) -> None:
    def turn(name: str) -> dict[str, Any]:
        return span(trace_id(name), span_id(name), None, name, **{"session.id": "too late"})

    with Server(store, "--quiet", "0.3") as server:
        client = server.client()
        _send(client, span(trace_id("turn 1"), span_id("inner"), span_id("turn 1"), "inner"))
        _send(client, turn("turn 1"))  # its trace has a run already, and stays whole
        _send(client, turn("turn 2"))
        server.stop()
        server.start()
        client = server.client()
        _send(client, turn("turn 3"))
        _send(client, turn("turn 1"), turn("turn 2"))  # as an exporter does that was not answered
        runs = {run["external_id"]: run["id"] for run in client.found("/api/runs")["runs"]}
        assert runs.keys() == {trace_id("turn 1"), "too late"}
        assert client.found("/api/runs/too%20late")["run"]["id"] == runs["too late"]
        spans = {id: sum("otlp" in event["data"] for event in _lines(client, id)) for id in runs.values()}
        assert spans == {runs[trace_id("turn 1")]: 2, runs["too late"]: 2}
        assert client.found(f"/api/runs/{trace_id('turn 3')}")["run"]["id"] == runs["too late"]


def test_what_comes_after_the_end_opens_the_run_again(client: Client) -> None:
    trace = trace_id("late")
    _send(client, span(trace, span_id("late")))
    _over(client, trace)
    verified(client, [trace])
    _send(client, model_span(trace, span_id("late 1"), span_id("late"), 1))
    until(lambda: [event["kind"] for event in _lines(client, trace)].count("run.finished") == 2)
    kinds = [event["kind"] for event in _lines(client, trace)]
    assert kinds.index("run.reopened") > kinds.index("run.finished")
    assert kinds[-1] == "run.finished"
    assert _over(client, trace)["status"] == "ok"
    verified(client, [trace])
    (listed,) = [run for run in client.found("/api/runs", limit=1000)["runs"] if run["external_id"] == trace]
    assert listed["model_calls"] == 1


def test_one_bad_span_among_a_hundred_is_rejected_alone(client: Client) -> None:
    trace = trace_id("partial")
    spans = [span(trace, span_id(f"partial {number}"), span_id("partial"), at=number) for number in range(1, 100)]
    spans[50]["spanId"] = "not hex"
    told = _send(client, *spans, span(trace, span_id("partial")))
    assert told["partialSuccess"]["rejectedSpans"] == "1"
    assert "hex" in told["partialSuccess"]["errorMessage"]
    assert sum("otlp" in event["data"] for event in _lines(client, trace)) == 99
    spans[50]["spanId"] = "0" * 16
    packed = export(spans)
    answer = client.ask("POST", "/v1/traces", as_protobuf(packed), PROTOBUF)
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    assert ExportTraceServiceResponse.FromString(answer.body).partial_success.rejected_spans == 1


def test_logs_say_more_of_their_spans_whichever_comes_first(client: Client) -> None:
    for first in ("logs", "spans"):
        trace = trace_id(f"logs of {first}")
        record = {
            "traceId": trace,
            "spanId": span_id("logs 1"),
            "body": {"stringValue": "said"},
            "timeUnixNano": "1790000000000000000",
        }
        for what in (first, "spans" if first == "logs" else "logs"):
            if what == "logs":
                assert client.ask("POST", "/v1/logs", logs([record]), JSON).status == 200
            else:
                _send(client, span(trace, span_id("logs 1"), span_id("logs 0")), span(trace, span_id("logs 0")))
        assert client.ask("POST", "/v1/logs", logs([record]), JSON).status == 200
        _over(client, trace)
        assert [event["kind"] for event in _lines(client, trace)].count("log.emitted") == 1
        verified(client, [trace])


# Which run.


@pytest.mark.parametrize(
    ("rule", "resource", "attributes", "id"),
    [
        ("run_id", {"playhead.run.id": "grouped/by id", "session.id": "x"}, {}, "grouped/by id"),
        ("run_id", {"session.id": "x"}, {"playhead.run.id": "grouped by span"}, "grouped by span"),
        ("session", {"session.id": "grouped by session"}, {}, "grouped by session"),
        ("session", {}, {"gen_ai.conversation.id": "grouped by conversation"}, "grouped by conversation"),
        (
            "instance",
            {"service.instance.id": "grouped by instance", "telemetry.sdk.name": None},
            {},
            "grouped by instance",
        ),
        ("trace", {"service.instance.id": "made up by an SDK"}, {}, None),
        ("trace", {}, {}, None),
    ],
    ids=str,
)
def test_a_run_is_what_its_senders_say_it_is(
    client: Client, rule: str, resource: dict[str, Any], attributes: dict[str, Any], id: str | None
) -> None:
    traces = [trace_id(f"grouped {rule} {id} {resource} {number}") for number in range(2)]
    for trace in traces:
        _send(client, span(trace, span_id(f"{trace} 1"), span_id(trace), at=1, **attributes), **resource)
        _send(client, span(trace, span_id(trace), None, **attributes), **resource)
    runs = {client.found(f"/api/runs/{trace}")["run"]["id"] for trace in traces}
    assert len(runs) == (2 if id is None else 1)
    for name in traces if id is None else [id]:
        first = _lines(client, name)[0]
        assert first["data"]["received"]["rule"] == rule
        assert first["data"]["external_id"] == name
        assert first["data"]["received"]["trace"] in traces
        _over(client, name)
        verified(client, [name])


def test_a_run_id_of_our_own_becomes_the_run(client: Client) -> None:
    run = "run_01m7ttn9d71zaasgkn11636tc1"
    _send(client, span(trace_id("own"), span_id("own")), **{"playhead.run.id": run})
    assert _over(client, run)["id"] == run


def test_a_trace_stays_whole_whatever_more_of_its_spans_say(client: Client) -> None:
    trace = trace_id("whole")
    _send(client, span(trace, span_id("whole 1"), span_id("whole"), at=1))
    _send(client, span(trace, span_id("whole"), None, **{"session.id": "whole session"}))
    assert sum("otlp" in event["data"] for event in _lines(client, trace)) == 2


# When it is over.


def test_a_run_without_a_root_goes_on_until_somebody_ends_it(client: Client) -> None:
    trace = trace_id("rootless")
    _send(client, span(trace, span_id("rootless 1"), span_id("rootless"), at=1))
    time.sleep(0.8)
    assert client.found(f"/api/runs/{trace}")["run"]["status"] == "running"
    found = client.found(f"/api/runs/{trace}/verify")
    assert (found["integrity"]["verdict"], found["completeness"]["verdict"]) == ("intact", "unfinished")
    assert client.found("/api/diff", left=trace, right=trace)["deviations"] == []
    assert client.post(f"/api/runs/{trace}/finish", {"error": "it gave up"}).json()["status"] == "error"
    assert _over(client, trace)["status"] == "error"
    verified(client, [trace])
    assert client.post(f"/api/runs/{trace}/finish", {}).status == 200, "once more is no harm"
    assert [event["kind"] for event in _lines(client, trace)].count("run.finished") == 1


def test_a_run_is_over_once_its_root_ended_and_it_was_quiet(store: Path) -> None:
    with Server(store, "--quiet", "1.5") as server:
        client = server.client()
        trace = trace_id("quiet")
        _send(client, span(trace, span_id("quiet")))
        began = time.monotonic()
        for number in range(3):
            time.sleep(0.6)
            _send(client, span(trace, span_id(f"quiet {number}"), span_id("quiet"), at=number))
            assert client.found(f"/api/runs/{trace}")["run"]["status"] == "running"
        _over(client, trace)
        assert time.monotonic() - began > 1.8 + 1.4
        verified(client, [trace])


@pytest.mark.parametrize("quiet", ["0", "-1", "x", "nan", "inf", "1e9"])
def test_a_length_of_quiet_that_is_none_is_refused(store: Path, quiet: str) -> None:
    from tests.warm import playhead

    done = playhead(store.parent, "serve", "--quiet", quiet, "--port", "0", "--store", str(store))
    assert done.returncode == 2
    assert "--quiet" in done.stderr


def test_what_the_sdk_of_span_chain_sends_is_a_run(client: Client) -> None:
    sent = {"run_id": "chain-1", "agent_id": "a", "spans": [
        {"span_id": "s2", "parent_span_id": "s1", "name": "plan", "started_at": "2026-01-01T00:00:01Z", "ended_at": "2026-01-01T00:00:02Z"},
        {"span_id": "s1", "name": "agent", "started_at": "2026-01-01T00:00:00Z", "ended_at": "2026-01-01T00:00:03Z", "status": "ok"},
        {"name": "nobody"},
    ]}  # fmt: skip
    for _ in range(2):
        told = client.post("/ingest", sent)
        assert told.status == 202
        assert told.json() | {"problems": []} == {"accepted": 2, "run_id": "chain-1", "rejected": 1, "problems": []}
    _over(client, "chain-1")
    verified(client, ["chain-1"])
    assert sum("otlp" in event["data"] for event in _lines(client, "chain-1")) == 2


def test_metrics_are_told_that_they_are_not_kept(client: Client) -> None:
    told = client.ask("POST", "/v1/metrics", b"{}", JSON)
    assert "not kept" in told.json()["partialSuccess"]["errorMessage"]
    assert client.ask("POST", "/v1/metrics", b"", PROTOBUF).status == 200


# Much of it.


def _flood(server: Server, spans: int) -> tuple[float, int]:
    """Send one trace in requests of a thousand, and return how much larger the server is than before, in MB."""
    client = server.client()
    warm = trace_id("warm")
    _send(client, *[span(warm, span_id(f"warm {number}"), span_id("warm"), at=number) for number in range(1000)])
    _send(client, span(warm, span_id("warm")))
    _over(client, warm)
    before = server.memory_bytes()
    server.forget_peak()
    trace = trace_id("flood")
    for at in range(0, spans, 1000):
        every = [
            span(trace, span_id(f"flood {n}"), span_id("flood"), f"work {n}", n % 5000, note=f"n {n}")
            for n in range(at, at + 1000)
        ]
        body = as_protobuf(export(every))
        assert client.ask("POST", "/v1/traces", body, PROTOBUF).status == 200
    peak = server.memory_bytes("VmHWM") - before
    _send(client, span(trace, span_id("flood"), None, "agent"))
    _over(client, trace)
    found = client.found(f"/api/runs/{trace}/verify")
    assert (found["integrity"]["verdict"], found["completeness"]["verdict"]) == ("intact", "complete")
    assert found["events"] == 2 * (spans + 1) + 3
    return peak / 2**20, (server.memory_bytes() - before) // 2**20


def test_many_spans_of_one_trace_take_little_memory(store: Path) -> None:
    with Server(store, "--quiet", "0.5") as server:
        peak, after = _flood(server, 20_000)
        assert peak < 40, (peak, after)


@pytest.mark.hard
@pytest.mark.timeout(1800)
def test_a_hundred_thousand_spans_of_one_trace_take_little_memory(store: Path) -> None:
    with Server(store, "--quiet", "2") as server:
        peak, after = _flood(server, 100_000)
        print(f"peak +{peak:.0f} MB, afterwards +{after} MB")
        assert peak < 80, (peak, after)
