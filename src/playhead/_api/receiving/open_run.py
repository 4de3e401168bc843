"""Keep one run open to which spans and logs come: late, early, twice, and from several libraries at once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from playhead._api.receiving import repeated
from playhead._api.receiving.beginning import agent_of, name_of
from playhead._api.receiving.reading_back import ReadingBack, id_in
from playhead._api.receiving.standing import ROOT, Half, Standing
from playhead._api.receiving.writing import RunWriter
from playhead.capture.gate import Gate
from playhead.errors import LedgerError
from playhead.event import kinds
from playhead.ingest.otlp.facts import Facts, facts, step_of
from playhead.ingest.otlp.merging import Seen, choose, might_be_same
from playhead.ingest.otlp.spans import Emitter, LogRecord, Span
from playhead.store.base import Store
from playhead.store.reader import RunReader

_NOTHING = Facts(opens="", asked={}, closes="", answered={})
_REMOTE = 0x200  # the flag of a span whose parent is in another process
_STREAMS = "logfire"  # tells of a stream in two spans that do not name each other


class _Arrived(NamedTuple):
    """A span that came, under the id that it has in the run."""

    id: str
    parent: str | None
    span: Span
    digest: str
    facts: Facts


class OpenRun:
    """Write what comes to one run. Whoever calls makes sure that one thread does."""

    def __init__(self, store: Store, run: str, gate: Gate, *, create: bool) -> None:
        self.id = run
        self.standing = Standing()
        self._store = store
        self.writer = RunWriter(store, store.ledger(run, create=create), gate)
        self.touched_s = 0.0  # by the clock of whoever keeps it
        self.held_bytes = 0  # of content in memory, when something was taken last
        self._outcome: dict[str, Any] | None = None  # how the root ended, where it was written here
        try:
            if not create:
                reader = RunReader(store, run)
                self.standing.take_all(reader.lines(), reader.readable)
                self.writer.resume(reader.first(), self.standing.redacted)
        except (AttributeError, KeyError, TypeError, ValueError) as problem:
            self.close()
            raise LedgerError(f"{run} was not written by a server: {problem}") from None
        except BaseException:
            self.close()
            raise

    def begin(self, started: kinds.RunStarted, at_us: int) -> None:
        """Write the first event of a new run."""
        received = started.received or {}
        self.standing.trace, self.standing.rule = received.get("trace"), received.get("rule")
        self._write(kinds.RunStarted.KIND, kinds.as_fields(started), at_us, opens=True)

    def take(self, spans: Iterable[Span], logs: Iterable[LogRecord] = ()) -> bool:
        """Write what is new of these, all of it at once; False where nothing is."""
        with self.writer.together():
            taken = self._take(spans, logs)
        self.held_bytes = self.writer.held_bytes
        return taken

    def _take(self, spans: Iterable[Span], logs: Iterable[LogRecord]) -> bool:
        fresh_logs, by_span = self._fresh_logs(logs)
        new, again = self._sorted_out(spans, by_span)
        if not (fresh_logs or new or again):
            return False
        if self.standing.finished:
            self.writer.write("run.reopened", {"why": "more of it came"}, self._now_us())
            self.standing.finished = False
        same = self._same_calls(new)
        for one in new.values():
            self._write_span(one, same.get(one.id))
        for log, digest in fresh_logs:
            self._write_log(log, digest)
        for one in again:
            self._revise(one.id, "sent_again", one.span, one.facts, one.digest, one.parent)
        for id in by_span:
            if id in self.standing.spans and id not in new and all(one.id != id for one in again):
                self._settle(id, self.standing.spans[id].same_as)
        for id, told in same.items():
            if id not in new and self.standing.spans[id].same_as != told:
                self._settle(id, told)
        return True

    def finish(self, status: kinds.Status | None = None, error: dict[str, Any] | None = None) -> None:
        """Write the end of the run: as its root ended, unless something else is said."""
        if self.standing.finished:
            return
        with self.writer.together():
            self._finish(status, error)

    def _finish(self, status: kinds.Status | None, error: dict[str, Any] | None) -> None:
        outcome = self._outcome if self._outcome is not None else self._back().outcome()
        told = kinds.RunFinished(
            status=status or outcome.get("status") or "ok",
            output=outcome.get("output", outcome.get("response")),
            error=error or outcome.get("error"),
            redacted=self.writer.redacted,
        )
        at_us = self._base_us + self.standing.last_us
        self._write(told.KIND, kinds.as_fields(told), at_us, span=ROOT, totals=True)
        self.standing.finished = True

    @property
    def size(self) -> int:
        """Return how many bytes the timeline has."""
        return int(getattr(self.writer.ledger, "size", 0))

    def close(self) -> None:
        """Let go of the run, finished or not."""
        self.writer.ledger.close()

    def sync(self) -> None:
        """Bring it to the disk."""
        self.writer.ledger.sync()

    # What comes, and what of it is new.

    def _fresh_logs(self, logs: Iterable[LogRecord]) -> tuple[list[tuple[LogRecord, str]], dict[str, list[LogRecord]]]:
        fresh: dict[str, LogRecord] = {}
        by_span: dict[str, list[LogRecord]] = {}
        for log in logs:
            digest = log.digest()
            if digest in self.standing.log_digests or digest in fresh:
                continue
            fresh[digest] = log
            if log.span is not None:
                by_span.setdefault(id_in(self.standing, log.trace, log.span), []).append(log)
        return [(log, digest) for digest, log in fresh.items()], by_span

    def _sorted_out(
        self, spans: Iterable[Span], logs: dict[str, list[LogRecord]]
    ) -> tuple[dict[str, _Arrived], list[_Arrived]]:
        """Say which spans are new, and which are known in another form."""
        new: dict[str, _Arrived] = {}
        again: list[_Arrived] = []
        for span in spans:
            id, digest = id_in(self.standing, span.trace, span.span), span.digest()
            known, first = self.standing.spans.get(id), new.get(id)
            if (known is not None and digest in known.digests) or (first is not None and first.digest == digest):
                continue
            its_logs = logs.get(id, [])
            if id in self.standing.logs:
                its_logs = [*self._back().logs(id), *its_logs]
            parent = None if span.parent is None else id_in(self.standing, span.trace, span.parent)
            one = _Arrived(id, parent, span, digest, facts(span, its_logs))
            if known is None and first is None:
                new[id] = one
            else:
                again.append(one)
        return new, again

    def _back(self) -> ReadingBack:
        self.writer.write_out()
        return ReadingBack(self._store, self.id, self.standing, self._base_us)

    @property
    def _base_us(self) -> int:
        return self.writer.base_us or 0

    def _now_us(self) -> int:
        return max(self.writer.ledger.clock.wall_us(), self._base_us + self.standing.last_us)

    # What is written.

    def _write(self, kind: str, fields: dict[str, Any], at_us: int, **more: Any) -> int:
        seq = self.writer.write(kind, fields, at_us, **more)
        self.standing.last_us = max(self.standing.last_us, at_us - self._base_us)
        return seq

    def _emitter_seq(self, emitter: Emitter, at_us: int) -> int:
        digest = emitter.digest()[:16]
        seq = self.standing.emitters.get(digest)
        if seq is None:
            fields = {name: value for name, value in emitter.as_dict().items() if value}
            seq = self._write("emitter.described", {**fields, "digest": digest}, at_us, parent=ROOT)
            self.standing.emitters[digest] = seq
        return seq

    def _write_span(self, one: _Arrived, same_as: str | None) -> None:
        """Write a span: opened, and closed with everything that was said of it."""
        told = one.facts if same_as is None else step_of(one.span)
        start_us, end_us = self._times(one.span)
        closed = {**told.answered, "otlp": self._otlp(one.span, one.facts, told, one.digest, same_as)}
        asked = told.asked
        if self._adopts(one, told):
            agent = agent_of(one.span)
            asked, closed = {**asked, "adopts": True}, {**closed, "adopts": True}
            asked["name"] = name_of(one.span, agent) or asked["name"]
            if agent is not None:
                asked["agent"] = {"name": agent}
        if (half := self.standing.halves.pop(one.id, None)) is not None:
            self._complete(half, one, told, asked, closed, same_as)
            return
        parent, write = one.parent or ROOT, self.writer.write
        opened = write(told.opens, asked, start_us, span=one.id, parent=parent, opens=True, question=told.question)
        seq = write(told.closes, closed, end_us, span=one.id, parent=parent)
        base_us, standing = self._base_us, self.standing
        times = start_us - base_us, end_us - base_us
        standing.last_us = max(standing.last_us, *times)
        self._know(one.id, told, one.parent, closed, (opened, seq), times)

    def _know(
        self,
        id: str,
        told: Facts,
        parent: str | None,
        closed: dict[str, Any],
        seqs: tuple[int, int],
        times: tuple[int, int],
    ) -> None:
        self.standing.take_span(id, told.opens, parent, closed, seqs, times)
        if self.standing.root_seq == seqs[1]:
            self._outcome = told.answered

    def _complete(
        self,
        half: Half,
        one: _Arrived,
        told: Facts,
        asked: dict[str, Any],
        closed: dict[str, Any],
        same_as: str | None,
    ) -> None:
        """Close a span whose opening was written before a kill, and revise it where it is no longer what it was."""
        start_us, end_us = (at_us - self._base_us for at_us in self._times(one.span))
        same = (half.opens, half.parent, half.start_us) == (told.opens, one.parent, start_us)
        same = same and self._back().data(half.seq) == self.writer.settled(asked)
        said = closed
        if not same:  # what is said beside it may stand in the question as it is now, which is written below
            otlp = self._otlp(
                one.span, one.facts, Facts(opens="", asked={}, closes="", answered={}), one.digest, same_as
            )
            said = {**(closed if half.opens == told.opens else {}), "otlp": otlp}
        closes = kinds.OPENING_TO_CLOSING[half.opens]
        seq = self._write(closes, said, end_us + self._base_us, span=one.id, parent=half.parent or ROOT)
        times = half.start_us, end_us
        self.standing.take_span(one.id, half.opens, half.parent, said, (half.seq, seq), times)
        if not same:
            self._revise(one.id, "sent_again", one.span, one.facts, one.digest, one.parent, same_as)

    def _otlp(self, span: Span, told: Facts, written: Facts, digest: str, same_as: str | None) -> dict[str, Any]:
        """Return everything that was said of a span, with what it is known again by.

        `told` is what it is by itself, `written` what it is written as.
        """
        kept = repeated.prepared(span, written)
        if span.trace == self.standing.trace:
            del kept["trace"]
        kept["digest"] = digest
        kept["emitter"] = self._emitter_seq(span.emitter, self._times(span)[0])
        if not (span.start_ns and span.end_ns):  # it does not say when: the lines have the time that is known
            kept["claimed"] = [str(span.start_ns), str(span.end_ns)]
        known: dict[str, Any] = {}
        if span.parent is None or span.flags & _REMOTE:
            known["root"] = True
        if told.model_call:
            known["call"], known["richness"] = True, told.richness
        if told.response_id is not None:
            known["answer"] = told.response_id
        if same_as is not None:
            known["same_as"] = same_as
        if known:
            kept["told"] = known
        return kept

    def _times(self, span: Span) -> tuple[int, int]:
        """Return when a span began and ended; where it does not say, when it came, as near as that is known."""
        start_ns, end_ns = span.start_ns or span.end_ns, span.end_ns or span.start_ns
        if not start_ns:
            start_ns = end_ns = self._now_us() * 1000
        return start_ns // 1000, end_ns // 1000

    def _adopts(self, one: _Arrived, told: Facts) -> bool:
        """Say whether a span is the run itself: the root of the one trace that the run is made of."""
        is_root = told.opens == "step.started" and one.span.parent is None and one.span.trace == self.standing.trace
        return is_root and self.standing.rule == "trace" and self.standing.root_seq is None

    def _write_log(self, log: LogRecord, digest: str) -> None:
        at_us = (log.time_ns or log.observed_ns) // 1000 or self._now_us()
        kept = log.kept()
        kept["digest"], kept["emitter"] = digest, self._emitter_seq(log.emitter, at_us)
        fields: dict[str, Any] = {"otlp": kept}
        name = log.event_name or log.attributes.get("event.name")
        if isinstance(name, str) and name:
            fields["name"] = name
        if log.severity_text:
            fields["severity"] = log.severity_text
        id = id_in(self.standing, log.trace, log.span)
        seq = self._write("log.emitted", fields, at_us, parent=id)
        self.standing.take_log(None if id == ROOT else id, kept, seq)

    # Accounts of one call by several libraries, and spans of which more became known.

    def _same_calls(self, new: dict[str, _Arrived]) -> dict[str, str | None]:
        """Say which calls of models are told of twice: each with the span that counts, or None where it does itself."""
        calls = [one for one in new.values() if one.facts.model_call]
        if not calls:
            return {}
        related = self._related(calls, new)
        if not related and not might_be_same([Seen(one.span, one.facts) for one in calls]):
            return {}
        back = self._back()
        seen = {one.id: Seen(one.span, one.facts) for one in new.values()}
        for id in related:
            span = back.span(id)
            seen[id] = Seen(span, facts(span, back.logs(id)))
        chosen = {
            id_in(self.standing, *loser): id_in(self.standing, *winner)
            for loser, winner in choose(list(seen.values())).items()
        }
        return {id: chosen.get(id) for id in seen if id in chosen or id in related}

    def _related(self, calls: list[_Arrived], new: dict[str, _Arrived]) -> set[str]:
        """Return the spans of before that may be other accounts of these calls, with what is needed to tell."""
        standing, found = self.standing, set[str]()
        for one in calls:
            if one.facts.response_id is not None:
                found |= standing.answers.get(one.facts.response_id, set())
            found |= standing.below.get(one.id, set())
            above = None if one.parent is None else new.get(one.parent)
            if one.parent is not None and (one.parent in standing.calls or (above and above.facts.model_call)):
                found.add(one.parent)
                found |= standing.below.get(one.parent, set())
            if str(one.span.emitter.scope.get("name") or "").startswith(_STREAMS):
                found |= standing.unanswered
        return {id for id in found if id in standing.spans and id not in new}

    def _settle(self, id: str, same_as: str | None) -> None:
        """Say anew what a span is: its logs came after it, or another library told of the same call."""
        back = self._back()
        known, span = self.standing.spans[id], back.span(id)
        now = facts(span, back.logs(id))
        self._revise(id, "joined", span, now, known.digests.rpartition(" ")[2], known.parent, same_as)

    def _revise(
        self,
        id: str,
        why: str,
        span: Span,
        told: Facts,
        digest: str,
        parent: str | None,
        same_as: str | None = None,
    ) -> None:
        """Write what a span is now, unless that is what it was."""
        known = self.standing.spans[id]
        is_now = told if same_as is None else step_of(span)
        closed = {**is_now.answered, "otlp": self._otlp(span, told, is_now, digest, same_as)}
        start_us, end_us = self._times(span)
        times = start_us - self._base_us, end_us - self._base_us
        fields: dict[str, Any] = {
            "why": why,
            "opens": is_now.opens,
            "opened": is_now.asked,
            "closed": closed,
            "elapsed_us": list(times),
        }
        if parent != known.parent:
            fields["parent"] = parent or ROOT
        seq = self.writer.write_revision(is_now.opens, fields, end_us, id, parent or ROOT, is_now.question)
        self.standing.last_us = max(self.standing.last_us, times[1])
        self._know(id, is_now, parent, closed, (seq, seq), times)
