"""Alarms of the system: one that goes off does so at a moment that no replay can find again, and is named.

One that is set to end what takes too long, and is taken back before, changes nothing.
"""

from __future__ import annotations

import signal
import sys
from typing import Any

from playhead.capture import hooks
from playhead.capture.hooks import What
from playhead.store import forking

# Timers that the program has set, and that are not known to have gone off or to be taken back; `alarm` is the real one.
_set: set[int] = set()
forking.register(after_in_child=_set.clear)  # a child has none of them


def watch() -> None:
    """Watch how a program sets them."""
    for name in ("alarm", "setitimer"):
        if hasattr(signal, name):
            hooks.watch(getattr(signal, name), f"signal.{name}", What.CALL, None, _called)


def _called(
    of: str, by: str, pack: Any, span: Any, owner: Any, args: tuple[Any, ...], named: Any, result: Any, error: Any
) -> None:
    """Take in that one was set, or taken back: what was left of the one before says whether it had gone off."""
    if error is not None or not args:
        return
    repeats = len(args) > 2 and bool(args[2])
    timer, seconds = args[:2] if len(args) > 1 else (signal.ITIMER_REAL, args[0])
    left = result[0] if isinstance(result, tuple) else result
    if (repeats or (timer in _set and not left)) and pack.tap.owner is not None:
        from playhead.capture.clients.unseen import used_at  # loaded by now: a run is open

        used = used_at(sys._getframe().f_back)
        what = "an alarm that repeats" if repeats else "an alarm that went off"
        pack.tap.owner.not_captured("signal", f"{what} at {used}" if used else what)
    if seconds:
        _set.add(timer)
    else:
        _set.discard(timer)
