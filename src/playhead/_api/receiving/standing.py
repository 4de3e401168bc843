"""Know what a run has of what came from outside, so that nothing is written twice: from its lines, or as they come."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import orjson

from playhead._api.receiving.span_table import Known, SpanTable
from playhead.event.kinds import CLOSING

ROOT = "0"  # the span of the run itself
_WRITTEN_OUT = frozenset({"$same", "$blob"})  # in the place of a value that is in another line, or too large
_REDACTED = re.compile(rb'"\$redacted":"([^"]+)"')
_REDACTED_TEXT = re.compile(rb"\[redacted:([a-z0-9-]{1,40})\]")
_CALLS = ("model.invoked", "tool.called")
_ANSWERED = 8  # of richness: it has an answer


class Half(NamedTuple):
    """What is known of a span whose opening was written, and then the process was killed."""

    opens: str
    seq: int
    parent: str | None
    start_us: int


class Standing:
    """Follow the lines of one run."""

    def __init__(self) -> None:
        self.spans = SpanTable()
        self.halves: dict[str, Half] = {}
        self.emitters: dict[str, int] = {}  # by digest, the event that describes it
        self.logs: dict[str, list[int]] = {}  # by span, the events of its logs
        self.loose_logs: list[int] = []  # the events of those of no span
        self.log_digests: set[str] = set()
        self.roots: dict[str, bool] = {}  # by trace, whether its root came
        self.answers: dict[str, set[str]] = {}  # by the id of an answer, the calls that have it
        self.below: dict[str, set[str]] = {}  # by span, the calls right below it
        self.calls: set[str] = set()  # of models, also those that are told of twice
        self.unanswered: set[str] = set()  # of these, those of which no answer is known
        self.trace: str | None = None  # the first one: its spans go by their own ids
        self.rule: str | None = None  # by which its spans were found to be one run
        self.finished = False
        self.redacted: dict[str, int] = {}  # in the lines that were read, by rule
        self.last_us = 0  # of all events, by the clock of the run
        self.root_seq: int | None = None  # where the end of the latest root stands

    @property
    def rooted(self) -> bool:
        """Say whether the root of every trace has come: then nothing is missing that one could know of."""
        return bool(self.roots) and all(self.roots.values())

    def take_all(self, lines: Iterable[bytes], resolve: Callable[[Any], Any] = lambda value: value) -> None:
        """Read the lines of a run that this process has not written; `resolve` follows references in them."""
        opened = self.halves
        for line in lines:
            event = orjson.loads(line)
            if b"redacted" in line:
                self._count_redacted(line)
            kind, data, span, at_us = event["kind"], event["data"], event.get("span"), event["elapsed_us"]
            for name in ("otlp", "closed", "received"):
                if name in data and not _WRITTEN_OUT.isdisjoint(data[name]):
                    data[name] = resolve(data[name])
            if kind != "run.reopened":  # which has the time of the day
                self.last_us = max(self.last_us, at_us)
            if kind == "run.started":
                received = data.get("received") or {}
                self.trace, self.rule = received.get("trace"), received.get("rule")
            elif kind in ("run.finished", "run.reopened"):
                self.finished = kind == "run.finished"
            elif kind == "emitter.described":
                self.emitters[data.get("digest") or ""] = event["seq"]
            elif kind == "log.emitted":
                self.take_log(event.get("parent"), data.get("otlp") or {}, event["seq"])
            elif kind in CLOSING and "otlp" in data:
                half = opened.pop(span, Half("step.started", event["seq"], None, at_us))
                seqs = half.seq, event["seq"]
                self.take_span(span, half.opens, half.parent, data, seqs, (half.start_us, at_us))
            elif kind == "span.revised" and (known := self.spans.get(span)) is not None:
                parent = data.get("parent") or known.parent
                times = tuple(data.get("elapsed_us") or (known.start_us, known.end_us))
                seqs = event["seq"], event["seq"]
                self.take_span(span, data.get("opens") or known.opens, parent, data["closed"], seqs, times)
            elif span is not None:
                parent = event.get("parent")
                opened[span] = Half(kind, event["seq"], None if parent == ROOT else parent, at_us)

    def _count_redacted(self, line: bytes) -> None:
        """Count what was redacted, by rule: a value that is referred to was redacted once."""
        if b'"kind":"run.finished"' in line[:200]:
            return  # which sums it up
        for rule in (*_REDACTED.findall(line), *_REDACTED_TEXT.findall(line)):
            name = rule.decode()
            self.redacted[name] = self.redacted.get(name, 0) + 1

    def take_span(
        self,
        span: str,
        opens: str,
        parent: str | None,
        closed: dict[str, Any],
        seqs: tuple[int, int],
        times: tuple[int, ...],
    ) -> None:
        """Note a span that is in the run, or a newer form of it."""
        otlp = closed.get("otlp") or {}
        told = otlp.get("told") or {}
        before = self.spans.get(span)
        digest = otlp.get("digest") or ""
        digests = digest if before is None else before.digests
        if digest not in digests:
            digests = f"{digests} {digest}"
        answer, same_as = told.get("answer"), told.get("same_as")
        new = before is None and answer is None and same_as is None
        if not (new and self.spans.add(span, digest, opens, seqs, parent, times)):
            self.spans[span] = Known(digests, opens, *seqs, parent, times[0], times[1], answer, same_as)
        self._relate(span, opens, parent, told)
        trace = otlp.get("trace") or self.trace or ""
        is_root = bool(told.get("root"))
        self.roots[trace] = self.roots.get(trace, False) or is_root
        if is_root:
            self.root_seq = seqs[1]

    def _relate(self, span: str, opens: str, parent: str | None, told: dict[str, Any]) -> None:
        """Note what may be an account of the same call."""
        if (answer := told.get("answer")) is not None:
            self.answers.setdefault(answer, set()).add(span)
        if parent is not None and (opens in _CALLS or told.get("call")):
            self.below.setdefault(parent, set()).add(span)
        if told.get("call"):
            self.calls.add(span)
        if told.get("call") and not int(told.get("richness") or 0) & _ANSWERED:
            self.unanswered.add(span)
        else:
            self.unanswered.discard(span)

    def take_log(self, span: str | None, otlp: dict[str, Any], seq: int) -> None:
        """Note a log record that is in the run."""
        if span is None or span == ROOT:
            self.loose_logs.append(seq)
        else:
            self.logs.setdefault(span, []).append(seq)
        if digest := otlp.get("digest"):
            self.log_digests.add(digest)
