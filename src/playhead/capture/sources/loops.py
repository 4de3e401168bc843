"""The clock of an event loop, where the agent asks for it: the loop itself asks it all the time."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

from playhead.capture import answering, hooks
from playhead.capture.patches import Patches

_patches = Patches()


def _arrived(module: ModuleType) -> None:
    _patches.replace(module.BaseEventLoop, "time", _time)


def _uvloop_arrived(module: ModuleType) -> None:
    if answering.player is None:  # in a replay its loop is that of asyncio
        _patches.cover(module.Loop, "time", _time)


def unwatch() -> None:
    """Put back what was there."""
    _patches.restore()


def _time(original: Any) -> Any:
    @functools.wraps(original)
    def time(self: Any) -> Any:
        value = original(self)
        place = hooks.here("asyncio.loop.time", sys._getframe().f_back)
        if place is not None:
            of, by, pack, span = place
            if answering.player is not None:
                told = answering.player.looped(of, by, pack.lane)
                value = value if told is None else told
            pack.add(of, by, value, 20, span)
        return value

    return time


ARRIVING = {"asyncio.base_events": _arrived, "uvloop": _uvloop_arrived}
