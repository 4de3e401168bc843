"""Say to another process in which run and lane its work belongs, in words that any Python can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.capture import forks, guard, lanes
from playhead.capture.scope import Lane, Scope, ambient, ambient_lane, current, place
from playhead.errors import PolicyDenied

if TYPE_CHECKING:
    from playhead.capture.recording import Recording

Told = dict[str, str]

_joined: Recording | None = None  # a run that only the work of a pool brought into this process


def tell(start: lanes.Start) -> Told | None:
    """Say where work with a lane of its own belongs; None where it has none, or no other process can find the run."""
    return None if start.child is None else tell_place(start)


def tell_place(start: lanes.Start) -> Told | None:
    """Say where anything belongs that begins in another process."""
    scope = _scope(start)
    if scope is None:
        return None
    root = getattr(scope.recording.store, "root", None)
    return {
        "run": scope.recording.id,
        "store": "" if root is None else str(root.absolute()),
        "lane": scope.lane.path,
        "span": scope.span or "",
    }


def _scope(start: lanes.Start) -> Scope | None:
    changed: dict[Any, Any] = dict(start.changed)
    if current in changed:
        scope: Scope = changed[current]
        return None if scope.recording.closed else scope
    process = ambient()
    if ambient_lane in changed and process is not None:
        there = process.scope()
        return None if there is None else there._replace(lane=changed[ambient_lane])
    return place()


def start(told: Told) -> lanes.Start | None:
    """Return what begins here for another process; None where its run cannot be written any more."""
    recording = next((each for each in forks.recordings() if each.id == told["run"] and not each.closed), None)
    if recording is None:
        recording = _join(told)
        if recording is None:
            return None
    lane = Lane(told["lane"], recording.tap)
    return lanes.Start(((current, Scope(recording, told["span"] or None, lane)),), None, lane)


def _join(told: Told) -> Recording | None:
    global _joined
    if not told["store"]:
        return None
    try:
        found = join(told)
    except PolicyDenied:
        raise  # without the run nobody would ask its policy
    except Exception as problem:
        guard.give_up(problem, "work in another process is not recorded", strict=False)
        return None
    if found is not None:
        before, _joined = _joined, found
        if before is not None:
            before.leave()
    return found


def join(told: Told) -> Recording | None:
    """Open the run; None where it has ended, or where nothing is to be recorded."""
    from pathlib import Path

    from playhead import settings
    from playhead.capture.record import join_run
    from playhead.event.envelope import kind_of
    from playhead.store.files import FileStore

    found, store = settings.load(), FileStore(Path(told["store"]))
    if found.disabled or any(kind_of(line) == "run.finished" for line in store.lines(told["run"])):
        return None
    return join_run(store, found, told["run"])
