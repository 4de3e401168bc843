"""Read spans and log records back out of a run, as they came."""

from __future__ import annotations

from typing import Any

from playhead._api.receiving.repeated import put_back
from playhead._api.receiving.span_table import Known
from playhead._api.receiving.standing import ROOT, Standing
from playhead.event.envelope import Event
from playhead.event.plain import restore
from playhead.ingest.otlp.spans import NOBODY, Emitter, LogRecord, Span
from playhead.store.base import Store
from playhead.store.reader import RunReader

_OURS = ("claimed", "digest", "emitter", "told")  # what Playhead adds to what is kept of a span


class ReadingBack:
    """Read one run whose lines came from outside."""

    def __init__(self, store: Store, run: str, standing: Standing, base_us: int) -> None:
        self._reader = RunReader(store, run)
        self._standing = standing
        self._base_us = base_us
        self._emitters: dict[int, Emitter] = {}

    def span(self, id: str) -> Span:
        """Return a span in its newest form."""
        known = self._standing.spans[id]
        closed = restore(self.closed(known))
        otlp = put_back(closed.get("otlp") or {}, restore(self._opened(known)), closed)
        trace, span = self._ids_of(id)
        parent = None if known.parent is None else self._ids_of(known.parent)[1]
        kept = {"trace": trace, **{name: value for name, value in otlp.items() if name not in _OURS}}
        start_us, end_us = self._base_us + known.start_us, self._base_us + known.end_us
        found = Span.of_kept(kept, span, parent, start_us, end_us, self._emitter(otlp.get("emitter")))
        if (claimed := otlp.get("claimed")) is not None:
            found.start_ns, found.end_ns = map(int, claimed)
        return found

    def closed(self, known: Known) -> dict[str, Any]:
        """Return what the closing event of a span says now."""
        data = self._event(known.seq).data
        found = data.get("closed", data)
        return found if isinstance(found, dict) else {}

    def _opened(self, known: Known) -> dict[str, Any]:
        data = self._event(known.opened).data
        found = data.get("opened", data) if known.opened == known.seq else data
        return found if isinstance(found, dict) else {}

    def data(self, seq: int) -> dict[str, Any]:
        """Return what one event says."""
        return self._event(seq).data

    def logs(self, id: str) -> list[LogRecord]:
        """Return the log records of a span."""
        return [self._log(seq) for seq in self._standing.logs.get(id, ())]

    def loose_logs(self) -> list[LogRecord]:
        """Return the log records of no span, and of spans that never came."""
        known = self._standing.spans
        of_others = [id for id in self._standing.logs if id not in known]
        return [self._log(seq) for seq in self._standing.loose_logs] + [
            log for id in of_others for log in self.logs(id)
        ]

    def outcome(self) -> dict[str, Any]:
        """Return how the root ended; empty where none has."""
        seq = self._standing.root_seq
        if seq is None:
            return {}
        data = self._event(seq).data
        found = data.get("closed", data)
        return dict(found) if isinstance(found, dict) else {}

    def _log(self, seq: int) -> LogRecord:
        otlp = self._event(seq).data.get("otlp") or {}
        kept = {name: value for name, value in otlp.items() if name not in _OURS}
        return LogRecord.of_kept(restore(kept), self._emitter(otlp.get("emitter")))

    def _emitter(self, seq: int | None) -> Emitter:
        if seq is None:
            return NOBODY
        if seq not in self._emitters:
            self._emitters[seq] = Emitter.of_dict(restore(self._event(seq).data))
        return self._emitters[seq]

    def _event(self, seq: int) -> Event:
        return self._reader.event(seq)

    def _ids_of(self, id: str) -> tuple[str, str]:
        """Return trace and span as they came, of an id in this run."""
        trace, colon, span = id.partition(":")
        return (trace, span) if colon else (self._standing.trace or "", id)


def id_in(standing: Standing, trace: str | None, span: str | None) -> str:
    """Return the id that a span has in a run: its own, where it is of the first trace; that of the run for none."""
    if span is None:
        return ROOT
    return span if trace is None or trace == standing.trace else f"{trace}:{span}"
