"""Read: load a run, look at it, verify it, play it back."""

from __future__ import annotations

import getpass
import hashlib
import os
import shlex
import threading
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from playhead import _limits
from playhead._api.addenda import adding
from playhead._api.latest import look_up, runs_above, similar
from playhead._api.metrics import metrics_of_run
from playhead._api.naming_events import EventFinder
from playhead._api.settling import Settled
from playhead._api.stores import Named, known_head
from playhead._api.stores import open_index as open_index
from playhead._api.stores import open_store as open_store
from playhead._ids import is_run_id
from playhead.capture.request import Envelope
from playhead.errors import (
    Altered,
    AmbiguousRun,
    ArtifactNotFound,
    MissingContent,
    RunNotFound,
    UsageError,
)
from playhead.event import kinds
from playhead.event.envelope import Event, run_of
from playhead.ledger.verify import Verification
from playhead.replay.playback import PlaybackResult, hashes_of, incomparable, playback, settled_envelopes
from playhead.replay.readiness import Readiness, readiness, verify_run
from playhead.store import layout, presence
from playhead.store.base import Store
from playhead.store.cassettes.form import form_of
from playhead.store.cassettes.reading import Cassette, is_cassette
from playhead.store.exported import ExportedRun, parts
from playhead.store.files import FileStore, OneRun, read_lines
from playhead.store.index import STATUSES
from playhead.store.price_list import price_list_of
from playhead.store.reader import RunReader
from playhead.store.remote.reading import RemoteStore
from playhead.views.moments import Moment, Moments
from playhead.views.reads import LaneRead, reads_of
from playhead.views.sums import Metrics


class Run:
    """A recorded run."""

    def __init__(self, store: Store, run: str) -> None:
        self.id = run
        self.store = store
        self._reader = RunReader(store, run)
        self._settled = Settled(self._reader)
        self._finder = EventFinder(self._reader)
        self._moments: Moments | None = None
        self._looking = threading.Lock()  # several threads may look at one run

    def __repr__(self) -> str:
        return f"<playhead.Run {self.id}>"

    @property
    def path(self) -> Path | None:
        """Return the run directory, where the store has one."""
        if isinstance(self.store, ExportedRun) or not isinstance(self.store, FileStore):
            return None
        return self.store.folder(self.id)

    @property
    def name(self) -> str:
        """Return the name of the run: that of the agent that adopted it, if one did."""
        return str(self._header("name") or "")

    @property
    def status(self) -> str:
        """Return how the run ended: `ok`, `error` or `cancelled`; else `running` while it is written, or `crashed`."""
        ended: str | None = None
        for event in self._reader.events():
            if event.kind in ("run.finished", "run.reopened"):
                ended = event.data.get("status")
        if ended is not None:
            return ended
        return "running" if presence.is_written(self.store, self.id) else "crashed"

    @property
    def input(self) -> dict[str, Any] | None:
        """Return the request envelope as it was recorded."""
        found = self._header("input")
        return found if isinstance(found, dict) else None

    def _header(self, field: str) -> Any:
        found: Any = None
        for event in self._settled.events():
            if event.kind == "run.started" or (event.kind == "step.started" and event.data.get("adopts")):
                found = event.data.get(field, found)
                if event.kind == "step.started":
                    break
        return self._reader.value(found)

    def events(self, *, resolve: bool = True) -> Iterator[Event]:
        """Yield the events in order, every value as it was; unresolved, references stay as they were written."""
        return self._reader.resolved() if resolve else self._reader.events()

    def event(self, seq: int) -> Event:
        """Return one event, every value as it was."""
        return self._reader.event(seq)

    def at(self, seq: int | str | None = None, *, step: str | None = None) -> Moment:
        """Say how things stood right after an event; going to another one afterwards is quick, in a long run too.

        An event has a number, or a name as `show --at` takes it; `step` names a step: how things stood at its end.
        """
        if (seq is None) == (step is None):
            raise UsageError("at which event?", hint="Say one of the two: at(17) or at('gpt-5#2'), or at(step='plan').")
        with self._looking:
            seq = self._finder.find(seq, step)
            assert seq is not None
            self._reader.line(seq)  # says which events there are, where this one is not
            if self._moments is None or self._moments.is_behind(seq):
                self._moments = Moments(self._whole, price_list_of(self.store), self._reader.readable)
            self._moments.follow(self._by_line, seq)
            return self._moments.at(seq)

    def _by_line(self, start: int) -> Iterator[Event]:
        """Yield events, numbered by their lines: in an altered run they may say something else."""
        for seq, event in enumerate(self._reader.events_from(start), start):
            yield event if event.seq == seq else msgspec.structs.replace(event, seq=seq)

    def _whole(self, seq: int) -> Event:
        """Return an event with every value as it was; as it was written where a value is gone, which `verify` says."""
        try:
            return self._settled.event(seq)
        except MissingContent:
            return self._settled.as_written(seq)

    def reads(self) -> Iterator[LaneRead]:
        """Yield what the program was told by clocks, random numbers, variables and files, lane by lane in order."""
        return reads_of(self.events())

    def metrics(self, by: str = "model") -> Metrics:
        """Add up what the run took, cost and saved; `by` is run, model, tool, step, agent or day."""
        return metrics_of_run(self._reader, by, running=self.status == "running")

    def lines(self) -> Iterator[bytes]:
        """Yield the exact lines, without their newline."""
        return self._reader.lines()

    def artifact(self, name: str) -> bytes:
        """Return the content of an artifact as it was recorded.

        ArtifactNotFound where no event recorded it, MissingContent where its file is gone, Altered where the file holds
        something else.
        """
        recorded = self._reader.artifacts()
        if name not in recorded:
            there = f"There are: {', '.join(recorded)}." if recorded else "It has none."
            raise ArtifactNotFound(f"{self.id} has no artifact {name!r}", hint=there)
        seq, digest = recorded[name]
        content = self.store.file(self.id, f"artifacts/{name}")
        if hashlib.sha256(content).hexdigest() != digest:
            raise Altered(f"artifact {name} was altered: it is not what event {seq} of {self.id} recorded")
        return content

    def verify(self, *, deep: bool = False) -> Verification:
        """Check the chain and everything it refers to: integrity and completeness, as two answers."""
        return verify_run(self._reader, known_head=known_head(self.store, self.id), deep=deep)

    def readiness(self) -> Readiness:
        """Say whether the run can be played back, with every reason why not."""
        return readiness(self._reader, self.verify())

    def playback(
        self,
        envelope: Envelope | Mapping[str, Any] | None = None,
        *,
        force: bool = False,
        plain: bool = False,
        types: Mapping[str, type] | None = None,
    ) -> PlaybackResult:
        """Return the recorded outcome with nothing executed; refuses unless the run is replayable."""
        return playback(
            self._reader, envelope=envelope, force=force, plain=plain, types=types, verification=self.verify()
        )

    def invalidate(self, why: str, by: str | None = None) -> None:
        """Declare that this run must not be played back."""
        if not why.strip():
            raise UsageError(
                "say why the run is invalidated", hint="For instance `--why 'the tool answered stale data'`."
            )
        if isinstance(self.store, RemoteStore):
            self.store.invalidate(self.id, why, by or _user())
            return
        with adding(self.store, self.id) as recording:
            recording.emit(kinds.RunInvalidated(why=why, by=by or _user()))


def load(reference: str | Path, store: Store | str | Path | None = None) -> Run:
    """Find a run by id, unique prefix, name (its latest run; `NAME~1` the one before), `@last`, external id, or path.

    A cassette is checked wholly before anything of it is used; BadCassette or Altered where it is not what was packed.
    """
    found = load_all(reference, store)
    if isinstance(cassette := found[0].store, Cassette):
        cassette.check()
    elif len(found) > 1:
        file, ids = shlex.quote(str(reference)), [run.id for run in found]
        raise AmbiguousRun(
            f"{reference} holds {len(ids)} runs: {', '.join(ids[:5])}{', …' if ids[5:] else ''}",
            hint=f"`playhead verify {file}` checks them all;"
            f""" `grep '^{{"v":1,"run":"{ids[0]}"' {file} > one.jsonl` takes one out.""",
        )
    return found[0]


def load_all(reference: str | Path, store: Store | str | Path | None = None) -> list[Run]:
    """Find the run that a reference names; all of them, where it is a file that holds several.

    Of a cassette only the structure is checked, so that `verify` can say what is wrong with the rest.
    """
    if store is not None and not isinstance(store, (str, Path, RemoteStore)):
        return [_load_by_id(store, str(reference))]
    files = open_store(store)
    text = str(reference)
    if not isinstance(reference, (str, Path)) or not text:
        raise UsageError(f"not a run: {reference!r}", hint="Name an id, a prefix of one, a name, @last, or a path.")
    is_path = isinstance(reference, Path) or looks_like_path(text)
    if is_path and (isinstance(reference, Path) or os.path.isfile(text) or layout.timeline(Path(text)).exists()):
        return _load_path(Path(text), files)
    if not _is_text(text):
        raise RunNotFound(f"no run answers to {text!r} in {files.root}")
    if is_run_id(text) and (
        files.has(text) if isinstance(files, RemoteStore) else layout.timeline(files.folder(text)).is_file()
    ):
        return [Run(files, text)]
    with open_index(files) as index:
        run = look_up(index, text)
        if run is None and form_of(Path(text)) is not None and not os.path.exists(text):
            raise RunNotFound(f"there is no file {text}, and no run of that name in {files.root}")
        if run is None and not os.path.exists(text):
            hint = similar(index, text) or runs_above(index)
            raise RunNotFound(f"no run answers to {text!r} in {files.root}", hint=hint)
    return _load_path(Path(text), files) if run is None else [Run(files, run)]


def looks_like_path(text: str) -> bool:
    """Say whether a text names a place and no run: by its separators, or as the file of a cassette."""
    return "/" in text or os.sep in text or text in (".", "..") or form_of(Path(text)) is not None


def _load_by_id(store: Store, reference: str) -> Run:
    if reference not in store.runs():
        raise RunNotFound(f"no run {reference} in this store")
    return Run(store, reference)


def _load_path(path: Path, store: FileStore | RemoteStore) -> list[Run]:
    blobs_from = None if isinstance(store, RemoteStore) else store.root
    if path.is_file() and is_cassette(path):
        cassette = Cassette(path)
        return [Run(cassette, taped.run) for taped in cassette.header.runs]
    if path.is_file() and (path.name != layout.TIMELINE or not layout.looks_like_a_run(path.parent)):
        return [Run(ExportedRun(path, part, blobs_from=blobs_from), part.run) for part in parts(path)]
    folder = path.parent if path.name == layout.TIMELINE else path
    timeline = layout.timeline(folder)
    if not timeline.is_file():
        raise RunNotFound(f"no timeline in {path}", hint="A run directory holds timeline.jsonl.")
    folder = folder.absolute()
    if folder.parent.name == "runs" and layout.blobs_dir(folder.parent.parent).is_dir():
        return [Run(FileStore(folder.parent.parent), folder.name)]
    run = run_of(next(read_lines(timeline), b"")) or folder.name
    return [Run(OneRun(folder, run, blobs_from=blobs_from), run)]


def find(
    envelope: Envelope | Mapping[str, Any],
    store: Named = None,
    *,
    status: str | None = None,
    partly: bool = False,
) -> Run | None:
    """Return the newest replayable run of exactly this request, or None.

    One look-up, however many runs there are; then that one run is checked, and passed over if it was altered. A run
    that ended in an error is replayable too: `status="ok"` asks for one that did not.

    What was redacted in a request, and objects that are recorded by their repr, cannot be compared: with a warning, no
    run answers to such a request, unless `partly` says that the rest is enough.
    """
    _check_status(status)
    settled = settled_envelopes(envelope)
    if not partly and (what := incomparable(settled)) is not None:
        warnings.warn(f"playhead.find: the request holds {what}; no run can be known to answer it", stacklevel=2)
        return None
    files = open_store(store)
    with open_index(files) as index:
        for wanted in hashes_of(settled):
            run = index.find_envelope(wanted, status=status)
            while run is not None:
                found = Run(files, run)
                if found.readiness().replayable:
                    return found
                run = index.find_envelope(wanted, status=status, before=run)
    return None


def runs(
    *,
    name: str | None = None,
    status: str | None = None,
    limit: int = _limits.LIST_RUNS_DEFAULT,
    store: Named = None,
) -> list[Run]:
    """List runs, newest first: `playhead.runs(name="fix-login", status="error")`."""
    _check_status(status)
    if type(limit) is not int or not (name is None or _is_text(name)):
        raise UsageError(f"not a limit and a name: {limit!r}, {name!r}", hint="A limit is a number, a name is a text.")
    files = open_store(store)
    limit = min(limit, _limits.LIST_RUNS_MAX)
    with open_index(files) as index:
        return [Run(files, run["id"]) for run in index.list_runs(name=name, status=status, limit=limit)]


def _is_text(text: Any) -> bool:
    """Say whether a text can stand in a record: what the command line passes on may hold other bytes."""
    try:
        return isinstance(text, str) and text.encode() is not None
    except UnicodeEncodeError:
        return False


def _check_status(status: str | None) -> None:
    if status is not None and status not in STATUSES:
        raise UsageError(f"no run has the status {status!r}", hint=f"A status is one of {', '.join(STATUSES)}.")


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container without a user entry
        return None
