"""Replay: run an agent's own code again, with every answer from the tape."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import orjson

from playhead._api.reading import Run, load
from playhead.errors import DeviationError, NotReplayable, PlayheadError, UsageError
from playhead.event.plain import restore
from playhead.replay.exact import Replayed
from playhead.replay.raised import unwrapped
from playhead.replay.session import Session
from playhead.settings import load as load_settings
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

_LATER = ("model", "step", "fork")


def replay(
    run: Run | str | Path,
    *,
    mode: Literal["exact"] = "exact",
    agent: Callable[..., Any] | None = None,
    command: Sequence[str] | None = None,
    on_deviation: Literal["raise", "nearest"] = "raise",
    force: Sequence[str] = (),
    speed: float = 0.0,
) -> Replayed:
    """Run an agent's code again, answered from the tape, and compare: `playhead.replay("@last").fidelity`.

    Without an `agent` the recorded command is started again, in a process of its own, or `command` in its place. An
    `agent` is called in this process, with the arguments that were recorded. The first question that is not on the tape
    raises DeviationError, unless `on_deviation` is "nearest". `force` names reasons against a replay that shall not
    count: `force=["not_captured"]`. With `speed=1` it takes the time that it took.
    """
    if mode in _LATER:
        raise UsageError(f"replay in the mode {mode!r} is not available yet", hint='`mode="exact"` is.')
    if mode != "exact":
        raise UsageError(f"there is no mode {mode!r}", hint='A mode is "exact"; `Run.playback` plays back.')
    if on_deviation not in ("raise", "nearest"):
        raise UsageError(f"not what to do on a deviation: {on_deviation!r}", hint='It is "raise" or "nearest".')
    found = run if isinstance(run, Run) else load(run)
    waived = [force] if isinstance(force, str) else list(force)
    if agent is not None:
        return _called(found, agent, on_deviation, waived, speed)
    return _started(found, command, on_deviation, waived, speed)


def _called(run: Run, agent: Callable[..., Any], on_deviation: str, waived: list[str], speed: float) -> Replayed:
    store = run.store if type(run.store) is FileStore else FileStore(load_settings().store_root())
    session = Session(
        RunReader(run.store, run.id),
        store=store,
        opens=not hasattr(agent, "playhead_request"),
        on_deviation=on_deviation,
        waive=waived,
        speed=speed,
        alone=True,
    )
    args, named = _arguments(run, agent)
    with session:
        try:
            result = agent(*args, **named)
            if inspect.iscoroutine(result):
                import asyncio

                asyncio.run(result)
        except BaseExceptionGroup as group:
            raise unwrapped(group) from None
    if session.result is None:
        raise UsageError(
            f"{agent!r} recorded nothing: there is nothing to compare",
            hint="Give the function that was recorded, or one that calls it.",
        )
    return session.result


def _arguments(run: Run, agent: Callable[..., Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return what to call an agent with: the payload of the request, by the names of its parameters."""
    payload = restore((run.input or {}).get("payload"))
    try:
        parameters = inspect.signature(agent).parameters
    except (TypeError, ValueError):
        parameters = {}  # type: ignore[assignment]
    if not parameters:
        return [], {}
    if isinstance(payload, Mapping):
        named = {name: payload[name] for name in parameters if name in payload}
        if named:
            return [], named
    return ([] if payload is None else [payload]), {}


def _started(run: Run, command: Sequence[str] | None, on_deviation: str, waived: list[str], speed: float) -> Replayed:
    """Start the program again by way of the command line: whoever starts programs must have a process for itself."""
    place: Any = run.path or getattr(run.store, "path", None)
    named = run.id if place is None else str(place)
    argv = [sys.executable, "-m", "playhead", "replay", named, "--mode", "exact", "--json"]
    argv += ["--on-deviation", on_deviation, "--speed", str(speed), *(f"--waive={reason}" for reason in waived)]
    argv += ["--", *command] if command else []
    done = subprocess.run(argv, capture_output=True, check=False)
    try:
        answer = orjson.loads(done.stdout)
    except orjson.JSONDecodeError:
        raise PlayheadError(
            f"the replay could not be started: {done.stderr.decode(errors='replace').strip()}"
        ) from None
    if "error" in answer and "run" not in answer:
        told = answer["error"]
        if told.get("code") == NotReplayable.code:
            reasons = list((told.get("detail") or {}).get("reasons") or {})
            raise NotReplayable(told["message"], reasons=reasons, detail=told.get("detail"), hint=told.get("hint"))
        raise UsageError(str(told.get("message")), hint=told.get("hint"))
    deviations = answer.pop("deviations")
    found = Replayed(**answer, differences=deviations)
    first = found.fidelity["first"]
    if on_deviation == "raise" and not found.faithful and first is not None:
        raise DeviationError(first["text"], deviation=first)
    return found
