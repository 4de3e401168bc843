"""Write the timelines of runs that came from outside: spans and logs in batches, late, early, told anew."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

from playhead._clock import FakeClock
from playhead.event.keys import ASKED, call_key
from playhead.event.kinds import OPENING_TO_CLOSING
from playhead.store.memory import MemoryStore

BASE_US = 1_800_000_000_000_000
RUN = "run_01jqk3v8m0000g40r40m30e209"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


@dataclass(frozen=True)
class Span:
    """A span as it came; times are microseconds."""

    id: str
    parent: str | None = None
    start: int = 0
    end: int = 1
    opens: str = "step.started"
    opened: dict[str, Any] = field(default_factory=lambda: {"name": "s"})
    closed: dict[str, Any] = field(default_factory=lambda: {"status": "ok"})


@dataclass(frozen=True)
class Log:
    """A log record of a span."""

    span: str | None
    at: int
    fields: dict[str, Any]


FINISH = "finish"


class Outside:
    """One run, of which more may come at any time; written as a server writes it."""

    def __init__(self, store: Any = None, run: str = RUN) -> None:
        self.store = store or MemoryStore(FakeClock(BASE_US))
        self.run = run
        self.ledger: Any = None
        self.known: dict[str, Span] = {}
        self.base_us = self.last_us = self.count = 0
        self.finished = False
        self.emitter: int | None = None

    def write(self, kind: str, data: dict[str, Any], at_us: int, *, span: str | None = None, parent: str | None = None,
              key: str | None = None, totals: bool = False) -> int:  # fmt: skip
        self.last_us = max(self.last_us, at_us)
        opens = kind in OPENING_TO_CLOSING

        def body(seq: int, root: str) -> bytes:
            return orjson.dumps({**data, "events": seq + 1, "root": root})

        told: Any = body if totals else orjson.dumps(data)
        elapsed = at_us - self.base_us
        sealed = self.ledger.append(kind, told, span, parent, "0", key, opens, BASE_US + at_us, elapsed)
        self.count += 1
        return int(sealed.seq)

    def take(self, batch: Iterable[Span | Log | str]) -> Outside:
        """Take what came at once."""
        for one in batch:
            if one == FINISH:
                self.finish()
                continue
            assert not isinstance(one, str)
            at_us = one.start if isinstance(one, Span) else one.at
            if self.ledger is None:
                self.begin(min([at_us, *(each.start for each in batch if isinstance(each, Span))]))
            if self.finished:
                self.write("run.reopened", {"why": "more of it came"}, self.last_us + 3_600_000_000)
                self.finished = False
            if self.emitter is None:
                described = {"resource": {"attributes": {"service.name": "shop"}}}
                self.emitter = self.write("emitter.described", described, at_us, parent="0")
            if isinstance(one, Log):
                otlp = {"emitter": self.emitter, "digest": repr(one)}
                self.write("log.emitted", {**one.fields, "otlp": otlp}, one.at, parent=one.span or "0")
            elif one.id in self.known:
                self.revise(one)
            else:
                self.span(one)
        return self

    def begin(self, at_us: int) -> None:
        self.ledger = self.store.ledger(self.run, create=True)
        self.base_us = self.last_us = at_us
        received = {"by": "otlp", "rule": "trace", "trace": TRACE}
        self.write("run.started", {"name": "shop", "external_id": TRACE, "received": received}, at_us, span="0")

    def span(self, one: Span) -> None:
        self.known[one.id] = one
        parent = one.parent or "0"
        self.write(one.opens, one.opened, one.start, span=one.id, parent=parent, key=key_of(one))
        closed = {**one.closed, "otlp": self.otlp(one)}
        self.write(OPENING_TO_CLOSING[one.opens], closed, one.end, span=one.id, parent=parent)

    def revise(self, one: Span) -> None:
        before, self.known[one.id] = self.known[one.id], one
        if before == one:
            return
        fields = {"why": "sent_again", "opens": one.opens, "opened": one.opened}
        fields["closed"] = {**one.closed, "otlp": self.otlp(one)}
        fields["elapsed_us"] = [one.start - self.base_us, one.end - self.base_us]  # type: ignore[assignment]
        if one.parent != before.parent:
            fields["parent"] = one.parent or "0"
        self.write("span.revised", fields, one.end, span=one.id, parent=one.parent or "0", key=key_of(one))

    def otlp(self, one: Span) -> dict[str, Any]:
        return {"name": one.id, "digest": f"d{self.count}", "emitter": self.emitter, "ns": [self.count % 7, 0]}

    def finish(self, status: str = "ok") -> Outside:
        if not self.finished:
            self.write("run.finished", {"status": status}, self.last_us, span="0", totals=True)
            self.finished = True
        return self


def key_of(one: Span) -> str | None:
    if one.opens in ASKED:
        name, asked = ASKED[one.opens](one.opened)
        return call_key(one.opens, name, asked)
    return call_key(one.opens, one.opened.get("name"), one.opened.get("attributes"))


def written(*batches: Iterable[Span | Log | str], store: Any = None, run: str = RUN) -> Outside:
    """Write a run that came in these batches."""
    outside = Outside(store, run)
    for batch in batches:
        outside.take(list(batch))
    return outside
