"""Replay: run an agent's own code again, from the tape, with live models, one step of it, or on from an event."""

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
from playhead.event.plain import mark, restore
from playhead.replay.exact import Replayed
from playhead.replay.onwards import Rerun
from playhead.replay.raised import unwrapped
from playhead.replay.session import Session
from playhead.replay.stepping import Stepped
from playhead.settings import load as load_settings
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

_OF_MODEL = ("model", "base_url", "params", "system", "unknown", "budget", "times", "isolated")
_OF_STEP = ("step", "input", "live")


def replay(
    run: Run | str | Path,
    *,
    mode: Literal["exact", "model", "step"] = "exact",
    agent: Callable[..., Any] | None = None,
    command: Sequence[str] | None = None,
    on_deviation: Literal["raise", "nearest"] = "raise",
    force: Sequence[str] = (),
    speed: float = 0.0,
    model: str | None = None,
    base_url: str | None = None,
    params: Mapping[str, Any] | None = None,
    system: str | None = None,
    unknown: Literal["refuse", "nearest", "live"] = "refuse",
    budget: float | None = None,
    times: int = 1,
    isolated: bool = False,
    step: str | None = None,
    input: Mapping[str, Any] | None = None,
    live: bool = False,
) -> Any:
    """Run an agent's code again, answered from the tape, and compare: `playhead.replay("@last").fidelity`.

    Without an `agent` the recorded command is started again, in a process of its own, or `command` in its place. An
    `agent` is called in this process, with the arguments that were recorded. The first question that is not on the tape
    raises DeviationError, unless `on_deviation` is "nearest". `force` names reasons against a replay that shall not
    count: `force=["not_captured"]`. With `speed=1` it takes the time that it took.

    In the mode "model" the models are live, the same or with what is given of `model`, `base_url`, `params`, `system`;
    `unknown` says what becomes of a tool call that the tape does not have; with `times` it is run so often, and with
    `isolated` each recorded question is asked alone, and no code runs. In the mode "step" one step is run alone, with
    its recorded arguments or those of `input`; with `live` its models and tools are asked. Returns a Replayed, a Rerun,
    a Repeated, an AskedAlone or a Stepped.
    """
    given = {
        "model": model, "base_url": base_url, "params": params, "system": system, "budget": budget,
        "unknown": None if unknown == "refuse" else unknown, "step": step, "input": input, "live": live or None,
        "times": None if times == 1 else times, "isolated": isolated or None,
    }  # fmt: skip
    _check(mode, given, agent is not None, on_deviation, speed)
    found = run if isinstance(run, Run) else load(run)
    waived = [force] if isinstance(force, str) else list(force)
    if mode == "model":
        from playhead.replay.models.isolated import AskedAlone  # here: most replays ask nobody
        from playhead.replay.models.times import Repeated

        shape: Any = AskedAlone if isolated else Rerun if times == 1 else Repeated
        options = [*_overriding(given), *(["--isolated"] if isolated else []), "--mode=model", *_waiving(waived)]
        return shape(**_told("replay", found, options, command))
    if mode == "step":
        options = [f"--step={step}", *(["--live"] if live else []), *(["--input=-"] if input is not None else [])]
        typed = None if input is None else _json(dict(input))
        return Stepped(**_told("replay", found, [*options, "--mode=step", *_waiving(waived)], command, typed))
    if agent is not None:
        return _called(found, agent, on_deviation, waived, speed)
    return _started(found, command, on_deviation, waived, speed)


def fork(
    run: Run | str | Path,
    at: int | str,
    *,
    edit: Any = None,
    set: Mapping[str, Any] | None = None,
    live: Literal["model", "tool", "all"] = "model",
    command: Sequence[str] | None = None,
    force: Sequence[str] = (),
    model: str | None = None,
    base_url: str | None = None,
    params: Mapping[str, Any] | None = None,
    system: str | None = None,
    unknown: Literal["refuse", "nearest", "live"] = "refuse",
    budget: float | None = None,
) -> Rerun:
    """Run an agent from the tape up to an event, and live from there: `playhead.fork("@last", 17, set={"text": "No"})`.

    `at` is the number of an event, or a name: "book#2" is the answer of the second call of the tool book. `edit` is the
    answer at that point, or `set` changes parts of it, by their paths. `live` says what is asked of the world from
    there on; with "tool" and "all", what the program does is done.
    """
    found = run if isinstance(run, Run) else load(run)
    given = {"model": model, "base_url": base_url, "params": params, "system": system, "budget": budget}
    given["unknown"] = None if unknown == "refuse" else unknown
    waived = [force] if isinstance(force, str) else list(force)
    options = [f"--at={at}", f"--live={live}", *_overriding(given), *_waiving(waived)]
    options += [f"--set={path}={_json(value).decode()}" for path, value in (set or {}).items()]
    options += ["--edit=-"] if edit is not None else []
    typed = None if edit is None else _json(edit)
    return Rerun(**_told("fork", found, options, command, typed))


def resume(
    run: Run | str | Path,
    *,
    in_flight: Literal["retry", "skip", "fail"] | None = None,
    answer: Any = None,
    command: Sequence[str] | None = None,
    force: Sequence[str] = (),
    again: bool = False,
) -> Rerun:
    """Go on with a run that was cut off: what was done is told by the tape, and from there on it is done.

    `in_flight` says what becomes of a call that was under way and may have changed something; without it such a run is
    refused. `answer` is what a call gives back that is skipped.
    """
    found = run if isinstance(run, Run) else load(run)
    waived = [force] if isinstance(force, str) else list(force)
    options = [*([f"--in-flight={in_flight}"] if in_flight else []), *(["--again"] if again else []), *_waiving(waived)]
    options += [] if answer is None else [f"--answer={_json(answer).decode()}"]
    return Rerun(**_told("resume", found, options, command))


def _check(mode: str, given: Mapping[str, Any], called: bool, on_deviation: str, speed: float) -> None:
    """Refuse what would be ignored."""
    if mode == "fork":
        raise UsageError("a fork has a function of its own", hint="`playhead.fork(run, at=17)`.")
    if mode not in ("exact", "model", "step"):
        hint = 'A mode is "exact", "model" or "step"; `playhead.fork` forks, `Run.playback` plays back.'
        raise UsageError(f"there is no mode {mode!r}", hint=hint)
    if on_deviation not in ("raise", "nearest"):
        raise UsageError(f"not what to do on a deviation: {on_deviation!r}", hint='It is "raise" or "nearest".')
    mine: Mapping[str, Sequence[str]] = {"model": _OF_MODEL, "step": _OF_STEP}
    for name, value in given.items():
        if value is not None and name not in mine.get(mode, ()):
            raise UsageError(f"`{name}` is not for mode={mode!r}")
    if mode == "step" and given["step"] is None:
        raise UsageError("which step?", hint='`step="plan"`; `playhead show RUN` lists them.')
    if mode != "exact" and (called or on_deviation != "raise" or speed):
        raise UsageError(f"`agent`, `on_deviation` and `speed` are for mode='exact', and this is mode={mode!r}")


def _overriding(given: Mapping[str, Any]) -> list[str]:
    named = {"model": "--model", "base_url": "--base-url", "unknown": "--unknown", "budget": "--budget"}
    named |= {"times": "--times"}
    options = [f"{option}={given[name]}" for name, option in named.items() if given.get(name) is not None]
    if given.get("system") is not None:
        text = str(given["system"])
        options.append(f"--system={text}")
    for path, value in (given.get("params") or {}).items():
        options.append(f"--param={path}={_json(value).decode()}")
    return options


def _json(value: Any) -> bytes:
    """Write a value as it would be recorded."""
    apart = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME
    return orjson.dumps(value, default=mark, option=apart)


def _waiving(reasons: Sequence[str]) -> list[str]:
    return [f"--waive={reason}" for reason in reasons]


def _told(
    name: str, run: Run, options: Sequence[str], command: Sequence[str] | None, typed: bytes | None = None
) -> dict[str, Any]:
    """Ask the command line, and return its answer: whoever starts programs must have a process for itself."""
    place: Any = run.path or getattr(run.store, "path", None)
    argv = [sys.executable, "-m", "playhead", name, run.id if place is None else str(place), "--json", *options]
    argv += ["--", *command] if command else []
    done = subprocess.run(argv, input=typed or b"", capture_output=True, check=False)
    try:
        answer: dict[str, Any] = orjson.loads(done.stdout)
    except orjson.JSONDecodeError:
        raise PlayheadError(f"it could not be started: {done.stderr.decode(errors='replace').strip()}") from None
    if "error" in answer and "mode" not in answer:
        told = answer["error"]
        if told.get("code") == NotReplayable.code:
            reasons = list((told.get("detail") or {}).get("reasons") or {})
            raise NotReplayable(told["message"], reasons=reasons, detail=told.get("detail"), hint=told.get("hint"))
        raise UsageError(str(told.get("message")), hint=told.get("hint"))
    return answer


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
    """Start the program again."""
    options = ["--mode=exact", f"--on-deviation={on_deviation}", f"--speed={speed}", *_waiving(waived)]
    answer = _told("replay", run, options, command)
    deviations = answer.pop("deviations")
    found = Replayed(**answer, differences=deviations)
    first = found.fidelity["first"]
    if on_deviation == "raise" and not found.faithful and first is not None:
        raise DeviationError(first["text"], deviation=first)
    return found
