"""Say of a run that is a replay what it replays, and how it compares: looked up and compared once more."""

from __future__ import annotations

from typing import Any

from playhead.errors import PlayheadError
from playhead.store.reader import RunReader


def fidelity_of(replay: RunReader) -> dict[str, Any] | None:
    """Return `verdict`, `first` and `count`, what it replays (`of`, `mode`), and `why` it could not be compared.

    None for a run that is no replay.
    """
    try:
        first = next(iter(replay.resolved()), None)
        origin = first.data.get("origin") if first is not None and first.kind == "run.started" else None
    except PlayheadError:  # which `verify` tells of
        return None
    if not isinstance(origin, dict) or origin.get("mode") != "exact" or not isinstance(origin.get("run"), str):
        return None
    # Here: most runs are no replays, and where nothing can be replayed they can still be verified.
    from playhead.replay.exact import judge
    from playhead.replay.tape import Tape

    about = {"of": origin["run"], "mode": origin["mode"]}
    at = origin.get("at")
    try:
        tape = Tape(RunReader(replay.store, origin["run"]), at if isinstance(at, int) else None)
        found = judge(tape, replay, 0).fidelity
    except PlayheadError as problem:
        return {**_recorded(replay), **about, "why": problem.message}
    why = {"why": "the replay did not come to its end"} if found["verdict"] == "not_compared" else {}
    return {**found, **about, **why}


def _recorded(replay: RunReader) -> dict[str, Any]:
    """Return what the replay says by itself, where there is nothing to compare it with: questions without an answer."""
    try:
        found = [event.data for event in replay.resolved() if event.kind == "replay.deviated"]
    except PlayheadError:
        found = []
    verdict = "deviated" if found else "not_compared"
    return {"verdict": verdict, "first": found[0] if found else None, "count": len(found)}
