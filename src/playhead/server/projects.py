"""Keep the projects of one store apart: each is a store of its own, and what is asked of one reaches no other."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from playhead import _limits
from playhead import settings as settings_module
from playhead._api.receiving.intake import Intake
from playhead._api.stores import open_own_index
from playhead._clock import SystemClock
from playhead.errors import PlayheadError
from playhead.server.hands import Hand, HandsRuns
from playhead.server.minding import Minder
from playhead.settings import Settings
from playhead.store import layout, presence
from playhead.store.files import FileStore
from playhead.store.index import Index
from playhead.store.registry.cassettes import Shelf
from playhead.store.registry.database import Registry
from playhead.store.registry.jobs import Jobs
from playhead.store.registry.keys import Keys
from playhead.store.search import TextIndex

DEFAULT = "default"
logger = logging.getLogger("playhead.server")


class Project:
    """One tenant: its runs, its index, what is taken in for it, its cassettes and jobs."""

    def __init__(
        self,
        name: str,
        root: Path,
        registry: Registry,
        settings: Settings,
        written: Callable[[], None],
        quiet_s: float = _limits.RUN_QUIET_S,
        minder: Minder | None = None,
        hands: Sequence[Hand] = (),
    ) -> None:
        self.name = name
        self.root = root
        self.store = FileStore(root)
        self._indexes = threading.local()  # one for each thread: a question that takes long is in nobody's way
        self._opened: list[Index] = []
        self.texts = TextIndex(root)
        self.shelf = Shelf(registry, name)
        self.jobs = Jobs(registry)
        self.dirty: set[str] = set()
        self._version = 0  # of everything that this process writes
        self._unread = True  # there is something that cannot be found by its words yet
        self._written_s = self._searched_s = 0.0
        self._written = written
        self._minder = minder
        others = [HandsRuns(hand, root) for hand in hands]
        self.intake = Intake(root, lambda: self.index, settings, quiet_s=quiet_s, written=self.note, others=others)

    @property
    def index(self) -> Index:
        """Return the index, as this thread has it open."""
        found: Index | None = getattr(self._indexes, "index", None)
        if found is None:
            found = self._indexes.index = open_own_index(self.store, version=lambda: self._version)
            self._opened.append(found)
        return found

    def note(self, run: str) -> None:
        """Say that something was written to a run."""
        self._written_s = time.monotonic()
        self._version += 1
        self.dirty.add(run)
        self._written()

    def look_after(self) -> None:
        """Do what comes up in the background: end what is over, and read what is new into both indexes."""
        try:
            self.intake.look_after()
        finally:
            self._read()

    def _read(self) -> None:
        """Have read what is new."""
        if self._is_minded():
            return
        if self.dirty:
            self.dirty.clear()
            self._unread = True
            self.index.catch_up()
        quiet_s = time.monotonic() - self._written_s
        late_s = time.monotonic() - self._searched_s
        if self._unread and (quiet_s > _limits.SEARCH_QUIET_S or late_s > _limits.SEARCH_LATE_S):
            self._unread = not self.texts.catch_up(_limits.SEARCH_AT_ONCE_S)
            self._searched_s = time.monotonic()

    def _is_minded(self) -> bool:
        """Tell the process that keeps the indexes current what is new; False where there is none, or is no more."""
        if self._minder is None or not self._minder.minds:
            return False
        runs = [self.dirty.pop() for _ in range(len(self.dirty))]
        sizes = {run: presence.vouched_size(os.fspath(self.store.folder(run))) for run in runs}
        if not sizes or self._minder.tell(self.root, sizes):
            return True
        self.dirty.update(runs)
        return False

    def close(self) -> None:
        """End what is over, and let go of the rest."""
        try:
            self.intake.close()
        finally:
            for index in self._opened:
                index.close()
            self.texts.close()


class Projects:
    """Open each project when it is first asked for."""

    def __init__(
        self,
        root: Path,
        *,
        settings: Settings | None = None,
        quiet_s: float = _limits.RUN_QUIET_S,
        minder: Minder | None = None,
        hands: Sequence[Hand] = (),
    ) -> None:
        self.root = root
        self._minder = minder
        self._hands = hands
        self.registry = Registry(root, SystemClock())
        self.stirred = threading.Event()  # something was written somewhere
        self.quiet_s = quiet_s
        self._settings = settings or settings_module.load()
        self._open: dict[str, Project] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> Project:
        """Return a project; it comes to be with the first key that names it."""
        found = self._open.get(name)
        if found is not None:
            return found
        with self._lock:
            if name not in self._open:
                root = self.root if name == DEFAULT else layout.project_root(self.root, name)
                FileStore(root).make_root()
                self._open[name] = Project(
                    name,
                    root,
                    self.registry,
                    self._settings,
                    self.stirred.set,
                    self.quiet_s,
                    self._minder,
                    self._hands,
                )
            return self._open[name]

    def resume(self) -> None:
        """Go on with the runs that an earlier server left open, in every project."""
        for name in (DEFAULT, *layout.project_names(self.root)):
            try:
                self.get(name).intake.resume()
            except (PlayheadError, OSError) as problem:
                logger.error("project %s: %s", name, problem)

    def problems(self) -> list[str]:
        """Say what keeps the server from its work; nothing where nothing does."""
        found = []
        try:
            if (refused := _refused(self.root)) is not None:
                found.append(f"{self.root} cannot be written: {refused}")
            Keys(self.registry).any()
            if any(hand.is_gone for hand in self._hands):
                found.append("a process of the server that writes runs is gone: start the server again")
            for project in self.known():
                project.index.query("SELECT 1")
        except (PlayheadError, OSError) as problem:
            found.append(str(getattr(problem, "message", problem)))
        return found

    def known(self) -> list[Project]:
        """Return the projects that are open."""
        return list(self._open.values())

    def close(self) -> None:
        """Close all of them."""
        with self._lock:
            if self._minder is not None:
                self._minder.close()  # first: whoever closes the files last tidies them up
            for project in self._open.values():
                try:
                    project.close()
                except (OSError, PlayheadError) as problem:
                    logger.error("project %s could not be closed in order: %s", project.name, problem)
            for hand in self._hands:
                hand.close()
            self._open.clear()
            self.registry.close()


def _refused(folder: Path) -> str | None:
    """Say why nothing can be written into a folder: a disk may be full, or read-only, whatever the permissions say."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:  # all of it or an error, also where the disk takes a part
            probe.write(bytes(_limits.HEALTH_PROBE_BYTES))
            probe.flush()
    except OSError as problem:
        return problem.strerror or type(problem).__name__
    return None
