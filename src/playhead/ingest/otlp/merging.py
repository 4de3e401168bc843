"""Find accounts of one call of a model by two instrumentations, so that it counts once.

Some SDKs tell of their calls themselves while an instrumentation around them does so too. Both accounts stay: the one
that says more is the call, the other becomes a step that points to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from playhead.ingest.otlp.conventions import logfire
from playhead.ingest.otlp.facts import Facts
from playhead.ingest.otlp.spans import Span

_CALLS = ("model.invoked", "tool.called")
_STREAM_NS_MAX = 1_000_000_000  # between the time that Logfire says a stream began and the span that asked for it


class Seen(NamedTuple):
    """A span, and what it is."""

    span: Span
    facts: Facts


def same_call(a: Seen, b: Seen, with_calls: frozenset[str] = frozenset()) -> bool:
    """Say whether two spans tell of one call of a model.

    `with_calls` are the ids of spans that have calls below them: such a one is no account of a single request.
    """
    if not (a.facts.model_call and b.facts.model_call) or (a.span.trace, a.span.span) == (b.span.trace, b.span.span):
        return False
    first, second = a.facts.response_id, b.facts.response_id
    if first is not None and second is not None:
        return first == second
    return (
        _one_in_the_other(a, b, with_calls) or _one_in_the_other(b, a, with_calls) or _streamed(a, b) or _streamed(b, a)
    )


def might_be_same(calls: Sequence[Seen]) -> bool:
    """Say whether any of these calls of models may tell of the same: quickly, and a no is certain."""
    if len(calls) < 2:
        return False
    ids = {one.span.span for one in calls}
    return any(one.facts.response_id is not None or one.span.parent in ids or _is_logfire(one.span) for one in calls)


def choose(seen: Sequence[Seen]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return which spans of a run tell once more of a call, each with the one that counts: by trace id and span id.

    The order in which they were seen makes no difference.
    """
    calls = sorted((one for one in seen if one.facts.model_call), key=_order)
    if len(calls) < 2:
        return {}
    below: dict[tuple[str, str], list[str]] = {}  # of each span the calls right below it
    for one in seen:
        if one.facts.opens in _CALLS and one.span.parent is not None:
            below.setdefault((one.span.trace, one.span.parent), []).append(one.span.span)
    same: dict[tuple[str, str], tuple[str, str]] = {}
    for group in _groups(calls, below):
        best = min(group, key=lambda one: (-one.facts.richness, _order(one)))
        for one in group:
            if one is not best:
                same[one.span.trace, one.span.span] = best.span.trace, best.span.span
    return same


def _groups(calls: list[Seen], below: dict[tuple[str, str], list[str]]) -> list[list[Seen]]:
    """Put together what tells of one call; candidates are found by keys, so that none is held against all others."""
    place = {(one.span.trace, one.span.span): number for number, one in enumerate(calls)}
    leader = list(range(len(calls)))

    def root(number: int) -> int:
        while leader[number] != number:
            leader[number] = leader[leader[number]]
            number = leader[number]
        return number

    with_calls = frozenset(span for _, span in below)
    by_response: dict[str, int] = {}
    by_question: dict[str, int] = {}
    for number, one in enumerate(calls):
        others: list[int] = []
        if one.facts.response_id is not None:
            others.append(by_response.setdefault(one.facts.response_id, number))
        if one.span.parent is not None and len(below[one.span.trace, one.span.parent]) == 1:
            others.append(place.get((one.span.trace, one.span.parent), number))
        if _is_logfire(one.span):
            asked = repr(one.facts.asked.get("request"))
            if _is_streamed_log(one.span):
                others.append(by_question.pop(asked, number))
            elif not one.facts.richness & 8:
                by_question[asked] = number
        for other in others:
            if other != number and same_call(calls[other], one, with_calls):
                leader[root(number)] = root(other)
    found: dict[int, list[Seen]] = {}
    for number, one in enumerate(calls):
        found.setdefault(root(number), []).append(one)
    return [group for group in found.values() if len(group) > 1]


def _order(one: Seen) -> tuple[int, int, str, str]:
    return one.span.start_ns, -one.span.end_ns, one.span.trace, one.span.span


def _models(facts: Facts) -> set[str]:
    answered = facts.answered.get("response")
    names = (
        facts.asked.get("model"),
        facts.answered.get("model"),
        answered.get("model") if type(answered) is dict else None,
    )
    return {name for name in names if type(name) is str}


def _one_in_the_other(outer: Seen, inner: Seen, with_calls: frozenset[str]) -> bool:
    around, within = outer.span, inner.span
    if within.parent != around.span or within.trace != around.trace or within.span in with_calls:
        return False
    overlap = within.start_ns <= around.end_ns and around.start_ns <= within.end_ns
    return overlap and bool(_models(outer.facts) & _models(inner.facts))


def _is_logfire(span: Span) -> bool:
    name = span.emitter.scope.get("name")
    return type(name) is str and name.startswith("logfire")


def _is_streamed_log(span: Span) -> bool:
    return span.attributes.get("logfire.span_type") == "log" and span.name.startswith(logfire.STREAMED)


def _streamed(asked: Seen, answered: Seen) -> bool:
    """Say whether the second is what Logfire tells of a stream once it has ended, and the first what asked for it."""
    if not (_is_streamed_log(answered.span) and _is_logfire(answered.span) and _is_logfire(asked.span)):
        return False
    took = answered.span.attributes.get(logfire.DURATION)
    if _is_streamed_log(asked.span) or asked.facts.richness & 8 or not isinstance(took, int | float):
        return False
    began = answered.span.start_ns - took * 1e9
    return abs(began - asked.span.end_ns) < _STREAM_NS_MAX and asked.facts.asked.get(
        "request"
    ) == answered.facts.asked.get("request")
