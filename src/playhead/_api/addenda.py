"""Write into a run from outside: facts that are added to it after its end, or a run that is made of them."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playhead import _limits, settings
from playhead.capture.guard import RecordingWarning
from playhead.capture.opening import open_recording, withdraw
from playhead.capture.recording import Recording
from playhead.errors import StoreError
from playhead.event.kinds import RunStarted
from playhead.store import layout
from playhead.store.alone import alone
from playhead.store.base import Store
from playhead.store.files import FileStore

IMPORTED = "import"  # the mode in the origin of a run that an import made


def open_run(store: Store, run: str | None) -> Recording:
    """Open a run, or a new one; what cannot be recorded raises."""
    return open_recording(store, dataclasses.replace(settings.load(), strict=True), run=run)


def begin_import(
    store: FileStore,
    name: str,
    source: str,
    external: str | None,
    facts: dict[str, Any] | None,
    ci_facts: dict[str, str] | None,
) -> Recording:
    """Open a run for what belongs to none. Its environment is empty: nothing is run here."""
    recording = open_run(store, None)
    try:
        recording.start(
            RunStarted(
                name=name,
                environment={},
                git=facts,
                ci=ci_facts,
                origin={"mode": IMPORTED, "source": source},
                external_id=external,
            )
        )
    except BaseException:
        withdraw(recording)
        raise
    return recording


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


@contextmanager
def importing_alone(store: FileStore, *, may_make: bool) -> Iterator[None]:
    """Keep other imports out: what a run has is looked up before something is added, and nobody may add in between.

    The lock is on the folder of the runs. Where there is none, and none is to be made, there is nothing to add to.
    """
    folder = layout.runs_dir(store.root)
    if may_make:
        store.refuse_on_windows()
        store.make_root()
    if not folder.is_dir():
        yield
        return
    with alone(folder, _limits.IMPORT_WAIT_S, _busy):
        yield


def _busy(error: Exception) -> StoreError:
    return StoreError(
        f"another process has been importing for more than {_limits.IMPORT_WAIT_S:.0f} s ({error})",
        hint="Try again when it is done.",
    )


def let_go(recording: Recording) -> None:
    """Let go of a run that something could not be added to; whoever asks is told why by the error itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecordingWarning)
        recording.abandon()
