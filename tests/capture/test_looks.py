"""Whoever looks whether something has come is kept, once in each run that sees that it has."""

from __future__ import annotations

import threading

import playhead

MARKED = threading.Event()


def test_each_run_keeps_what_it_saw_of_an_event_that_outlives_it() -> None:
    MARKED.set()
    playhead.install()
    try:
        for _ in range(2):
            with playhead.record("agent") as run:
                assert MARKED.is_set()
                assert MARKED.is_set()
            looks = [read.value[0] for read in playhead.load(str(run.id)).reads() if read.of == "threading.look"]
            assert looks == [True]
    finally:
        playhead.uninstall()
