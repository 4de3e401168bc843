"""Answer the questions of an index by asking that of a server, in SQL and in pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar, cast

from playhead import _limits
from playhead._ids import is_run_id
from playhead.errors import RunNotFound
from playhead.store.index_memory import Heads
from playhead.store.index_questions import SELECT, Questions, run_of_row
from playhead.store.remote.reading import RemoteStore
from playhead.store.remote.refusals import not_a_server

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")
Row = tuple[Any, ...]


class RemoteIndex(Questions):
    """Ask the index of a server about its runs. It catches up by itself over there."""

    def __init__(self, store: RemoteStore) -> None:
        self.store = store
        self.root = store.root

    def close(self) -> None:
        """Do nothing: the connection is for whoever asks next."""

    def list_runs(self, *, limit: int = _limits.LIST_RUNS_DEFAULT, **chosen: Any) -> list[dict[str, Any]]:
        """List runs as an index here does, a page after the other."""
        found: list[dict[str, Any]] = []
        while limit < 0 or len(found) < limit:
            most = _limits.PAGE_MAX if limit < 0 else min(limit - len(found), _limits.PAGE_MAX)
            page = super().list_runs(limit=most, **chosen)
            found += page
            if len(page) < most:
                break
            chosen["before"] = page[-1]["id"]
        return found

    def get(self, run_id: str) -> dict[str, Any] | None:
        if not is_run_id(run_id) or not self.store.has(run_id):
            return None
        found = self._runs(f"{SELECT} WHERE id = ?", (run_id,))
        return found[0] if found else None

    def head(self, run_id: str) -> tuple[int, str] | None:
        return self.store.head(run_id)

    def heads(self) -> Heads:
        return {known.run: known.head for known in self.store.known() if known.head is not None}

    def query(
        self, sql: str, params: Sequence[Any] | dict[str, Any] = (), *, replays: bool = True
    ) -> tuple[list[str], list[Row]]:
        columns: list[str] = []
        rows: list[Row] = []
        start: int | None = 0
        while start is not None:
            columns, page, start = self._page(sql, params, replays, start)
            rows += page
        return columns, rows

    def read(self, ask: Callable[[sqlite3.Connection], T]) -> T:
        """Let somebody ask several questions; over there the index may be read on between two of them."""
        return ask(cast("sqlite3.Connection", _Asking(self)))

    def _page(
        self, sql: str, params: Sequence[Any] | dict[str, Any], replays: bool, start: int
    ) -> tuple[list[str], list[Row], int | None]:
        given = params if isinstance(params, dict) else list(params)
        asked = {"sql": sql, "params": given, "replays": replays, "start": start}
        told = self.store.connection.send("POST", "/api/query", asked, again=True)
        try:
            rows = [tuple(map(_value, row)) for row in told["rows"]]
            following: int | None = told["next"]
            return list(told["columns"]), rows, following
        except (KeyError, TypeError):
            raise not_a_server(self.root, "it does not answer questions") from None

    def _runs(self, sql: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        return [run_of_row(row) for row in self.query(sql, values)[1]]

    def _ids(self, sql: str, values: Sequence[Any]) -> list[str]:
        return [str(row[0]) for row in self.query(sql, values)[1]]

    def _existing(self, sql: str, values: Sequence[Any]) -> str | None:
        while found := self._ids(sql, values):
            try:
                self.store.standing(found[0])
                return found[0]
            except RunNotFound:  # and by being asked, the server has noticed
                continue
        return None


class _Asking:
    """What somebody is given who asks several questions, as if of a database."""

    def __init__(self, index: RemoteIndex) -> None:
        self._index = index

    def execute(self, sql: str, params: Sequence[Any] | dict[str, Any] = ()) -> _Rows:
        """Ask."""
        return _Rows(self._index.query(sql, params)[1])


class _Rows:
    """An answer."""

    def __init__(self, rows: list[Row]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[Row]:
        return self._rows

    def fetchone(self) -> Row | None:
        """Return the next row; None after the last."""
        return next(self._rows, None)

    def fetchall(self) -> list[Row]:
        """Return all that are left."""
        return list(self._rows)


def _value(told: Any) -> Any:
    """Return a value of the database: bytes come as the only kind of object there is."""
    if isinstance(told, dict):
        import base64

        return base64.b64decode(told["$bytes"])
    return told
