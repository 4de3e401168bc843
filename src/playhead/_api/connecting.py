"""Ask a server what the verbs ask a folder: `playhead.connect("https://playhead.example").load("@last").verify()`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Self, TypeVar

import msgspec

from playhead import _limits
from playhead._api.auditing import audit_all
from playhead._api.comparing import diff
from playhead._api.metrics import stats
from playhead._api.reading import Run, find, load, runs
from playhead._api.reporting import Report, report
from playhead._api.told import Hit, Job, KeptCassette, Rows
from playhead.capture.request import Envelope
from playhead.errors import ServerError, UsageError
from playhead.event.envelope import Event
from playhead.ledger.verify import Verification
from playhead.store.cassettes import form
from playhead.store.reader import RunReader
from playhead.store.remote.address import part, read_address
from playhead.store.remote.connection import Connection
from playhead.store.remote.following import lines_as_they_come
from playhead.store.remote.index import RemoteIndex
from playhead.store.remote.reading import RemoteStore
from playhead.store.remote.refusals import error_of, not_a_server
from playhead.store.remote.searching import paged
from playhead.views.audit.findings import Audit
from playhead.views.diff.comparison import Comparison
from playhead.views.sums import Metrics

T = TypeVar("T")
Of = Run | str

_ZIP = "application/vnd.playhead.cassette"


def connect(url: str, key: str | None = None) -> Client:
    """Return a client of a server; the key is that of PLAYHEAD_API_KEY unless one is given. Nothing is asked yet."""
    return Client(url, key)


class Client:
    """The verbs, asked of a server. Answers are computed and checked here, from the exact lines that it hands out.

    Threads may share one. A run is read when it is asked for, and for half a minute not again: load it anew.
    """

    def __init__(self, url: str, key: str | None = None) -> None:
        self._connection = Connection(read_address(url), key)

    def __repr__(self) -> str:
        return f"<playhead.Client {self.url}>"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """Return the address of the server."""
        return str(self._connection.address)

    def close(self) -> None:
        """Close the connection of this thread; the next question opens it again."""
        self._connection.close()

    def _store(self) -> RemoteStore:
        """Return the store, with nothing read yet."""
        return RemoteStore(self._connection.address, connection=self._connection)

    def runs(
        self,
        *,
        name: str | None = None,
        status: str | None = None,
        limit: int = _limits.LIST_RUNS_DEFAULT,
        text: str | None = None,
    ) -> list[Run]:
        """List runs, newest first; `text` are words that an event of them holds, as `playhead ls --text` takes them."""
        if text is None:
            return runs(name=name, status=status, limit=limit, store=self._store())
        store, asked = self._store(), {"q": text, "name": name, "status": status}
        return [Run(store, str(one["id"])) for one in paged(self._connection, "/api/runs", "runs", asked, limit)]

    def load(self, reference: str) -> Run:
        """Find a run by id, unique prefix, name, `@last`, or the id that it had outside."""
        return load(reference, self._store())

    def find(
        self, envelope: Envelope | Mapping[str, Any], *, status: str | None = None, partly: bool = False
    ) -> Run | None:
        """Return the newest replayable run of exactly this request, or None."""
        return find(envelope, self._store(), status=status, partly=partly)

    def _run(self, of: Of) -> Run:
        return of if isinstance(of, Run) else self.load(of)

    def verify(self, run: Of, *, deep: bool = False) -> Verification:
        """Check a run, here: the server is not taken at its word."""
        return self._run(run).verify(deep=deep)

    def diff(self, left: Of, right: Of, *, ignore: Sequence[str] = (), durations: bool = False) -> Comparison:
        """Compare two runs; either may be one that was loaded from elsewhere."""
        return diff(self._run(left), self._run(right), ignore=ignore, durations=durations)

    def audit(self, runs: Of | Iterable[Of], *, children: bool = True) -> Audit:
        """Say what runs touched, and what they were allowed to touch."""
        named = [runs] if isinstance(runs, (Run, str)) else list(runs)
        return audit_all([self._run(one) for one in named], children=children)

    def stats(
        self,
        by: str = "model",
        *,
        name: str | None = None,
        status: str | None = None,
        agent: str | None = None,
        commit: str | None = None,
        tag: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
    ) -> Metrics:
        """Add up runs."""
        return stats(
            by, name=name, status=status, agent=agent, commit=commit, tag=tag, since=since, until=until,
            store=self._store(),
        )  # fmt: skip

    def report(self, left: Of, right: Of | None = None, *, ignore: Sequence[str] = ()) -> Report:
        """Put a report together: of one run, or of two and how they differ."""
        return report(self._run(left), None if right is None else self._run(right), ignore=ignore)

    def query(self, sql: str, params: Sequence[Any] | dict[str, Any] = (), *, replays: bool = False) -> Rows:
        """Ask the index of the server a question in SQL."""
        return Rows(*RemoteIndex(self._store()).query(sql, params, replays=replays))

    def search(self, text: str, *, limit: int = _limits.SEARCH_HITS_DEFAULT) -> list[Hit]:
        """Find the events that hold words: those of the newest runs first."""
        return self._typed(list(paged(self._connection, "/api/search", "hits", {"q": text}, limit)), list[Hit])

    def follow(self, run: Of, *, start: int = 0) -> Iterator[Event]:
        """Yield the events of a run as they come, from one on, until it ends; every value as it was."""
        found = self._run(run)
        reader = RunReader(found.store, found.id)
        for line in lines_as_they_come(self._connection, found.id, start):
            yield reader.parsed(line)

    def finish(self, run: Of, *, status: str | None = None, error: str | None = None) -> str:
        """End a run that came from outside, and return how it ended."""
        told = {name: value for name, value in (("status", status), ("error", error)) if value is not None}
        return str(self._connection.send("POST", f"/api/runs/{part(_id(run))}/finish", told)["status"])

    def cassettes(self) -> list[KeptCassette]:
        """List the cassettes that the server keeps, newest first."""
        return self._typed(list(paged(self._connection, "/api/cassettes", "cassettes", {})), list[KeptCassette])

    def make_cassette(self, run: Of, name: str | None = None, *, unfinished: bool = False) -> KeptCassette:
        """Have the server make a cassette of a run, and keep it."""
        told = {"run_id": _id(run), "name": name, "unfinished": unfinished}
        return self._typed(self._connection.send("POST", "/api/cassettes", told), KeptCassette)

    def download_cassette(self, id: str, path: str | Path) -> Path:
        """Bring a cassette here, as a new file; it is checked before it takes its place."""
        from playhead._api.fetching import download

        return download(self._connection, id, Path(path))

    def upload_cassette(self, path: str | Path, name: str | None = None) -> KeptCassette:
        """Send a cassette that was made elsewhere."""
        file = Path(path)
        try:
            body = file.read_bytes()
        except OSError as problem:
            raise UsageError(f"cannot read {file}: {problem.strerror}") from None
        media = "application/x-ndjson" if form.form_of(file) == form.LINES else _ZIP
        told = self._connection.send(
            "POST", "/api/cassettes/upload", query={"name": name}, body=body, media=media
        )  # fmt: skip
        return self._typed(told, KeptCassette)

    def reingest(
        self, cassette_id: str, new_run_id: str | None = None, *, wait: bool = True, timeout: float = 60.0
    ) -> Job:
        """Feed a cassette through the way that live traffic goes, and return the job; its error is raised here.

        With `wait` until it has ended: ServerError where that takes longer than `timeout`, in seconds.
        """
        told = {} if new_run_id is None else {"new_run_id": new_run_id}
        made = self._connection.send("POST", f"/api/cassettes/{part(cassette_id)}/replay", told)
        until_s = time.monotonic() + timeout
        job = self.job(str(made["job_id"]))
        while wait and not job.ended:
            if time.monotonic() >= until_s:
                raise ServerError(
                    f"job {job.id} is still {job.status} after {timeout:g} s",
                    hint="It goes on: ask `client.job(id)` later, or `client.cancel(id)`.",
                )
            time.sleep(_limits.JOB_POLL_S)
            job = self.job(job.id)
        if job.status == "failed":
            raise error_of(job.error or {}) or ServerError(f"job {job.id} failed, and does not say why")
        return job

    def job(self, id: str) -> Job:
        """Say how far a job is, and what came of it."""
        return self._typed(self._connection.json(f"/api/jobs/{part(id)}"), Job)

    def cancel(self, job_id: str) -> Job:
        """Cancel a job; Conflict where it has ended already."""
        return self._typed(self._connection.send("DELETE", f"/api/jobs/{part(job_id)}"), Job)

    def _typed(self, told: Any, kind: type[T]) -> T:
        try:
            return msgspec.convert(told, kind)
        except msgspec.ValidationError as problem:
            raise not_a_server(self.url, f"its answer has another form ({problem})") from None


def _id(run: Of) -> str:
    return run.id if isinstance(run, Run) else run
