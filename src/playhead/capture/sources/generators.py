"""Generators of random numbers whose state is outside of Python: it is kept as they were found."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from playhead.capture import answering, guard, hooks, scope
from playhead.capture.hooks import What


def _numpy_arrived(module: ModuleType) -> None:
    if (place := _here()) is not None:
        _numpy(module, *place)


def _torch_arrived(module: ModuleType) -> None:
    hooks.watch(vars(module)["_C"].Generator.__dict__["seed"], "torch.seed", What.NUMBER)
    if (place := _here()) is not None:
        _torch(module, *place)


def note_states(pack: Any, span: str | None) -> None:
    """Keep the states in which a run finds the generators that are there when it begins."""
    for name, note in (("numpy.random", _numpy), ("torch", _torch)):
        module = sys.modules.get(name)
        if isinstance(module, ModuleType) and not getattr(module.__spec__, "_initializing", False):
            try:
                note(module, pack, span)
            except Exception as problem:  # it is not the one that we know: something that a test put in its place
                guard.not_captured(problem, name, [pack.tap.owner])


def _numpy(module: ModuleType, pack: Any, span: str | None) -> None:
    player = answering.player
    told = None if player is None else player.state("numpy.random.get_state", "numpy.random", pack.lane)
    if told is not None:
        import numpy  # type: ignore[import-not-found,unused-ignore]  # which has just arrived

        keys = numpy.frombuffer(told["keys"], dtype=numpy.uint32)
        module.set_state((told["generator"], keys, told["position"], told["has_gauss"], told["gauss"]))
    name, keys, position, has_gauss, gauss = module.get_state()
    state = {"generator": name, "position": position, "has_gauss": has_gauss, "gauss": gauss, "keys": keys.tobytes()}
    pack.add("numpy.random.get_state", "numpy.random", state, 4096, span)


def _torch(module: ModuleType, pack: Any, span: str | None) -> None:
    state = {"seed": module.initial_seed(), "state": module.get_rng_state().numpy().tobytes()}
    pack.add("torch.get_rng_state", "torch", state, 8192, span)


def _here() -> tuple[Any, str | None] | None:
    found, lane = scope.current.get(), scope.lane_here()
    if lane is None or lane.reads is None:
        return None
    return lane.reads, None if found is None else found.span


ARRIVING = {"numpy.random": _numpy_arrived, "torch": _torch_arrived}
