"""Hold what runs took, cost and saved: rows of calls, steps and runs that are alike, and the sums of them.

Nothing that is unknown counts as nothing: calls without tokens, models without a price, and tools that nobody saw
running, are counted apart.
"""

from __future__ import annotations

from bisect import insort
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from playhead.views.prices import Used

# What is counted of a group, by what the groups are of. A tool has no tokens, and a model no tools.
SECTIONS: dict[str, tuple[str, ...]] = {
    "run": ("runs", "models", "tools", "steps"),
    "model": ("models",),
    "tool": ("tools",),
    "step": ("models", "tools", "steps"),
    "agent": ("runs", "models", "tools", "steps"),
    "day": ("runs", "models", "tools", "steps"),
}
BY = tuple(SECTIONS)

MILLI = 1000


class ModelRow(NamedTuple):
    """Calls of models that are alike: of one group, model and price."""

    group: str | None
    provider: str | None
    model: str | None
    taped: bool
    at_us: int | None
    largest: int  # input of one of them
    used: Used
    said: float | None  # what the provider asks for them
    calls: int
    errors: int
    open: int
    silent: int
    refused: int
    took_us: int


class ToolRow(NamedTuple):
    """Calls of tools of one group."""

    group: str | None
    taped: bool
    calls: int
    errors: int
    open: int
    refused: int
    timed: int
    took_us: int


class StepRow(NamedTuple):
    """Steps of one group."""

    group: str | None
    number: int
    ok: int
    failed: int
    open: int
    took_us: int
    retries: int


class RunRow(NamedTuple):
    """Runs of one group: recorded ones, or exact replays."""

    group: str | None
    replays: bool
    number: int
    ok: int
    failed: int
    took_us: int


class Timed(Protocol):
    """How long things took: all together, and at most so long 50, 95 and 99 of a hundred (nearest rank)."""

    ms: float
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None


@dataclass
class Saved:
    """What was answered from a tape, and would have been asked of models."""

    calls: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None  # at the prices of the day on which it was not asked
    unpriced: list[str] = field(default_factory=list)
    without_usage: int = 0  # calls that did not say their tokens: those are in no sum


@dataclass
class ModelSums:
    """What models were asked, and what that cost, in US dollars."""

    calls: int = 0
    errors: int = 0
    open: int = 0  # nothing closed them
    retries: int = 0  # the same question once more, after it had failed
    without_usage: int = 0  # calls that did not say their tokens: those are in no sum
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0  # of those in
    tokens_reasoning: int = 0  # of those out
    cost: float | None = None
    unpriced: list[str] = field(default_factory=list)  # models whose calls are not in the cost
    providers: list[str] = field(default_factory=list)
    ms: float = 0.0
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None
    saved: Saved = field(default_factory=Saved)

    def add(self, row: ModelRow, amount: float | None, unpriced: str | None) -> None:
        """Add some calls, and what they cost."""
        if row.provider is not None and row.provider not in self.providers:
            insort(self.providers, row.provider)  # in one order, whichever way the calls come
        used, into = row.used, self.saved if row.taped else self
        into.calls += row.calls - (row.refused if row.taped else 0)
        into.tokens_in += used.tokens_in
        into.tokens_out += used.tokens_out
        if amount is not None:
            into.cost = (into.cost or 0.0) + amount
        if unpriced is not None and unpriced not in into.unpriced:
            into.unpriced.append(unpriced)
        into.without_usage += row.silent
        if row.taped:
            return
        self.tokens_cached += used.cached
        self.tokens_reasoning += used.reasoning
        self.errors += row.errors
        self.open += row.open
        self.ms += row.took_us / MILLI


@dataclass
class ToolSums:
    """What tools were called."""

    calls: int = 0
    errors: int = 0
    open: int = 0
    untimed: int = 0  # nobody saw them running: they were inferred
    saved_calls: int = 0  # answered from a tape
    ms: float = 0.0
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None

    def add(self, row: ToolRow) -> None:
        """Add some calls."""
        if row.taped:
            self.saved_calls += row.calls - row.refused
            return
        self.calls += row.calls
        self.errors += row.errors
        self.open += row.open
        self.untimed += row.calls - row.open - row.timed
        self.ms += row.took_us / MILLI


@dataclass
class StepSums:
    """Steps, and how they ended."""

    count: int = 0
    ok: int = 0
    failed: int = 0  # or cancelled
    open: int = 0
    retries: int = 0  # where the attempt before had failed
    success_rate: float | None = None  # of those that ended
    retry_rate: float | None = None
    ms: float = 0.0
    p50_ms: float | None = None
    p95_ms: float | None = None
    p99_ms: float | None = None

    def add(self, row: StepRow) -> None:
        """Add some steps."""
        self.count += row.number
        self.ok += row.ok
        self.failed += row.failed
        self.open += row.open
        self.retries += row.retries
        self.ms += row.took_us / MILLI
        self.success_rate = self.ok / (self.ok + self.failed) if self.ok + self.failed else None
        self.retry_rate = self.retries / self.count if self.count else None


@dataclass
class RunSums:
    """Runs, and how they ended. Exact replays are counted apart."""

    count: int = 0
    ok: int = 0
    failed: int = 0  # in an error, or crashed
    ms: float = 0.0
    replays: int = 0
    replays_ms: float | None = None  # of those whose recorded run is known
    saved_ms: float | None = None  # by which they were quicker than those

    def add(self, row: RunRow) -> None:
        """Add some runs."""
        if row.replays:
            self.replays += row.number
            return
        self.count += row.number
        self.ok += row.ok
        self.failed += row.failed
        self.ms += row.took_us / MILLI


@dataclass
class Group:
    """What is counted of some runs, or of what happened in them; None where that has nothing to do with it."""

    name: str | None = None  # None too for what has none: calls outside of every step, runs without an agent
    runs: RunSums | None = None
    models: ModelSums | None = None
    tools: ToolSums | None = None
    steps: StepSums | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        out: dict[str, Any] = {"name": self.name}
        for section in ("runs", "models", "tools", "steps"):
            if (sums := getattr(self, section)) is not None:
                out[section] = dict(vars(sums))
        if self.models is not None:
            out["models"]["saved"] = dict(vars(self.models.saved))
        return out


@dataclass
class Metrics:
    """What runs took, cost and saved: in all (`total`), and by what they have in common (`groups`)."""

    by: str
    total: Group
    groups: list[Group]
    left_out: int = 0  # groups, where only so many were asked for
    run: str | None = None  # the one that it is of

    def limited(self, limit: int) -> Metrics:
        """Return the same with at most so many groups: the first ones, or the last days; 0 for all."""
        if not limit or len(self.groups) <= limit:
            return self
        kept = self.groups[-limit:] if self.by == "day" else self.groups[:limit]
        return Metrics(self.by, self.total, kept, self.left_out + len(self.groups) - limit, self.run)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead stats`."""
        total = self.total.as_dict()
        del total["name"]
        return {
            "by": self.by,
            "run": self.run,
            "groups": [group.as_dict() for group in self.groups],
            "left_out": self.left_out,
            "total": total,
            "unpriced": total["models"]["unpriced"],
        }
