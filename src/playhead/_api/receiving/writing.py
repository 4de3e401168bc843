"""Write facts that came from outside into one run: through the same gate as everything else, sealed and chained."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playhead._clock import parse_utc
from playhead.capture.gate import Gate
from playhead.errors import PlayheadError
from playhead.event import envelope
from playhead.event.envelope import Event
from playhead.event.keys import ASKED, call_key
from playhead.event.plain import as_marks
from playhead.event.plainer import inline_blobs
from playhead.event.references import Held
from playhead.ledger.writer import Ledger
from playhead.store.base import Store
from playhead.store.batch_log import BatchLedger, BatchLog

_RECENT_MAX = 12  # lines whose data is kept at hand: what comes again mostly comes soon


class RunWriter:
    """Extend one run whose events have times of their own."""

    def __init__(self, store: Store, ledger: Ledger, gate: Gate) -> None:
        self.run = ledger.run
        self.ledger = ledger
        log = getattr(ledger, "log", None)
        self._batches = log if isinstance(log, BatchLog) else None
        self._goes_on = ledger.go_on if isinstance(ledger, BatchLedger) else None
        self.redacted: dict[str, int] = {}
        self.base_us: int | None = None  # the moment that counts as elapsed 0
        self._store = store
        self._gate = gate
        self._held = Held(self._read_back)
        self._cuts = ledger.cuts
        # What the last lines say, by where they begin, and how long that is.
        self._recent: OrderedDict[int, tuple[dict[str, Any], int]] = OrderedDict()

    def resume(self, first: envelope.Event, redacted: dict[str, int]) -> None:
        """Go on in a run that has a first event, and in which something was redacted already."""
        self.redacted = dict(redacted)
        self.base_us = parse_utc(first.time) - first.elapsed_us

    @contextmanager
    def together(self) -> Iterator[None]:
        """Write what is written inside with one call, where the store can do that."""
        if self._batches is None:
            yield
            return
        with self.ledger.lock, self._batches.batch():
            yield

    def write_out(self) -> None:
        """Write what is held back: somebody is about to read the run."""
        if self._batches is not None:
            self._batches.write_out()

    def write(
        self,
        kind: str,
        fields: dict[str, Any],
        at_us: int,
        *,
        span: str | None = None,
        parent: str | None = None,
        opens: bool = False,
        question: tuple[str | None, Any] | None = None,
        key: str | None = None,
        totals: bool = False,
    ) -> int:
        """Write one event and return its seq.

        `question` is what a step is about, by which it is compared; what calls ask is known by their kind. `totals`
        completes `run.finished` with how many lines there are, and their root.
        """
        if self.base_us is None:
            self.base_us = at_us
        if self._cuts != self.ledger.cuts:
            self._cuts = self.ledger.cuts
            self._held.forget()
        known = self._held.known
        encoded, value, blobs, news, floats, unusual_keys, redacted, _ = self._gate.shape(fields, self._held)
        for digest, data in blobs:
            self._store.put_blob(data, digest)
        for rule, count in redacted.items():
            self.redacted[rule] = self.redacted.get(rule, 0) + count
        if kind in ASKED:
            name, asked = ASKED[kind](value)
            key = call_key(kind, name, inline_blobs(asked, dict(blobs)) if blobs else asked, floats, unusual_keys)
        elif question is not None:
            key = self._key_of(kind, question)
        elapsed_us = at_us - self.base_us
        seq, offset = (
            None if totals or self._goes_on is None or (opens and span is None) else
            self._goes_on(kind, encoded, span, parent, key, at_us, elapsed_us, self._cuts)
        ) or self._append(kind, encoded, span, parent, key, opens, at_us, elapsed_us, totals)  # fmt: skip
        if news is not None and self.ledger.cuts == self._cuts:
            self._held.remember(seq, news, offset, len(encoded), known)
            if type(news) is list:  # whose places may be asked for
                self._recent[offset] = value, len(encoded)
                if len(self._recent) > _RECENT_MAX:
                    self._recent.popitem(last=False)
        return seq

    def _append(
        self,
        kind: str,
        encoded: bytes,
        span: str | None,
        parent: str | None,
        key: str | None,
        opens: bool,
        at_us: int,
        elapsed_us: int,
        totals: bool,
    ) -> tuple[int, int]:
        body = functools.partial(_with_totals, encoded) if totals else encoded
        sealed = self.ledger.append(kind, body, span, parent, "0", key, opens, at_us, elapsed_us, self._cuts)
        assert sealed is not None, "nothing interrupts an append here"
        return sealed.seq, sealed.offset

    def write_revision(
        self,
        opens: str,
        fields: dict[str, Any],
        at_us: int,
        span: str,
        parent: str,
        question: tuple[str | None, Any] | None,
    ) -> int:
        """Write what a span is now; its key is that of what it asks now."""
        if opens in ASKED:
            key: str | None = call_key(opens, *ASKED[opens](self._gate.settle(fields["opened"])[0]))
        else:
            key = None if question is None else self._key_of(opens, question)
        return self.write("span.revised", fields, at_us, span=span, parent=parent, key=key)

    def seal_again(self, event: Event, fields: dict[str, Any], *, totals: bool = False) -> None:
        """Write an event of another run as one of this: at the same time, in the same lane, with the same ids."""
        fields = {name: as_marks(value) for name, value in fields.items()}
        encoded, _, blobs, news, _, _, redacted, _ = self._gate.shape(fields, self._held)
        for digest, data in blobs:
            self._store.put_blob(data, digest)
        for rule, count in redacted.items():
            self.redacted[rule] = self.redacted.get(rule, 0) + count
        known = self._held.known
        at_us = parse_utc(event.time)
        sealed = self.ledger.append(
            event.kind,
            functools.partial(_with_totals, encoded) if totals else encoded,
            event.span,
            event.parent,
            event.lane,
            event.key,
            False,
            at_us,
            event.elapsed_us,
            self._cuts,
        )
        if sealed is not None and news is not None:
            self._held.remember(sealed.seq, news, sealed.offset, len(encoded), known)

    def settled(self, fields: dict[str, Any]) -> Any:
        """Return fields as they will be read back."""
        return self._gate.settle(fields)[0]

    def _key_of(self, kind: str, question: tuple[str | None, Any]) -> str:
        """Return the key of a step: of its question as it will be read back, redacted."""
        return call_key(kind, *self._gate.settle(list(question))[0])

    @property
    def held_bytes(self) -> int:
        """Return how much content is kept in memory so that later lines can refer to it."""
        return self._held.held_bytes + sum(size for _, size in self._recent.values())

    def forget(self) -> None:
        """Keep none of it: what comes again is written in full once more."""
        self._held.forget()
        self._recent.clear()

    def _read_back(self, offset: int) -> Any:
        """Return the data of a line again: content that it holds has come a second time."""
        if (recent := self._recent.get(offset)) is not None:
            return recent[0]
        try:
            return envelope.parse(self.ledger.line_at(offset)).data
        except (OSError, PlayheadError):
            return None  # then the content is written in full once more


def _with_totals(encoded: bytes, seq: int, root: str) -> bytes:
    return b'%b,"events":%d,"root":"%b"}' % (encoded[:-1], seq + 1, root.encode())  # it has a status at least
