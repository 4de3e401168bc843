"""Keep what a thread saw that looked whether something has come: another's end, a future's result, an event.

How far the others are then is a matter of chance. A replay tells the same: whoever saw that it had not come sees that
again, and whoever saw that it had waits until it has; or until nobody is left who could see to that.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead.capture import answering, hooks, queues
from playhead.capture.patches import Patches
from playhead.capture.scope import is_in_loop

LOOKED = "threading.look"
# Where a thing keeps who saw that it has come, a run's mark and a lane: for them nothing is left to chance.
_SEEN = "_playhead_seen"


def patch(patches: Patches) -> None:
    """Put ourselves where threads look for each other."""
    patches.replace(threading.Thread, "is_alive", functools.partial(_looking, False, threading.Thread.join))
    patches.replace(threading.Event, "is_set", functools.partial(_looking, True, threading.Event.wait))


def patch_futures(module: ModuleType, patches: Patches) -> None:
    """Put ourselves where they look for the result of a piece of work."""

    def wait(future: Any, seconds: float) -> None:
        with contextlib.suppress(module.CancelledError, module.TimeoutError):
            future.exception(seconds)

    patches.replace(module.Future, "done", functools.partial(_looking, True, wait))


def _looking(come: bool, wait: Callable[[Any, float], object], original: Any) -> Any:
    """Make a function that says whether something has come; `come` is what it says then, `wait` waits for it."""

    def comes(thing: Any, seconds: float) -> bool:
        wait(thing, seconds)
        return original(thing) is come

    @functools.wraps(original)
    def look(self: Any) -> Any:
        place = hooks.here(LOOKED, sys._getframe().f_back) if hooks.watched else None
        if place is None or is_in_loop():
            return original(self)
        of, by, pack, _ = place
        seen, who = self.__dict__.setdefault(_SEEN, set()), (pack.tap.seen.setdefault(LOOKED, object()), pack.lane)
        has_come = original(self) is come
        if has_come and who in seen:
            return come
        player = answering.player
        if player is not None and (told := player.looked(of, by, pack.lane)) is not None:
            had_come, wall_us = told
            if had_come and wall_us is not None and not has_come:
                has_come = player.comes(of, pack.lane, functools.partial(comes, self), wall_us, None)
            has_come = had_come and has_come
        if has_come:
            seen.add(who)
            queues.keep_done(place)
        else:
            seen.discard(who)
            queues.keep_failed(place)
        return has_come is come

    return look
