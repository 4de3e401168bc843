"""Find the run that spans belong to: by the ids under which it came from outside, its trace and its session."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from playhead import _limits
from playhead._clock import Clock
from playhead._ids import is_run_id, new_run_id
from playhead.ingest.otlp.grouping import Group
from playhead.store.files import FileStore
from playhead.store.index import Index

_FIND = (
    "SELECT r.id FROM runs r WHERE r.external_id = ?1 AND r.origin IS NULL AND r.received IS NOT NULL"
    " UNION SELECT r.id FROM traces t JOIN runs r ON r.id = t.run WHERE t.trace = ?1 AND r.origin IS NULL"
    " ORDER BY 1 DESC LIMIT 1"
)


class Addresses:
    """Know which run has which ids. Whoever calls makes sure that one thread does."""

    def __init__(self, store: FileStore, index: Callable[[], Index], clock: Clock) -> None:
        self._store = store
        self._index = index
        self._clock = clock
        self._named: OrderedDict[str, str] = OrderedDict()  # external ids and traces, each with its run
        self._is_caught_up = False

    def of(self, group: Group, trace: str | None) -> tuple[str, bool]:
        """Return the run of what one trace has in one group, and whether that is a new one."""
        # A trace stays whole, whatever more of its spans say, unless they name their run themselves.
        names = list(dict.fromkeys(filter(None, [None if group.rule == "run_id" else trace, group.id])))
        for name in names:
            if (run := self._find(name)) is not None:
                # A session that is named too late is not that of this run.
                self._note(names if name == group.id else [name], run)
                return run, False
        return self.begin(group, trace), True

    def begin(self, group: Group, trace: str | None) -> str:
        """Return the id of a new run for a group, to which its ids lead from now on."""
        free = is_run_id(group.id) and not self._store.folder(group.id).exists()
        run = group.id if free else new_run_id(self._clock)
        self.lead(group, trace, run)
        return run

    def lead(self, group: Group, trace: str | None, run: str) -> None:
        """Let the ids of a group lead to a run."""
        self._note(list(filter(None, [None if group.rule == "run_id" else trace, group.id])), run)

    def _note(self, names: list[str], run: str) -> None:
        for name in names:
            self._named[name] = run
            self._named.move_to_end(name)
        while len(self._named) > _limits.RUN_NAMES_KEPT_MAX:
            self._named.popitem(last=False)

    def _find(self, name: str) -> str | None:
        if (run := self._named.get(name)) is not None:
            return run
        if not self._is_caught_up:  # what an earlier process wrote last is in no index yet
            self._index().catch_up()
            self._is_caught_up = True
        rows = self._index().peek(_FIND, (name,))
        return str(rows[0][0]) if rows else None
