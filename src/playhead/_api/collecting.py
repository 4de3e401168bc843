"""Keep the garbage collector out of the way of those who make much and drop nothing."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from playhead import _limits


@contextmanager
def no_collecting() -> Iterator[None]:
    """Keep it from looking again and again at what large runs, or many of them, are made of."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            if not gc.get_freeze_count():  # nobody else's
                gc.freeze()  # what was made counts as old now, and is not looked at as soon as it is on again
                gc.unfreeze()
            gc.enable()


def collect_seldom() -> None:
    """Keep it, in a process of our own, from looking again and again at what stays: modules, and all that is open."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_limits.COLLECT_OBJECTS, *gc.get_threshold()[1:])
