"""The cassette of one test: recorded the first time, replayed from then on."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playhead._api.packing import pack_run
from playhead._api.reading import Run, load
from playhead.capture import answering, reads
from playhead.capture.record import Record
from playhead.capture.whole import WholeRecord
from playhead.errors import NotReplayable, UsageError
from playhead.pytest_plugin import keys, network, shared, temporary
from playhead.pytest_plugin.modes import Mode
from playhead.pytest_plugin.places import Wanted
from playhead.replay.deviation import unasked
from playhead.replay.exact import Replayed
from playhead.replay.live import LivePlayer
from playhead.replay.question import question_of
from playhead.replay.ready import exact_readiness, refuse_unless_ready
from playhead.replay.session import Session
from playhead.replay.tape import Call
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

_QUESTION = "  question"  # how the line begins that tells a question


class Cassette:
    """What the fixture `cassette` gives."""

    def __init__(self, path: Path, test: str, mode: Mode, wanted: Wanted) -> None:
        self.path = path
        self.mode = mode.name
        self.result: Replayed | None = None  # how the whole replay compares, when the test is over
        self.passed = self.ended = False
        self.missing = ""  # what to say where there is no cassette and none is recorded
        self.tells_deviation = True  # unless it was told
        self.temporary = ""  # where pytest has the temporary folders, if the test uses them
        self._mode, self._wanted, self._test = mode, wanted, test
        self._did = ""
        self._unused: list[Call] = []
        self._session: Session | None = None
        self._record: WholeRecord | None = None
        self._run: Run | None = None
        self._providers: frozenset[str] | None = None
        self._unwritten: Run | None = None
        self._closing, self._scratch = contextlib.ExitStack(), contextlib.ExitStack()

    @property
    def recording(self) -> bool:
        """Say whether what the test asks is recorded; in the mode `new` both this and `replaying` may be so."""
        return self._record is not None or (self._session is not None and self.mode == "new")

    @property
    def replaying(self) -> bool:
        """Say whether the test is answered from the cassette."""
        return self._session is not None

    @property
    def run(self) -> Run | None:
        """Return the recorded run that is replayed; None where the test is recorded for the first time."""
        return self._run

    @property
    def unused(self) -> list[str]:
        """Return the answers on the cassette that nobody has asked for, each in one line."""
        left = self._unused if self._session is None else self._session.tape.unasked()
        return [_in_one_line(call) for call in left]

    @property
    def on_deviation(self) -> str:
        """Return what the mark says of a question that is not on the cassette."""
        return self._wanted.on_deviation

    @property
    def ambient(self) -> bool:
        """Say whether the mark has clocks and random numbers replayed, too."""
        return self._wanted.ambient

    @property
    def deviations(self) -> list[dict[str, Any]]:
        """Return what the test asked that is not on the cassette, though the test may have caught it."""
        return [] if self._session is None else self._session.player.deviations

    @property
    def replays(self) -> bool:
        """Say whether the test shall be answered from the cassette, and from nowhere else."""
        return self.mode == "none" or (self.mode == "once" and self.path.exists())

    def watch(self, fixture: str, scope: str, note: Callable[[str], None]) -> shared.Watch | None:
        """Return what is to watch a fixture that this test shares with others; None where nothing is."""
        if self.mode == "off" or self._is_open:
            return None
        told = None if self.replays else note
        return shared.Watch(fixture, scope, allow=self._wanted.allow, providers=self._asked(), note=told)

    def _asked(self) -> frozenset[str]:
        """Return the providers whose answers are on the cassette, where the test is answered from it alone."""
        if not self.replays or not self.path.exists():
            return frozenset()
        if self._providers is None:
            run = self._run = load(self.path)
            asked = (event.data for event in RunReader(run.store, run.id).events() if event.kind == "model.invoked")
            self._providers = frozenset(str(data.get("provider")) for data in asked)
        return self._providers

    @property
    def _is_open(self) -> bool:
        return not self.ended and (self._session is not None or self._record is not None)

    def inside(self, function: Any) -> Any:
        """Wrap the function of the test: what it does is what the run is about, in whichever task it is called."""
        if self._mode.name == "off":
            return function
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def test(*args: Any, **named: Any) -> Any:
                __tracebackhide__ = True
                with self._current():
                    return await function(*args, **named)

        else:

            @functools.wraps(function)
            def test(*args: Any, **named: Any) -> Any:
                __tracebackhide__ = True
                with self._current():
                    return function(*args, **named)

        return test

    def _current(self) -> contextlib.AbstractContextManager[None]:
        record = self._record if self._session is None else self._session.record
        return contextlib.nullcontext() if record is None else record.current()

    def begin(self) -> None:
        """Begin to record or to replay, as the mode says."""
        if self.mode == "off":
            return
        there = self.path.exists()
        self._closing.enter_context(keys.placeholders(self._asked()))
        answering.left_alone = frozenset(self._wanted.allow)
        self._closing.callback(_leave_alone_nothing)
        self._closing.enter_context(shared.suspended())
        scratch = self._scratch.enter_context(tempfile.TemporaryDirectory(prefix="playhead-cassette-"))
        store = FileStore(Path(scratch))
        if self.mode == "none" and not there:
            self._begin_refusal(store)
        elif there and self.mode != "all":
            self._begin_replay(store, self._run or load(self.path))
        else:
            self._begin_recording(store)

    def _begin_recording(self, store: FileStore) -> None:
        if self._wanted.ambient:
            reads.install()
            self._closing.callback(reads.uninstall)
        self._record = WholeRecord(self._test, store=store, told=self._origin())
        self._record.__enter__()

    def _begin_refusal(self, store: FileStore) -> None:
        """Answer nothing: there is no cassette, which is no matter to a test that is skipped."""
        refused = UsageError(
            f"{self._test} has no cassette, and none is recorded: {self._mode.why}",
            hint=f"Run it once with --playhead=once, and keep {_shown(self.path)} with the tests.",
        )
        self.missing = str(refused)
        with WholeRecord(self._test, store=store, told=self._origin()) as empty:
            pass
        self._begin_replay(store, Run(store, str(empty.id)))
        self._run = None

    def _begin_replay(self, store: FileStore, run: Run) -> None:
        self._run = run
        if self.temporary:
            self._closing.enter_context(temporary.same(self.temporary))
        reader = RunReader(run.store, run.id)
        live = self.mode == "new"
        self._session = Session(
            reader,
            store=store,
            name=self._test,
            on_deviation="live" if live else self._wanted.on_deviation,
            waive=_waived(reader, self._wanted.waive),
            whole=True,
            told=self._origin(),
        )
        self._session.__enter__()
        if not live:
            network.refuse()
            self._closing.callback(network.allow)

    def _origin(self) -> dict[str, Any]:
        """Say where the run comes from: the test. Nothing of this machine, which is no matter of whoever reads it."""
        version = ".".join(map(str, sys.version_info[:2]))
        return {"entrypoint": {"test": self._test}, "environment": {"python": {"version": version}}}

    def end(self) -> None:
        """Record and answer nothing any more: the fixtures of the test have ended."""
        self.ended = True
        with self._closing:
            session = self._session
            record: Record | None = self._record
            if session is not None:
                self._unused = session.tape.unasked()
                session.__exit__(None, None, None)
                self._did, self.result, record = "replayed", session.result, None
                player = session.player
                if isinstance(player, LivePlayer) and (player.live or self._unused):
                    record = session.record
            elif record is not None:
                record.__exit__(None, None, None)
            if record is not None and record.recording is not None:
                self._did = "not recorded"
                self._unwritten = Run(record.recording.store, record.recording.id)

    def keep(self) -> None:
        """Make what was recorded the cassette, if the test passed, and all that took it down."""
        with self._scratch:
            if self._unwritten is not None and self.passed:
                self._write(self._unwritten)
                self._did = "recorded" if self._session is None else "added to"

    def _write(self, run: Run) -> None:
        """Make a cassette of a run, unless it could not be replayed."""
        reader = RunReader(run.store, run.id)
        try:
            refuse_unless_ready(exact_readiness(reader), self._test, _waived(reader, self._wanted.waive))
        except NotReplayable as problem:
            reasons = [reason for reason in problem.reasons if reason != "integrity_broken"]
            raise NotReplayable(
                f"what was recorded could not be replayed, and no cassette was written: {problem.message}",
                reasons=problem.reasons,
                hint=f"`@pytest.mark.cassette(waive={reasons!r})` lets that not count.",
            ) from None
        self.path.parent.mkdir(parents=True, exist_ok=True)
        pack_run(run, self.path, force=True)

    def told(self) -> dict[str, Any]:
        """Return what the summary says of it."""
        unused = self.unused if self.passed and self._did == "replayed" else []
        why = (
            ""
            if self._did != "not recorded"
            else "it could not be replayed"
            if self.passed
            else "the test did not pass"
        )
        return {"test": self._test, "path": _shown(self.path), "did": self._did, "why": why, "unused": unused}


def _in_one_line(call: Call) -> str:
    """Say what a recorded call asked."""
    first, *rest = unasked(question_of(call.question)).text.splitlines()
    asked = next((line.removeprefix(_QUESTION).strip() for line in rest if line.startswith(_QUESTION)), "")
    return f"{first}: {asked}" if asked else first


def _waived(reader: RunReader, named: tuple[str, ...]) -> list[str]:
    """Add to the reasons that do not count that nobody watched clocks and files: a test is about its calls."""
    gaps = exact_readiness(reader).not_captured
    only_reads = bool(gaps) and all(gap["source"] == "reads" for gap in gaps)
    return [*named, "not_captured"] if only_reads else list(named)


def _leave_alone_nothing() -> None:
    answering.left_alone = frozenset()


def _shown(path: Path) -> str:
    try:
        return path.relative_to(os.getcwd()).as_posix()
    except ValueError:
        return str(path)
