"""List runs as people and scripts see them: what `ls` shows, and a server answers."""

from __future__ import annotations

from typing import Any

from playhead._api.costs import add_costs
from playhead.store.index_questions import Questions

FIELDS = (
    "id", "name", "status", "started", "duration_ms", "events", "model_calls", "tool_calls", "tokens_in", "tokens_out",
    "cost", "error", "origin", "replayable", "reasons", "finished", "agent", "git_commit", "git_branch", "git_dirty",
    "gaps", "tags", "external_id", "cost_unpriced", "calls_without_usage", "replay_of",
)  # fmt: skip


def list_runs(index: Questions, **chosen: Any) -> list[dict[str, Any]]:
    """List runs, newest first, with what they cost; `chosen` is as for the index."""
    runs = index.list_runs(**chosen)
    add_costs(index, runs)
    for found in runs:
        found["replay_of"] = _replay_of(found)
    return runs


def told(run: dict[str, Any]) -> dict[str, Any]:
    """Return what is told of a run in a list of many."""
    return {name: run[name] for name in FIELDS}


def _replay_of(run: dict[str, Any]) -> str | None:
    """Return the run that this one replays; None for one that is no replay."""
    origin = run["origin"]
    if not isinstance(origin, dict) or origin.get("mode") not in ("exact", "reingest"):
        return None
    return str(origin["run"]) if isinstance(origin.get("run"), str) else None
