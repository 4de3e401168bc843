"""Put runs, commits and results of CI into one stream, the newest first."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter
from typing import Any

from playhead._clock import utc_text

Entry = dict[str, Any]

SECOND_US = 1_000_000
NOT_MADE = ("started_from", "older")  # links of commits that a run did not make
# Of two things at the same moment, what the other led to is the newer one.
_RANKS = {"ci": 0, "commit": 1, "run": 2}
_RESULT = ("source", "provider", "ci_run_id", "attempt", "job", "step", "test")
# One job writes many files of tests: one is told from the next by what it says.
_FILE = ("sha", "started", "finished", "duration_us", "result", "error")


def stream(
    runs: Iterable[dict[str, Any]], commits: Iterable[dict[str, Any]], results: Iterable[dict[str, Any]], limit: int
) -> list[Entry]:
    """Merge rows into one list; of a moment that is the same the order is always the same, too.

    `commits` have `parents` and `runs`, by id why each belongs to it. `results` are one row for each run that has it:
    they become one entry with all of its runs.
    """
    runs = list(runs)
    started = {run["id"]: run["started_us"] for run in runs}
    entries = [_run(run) for run in runs]
    entries += _commits(list(commits), started)
    entries += _results(results)
    ordered = sorted(
        enumerate(entries), key=lambda pair: (-(pair[1]["time_us"] or 0), _RANKS[pair[1]["type"]], pair[0])
    )
    return [_told(entry) for _, entry in ordered[:limit]]


def _told(entry: Entry) -> Entry:
    """Say the moment in the words of a line, second in the entry."""
    time_us = entry.pop("time_us")
    return {"type": entry.pop("type"), "time": None if time_us is None else utc_text(time_us), **entry}


def _run(run: dict[str, Any]) -> Entry:
    duration_us = run["duration_us"]
    return {
        "type": "run",
        "time_us": run["started_us"],
        "run": run["id"],
        "name": run["name"],
        "status": run["status"],
        "duration_ms": None if duration_us is None else duration_us / 1000,
        "error": run["error"],
        "commit": run["git_commit"],
        "branch": run["git_branch"],
    }


def _commits(commits: list[dict[str, Any]], started: dict[str, int | None]) -> list[Entry]:
    """Make the entries of commits, each before those that it follows: git knows only the second."""
    following: dict[str, list[str]] = {commit["sha"]: [] for commit in commits}
    for commit in commits:
        for parent in commit["parents"]:
            if isinstance(parent, str) and parent in following:
                following[parent].append(commit["sha"])
    try:
        order = list(TopologicalSorter(following).static_order())
    except CycleError:  # which commits cannot be, but what somebody wrote into a run can
        order = list(following)
    by_sha = {commit["sha"]: _commit(commit, started) for commit in commits}
    for sha in reversed(order):  # the first ones first: what follows one that a run made is no older than it
        time_us = by_sha[sha]["time_us"] or 0
        for later in (by_sha[each] for each in following[sha]):
            if time_us - SECOND_US < (later["time_us"] or 0) < time_us:
                later["time_us"] = time_us
    return [by_sha[sha] for sha in order]


def _commit(commit: dict[str, Any], started: dict[str, int | None]) -> Entry:
    time_us = commit["time_us"]
    for run, link in commit["runs"].items():
        began = started.get(run)
        # Git knows only the second: what a run made, it made after it began.
        if link not in NOT_MADE and None not in (began, time_us) and time_us <= began < time_us + SECOND_US:
            time_us = began
    known = ("subject", "author", "authored", "committed", "files", "added", "removed")
    return {
        "type": "commit",
        "time_us": time_us,
        "commit": commit["sha"],
        **{name: commit.get(name) for name in known},
        "runs": [{"run": run, "link": link} for run, link in commit["runs"].items()],
    }


def _results(rows: Iterable[dict[str, Any]]) -> list[Entry]:
    """Make one entry of what several runs have; of a job of which more became known later, the last counts.

    That is so of the log of a job. What another file of tests says is a result of its own.
    """
    found: dict[tuple[Any, ...], Entry] = {}
    for row in sorted(rows, key=lambda row: (row["recorded"], row["seq"])):
        same = tuple(row[name] for name in _RESULT)
        if row["ci_run_id"] is None:  # nothing but its moment and its commit tells one from the next
            same += (row["time_us"], row["sha"])
        if row["source"] == "junit":
            same += (*(row[name] for name in _FILE), repr(row["counts"]))
        before = found.pop(same, None)
        runs = [] if before is None else [run for run in before["runs"] if run != row["run"]]
        duration_us = row["duration_us"]
        found[same] = {
            "type": "ci",
            "time_us": row["time_us"],
            **{name: row[name] for name in ("job", "step", "test", "result", "counts", "error")},
            "duration_ms": None if duration_us is None else duration_us / 1000,
            "commit": row["sha"],
            **{name: row[name] for name in ("provider", "ci_run_id", "attempt", "source")},
            "runs": [*runs, row["run"]],
        }
    return list(found.values())
