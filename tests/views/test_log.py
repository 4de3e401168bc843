from __future__ import annotations

import random
from typing import Any

from playhead.views import log

S = 1_000_000


def run(id: str, started_us: int | None, **more: Any) -> dict[str, Any]:
    fields = {
        "name": "agent",
        "status": "ok",
        "duration_us": 1500,
        "error": None,
        "git_commit": None,
        "git_branch": None,
    }
    return {"id": id, "started_us": started_us, **fields, **more}


def commit(sha: str, time_us: int, **runs: str | None) -> dict[str, Any]:
    return {"sha": sha, "subject": sha, "author": "Ada", "time_us": time_us, "parents": [], "runs": runs}


def result(job: str, time_us: int, **more: Any) -> dict[str, Any]:
    names = ("source", "provider", "ci_run_id", "attempt", "step", "test", "counts", "error", "sha")
    names += ("started", "finished", "duration_us")
    fields = {**dict.fromkeys(names), "result": "success", "run": "r1", "seq": 1, "recorded": "1"}
    return {**fields, "job": job, "time_us": time_us, **more}


def order(*found: list[dict[str, Any]], limit: int = 50) -> list[str]:
    return [e.get("run") or e.get("job") or e["commit"] for e in log.stream(*found, limit)]


def test_the_newest_comes_first_whatever_it_is() -> None:
    found = [run("r1", 10 * S), run("r2", 40 * S)], [commit("c1", 20 * S)], [result("j1", 30 * S)]
    assert order(*found) == ["r2", "j1", "c1", "r1"]
    assert order(*found, limit=2) == ["r2", "j1"]
    assert log.stream(*found, 1)[0]["time"] == "1970-01-01T00:00:40.000000Z"


def test_at_the_same_moment_what_came_of_something_is_newer_and_the_order_is_always_the_same() -> None:
    runs, commits, results = [run("r1", 5 * S)], [commit("c1", 5 * S)], [result("a", 5 * S), result("b", 5 * S)]
    assert order(runs, commits, results) == ["a", "b", "c1", "r1"]


def test_a_commit_is_after_the_beginning_of_the_run_that_made_it_though_git_knows_only_the_second() -> None:
    runs = [run("r1", 5 * S + 700_000), run("r2", 9 * S)]
    assert order(runs, [commit("made", 5 * S, r1=None)], []) == ["r2", "made", "r1"]
    for link in log.NOT_MADE:
        assert order(runs, [commit("base", 5 * S, r1=link)], []) == ["r2", "r1", "base"]
    assert order(runs, [commit("old", 4 * S, r1="trailer")], []) == ["r2", "r1", "old"]  # its clock says so


def test_a_commit_stands_above_those_that_it_follows_in_the_same_second() -> None:
    first, second, third = (commit(sha, 5 * S) for sha in ("first", "second", "third"))
    second["parents"], third["parents"] = ["first", 5, "unknown"], ["second"]
    for commits in ([first, third, second], [second, first, third]):
        assert order([], commits, []) == ["third", "second", "first"]
    # One that a run made is after its beginning, and so is what follows.
    first["runs"] = {"r1": None}
    assert order([run("r1", 5 * S + 700_000)], [first, second, third], []) == ["third", "second", "first", "r1"]
    first["parents"] = ["third"]
    assert sorted(order([], [first, second, third], [])) == ["first", "second", "third"]


def test_a_result_that_several_runs_have_is_one_entry() -> None:
    (entry,) = log.stream([], [], [result("j", 5 * S, run="r1"), result("j", 5 * S, run="r2")], 9)
    assert entry["runs"] == ["r1", "r2"]
    # Without an id of CI only the moment and the commit tell two apart.
    assert len(log.stream([], [], [result("j", 5 * S), result("j", 6 * S), result("j", 5 * S, sha="x")], 9)) == 3


def test_of_a_job_of_which_more_became_known_the_last_counts() -> None:
    rows = [
        result("j", 5 * S, ci_run_id="7", result="success", recorded="2"),
        result("j", 4 * S, ci_run_id="7", result="unknown", recorded="1"),
        result("j", 5 * S, ci_run_id="8", result="failure", recorded="1"),
    ]
    random.Random(1).shuffle(rows)
    assert sorted(entry["result"] for entry in log.stream([], [], rows, 9)) == ["failure", "success"]


def test_of_several_files_of_tests_of_one_job_each_is_told() -> None:
    of_one = {"source": "junit", "ci_run_id": "7"}
    rows = [
        result("j", 5 * S, result="failure", counts={"failed": 1}, started="a", recorded="1", **of_one),
        result("j", 6 * S, counts={"passed": 1}, started="b", recorded="2", **of_one),
        result("j", 7 * S, counts={"passed": 2}, recorded="3", **of_one),
        result("j", 8 * S, counts={"passed": 2}, recorded="4", run="r2", **of_one),  # the same file in another run
    ]
    found = log.stream([], [], rows, 9)
    assert [(entry["result"], entry["runs"]) for entry in found] == [
        ("success", ["r1", "r2"]),
        ("success", ["r1"]),
        ("failure", ["r1"]),
    ]


def test_what_has_no_moment_stands_at_the_end() -> None:
    assert order([run("r1", None)], [commit("c1", 1)], []) == ["c1", "r1"]
    assert log.stream([run("r1", None)], [], [], 9)[0]["time"] is None
