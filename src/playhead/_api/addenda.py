"""Write into a run from outside: facts that are added to it after its end, or a run that is made of them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from playhead import settings
from playhead.capture.guard import RecordingWarning
from playhead.capture.opening import open_recording
from playhead.capture.recording import Recording
from playhead.store.base import Store


def open_run(store: Store, run: str | None) -> Recording:
    """Open a run, or a new one; what cannot be recorded raises."""
    return open_recording(store, dataclasses.replace(settings.load(), strict=True), run=run)


@contextmanager
def adding(store: Store, run: str) -> Iterator[Recording]:
    """Open a run, and let go of it at the end; what fails is raised as it is."""
    recording = open_run(store, run)
    try:
        yield recording
    except BaseException:
        let_go(recording)
        raise
    recording.leave()


def let_go(recording: Recording) -> None:
    """Let go of a run that something could not be added to; whoever asks is told why by the error itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordingWarning)
        recording.abandon()
