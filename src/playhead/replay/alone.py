"""Run one step of a recorded program alone, with the arguments that it had: `python -m playhead.replay.alone`.

Started by `stepping.py`, attached to the part of the tape that the step is on.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
from types import ModuleType
from typing import Any

from playhead.capture import answering, scope
from playhead.capture.scope import Lane
from playhead.errors import UsageError
from playhead.event.rebuilt import Loaded, Rebuilder
from playhead.replay import attached
from playhead.replay.course import Alone
from playhead.replay.onward import OnwardPlayer

_NAME = "__playhead_step__"  # what a program is called that is loaded for its functions, and not run


def main() -> None:
    """Run it."""
    step = None if attached.plan is None else attached.plan.course.alone
    assert step is not None, "this is started for a step"
    function = _function(step)
    rebuilder = Rebuilder(Loaded())
    given = {name: rebuilder.value(value) for name, value in step.given.items()}
    if rebuilder.missing:
        raise UsageError(f"the step needs an object of {rebuilder.missing[0]}, and its module does not load that class")
    first = [given.pop(name) for name in ("self", "cls") if "." in step.qualname and name in given]
    first += [given.pop(name) for name in _only_by_place(function) if name in given]
    _enter(step)
    result = function(*first, **given)
    if inspect.iscoroutine(result):
        import asyncio

        asyncio.run(result)
    elif inspect.isgenerator(result):
        for _ in result:
            pass
    elif inspect.isasyncgen(result):
        import asyncio

        asyncio.run(_drained(result))


def _only_by_place(function: Any) -> list[str]:
    """Return the parameters that cannot be given by their names."""
    return [name for name, one in inspect.signature(function).parameters.items() if one.kind is one.POSITIONAL_ONLY]


async def _drained(items: Any) -> None:
    async for _ in items:
        pass


def _function(step: Alone) -> Any:
    """Return the function, from its module, which is loaded for it."""
    if step.file:
        sys.path.insert(0, os.path.dirname(step.file))
    sys.argv = list(step.argv)
    found: Any = importlib.import_module(step.spec or step.module) if step.spec or step.module != "__main__" else None
    if found is None:
        found = _program(step.file)
    for part in step.qualname.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise UsageError(f"there is no {step.qualname} in {step.file or step.module} any more")
    return found


def _program(file: str) -> ModuleType:
    """Load the file of a program without running it; then it is what the program knows itself as."""
    spec = importlib.util.spec_from_file_location(_NAME, file)
    assert spec is not None, "it is a file of Python"
    assert spec.loader is not None, "which can be loaded"
    module = sys.modules[_NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for value in (module, *vars(module).values()):
        if getattr(value, "__module__", None) == _NAME:
            value.__module__ = "__main__"
    module.__name__ = "__main__"
    sys.modules["__main__"] = module
    return module


def _enter(step: Alone) -> None:
    """Be in the lane in which the step was, with as many children and timers as that had."""
    process = scope.ambient()
    assert process is not None, "an attached process records"
    lane = Lane(step.lane, process.lane.tap)
    lane.skip(step.spawned, step.timers)
    process.lane = lane
    scope.ambient_lane.set(lane)
    player = answering.player
    if isinstance(player, OnwardPlayer):
        player.entered()


if __name__ == "__main__":
    main()
