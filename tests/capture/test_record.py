"""Runs: what opens them, what they know, how they end."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

import playhead
from playhead.errors import BadName
from playhead.store.disk import Disk
from playhead.store.files import FileStore


def events(reference: str = "@last") -> list[playhead.Event]:
    return list(playhead.load(reference).events())


def test_an_agent_is_one_run_with_its_arguments_as_the_request(tmp_path: Path) -> None:
    @playhead.agent("fix-login", version="2.1", tags={"team": "web"})
    def agent(issue: int, *, urgent: bool = False) -> dict[str, int]:
        return {"fixed": issue}

    assert agent(1842, urgent=True) == {"fixed": 1842}
    first, last = events()[0], events()[-1]
    assert first.data["input"]["payload"] == {"issue": 1842, "urgent": True}
    assert first.data["agent"] == {"name": "fix-login", "version": "2.1"}
    assert first.data["tags"] == {"team": "web"}
    assert first.data["entrypoint"]["qualname"].endswith("agent")
    assert first.data["environment"]["packages"]["orjson"]
    assert last.data["status"] == "ok"
    assert last.data["output"] == {"fixed": 1842}
    assert last.data["events"] == 2


def test_async_agents_and_generator_agents_are_runs_too() -> None:
    @playhead.agent
    async def thinker(x: int) -> int:
        await asyncio.sleep(0)
        return x + 1

    @playhead.agent("stream")
    def stream(n: int) -> Any:
        yield from range(n)

    @playhead.agent(name="by keyword", tags={"team": "web"})
    def keyword() -> None: ...

    assert asyncio.run(thinker(1)) == 2
    assert events()[-1].data["output"] == 2
    keyword()
    assert (events()[0].data["name"], events()[0].data["tags"]) == ("by keyword", {"team": "web"})
    assert list(stream(3)) == [0, 1, 2]
    assert playhead.load("stream").playback().payload == [0, 1, 2]


def test_the_run_directory_has_its_four_entries_from_the_start_and_is_private(tmp_path: Path) -> None:
    with playhead.record("layout") as run:
        assert run.path is not None
        assert sorted(entry.name for entry in run.path.iterdir()) == [
            "artifacts", "context_pack.json", "policy_snapshot.json", "timeline.jsonl",
        ]  # fmt: skip
    store = tmp_path / ".playhead"
    assert stat.S_IMODE(store.stat().st_mode) == 0o700
    assert (store / ".gitignore").read_text() == "*\n"
    assert stat.S_IMODE((run.path / "timeline.jsonl").stat().st_mode) == 0o600


def test_an_exception_ends_the_run_as_an_error_and_goes_on() -> None:
    with pytest.raises(ZeroDivisionError), playhead.record("failing"):
        _ = 1 / 0
    last = events()[-1]
    assert last.kind == "run.finished"
    assert last.data["status"] == "error"
    assert last.data["error"]["type"] == "ZeroDivisionError"


@pytest.mark.parametrize(("code", "status"), [(0, "ok"), (None, "ok"), (3, "error"), ("sorry", "error")])
def test_leaving_by_sys_exit_is_judged_by_its_code(code: Any, status: str) -> None:
    with pytest.raises(SystemExit), playhead.record("exit"):
        sys.exit(code)
    assert events()[-1].data["status"] == status


def test_an_empty_output_is_not_no_output() -> None:
    for output in ({}, [], "", 0, False):
        with playhead.record("empty") as run:
            run.output = output
        assert playhead.load("@last").playback().payload == output


def test_a_run_inside_a_run_is_a_step_with_its_own_request_and_output() -> None:
    @playhead.agent("inner")
    def inner(x: int) -> int:
        return x * 2

    with playhead.record("outer", input={"n": 1}) as run:
        run.output = inner(21)
    kinds = [event.kind for event in events()]
    assert kinds == ["run.started", "step.started", "step.finished", "run.finished"]
    assert events()[1].data["input"]["payload"] == {"x": 21}
    assert events()[2].data["output"] == 42


def test_two_runs_in_two_tasks_do_not_mix() -> None:
    async def one(name: str) -> None:
        with playhead.record(name):
            for number in range(20):
                playhead.note(f"{name} {number}")
                await asyncio.sleep(0)

    async def both() -> None:
        await asyncio.gather(one("left"), one("right"))

    asyncio.run(both())
    for name in ("left", "right"):
        texts = [event.data["text"] for event in events(name) if event.kind == "note.added"]
        assert texts == [f"{name} {number}" for number in range(20)]


def test_three_identical_requests_hash_alike_and_any_changed_byte_does_not() -> None:
    def hash_of(envelope: playhead.Envelope) -> str:
        with playhead.record("hash", input=envelope):
            pass
        return str(events()[0].data["envelope_hash"])

    base = {"data": "original", "id": 1, "nested": {"time": "t", "trace": [1, 2]}}
    same = {
        hash_of(playhead.Envelope("P", base, id=str(n), time=f"2026-01-0{n}", trace={"span": n})) for n in range(1, 4)
    }
    assert len(same) == 1
    changed = [
        {**base, "data": "originaL"},
        {**base, "id": 2},
        {**base, "nested": {"time": "u", "trace": [1, 2]}},
        {**base, "nested": {"time": "t", "trace": [2, 1]}},
        {**base, "more": None},
    ]
    hashes = {hash_of(playhead.Envelope("P", payload)) for payload in changed}
    hashes |= {hash_of(playhead.Envelope("Q", base)), hash_of(playhead.Envelope("P", base, {"user": "x"}))}
    assert len(hashes | same) == len(changed) + 3


def test_context_packs_are_all_kept_and_the_latest_has_its_own_file() -> None:
    with playhead.record("packs") as run:
        for name in ("plan", "implement", "verify"):
            with playhead.step(name):
                playhead.context_pack({"step": name})
    packs = [event.data for event in events() if event.kind == "artifact.created"]
    assert [pack["role"] for pack in packs] == ["context_pack"] * 3
    loaded = playhead.load("@last")
    assert [json.loads(loaded.artifact(pack["name"]))["step"] for pack in packs] == ["plan", "implement", "verify"]
    assert run.path is not None
    assert json.loads((run.path / "context_pack.json").read_text()) == {"step": "verify"}
    assert loaded.verify().completeness.verdict == "complete"


def test_check_without_a_policy_allows_and_records() -> None:
    with playhead.record("observe"):
        assert playhead.check("repo.write", resource="src/") == "allow"
    checked = next(event for event in events() if event.kind == "policy.checked")
    assert checked.data == {
        "capability": "repo.write", "decision": "allow", "resource": "src/", "rule": "none", "mode": "observe",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        (True, "allow"),
        ("allow", "allow"),
        (False, "deny"),
        ("deny", "deny"),
        ({"decision": "deny", "rule": "no-writes", "reason": "frozen"}, "deny"),
        (None, "deny"),
        ("perhaps", "deny"),
        (ValueError("broken policy"), "deny"),
    ],
)
def test_a_callable_policy_is_asked_recorded_and_enforced(answer: Any, decision: str) -> None:
    def policy(capability: str, resource: str | None, context: dict[str, Any]) -> Any:
        assert (capability, resource, context) == ("fs.write", "a.txt", {"size": 3})
        if isinstance(answer, Exception):
            raise answer
        return answer

    with playhead.record("policy", policy=policy) as run:
        if decision == "allow":
            assert playhead.check("fs.write", "a.txt", size=3) == "allow"
        else:
            with pytest.raises(playhead.PolicyDenied) as denied:
                playhead.check("fs.write", "a.txt", size=3)
            assert denied.value.capability == "fs.write"
    checked = next(event for event in events() if event.kind == "policy.checked").data
    assert (checked["decision"], checked["mode"]) == (decision, "enforce")
    if isinstance(answer, dict):
        assert (checked["rule"], checked["reason"]) == ("no-writes", "frozen")
    assert run.path is not None
    assert json.loads((run.path / "policy_snapshot.json").read_text())["mode"] == "enforce"


ODD_NAMES = {
    "../out": "out", "/etc/passwd": "etc/passwd", "a/../../b": "a/b", "": "unnamed", "nul": "_nul", "a\0b": "a_b",
    "x" * 300: "x" * 200, "x" * 300 + ".md": "x" * 197 + ".md", "a\\b": "a_b", "c:": "c_", "...": "unnamed",
    "report: final?.md": "report_ final_.md", "a\u00a0": "a", "\u3000x.": "x", "a/\u2003/b": "a/b", "\u00a0": "unnamed",
    "a" * 193 + "/console_output.md": "unnamed.md", "/".join("abcdefghijkl"): "e/f/g/h/i/j/k/l",
}  # fmt: skip


@pytest.mark.parametrize(("name", "stored"), ODD_NAMES.items())
def test_artifact_names_cannot_leave_the_run_directory(name: str, stored: str, tmp_path: Path) -> None:
    with playhead.record("names") as run:
        assert playhead.artifact(name, "x") == stored
    assert run.lost == 0
    assert run.path is not None
    assert [path for path in tmp_path.rglob("*") if path.name == Path(stored).name] == [run.path / "artifacts" / stored]
    created = next(event for event in events() if event.kind == "artifact.created").data
    assert (created["name"], created["given"]) == (stored, name)
    with playhead.record("names", strict=True), pytest.raises(BadName):
        playhead.artifact(name, "x")


def test_an_artifact_that_is_not_there_is_counted_and_not_raised(tmp_path: Path) -> None:
    with playhead.record("names") as run:
        assert playhead.artifact("a.txt", tmp_path / "nowhere") is None
    assert run.lost == 1


def test_artifacts_are_text_bytes_or_a_path_and_never_replace_each_other(tmp_path: Path) -> None:
    source = tmp_path / "report.bin"
    source.write_bytes(b"\x00\x01")
    with playhead.record("artifacts"):
        assert playhead.artifact("a/patch.diff", "one") == "a/patch.diff"
        assert playhead.artifact("a/patch.diff", "two") == "a/patch~2.diff"
        assert playhead.artifact("a/patch.diff", "one") == "a/patch.diff"
        assert playhead.artifact("report.bin", source) == "report.bin"
        with pytest.raises(playhead.PlayheadError, match="text, bytes or a path"):
            playhead.artifact("x", {"not": "bytes"})  # type: ignore[arg-type]
    run = playhead.load("@last")
    assert run.artifact("a/patch~2.diff") == b"two"
    assert run.artifact("report.bin") == b"\x00\x01"


def test_secrets_are_redacted_in_events_blobs_and_artifacts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MY_SERVICE_TOKEN", "tok-Zq8vR2mN5xW7")
    key = "sk-proj-Ab3dEfGh1jKlMn0pQrStUvWxYz123456"
    with playhead.record("secrets", input={"note": f"use {key}"}) as run:
        playhead.note("token tok-Zq8vR2mN5xW7 in text", {"authorization": "something"})
        playhead.note("large", {"text": f"{key} " + "x" * 50_000})
        playhead.artifact("log.txt", f"key={key}")
        playhead.context_pack({"env": "tok-Zq8vR2mN5xW7"})
        run.output = {"binary": b"\x00" * 300 + b"tok-Zq8vR2mN5xW7"}
    for path in (tmp_path / ".playhead").rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert b"tok-Zq8vR2mN5xW7" not in content, path
            assert key.encode() not in content, path
    finished = events()[-1].data
    assert finished["redacted"]["openai-key"] >= 3
    assert finished["redacted"]["env"] >= 3
    assert playhead.load("@last").verify().integrity.verdict == "intact"


def test_disabled_means_nothing_at_all(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLAYHEAD_DISABLED", "1")
    with playhead.record("off") as run:
        playhead.note("x")
        run.output = 1
    assert run.id is None
    assert not (tmp_path / ".playhead").exists()


def test_a_store_that_cannot_be_written_is_said_once_and_the_agent_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.warns(playhead.RecordingWarning, match="is not recorded"),
        playhead.record("x", store=tmp_path / "file"),
    ):
        playhead.note("still running")
    with pytest.raises(playhead.PlayheadError), playhead.record("x", store=tmp_path / "file", strict=True):
        pass


def test_values_that_cannot_be_looked_at_do_not_break_the_agent() -> None:
    class Hostile:
        def __repr__(self) -> str:
            raise RuntimeError("no")

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError("no")

    loop: dict[str, Any] = {}
    loop["self"] = loop
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with playhead.record("hostile") as run:
        playhead.note("values", {"hostile": Hostile(), "loop": loop, "deep": deep, "surrogate": "\ud800"})
    assert run.lost == 1  # the deep one is cut off, which is counted
    data = next(event for event in events() if event.kind == "note.added").data["data"]
    assert "$repr" in data["hostile"]
    assert data["surrogate"] == {"$str": "7aCA"}


def test_an_event_of_ones_own_kind_is_recorded_and_survives_export() -> None:
    with playhead.record("own") as run:
        run.record("review.requested", {"by": "ann"})
        with pytest.raises(playhead.PlayheadError, match="not a kind"):
            run.record("Review Requested", {})
    assert [(e.kind, e.data) for e in events()][1] == ("review.requested", {"by": "ann"})


def _git(*arguments: str, cwd: Path) -> str:
    done = subprocess.run(["git", *arguments], cwd=cwd, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_commit_that_a_run_only_took_in_is_not_one_that_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLAYHEAD_GIT", raising=False)
    for key in ("GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(key, "ann")
    _git("init", "-q", "-b", "trunk", cwd=tmp_path)
    _git("commit", "-q", "--allow-empty", "-m", "first", cwd=tmp_path)
    _git("checkout", "-q", "-b", "theirs", cwd=tmp_path)
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z")
    _git("commit", "-q", "--allow-empty", "-m", "of somebody else", cwd=tmp_path)
    monkeypatch.delenv("GIT_COMMITTER_DATE")
    _git("checkout", "-q", "trunk", cwd=tmp_path)
    with playhead.record("git") as run:
        _git("merge", "-q", "--no-ff", "-m", "merged", "theirs", cwd=tmp_path)
        monkeypatch.setenv("GIT_COMMITTER_DATE", "2020-01-01T00:00:00Z")
        dated = f"dated back\n\nPlayhead-Run: {run.id}"
        _git("commit", "-q", "--allow-empty", "-m", dated, cwd=tmp_path)
        monkeypatch.delenv("GIT_COMMITTER_DATE")
        _git("commit", "-q", "--allow-empty", "-m", "last", cwd=tmp_path)
    found = {event.data["message"]: event.data.get("link") for event in events() if event.kind == "git.committed"}
    assert found == {"of somebody else": "older", "merged": None, dated: None, "last": None}


def test_a_run_knows_commit_branch_and_dirty_diff_and_records_commits_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PLAYHEAD_GIT", raising=False)
    for key, value in {
        "GIT_AUTHOR_NAME": "Ann",
        "GIT_COMMITTER_NAME": "Ann",
        "GIT_AUTHOR_EMAIL": "a@x",
        "GIT_COMMITTER_EMAIL": "a@x",
    }.items():
        monkeypatch.setenv(key, value)
    _git("init", "-q", "-b", "trunk", cwd=tmp_path)
    (tmp_path / "a.txt").write_text("one\n")
    _git("add", "a.txt", cwd=tmp_path)
    _git("commit", "-qm", "first", cwd=tmp_path)
    start = _git("rev-parse", "HEAD", cwd=tmp_path)
    (tmp_path / "a.txt").write_text("two\n")
    with playhead.record("git"):
        (tmp_path / "b.txt").write_text("new\n")
        _git("add", "b.txt", cwd=tmp_path)
        _git("commit", "-qm", "second", cwd=tmp_path)
    run = playhead.load("@last")
    facts = events()[0].data["git"]
    assert (facts["commit"], facts["branch"], facts["dirty"]) == (start, "trunk", True)
    assert b"-one\n+two\n" in run.artifact("working-tree.diff")
    committed = next(event for event in events() if event.kind == "git.committed")
    assert committed.data["message"].strip() == "second"
    assert committed.data["files"] == ["b.txt"]
    assert b"+new" in run.artifact(committed.data["patch"])
    assert events()[-1].kind == "run.finished"


def test_ci_facts_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "GITHUB_ACTIONS": "true",
        "GITHUB_RUN_ID": "77",
        "GITHUB_SHA": "abc",
        "GITHUB_JOB": "test",
    }.items():
        monkeypatch.setenv(name, value)
    with playhead.record("ci"):
        pass
    facts = events()[0].data["ci"]
    assert (facts["provider"], facts["run_id"], facts["commit"], facts["job"]) == (
        "github-actions",
        "77",
        "abc",
        "test",
    )


def test_a_forked_child_writes_the_same_run_in_a_lane_of_its_own_and_does_not_finish_it() -> None:
    with playhead.record("fork") as run, playhead.step("work"):
        playhead.note("parent before")
        child = os.fork()
        if child == 0:
            playhead.note("child")
            os._exit(0)
        os.waitpid(child, 0)
        playhead.note("parent after")
    found = {event.data["text"]: event for event in events() if event.kind == "note.added"}
    assert found["child"].lane == "0.1"
    assert found["parent after"].lane == "0"
    assert found["child"].parent == found["parent before"].parent
    assert [event.kind for event in events()].count("run.finished") == 1
    assert run.id is not None
    assert playhead.verify(run.id).completeness.verdict == "complete"


def test_a_value_over_the_limit_spills_to_a_blob_and_reads_back() -> None:
    large = "é" * 40_000
    rows = [{"n": number, "text": f"row {number}"} for number in range(5000)]
    with playhead.record("large", input={"text": large}) as run:
        playhead.note("rows", rows)
        run.output = large
    raw = list(playhead.load("@last").lines())
    assert all(len(line) < 40_000 for line in raw)
    assert events()[1].data["data"] == rows
    assert playhead.load("@last").playback().payload == large
    assert orjson.loads(raw[0])["data"]["input"]["payload"]["text"]["as"] == "text"


def test_all_new_content_is_found_again_wherever_it_first_stood() -> None:
    system, question = "s" * 400, "q" * 400
    with playhead.record("again") as run:
        playhead.note("first", {"messages": [{"role": "system", "content": system}], "other": {"x": question}})
        playhead.note(
            "second", {"messages": [{"role": "system", "content": system}, {"role": "user", "content": question}]}
        )
        playhead.note("third", {"deep": [[{"y": question}]], "system": system})
    assert run.lost == 0
    second = orjson.loads(list(playhead.load("@last").lines())[2])["data"]["data"]["messages"]
    assert second["$extends"] == "1#/data/messages"
    assert second["then"][0]["content"] == {"$same": "1#/data/other/x"}
    assert events()[3].data["data"] == {"deep": [[{"y": question}]], "system": system}


def test_kinds_that_the_recorder_writes_cannot_be_forged() -> None:
    with playhead.record("honest") as run:
        for kind in ("run.finished", "run.started", "policy.checked", "gap.noted", "tool.called"):
            with pytest.raises(playhead.PlayheadError, match="written by the recorder itself"):
                run.record(kind, {"name": "evil"})
        run.record("effect.observed", {"what": "file.written", "target": "a.txt"})
    assert [event.kind for event in events()] == ["run.started", "effect.observed", "run.finished"]


def test_the_object_of_a_method_is_no_part_of_the_question_and_plain_defaults_are() -> None:
    class Agent:
        @playhead.agent("method")
        def run(self, x: int, y: str = "a", client: Any = object()) -> int:  # noqa: B008
            return self.double(x)

        @playhead.tool
        def double(self, x: int, times: int = 2) -> int:
            return x * times

    Agent().run(3)
    first = events()
    Agent().run(3, "a")
    second = events()
    assert first[0].data["input"]["payload"] == {"x": 3, "y": "a"}
    assert first[0].data["envelope_hash"] == second[0].data["envelope_hash"]
    assert first[1].data["input"] == {"x": 3, "times": 2}
    assert first[1].key == second[1].key


@pytest.mark.parametrize(
    "usage",
    [
        {"input": 3, "output": 4},
        {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
        {"input_tokens": 3, "output_tokens": 4},
        type("Usage", (), {"prompt_tokens": 3, "completion_tokens": 4})(),
    ],
)
def test_usage_is_understood_by_the_names_that_providers_use(usage: Any) -> None:
    with playhead.record("usage"), playhead.model_call(model="m") as call:
        call.respond("x", usage=usage)
    answered = next(event for event in events() if event.kind == "model.responded")
    assert answered.data["usage"] == {"input": 3, "output": 4}


@pytest.mark.parametrize("text", ["dir = ", f"strict = 1{'0' * 5000}"])
def test_a_setting_that_cannot_be_read_does_not_stop_the_agent(tmp_path: Path, text: str) -> None:
    (tmp_path / "playhead.toml").write_text(text)
    with pytest.warns(playhead.RecordingWarning, match=r"playhead\.toml cannot be read"), playhead.record("x") as run:
        pass
    assert run.id is None


def test_an_interrupted_run_is_cancelled() -> None:
    with pytest.raises(KeyboardInterrupt), playhead.record("interrupted"):
        raise KeyboardInterrupt
    assert events()[-1].data["status"] == "cancelled"


def test_frames_of_the_recorder_are_left_out_of_errors() -> None:
    @playhead.tool
    def failing() -> None:
        raise ValueError("x")

    with playhead.record("frames"), pytest.raises(ValueError, match="x"):
        failing()
    error = next(event for event in events() if event.kind == "tool.returned").data["error"]
    assert [frame["name"] for frame in error["frames"]] == ["failing"]


class Full(Disk):
    """Has no space left for events."""

    def write(self, descriptor: int, data: bytes) -> int:
        if b'"kind":' in data:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(descriptor, data)


def test_a_run_that_could_not_be_started_leaves_no_directory(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store", disk=Full())
    with pytest.raises(playhead.PlayheadError, match="No space left"), playhead.record("x", store=store, strict=True):
        pass
    assert list((tmp_path / "store" / "runs").iterdir()) == []


def test_a_run_with_a_redaction_rule_that_is_wrong_leaves_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "playhead.toml").write_text("[redact]\npatterns = { bad = '(' }\n")
    with (
        pytest.warns(playhead.RecordingWarning, match="'bad' is not a regular expression"),
        playhead.record("x", store=tmp_path / "store"),
    ):
        pass
    assert not (tmp_path / "store").exists()
