"""Answer code of this process from a tape, for a while: a test, or one call of an agent."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any

from playhead.capture import answering, environment, reads
from playhead.capture import record as recording_module
from playhead.capture.imports import AfterImport
from playhead.capture.patches import Patches
from playhead.capture.record import Record
from playhead.capture.whole import WholeRecord
from playhead.errors import UsageError
from playhead.replay import exact, loops, offline, overlay, quiet, stuck
from playhead.replay.exact import Replayed
from playhead.replay.live import LivePlayer
from playhead.replay.player import Player
from playhead.replay.ready import exact_readiness, refuse_unless_ready
from playhead.replay.tape import Tape
from playhead.store.base import Store
from playhead.store.files import FileStore
from playhead.store.reader import RunReader


class Session:
    """A replay inside of this process: `with Session(reader) as session: agent()`; then `session.result`.

    With `opens`, what runs inside is recorded as one run; without, it opens its own, as an agent does that is decorated
    with `playhead.agent`. A deviation is raised where it happens, as DeviationError.
    """

    def __init__(
        self,
        reader: RunReader,
        *,
        store: Store | None = None,
        opens: bool = True,
        name: str = "",
        on_deviation: str = "raise",
        speed: float = 0.0,
        waive: Iterable[str] = (),
        alone: bool = False,
        whole: bool = False,
        told: Mapping[str, Any] | None = None,
    ) -> None:
        """Read the tape; refuses what cannot be replayed.

        With `on_deviation="live"` it is no replay in the strict sense: what is not on the tape is asked of the world.
        With `whole`, everything in this process belongs to it, in whichever thread or task, and not only what is called
        from here. With `alone`, it is kept from the disk and the network. `told` is what `run.started` says of code and
        machine, in place of looking around.
        """
        self._reader = reader
        self._state = exact_readiness(reader)
        self._waived = refuse_unless_ready(self._state, reader.id, waive)
        self._scratch: tempfile.TemporaryDirectory[str] | None = None
        self._store = store
        self._opens = opens
        self.tape = Tape(reader)
        self._is_live = on_deviation == "live"
        made = LivePlayer if self._is_live else Player
        self.player = made(self.tape, on_deviation=on_deviation, speed=speed, folder=environment.working_folder())
        self._told, self._whole = told, whole
        self.result: Replayed | None = None
        self._name = name or str((self.tape.started and self.tape.started.data.get("name")) or "replay")
        self._alone = alone
        self._apart: tempfile.TemporaryDirectory[str] | None = None
        self._patches = Patches()
        self._arriving: AfterImport | None = None
        self._disarm: Callable[[], None] | None = None
        self.record: Record | None = None
        self._watches = bool(self.tape.started and self.tape.started.data.get("ambient"))
        if not self._watches:  # then sleeps of threads, for one, take their time
            self.player.order.is_live = _is_live

    def __enter__(self) -> Session:
        if answering.player is not None:
            raise UsageError(
                "something is being replayed in this process already",
                hint="Replay one after the other, or each in a process of its own.",
            )
        if self._store is None:
            self._scratch = tempfile.TemporaryDirectory(prefix="playhead-replay-")
            self._store = FileStore(Path(self._scratch.name))
        mode = "live" if self._is_live else "exact"
        origin = {"run": self.tape.run, "mode": mode, "at": self.tape.head[0]}
        reads.prepare()
        if self._alone:
            reads.beneath(self._lay_overlay)
        if self._watches:
            reads.install()
        if not self._is_live:
            self._arriving = AfterImport({"asyncio.base_events": partial(self._patch_loops)})
            self._arriving.install()
        recording_module.replayed = recording_module.Replaying(origin, self._store)
        self.player.begin()
        self._disarm = None if self._is_live else stuck.raise_in_main_thread(self.player)
        if self._opens:
            made = WholeRecord if self._whole else Record
            self.record = made(self._name, store=self._store, origin=origin, told=self._told)
            self.record.__enter__()
            self.player.recording = self.record.recording
        return self

    def _patch_loops(self, module: ModuleType) -> None:
        loops.patch(module, self._patches, self.player.order)

    def _lay_overlay(self) -> None:
        """Keep what runs inside from the disk and the network."""
        self._apart = tempfile.TemporaryDirectory(prefix="playhead-scratch-", ignore_cleanup_errors=True)
        store = self._store.root if isinstance(self._store, FileStore) else Path(self._apart.name)
        self.player.overlay = overlay.install(Path(self._apart.name), store, self.player.folders.both())
        offline.install(Path(self._apart.name))

    def _take_overlay(self) -> None:
        offline.uninstall()
        overlay.uninstall()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._disarm is not None:
            self._disarm()
        opened, recording_module.replayed = recording_module.replayed, None
        try:
            if self.record is not None:
                self.player.report()
                self.record.__exit__(kind, error, trace)
        finally:
            self.player.end()
            if self._arriving is not None:
                self._arriving.uninstall()
            self._patches.restore()
            if self._watches:
                reads.uninstall()
            if self._apart is not None:
                reads.beneath(self._take_overlay)
        try:
            run = self.record.id if self.record is not None else None if opened is None else opened.run
            if run is not None and self._store is not None and not self._is_live:
                self.result = self._judged(RunReader(self._store, run))
        finally:
            if self._apart is not None:
                self._apart.cleanup()
            if self._scratch is not None:
                self._scratch.cleanup()

    def _judged(self, replay: RunReader) -> Replayed:
        reports = None if self._opens else [self.player.summary()]
        result = exact.judge(self.tape, replay, 0, reports=reports, places=self.player.places)
        result.surface["not_captured"] += self._state.not_captured
        result.waived = self._waived
        return result


def _is_live() -> bool:
    return bool(answering.left_alone) or quiet.somebody_acts()
