"""Find one step of a run: what it was given, what it came to, and whether it can be run alone."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from playhead.errors import UsageError
from playhead.event.rebuilt import is_whole
from playhead.store.reader import RunReader

_NUMBERED = re.compile(r"(.+)#(\d+)")
_GUARD = re.compile(r"""^if\s+__name__\s*==\s*['"]__main__['"]""", re.MULTILINE)
_SHOWN = 20


class StepAt(NamedTuple):
    """One step that was recorded."""

    seq: int
    closing: int | None
    span: str
    lane: str
    name: str
    number: int  # among those of its name
    given: dict[str, Any] | None  # the arguments of a function, by name
    entrypoint: dict[str, Any]
    result: dict[str, Any]  # status, output, error, attributes
    inferred: bool = False  # read off the traffic: a turn of a loop

    @property
    def is_function(self) -> bool:
        """Say whether it is a function, and no `with`."""
        return bool(self.entrypoint.get("qualname"))


def find_step(reader: RunReader, wanted: str) -> StepAt:
    """Return the step that is meant: by its name, `name#2` for the second of it, or by the number of its event.

    Those that were read off the traffic, too, as `show` lists them.
    """
    steps = all_steps(reader, inferred=True)
    numbered = _NUMBERED.fullmatch(wanted)
    name, number = (numbered[1], int(numbered[2])) if numbered else (wanted, 1)
    for step in steps:
        if (step.name, step.number) == (name, number) or (step.name == wanted and step.number == 1):
            return step
    if wanted.isdecimal():
        for step in steps:
            if step.seq == int(wanted):
                return step
    raise no_such_step(reader.id, wanted, [(step.name, step.number) for step in steps])


def no_such_step(run: str, wanted: str, steps: Iterable[tuple[str, int]]) -> UsageError:
    """Return the error that says which steps there are, each by its name and its number among those of that name."""
    named = [name if number == 1 else f"{name}#{number}" for name, number in steps]
    more = f" and {len(named) - _SHOWN} more" if len(named) > _SHOWN else ""
    return UsageError(
        f"{run} has no step {wanted!r}",
        hint=f"Its steps are {', '.join(named[:_SHOWN])}{more}." if named else "No step was recorded in it.",
    )


def all_steps(reader: RunReader, *, inferred: bool = False) -> list[StepAt]:
    """Return the steps of a run, in order; with `inferred` also those that were read off the traffic."""
    found: dict[str, StepAt] = {}
    counts: dict[str, int] = {}
    for event in reader.events():
        if event.kind not in ("step.started", "step.finished"):
            continue
        data = reader.value(event.data)
        read_off = bool(data.get("inferred"))
        if event.kind == "step.started" and event.span is not None and (inferred or not read_off):
            name = str(data.get("name"))
            counts[name] = counts.get(name, 0) + 1
            given = data.get("input") if isinstance(data.get("input"), dict) and not data.get("adopts") else None
            entrypoint = {} if data.get("adopts") else data.get("entrypoint") or {}
            found[event.span] = StepAt(
                event.seq, None, event.span, event.lane, name, counts[name], given, entrypoint, {}, read_off
            )
        elif event.kind == "step.finished" and event.span in found:
            result = {name: data.get(name) for name in ("status", "output", "error", "attributes")}
            found[event.span] = found[event.span]._replace(closing=event.seq, result=result)
    return list(found.values())


def why_not_alone(step: StepAt) -> str | None:
    """Say why a step cannot be run without what comes before it; None where it can."""
    place = step.entrypoint
    if not step.is_function:
        return "it is a `with` block: what it needs is made by the code before it"
    if "<locals>" in str(place.get("qualname")):
        return "its function is made inside of another one"
    if step.given is None:
        return "its arguments were not recorded"
    if not is_whole(step.given):
        return "one of its arguments is known by its repr alone, and cannot be made again"
    if b"[redacted:" in orjson.dumps(step.given) or b'"$redacted"' in orjson.dumps(step.given):
        return "one of its arguments had a secret in it, which is not in the recording"
    if set(step.given) == {"args", "kwargs"} or any(name.startswith("*") for name in step.given):
        return "its arguments have no names of their own"
    owner = str(place["qualname"]).rpartition(".")[0]
    if owner and not {"self", "cls"} & step.given.keys():
        return "it is a method of an object that cannot be made again"
    if place.get("module") == "__main__" and not place.get("spec") and not _has_guard(place.get("file")):
        return 'its file runs the program when it is loaded: it has no `if __name__ == "__main__":`'
    return None


def _has_guard(file: Any) -> bool:
    try:
        return _GUARD.search(Path(str(file)).read_text("utf-8", "replace")) is not None
    except OSError:
        return False
