"""Playback: the recorded outcome, provably, with nothing executed."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

import playhead
from playhead.errors import Altered, ArtifactNotFound, MissingContent
from playhead.event import envelope as envelope_module


class Point(NamedTuple):
    x: int
    y: int


def record(output: Any = "done", name: str = "agent", **options: Any) -> playhead.Run:
    with playhead.record(name, **options) as run:
        with playhead.step("work"):
            playhead.note("working")
        run.output = output
        run.metadata = {"model": "m"}
    assert run.id is not None
    return playhead.load(run.id)


def timeline(run: playhead.Run) -> Path:
    assert run.path is not None
    return run.path / "timeline.jsonl"


def reseal(run: playhead.Run, change: Any) -> None:
    """Rewrite a run line by line with every hash right, as somebody with the key to the disk could."""
    previous = envelope_module.genesis(run.id)
    out = []
    for line in run.lines():
        fields = orjson.loads(line)
        change(fields)
        fields["prev"] = previous
        del fields["hash"]
        body = orjson.dumps(fields)[:-1]
        import hashlib

        previous = hashlib.sha256(body).hexdigest()
        out.append(body + b',"hash":"' + previous.encode() + b'"}\n')
    timeline(run).write_bytes(b"".join(out))


def test_playback_returns_what_was_recorded() -> None:
    result = record({"answer": [1, (2, 3)], "bytes": b"\x00"}).playback()
    assert result.payload == {"answer": [1, (2, 3)], "bytes": b"\x00"}
    assert result.metadata == {"model": "m"}
    assert result.from_replay is True
    assert result.original_run_id == playhead.load("@last").id
    assert result.status == "ok"
    assert result.error is None


def test_a_recorded_error_is_played_back_as_an_error() -> None:
    with pytest.raises(ValueError, match="bad"), playhead.record("failing"):
        raise ValueError("bad")
    result = playhead.load("@last").playback()
    assert result.status == "error"
    assert result.payload is None
    assert result.error is not None
    assert result.error["type"] == "ValueError"
    with pytest.raises(playhead.RecordedError, match="ValueError: bad"):
        result.raise_for_error()


def test_objects_of_the_agent_stay_marked_unless_their_class_is_given() -> None:
    run = record(Point(1, 2))
    name = f"{Point.__module__}.{Point.__qualname__}"
    assert run.playback().payload == {"$tuple": [1, 2], "type": name}
    assert run.playback(types={name: Point}).payload == Point(1, 2)


def test_the_same_request_is_accepted_and_another_one_refused() -> None:
    run = record(input={"issue": 1842})
    assert run.playback(envelope=playhead.Envelope("agent", {"issue": 1842}, id="other", time="now")).payload == "done"
    assert run.playback(envelope={"intent": {"name": "agent"}, "payload": {"issue": 1842}}).payload == "done"
    with pytest.raises(playhead.EnvelopeMismatch) as caught:
        run.playback(envelope=playhead.Envelope("agent", {"issue": 1843}))
    assert caught.value.expected != caught.value.actual
    assert playhead.ReplayHashMismatch is playhead.EnvelopeMismatch
    with pytest.raises(playhead.EnvelopeMismatch):
        run.playback(envelope=playhead.Envelope("agent", {"issue": 1843}), force=True)


def test_find_returns_the_newest_replayable_run_or_none() -> None:
    asked = playhead.Envelope("agent", {"q": 1})
    assert playhead.find(asked) is None
    first = record("one", input={"q": 1})
    second = record("two", input={"q": 1})
    record("other", input={"q": 2})
    found = playhead.find(asked)
    assert found is not None
    assert found.id == second.id
    second.invalidate("stale")
    found = playhead.find({"intent": "agent", "payload": {"q": 1}})
    assert found is not None
    assert found.id == first.id
    first.invalidate("stale")
    assert playhead.find(asked) is None


def test_an_invalidated_run_is_refused_with_the_reason_and_still_verifies() -> None:
    run = record()
    run.invalidate("the tool answered stale data", by="ann")
    assert run.readiness().reasons == ["manually_invalidated"]
    with pytest.raises(playhead.NotReplayable, match="stale data") as caught:
        run.playback()
    assert caught.value.reasons == ["manually_invalidated"]
    with pytest.warns(UserWarning, match="manually_invalidated"):
        assert run.playback(force=True).waived == ["manually_invalidated"]
    assert run.verify().completeness.verdict == "complete"


def test_a_broken_chain_is_refused() -> None:
    run = record()
    content = bytearray(timeline(run).read_bytes())
    at = content.index(b'"working"') + 3
    content[at] ^= 1
    timeline(run).write_bytes(content)
    readiness = playhead.load(run.id).readiness()
    assert readiness.reasons[0] == "integrity_broken"
    with pytest.raises(playhead.NotReplayable, match="integrity_broken"):
        playhead.load(run.id).playback()


def test_an_envelope_that_disagrees_with_its_hash_is_refused_even_if_the_chain_is_right() -> None:
    run = record(input={"q": 1})

    def change(fields: dict[str, Any]) -> None:
        if fields["kind"] == "run.started":
            fields["data"]["input"]["payload"]["q"] = 2

    reseal(run, change)
    assert playhead.load(run.id).verify().integrity.verdict == "intact"
    assert "envelope_invalid" in playhead.load(run.id).readiness().reasons


def test_any_gap_is_a_recording_failure() -> None:
    with playhead.record("gap") as run:
        assert run.recording is not None
        run.recording.lose("made_up", 3)
        playhead.note("after")
        run.output = 1
    readiness = playhead.load("@last").readiness()
    assert readiness.reasons == ["recording_failure"]
    assert "3 × made_up" in readiness.detail["recording_failure"]
    assert playhead.load("@last").verify().completeness.verdict == "missing"


def test_a_missing_blob_is_named() -> None:
    run = record("x" * 50_000)
    blobs = [path for path in Path(".playhead/blobs").rglob("*") if path.is_file()]
    assert len(blobs) == 1
    blobs[0].unlink()
    assert run.readiness().reasons == ["content_missing"]


def _killed_run(tmp_path: Path) -> playhead.Run:
    """Record in a process that is killed while a tool is in flight."""
    program = tmp_path / "agent.py"
    program.write_text(
        textwrap.dedent("""
        import os, signal, playhead
        @playhead.tool
        def fine(x): return x * 2
        @playhead.tool(effects=["write"])
        def deadly(path): os.kill(os.getpid(), signal.SIGKILL)
        with playhead.record("killed", input={"n": 1}) as run:
            with playhead.step("prepare"):
                fine(21)
            with playhead.step("write"):
                deadly("a.txt")
        """)
    )
    done = subprocess.run([sys.executable, str(program)], cwd=tmp_path, check=False)
    assert done.returncode == -signal.SIGKILL
    return playhead.load("killed")


def test_a_killed_run_is_incomplete_says_what_was_in_flight_and_stays_readable(tmp_path: Path) -> None:
    run = _killed_run(tmp_path)
    readiness = run.readiness()
    assert readiness.reasons == ["execution_incomplete"]
    assert [(item["kind"], item["name"]) for item in readiness.in_flight] == [
        ("step.started", "write"),
        ("tool.called", "deadly"),
    ]
    assert "deadly" in readiness.detail["execution_incomplete"]
    assert run.verify().integrity.verdict == "intact"
    assert run.verify().completeness.verdict == "unfinished"
    with pytest.raises(playhead.NotReplayable):
        run.playback()


def test_forced_playback_of_an_unfinished_run_is_partial_with_what_had_completed(tmp_path: Path) -> None:
    run = _killed_run(tmp_path)
    with pytest.warns(UserWarning, match="execution_incomplete"):
        result = run.playback(force=True)
    assert result.status == "partial"
    assert [(item["name"], item.get("output")) for item in result.payload["completed"]] == [
        ("fine", 42),
        ("prepare", None),
    ]
    assert [item["name"] for item in result.metadata["in_flight"]] == ["write", "deadly"]


def test_playback_executes_nothing_imports_no_agent_and_needs_no_network(tmp_path: Path) -> None:
    program = tmp_path / "my_agent.py"
    program.write_text(
        textwrap.dedent("""
        import playhead
        @playhead.agent("answer")
        def agent(q):
            open("side-effect.txt", "a").write("x")
            return {"answer": q * 2}
        if __name__ == "__main__":
            agent(21)
        """)
    )
    subprocess.run([sys.executable, str(program)], cwd=tmp_path, check=True)
    program.unlink()
    (tmp_path / "side-effect.txt").unlink()
    before = _tree(tmp_path)
    player = textwrap.dedent("""
        import socket, sys, json
        def refuse(*args, **kwargs): raise AssertionError("network")
        socket.socket.connect = refuse
        sys.addaudithook(lambda event, args: refuse() if event in ("socket.connect", "subprocess.Popen") else None)
        import playhead
        result = playhead.load("answer").playback()
        assert "my_agent" not in sys.modules
        print(json.dumps([result.payload, result.from_replay]))
        """)
    done = subprocess.run([sys.executable, "-c", player], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [{"answer": 42}, True]
    changed = {path for path, content in _tree(tmp_path).items() if before.get(path) != content}
    assert all(path.startswith(".playhead/playhead.db") for path in changed), changed


def _tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_machine_may_have_no_network_at_all() -> None:
    run = record("offline")
    original = socket.socket.connect
    try:
        socket.socket.connect = None  # type: ignore[method-assign,assignment]
        assert run.playback().payload == "offline"
    finally:
        socket.socket.connect = original  # type: ignore[method-assign]


def test_a_run_that_goes_on_after_run_finished_is_judged_to_its_end() -> None:
    run = record()
    run.invalidate("first")
    run.invalidate("second")
    last = list(playhead.load(run.id).events())[-1]
    assert last.kind == "run.invalidated"
    assert last.data["why"] == "second"
    verification = playhead.load(run.id).verify()
    assert verification.open_tail == 2
    assert verification.completeness.verdict == "complete"


@pytest.mark.parametrize("reference", ["nothing", "@last~7", "run_zzz", "./nowhere"])
def test_a_run_that_is_not_there_is_a_clear_error(reference: str) -> None:
    record()
    with pytest.raises(playhead.RunNotFound) as caught:
        playhead.load(reference)
    assert caught.value.hint


def test_a_run_is_found_by_id_prefix_name_last_and_path(tmp_path: Path) -> None:
    first = record(name="first")
    second = record(name="second")
    assert playhead.load(second.id).id == second.id
    assert playhead.load(second.id[:26]).id == second.id
    assert playhead.load("first").id == first.id
    assert playhead.load("@last").id == second.id
    assert playhead.load("@last~1").id == first.id
    assert playhead.load(Path(".playhead/runs") / first.id).id == first.id
    with pytest.raises(playhead.RunNotFound, match=r"beginning of 2 runs: run_\w+, run_\w+\n"):
        playhead.load("run_")
    for _ in range(10):
        record(name="more")
    with pytest.raises(playhead.RunNotFound, match=r"beginning of 12 runs: (run_\w+, ){5}…"):
        playhead.load("run_")


def test_a_copy_outside_the_store_is_read_and_verified_and_never_written(tmp_path: Path) -> None:
    import shutil

    run = record("x" * 40_000)
    assert run.path is not None
    shutil.copytree(run.path, tmp_path / "copy")
    copy = playhead.load(tmp_path / "copy")
    assert copy.verify().completeness.verdict == "complete"
    assert copy.playback().payload == "x" * 40_000
    with pytest.raises(playhead.PlayheadError, match="not in a store"):
        copy.invalidate("x")
    assert os.listdir(tmp_path / "copy") == os.listdir(run.path)


def test_find_can_leave_out_runs_that_failed() -> None:
    record("fine", name="agent", input={"q": 1})
    with pytest.raises(ValueError, match="bad"), playhead.record("agent", input={"q": 1}):
        raise ValueError("bad")
    asked = playhead.Envelope("agent", {"q": 1})
    newest, good = playhead.find(asked), playhead.find(asked, status="ok")
    assert newest is not None
    assert newest.playback().status == "error"
    assert good is not None
    assert good.playback().payload == "fine"


def test_find_refuses_a_status_that_there_is_not() -> None:
    with pytest.raises(playhead.PlayheadError, match="no run has the status 'fine'"):
        playhead.find(playhead.Envelope("agent", {"q": 1}), status="fine")


def test_the_request_of_a_call_is_made_from_the_call() -> None:
    @playhead.agent("sum up")
    def agent(ticket: int, mode: str = "quick", *more: int, **options: Any) -> int:
        return ticket

    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1,), {}), ((), {"ticket": 1, "mode": "deep"}), ((1, "quick", 2, 3), {"depth": 4}),
    ]  # fmt: skip
    for args, kwargs in calls:
        asked = playhead.Envelope.of_call(agent, *args, **kwargs)
        assert playhead.find(asked) is None
        agent(*args, **kwargs)
        found = playhead.find(asked)
        assert found is not None
        assert found.id == playhead.load("@last").id
    with pytest.raises(playhead.PlayheadError, match="is not an agent"):
        playhead.Envelope.of_call(len, [])


def test_the_request_of_a_method_is_made_from_the_call() -> None:
    class Agent:
        @playhead.agent("method")
        def run(self, issue: int) -> int:
            return issue

        @classmethod
        @playhead.agent("class")
        def build(cls, issue: int) -> int:
            return issue

        @playhead.agent("call")
        def __call__(self, issue: int) -> int:
            return issue

    agent = Agent()
    calls: list[Any] = [agent.run, Agent.build, agent]
    for call in calls:
        call(1)
        found = playhead.find(playhead.Envelope.of_call(call, 1))
        assert found is not None
        assert found.playback().payload == 1
        assert playhead.find(playhead.Envelope.of_call(call, 2)) is None
        with pytest.raises(TypeError):
            playhead.Envelope.of_call(call, 1, 2, 3)


def test_the_object_of_a_method_tells_requests_apart_where_it_has_fields() -> None:
    @dataclasses.dataclass
    class Bot:
        model: str

        @playhead.agent("bot")
        def ask(self, question: str) -> str:
            return self.model

    @playhead.agent("plain")
    def plain(self: str, x: int = 1) -> str:
        return self

    Bot("one").ask("hi")
    assert playhead.find(playhead.Envelope.of_call(Bot("one").ask, "hi")) is not None
    assert playhead.find(playhead.Envelope.of_call(Bot("two").ask, "hi")) is None
    plain("one")
    assert playhead.find(playhead.Envelope.of_call(plain, "two")) is None


def test_a_text_about_redaction_is_found_again() -> None:
    record("mine", input="a log says [redacted: name]")
    assert playhead.find(playhead.Envelope("agent", "a log says [redacted: name]")) is not None


def test_an_envelope_as_the_only_argument_is_the_request() -> None:
    @playhead.agent
    def agent(request: playhead.Envelope) -> str:
        return request.intent

    agent(playhead.Envelope("sum up", {"n": 1}, id="first", time="now"))
    found = playhead.find(playhead.Envelope("sum up", {"n": 1}, id="second"))
    assert found is not None
    assert found.playback().payload == "sum up"


KEYS = ("sk-ant-" + "a1B2" * 8, "sk-ant-" + "c3D4" * 8)
SECRETS: dict[str, Any] = {
    "text": lambda key: f"key {key}",
    "field": lambda key: {"password": key[8:]},
    "bytes": lambda key: f"key {key}".encode(),
    "large bytes": lambda key: f"key {key}".encode() + b"\x00" * 400,
    "key": lambda key: {key: 1},
    "odd text": lambda key: "\ud800" + key,
}


class Opaque:
    def __init__(self, question: int) -> None:
        self.question = question


@pytest.mark.parametrize(
    ("asked", "other"),
    [(Opaque(1), Opaque(2)), *((make(KEYS[0]), make(KEYS[1])) for make in SECRETS.values())],
    ids=["object", *SECRETS],
)
def test_what_cannot_be_compared_is_never_taken_for_the_same(asked: Any, other: Any) -> None:
    record("mine", input={"asked": asked})
    with pytest.warns(UserWarning, match="no run can be known to answer it"):
        assert playhead.find(playhead.Envelope("agent", {"asked": other})) is None
    found = playhead.find(playhead.Envelope("agent", {"asked": other}), partly=True)
    assert found is not None


def test_large_requests_that_differ_anywhere_are_different_requests() -> None:
    record("mine", input=list(range(210_000)))
    assert playhead.find(playhead.Envelope("agent", list(range(210_000)))) is not None
    assert playhead.find(playhead.Envelope("agent", [*range(209_999), 0])) is None


def test_content_that_had_to_be_cut_off_is_declared() -> None:
    deep: Any = "bottom"
    for _ in range(300):
        deep = [deep]
    run = record(deep)
    assert run.readiness().reasons == ["recording_failure"]
    assert run.verify().gaps == {"value_cut": 1}


@pytest.mark.parametrize("name", ["team/agent", "a.b/c"])
def test_a_run_whose_name_looks_like_a_path_is_found_by_it(name: str) -> None:
    run = record("one", name=name)
    assert playhead.load(name).id == run.id


@pytest.mark.parametrize("reference", ["@last~99999999999999999999", "x" * 5000, "\udcff", "nobody/here"])
def test_a_reference_that_names_nothing_is_a_clear_error(reference: str) -> None:
    record("one")
    with pytest.raises(playhead.PlayheadError):
        playhead.load(reference)
    for options in ({"limit": "x"}, {"name": "\ud800"}):
        with pytest.raises(playhead.PlayheadError):
            playhead.runs(**options)  # type: ignore[arg-type]
    assert len(playhead.runs(limit=10**30)) == 1


def test_runs_are_listed_newest_first() -> None:
    assert playhead.runs() == []
    first, second = record("one"), record("two", name="other")
    with pytest.raises(ValueError, match="bad"), playhead.record("agent"):
        raise ValueError("bad")
    assert [run.id for run in playhead.runs()][1:] == [second.id, first.id]
    assert [run.id for run in playhead.runs(name="agent", status="ok")] == [first.id]
    assert len(playhead.runs(limit=1)) == 1
    with pytest.raises(playhead.PlayheadError, match="no run has the status"):
        playhead.runs(status="fine")


def test_a_run_says_how_it_ended() -> None:
    assert record("one").status == "ok"
    with playhead.record("agent") as run:
        assert playhead.load(run.id or "").status == "running"
    with pytest.raises(ValueError, match="bad"), playhead.record("agent"):
        raise ValueError("bad")
    assert playhead.load("@last").status == "error"
    unfinished = playhead.load("@last~1")
    cut = timeline(unfinished).read_bytes().splitlines(keepends=True)[:-1]
    timeline(unfinished).write_bytes(b"".join(cut))
    assert playhead.load(unfinished.id).status == "crashed"


def test_an_event_that_is_not_there_is_told_apart_from_a_run() -> None:
    with pytest.raises(playhead.RunNotFound, match="has no event 9999") as told:
        record("one").event(9999)
    assert told.value.code == "event_not_found"


def test_find_passes_over_a_run_that_was_altered() -> None:
    first = record("one", input={"q": 1})
    second = record("two", input={"q": 1})
    timeline(second).write_bytes(timeline(second).read_bytes().replace(b'"two"', b'"TWO"'))
    found = playhead.find(playhead.Envelope("agent", {"q": 1}))
    assert found is not None
    assert found.id == first.id


def test_an_exported_timeline_is_verified_and_played_back_where_it_lies(tmp_path: Path) -> None:
    run = record({"answer": 42})
    exported = tmp_path / "run.jsonl"
    exported.write_bytes(timeline(run).read_bytes())
    loaded = playhead.load(exported)
    assert loaded.id == run.id
    assert loaded.verify(deep=True).completeness.verdict == "complete"
    assert loaded.playback().payload == {"answer": 42}


def test_a_name_that_is_nearly_right_is_suggested() -> None:
    record(name="triage-tickets")
    with pytest.raises(playhead.RunNotFound) as caught:
        playhead.load("triage-ticket")
    assert "triage-tickets" in caught.value.hint


def test_an_artifact_is_handed_out_only_as_it_was_recorded() -> None:
    with playhead.record("agent") as run:
        playhead.artifact("logs/a.txt", "content")
    loaded = playhead.load(run.id)
    assert loaded.artifact("logs/a.txt") == b"content"
    folder = loaded.path / "artifacts" / "logs"  # type: ignore[operator]
    (folder / "b.txt").write_text("smuggled")
    for name in ("logs/b.txt", "never", "../timeline.jsonl"):
        with pytest.raises(ArtifactNotFound) as caught:
            loaded.artifact(name)
        assert caught.value.hint == "There are: logs/a.txt."
    (folder / "a.txt").write_text("forged")
    with pytest.raises(Altered, match="is not what event 1 of"):
        loaded.artifact("logs/a.txt")
    (folder / "a.txt").unlink()
    with pytest.raises(MissingContent):
        loaded.artifact("logs/a.txt")
