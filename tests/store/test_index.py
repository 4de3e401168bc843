from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.store.index_timelines import START_US, Timeline, rich, run_id

from playhead.errors import MissingContent, UsageError
from playhead.store import layout
from playhead.store.index import Index
from playhead.store.index_database import TABLES

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "index-tables.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".playhead").mkdir()
    return tmp_path / ".playhead"


def test_a_run_is_listed_with_everything_its_lines_say(root: Path) -> None:
    run = rich(root)
    with Index(root) as index:
        (found,) = index.list_runs()
        assert found == index.get(run.id)
    assert found["head_hash"] == orjson.loads(run.path.read_bytes().splitlines()[-1])["hash"]
    del found["head_hash"]
    assert found == {
        "id": run.id, "name": "fix-login", "status": "ok", "started": "2023-11-14T22:13:20.000000Z",
        "finished": "2023-11-14T22:13:20.017000Z", "started_us": START_US, "duration_us": 17000, "duration_ms": 17.0,
        "events": 18, "model_calls": 1, "tool_calls": 1, "steps": 1, "artifacts": 1, "tokens_in": 100, "tokens_out": 7,
        "tokens_cached": 40, "tokens_reasoning": 3, "cost": None, "error": None, "origin": None, "replayable": True,
        "reasons": [], "envelope_hash": "e" * 64, "agent": "fixer", "agent_version": "2.0", "git_commit": "c0ffee12",
        "git_branch": "main", "git_dirty": True, "git_root": None, "git_remote": None, "ci_provider": "github",
        "ci_run_id": "77", "external_id": "trace-9", "received": {"by": "otlp", "rule": "trace", "trace": "trace-9"},
        "tags": {"team": "red", "who": "ann"}, "gaps": 0, "lost": 0, "bad_lines": 0, "head_seq": 17,
        "bytes": run.path.stat().st_size,
    }  # fmt: skip


def test_every_table_has_the_rows_of_a_run(root: Path) -> None:
    run = rich(root)
    with Index(root) as index:
        columns = "kind, name, model, parent, latency_us, status, code, error, key, effects"
        calls = index.query(f"SELECT {columns} FROM calls ORDER BY seq")
        assert calls[1] == [
            ("model", "gpt-5", "gpt-5", "p", 1000, "ok", None, None, "k1:aa", None),
            ("tool", "search", None, "p", 1000, "error", None, "ValueError: no", None, '["read"]'),
            ("http", "GET https://x.test/a", None, None, 1000, "ok", 404, None, None, None),
            ("process", "git", None, None, 1000, "ok", -9, None, None, None),
        ]
        steps = index.query("SELECT name, attempt, seq, end_seq, status, duration_us FROM steps")
        assert steps[1] == [("plan", 2, 1, 6, "ok", 5000)]
        effects = index.query("SELECT seq, item, what, target, detail FROM effects ORDER BY seq, item")
        assert effects[1] == [
            (13, 0, "file.written", "/repo/src/login.py", '{"bytes":5}'),
            (14, 0, "file.committed", "src/login.py", '{"commit":"abc"}'),
            (14, 1, "file.committed", "README.md", '{"commit":"abc"}'),
        ]
        assert index.query("SELECT seq, sha, time_us, link FROM commits")[1] == [(14, "abc", START_US + 14000, None)]
        results = index.query("SELECT seq, ci_run_id, job, result, time_us, counts FROM ci_results")
        assert results[1] == [(15, "77", "test", "failure", START_US + 15000, '{"failed":1}')]
        # Offset and length lead to the very bytes of each line.
        data = run.path.read_bytes()
        for seq, offset, length in index.query("SELECT seq, offset, length FROM events")[1]:
            assert orjson.loads(data[offset : offset + length])["seq"] == seq


def test_a_call_in_flight_has_no_status_and_is_closed_by_a_later_catch_up(root: Path) -> None:
    run = Timeline(root, 1).add("tool.called", {"name": "slow"}, span="t")
    with Index(root) as index:
        ask = "SELECT status, end_seq, latency_us FROM calls"
        assert index.query(ask)[1] == [(None, None, None)]
        run.add("tool.returned", {"status": "ok"}, span="t").finish()
        assert index.query(ask)[1] == [("ok", 2, 1000)]


def test_runs_come_newest_first_and_in_pages(root: Path) -> None:
    ids = [Timeline(root, number).finish().id for number in range(7)]
    with Index(root) as index:
        first = [run["id"] for run in index.list_runs(limit=3)]
        second = [run["id"] for run in index.list_runs(limit=10, before=first[-1])]
    assert first + second == ids[::-1]


def test_filters_leave_only_what_was_asked_for(root: Path) -> None:
    Timeline(root, 1, name="alpha", tags={"team": "red"}, git={"commit": "abc123"}).finish()
    Timeline(root, 2, name="beta", agent={"name": "bot"}, origin={"run": run_id(1), "mode": "exact"}).finish()
    Timeline(root, 3, name="Alphabet", tags={"team": "blue"}).finish("error", error={"type": "E", "message": "m"})
    Timeline(root, 4, name="open")
    with Index(root) as index:

        def found(**wanted: Any) -> list[str]:
            return [run["name"] for run in index.list_runs(**wanted)]

        assert found(name="alpha") == ["alpha"]
        assert found(text="alpha") == ["Alphabet", "alpha"]
        assert found(status="crashed") == ["open"]
        assert found(agent="bot") == ["beta"]
        assert found(commit="abc") == ["alpha"]
        assert found(tag="team=red") == ["alpha"]
        assert found(tag="team") == ["Alphabet", "alpha"]
        assert found(has_error=True) == ["open", "Alphabet"]  # one crashed
        assert found(has_error=False, include_replays=False) == ["alpha"]
        assert found(since_us=START_US) == ["open", "Alphabet", "beta", "alpha"]
        assert found(until_us=START_US) == []
        assert found(text="%") == []


def test_reasons_against_playback_come_in_their_order(root: Path) -> None:
    run = Timeline(root, 1, envelope_hash="e" * 64)
    with Index(root, envelope_matches=lambda data: data["envelope_hash"] != "e" * 64) as index:

        def reasons() -> list[str]:
            found = index.get(run.id)
            assert found is not None
            assert found["replayable"] == (not found["reasons"])
            return list(found["reasons"])

        assert reasons() == ["execution_incomplete", "envelope_invalid"]
        run.add("gap.noted", {"reason": "full disk", "count": 3}).add("run.invalidated", {"why": "wrong"})
        run.note("open")
        assert reasons() == ["execution_incomplete", "recording_failure", "envelope_invalid", "manually_invalidated"]
        run.finish()
        assert reasons() == ["recording_failure", "envelope_invalid", "manually_invalidated"]
        assert index.query("SELECT gaps, lost FROM runs")[1] == [(1, 3)]


@pytest.mark.parametrize(("answer", "expected"), [(None, []), (True, []), (False, ["envelope_invalid"])])
def test_only_an_envelope_known_to_differ_is_invalid(root: Path, answer: bool | None, expected: list[str]) -> None:
    Timeline(root, 1, envelope_hash="e" * 64).finish()
    with Index(root, envelope_matches=lambda data: answer) as index:
        assert index.list_runs()[0]["reasons"] == expected


def test_an_envelope_that_cannot_be_read_back_is_invalid(root: Path) -> None:
    def matches(data: dict[str, Any]) -> bool:
        raise MissingContent("the blob is gone")

    Timeline(root, 1, envelope_hash="e" * 64).finish()
    with Index(root, envelope_matches=matches) as index:
        assert index.list_runs()[0]["reasons"] == ["envelope_invalid"]


def test_the_agent_that_adopts_a_run_gives_it_its_name_and_request(root: Path) -> None:
    run = Timeline(root, 1, name="python agent.py", envelope_hash="a" * 64, agent={"name": "process"})
    adopts = {"name": "fix", "adopts": True, "envelope_hash": "b" * 64, "agent": {"name": "fix", "version": "1"}}
    run.add("step.started", adopts, span="a").add("step.finished", {"status": "ok", "adopts": True}, span="a")
    with Index(root) as index:
        found = index.get(run.id)
        assert found is not None
        assert (found["name"], found["agent"], found["envelope_hash"]) == ("fix", "fix", "b" * 64)
        assert found["status"] == "crashed"  # the step's end is not the run's
        run.finish()
        assert index.find_envelope("a" * 64) is None
        assert index.find_envelope("b" * 64) == run.id


def test_the_newest_replayable_run_answers_an_envelope(root: Path) -> None:
    runs = [Timeline(root, number, envelope_hash="e" * 64).finish() for number in range(3)]
    Timeline(root, 3, envelope_hash="e" * 64)  # never finished
    Timeline(root, 4, envelope_hash="f" * 64).finish()
    with Index(root) as index:
        assert index.find_envelope("e" * 64) == runs[2].id
        runs[2].add("run.invalidated", {"why": "wrong"}).note("close")
        assert index.find_envelope("e" * 64) == runs[1].id
        for path in (runs[1].path, runs[1].directory):
            path.unlink() if path.is_file() else path.rmdir()
        assert index.find_envelope("e" * 64) == runs[0].id  # removed by hand: never given as an answer
        assert index.find_envelope("0" * 64) is None


def test_look_ups_use_an_index_and_never_scan(root: Path) -> None:
    with Index(root) as index:
        for sql, used in (
            ("runs WHERE envelope_hash = 'e' AND replayable = 1 ORDER BY id DESC LIMIT 1", "runs_by_envelope"),
            ("runs WHERE name = 'a' AND origin IS NULL ORDER BY id DESC LIMIT 1", "runs_original_by_name"),
            ("progress WHERE held = 1", "progress_held"),
            ("runs ORDER BY id DESC LIMIT 50", "SCAN runs"),  # along its key: it ends after 50 rows
        ):
            plan = index.query(f"EXPLAIN QUERY PLAN SELECT * FROM {sql}")[1]
            assert len(plan) == 1
            assert used in plan[0][3]


def test_names_and_last_skip_replays_and_child_runs(root: Path) -> None:
    first, second = (Timeline(root, number, name="a").finish().id for number in (1, 2))
    other = Timeline(root, 3, name="b").finish().id
    Timeline(root, 4, name="a", origin={"run": first, "mode": "exact"}).finish()
    with Index(root) as index:
        assert [index.latest(back=back) for back in range(4)] == [other, second, first, None]
        assert index.latest() == other
        assert [index.latest("a"), index.latest("a", 1), index.latest("c")] == [second, first, None]


def test_a_run_is_found_by_prefix_and_by_the_id_it_had_elsewhere(root: Path) -> None:
    ids = [Timeline(root, number, external_id=f"t{number}").finish().id for number in (1, 2)]
    with Index(root) as index:
        assert index.with_prefix(ids[0][:11]) == ids[::-1]
        assert index.with_prefix(ids[0]) == [ids[0]]
        assert index.with_prefix("run_zz") == []
        assert index.by_external_id("t2") == ids[1]
        assert index.by_external_id("t3") is None


def test_a_finished_run_can_be_reopened_and_its_last_end_counts(root: Path) -> None:
    run = Timeline(root, 1).finish("error", error={"type": "E", "message": "m"})
    with Index(root) as index:
        states = [index.list_runs()[0]]
        run.add("run.reopened").note("open")
        states.append(index.list_runs()[0])
        run.finish("cancelled")
        states.append(index.list_runs()[0])
    assert [state["status"] for state in states] == ["error", "crashed", "cancelled"]
    assert [state["error"] for state in states] == ["E: m", None, None]
    assert states[2]["duration_us"] == 3000


def test_what_comes_after_the_end_does_not_change_status_or_duration(root: Path) -> None:
    run = Timeline(root, 1).finish()
    run.add("ci.reported", {"job": "test"}).note("close")
    with Index(root) as index:
        found = index.get(run.id)
    assert found is not None
    assert (found["status"], found["duration_us"], found["events"], found["head_seq"]) == ("ok", 1000, 3, 2)


def documented_queries() -> dict[str, str]:
    found = re.findall(r"^### ([^\n]+)\n(?:(?!^##).)*?```sql\n(.*?)```", DOCS.read_text("utf-8"), re.S | re.M)
    return dict(found)


def test_the_documented_queries_answer(root: Path) -> None:
    first, second = rich(root, 1), rich(root, 2)
    third = Timeline(root, 3).add("step.started", {"name": "plan"}, span="x")
    third.add("step.started", {"name": "act"}, span="y").add("step.finished", {"status": "error"}, span="y")
    third.call("tool.called", {"name": "edit"}, "tool.returned", {"status": "ok"}).finish()
    queries = documented_queries()
    assert len(queries) == 6
    with Index(root) as index:

        def answer(title: str, params: dict[str, str] | None = None) -> list[tuple[Any, ...]]:
            return index.query(queries[title], params or {})[1]

        assert answer("Slowest tools") == [("edit", 1, 1.0, 1.0, 0), ("search", 2, 1.0, 1.0, 2)]
        assert answer("Denied capabilities") == [("repo.write", "src/", "r1", 2, 2)]
        assert answer("Tokens by model") == [("openai", "gpt-5", 2, 0, 200, 14, 80, 6)]
        assert answer("Steps by success rate") == [("act", 1, 0, 0, 0.0), ("plan", 3, 2, 1, 1.0)]
        touching = answer("Runs touching a file", {"file": "src/login.py"})
        assert [row[0] for row in touching] == [second.id] * 2 + [first.id] * 2
        assert [row[3] for row in touching] == ["file.written", "file.committed"] * 2
        assert answer("Runs touching a file", {"file": "gin.py"}) == []
        reading = answer("Runs reading a file", {"file": "in.txt"})
        assert [(row[0], *row[3:]) for row in reading] == [
            (run.id, "/repo/in.txt", "d" * 64, 1) for run in (second, first)
        ]
        assert answer("Runs reading a file", {"file": "n.txt"}) == []


def test_every_table_and_column_is_documented(root: Path) -> None:
    sections = re.split(r"^## ", DOCS.read_text("utf-8"), flags=re.M)
    with Index(root) as index:
        for table in TABLES:
            (section,) = (text for text in sections if text.startswith(f"`{table}`"))
            columns = index.query(f"SELECT * FROM {table}")[0]
            assert re.findall(r"^\| `(\w+)` \|", section, re.M) == columns
        for table in ("progress", "state", "migrations"):
            for column in index.query(f"SELECT * FROM {table}")[0]:
                assert f"`{column}`" in sections[-1]


@pytest.mark.parametrize("place", ["file", "memory"])
@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM runs", "INSERT INTO runs(id) VALUES ('x')", "UPDATE runs SET name = 'x'", "DROP TABLE runs",
        "CREATE TABLE x (a)", "CREATE TEMP TABLE x (a)", "ATTACH 'x.db' AS x", "PRAGMA query_only = OFF",
        "PRAGMA user_version", "VACUUM INTO 'x.db'", "BEGIN", "SELECT load_extension('x')",
        "SELECT 1; DELETE FROM runs", "EXPLAIN DELETE FROM runs",
        "WITH a AS (SELECT 1) DELETE FROM runs", "", "-- nothing", "SELECT * FROM nowhere", "no sql", "SELECT '\ud800'",
        "INSERT INTO runs(id) VALUES ('x') RETURNING id", "SELECT ?",
    ],
)  # fmt: skip
def test_a_query_can_only_read(root: Path, monkeypatch: pytest.MonkeyPatch, place: str, sql: str) -> None:
    if place == "memory":
        layout.index(root).mkdir()  # no file can be made there
    monkeypatch.chdir(root)
    run = rich(root)
    with Index(root) as index:
        with pytest.raises(UsageError) as refused:
            index.query(sql)
        assert "policy_checks" in refused.value.hint
        assert index.query("SELECT id FROM runs")[1] == [(run.id,)]
        run.add("note.added").note("close")
        assert index.list_runs()[0]["events"] == 19  # the index itself still writes
    assert not (root / "x.db").exists()


def test_a_query_can_take_json_columns_apart(root: Path) -> None:
    rich(root)
    with Index(root) as index:
        sql = "SELECT key, value FROM runs, json_each(runs.tags) WHERE key = ? ORDER BY key"
        assert index.query(sql, ("team",)) == (["key", "value"], [("team", "red")])


def test_text_that_is_not_utf8_is_shown_as_well_as_it_can_be(root: Path) -> None:
    with Index(root) as index:
        assert index.query("SELECT CAST(x'41ff42' AS TEXT)")[1] == [("A\ufffdB",)]


@pytest.mark.parametrize("place", ["file", "memory"])
def test_exact_replays_can_be_left_out_of_every_table(root: Path, place: str) -> None:
    if place == "memory":
        layout.index(root).mkdir()  # no file can be made there
    original = rich(root, 1)
    replay = rich(root, 2, origin={"run": original.id, "mode": "exact", "at": 3})
    child = rich(root, 3, origin={"run": original.id, "mode": "child"})
    with Index(root) as index:
        for table in TABLES:
            column = "id" if table == "runs" else "run"
            sql = f"SELECT DISTINCT {column} FROM {table} ORDER BY 1"
            assert index.query(sql, replays=False)[1] == [(original.id,), (child.id,)]
            assert index.query(sql)[1] == [(original.id,), (replay.id,), (child.id,)]
        child.add("note.added").note("close")
        assert index.list_runs()[0]["events"] == 19  # the index itself still writes
