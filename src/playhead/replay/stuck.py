"""End a replay that does not end by itself after a deviation: somebody waits for the answer, or asks again and again.

A program that is replayed is ended. Where the replay is a part of a process, as a test is of pytest's, the deviation is
raised once more, in the main thread, wherever that waits.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from playhead.errors import DeviationError

if TYPE_CHECKING:
    from playhead.replay.player import Player

_SIGNAL: int | None = getattr(signal, "SIGRTMAX", None)  # which programs have no use for; macOS has none of these


def end_program() -> None:
    """End this process."""
    text = "playhead: the program does not come to an end after the deviation, so the replay is ended here\n"
    with contextlib.suppress(OSError):
        os.write(2, text.encode())
    os._exit(1)


def raise_in_main_thread(player: Player) -> Callable[[], None]:
    """Have the last deviation raised there when it does not end; return how to have that no longer.

    Only where the replay is begun in that thread: signals are handled there alone, and end what it waits for.
    """
    main = threading.main_thread()
    if _SIGNAL is None or threading.current_thread() is not main or main.ident is None:
        return lambda: None
    thread, number = main.ident, _SIGNAL

    def handle(_: int, __: FrameType | None) -> None:
        found = player.deviations[-1]
        raise DeviationError(f"{found['text']}\n  then      the test did not come to an end", deviation=found)

    before = signal.signal(number, handle)
    player.give_up = lambda: signal.pthread_kill(thread, number)

    def restore() -> None:
        player.give_up = None
        signal.signal(number, before)

    return restore
