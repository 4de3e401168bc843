"""Add up rows of what runs took, cost and saved, in all and by what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from playhead.views.prices import Prices, priced
from playhead.views.sums import (
    MILLI,
    SECTIONS,
    Group,
    Metrics,
    ModelRow,
    ModelSums,
    RunRow,
    RunSums,
    StepRow,
    StepSums,
    Timed,
    ToolRow,
    ToolSums,
)

PERCENTILES = (50, 95, 99)


class Tally:
    """Add up rows, in all and by their groups; without `by` only in all."""

    def __init__(self, by: str, prices: Prices | None) -> None:
        self.by = by
        self.total = Group(None, RunSums(), ModelSums(), ToolSums(), StepSums())
        self.groups: dict[str | None, Group] = {}
        self._prices = prices
        self._timed: dict[tuple[str, str | None], int] = {}

    def add_models(self, row: ModelRow) -> None:
        """Add calls of models."""
        amount, unpriced = priced(
            self._prices, row.provider, row.model or "", row.used, row.at_us, largest=row.largest, said=row.said
        )
        for sums in self._sums("models", row.group):
            sums.add(row, amount, unpriced)
        if not row.taped:
            self._count("models", row.group, row.timed)

    def add_tools(self, row: ToolRow) -> None:
        """Add calls of tools."""
        for sums in self._sums("tools", row.group):
            sums.add(row)
        if not row.taped:
            self._count("tools", row.group, row.timed)

    def add_steps(self, row: StepRow) -> None:
        """Add steps."""
        for sums in self._sums("steps", row.group):
            sums.add(row)
        self._count("steps", row.group, row.timed)

    def add_runs(self, row: RunRow) -> None:
        """Add runs."""
        for sums in self._sums("runs", row.group):
            sums.add(row)

    def add_saved(self, group: str | None, us: int) -> None:
        """Add by how much replays were quicker than what they replay."""
        for sums in self._sums("runs", group):
            sums.saved_ms = (sums.saved_ms or 0.0) + us / MILLI

    def rank(self, section: str, took: Iterable[tuple[str | None, int]]) -> None:
        """Take how long each of them took, by its group, the shortest first; they must have been added before."""
        counts = {group: count for (of, group), count in self._timed.items() if of == section}
        ranks = {group: _ranks(count) for group, count in counts.items()}
        found: dict[str | None, list[tuple[int, int]]] = {group: [] for group in counts}
        seen = dict.fromkeys(counts, 0)
        all_ranks, of_all = _ranks(sum(counts.values())), []
        for number, (group, us) in enumerate(took, 1):
            if number in all_ranks:
                of_all.append((number, us))
            place = seen[group] = seen[group] + 1
            if place in ranks[group]:
                found[group].append((place, us))
        _give(all_ranks, dict(of_all), getattr(self.total, section))
        for group in counts if self._has(section) else ():
            _give(ranks[group], dict(found[group]), getattr(self.groups[group], section))

    def finish(self, *, limit: int = 0, run: str | None = None) -> Metrics:
        """Return the sums; of the groups at most so many, those that matter most, 0 for all."""
        groups = sorted(self.groups.values(), key=_ORDERS.get(self.by, _dearest_first), reverse=self.by == "run")
        return Metrics(self.by, self.total, groups, run=run).limited(limit)

    def _has(self, section: str) -> bool:
        return section in SECTIONS.get(self.by, ())

    def _sums(self, section: str, name: str | None) -> list[Any]:
        into = [getattr(self.total, section)]
        if self._has(section):
            group = self.groups.get(name)
            if group is None:
                group = self.groups[name] = new_group(name, self.by)
            into.append(getattr(group, section))
        return into

    def _count(self, section: str, group: str | None, timed: int) -> None:
        self._timed[section, group] = self._timed.get((section, group), 0) + timed


def _ranks(count: int) -> list[int]:
    """Return the places of the percentiles among so many, from 1 on: nearest rank."""
    return [(percent * count + 99) // 100 for percent in PERCENTILES] if count else []


def _give(ranks: list[int], found: dict[int, int], sums: Timed) -> None:
    if ranks:
        sums.p50_ms, sums.p95_ms, sums.p99_ms = (found[rank] / MILLI for rank in ranks)


def new_group(name: str | None, by: str) -> Group:
    """Return a group of this sort, of which nothing is counted yet."""
    made: dict[str, Any] = {"runs": RunSums, "models": ModelSums, "tools": ToolSums, "steps": StepSums}
    return Group(name, **{section: made[section]() for section in SECTIONS[by]})


def _dearest_first(group: Group) -> tuple[Any, ...]:
    models = group.models or ModelSums()
    used = models.tokens_in + models.tokens_out
    times = models.calls + (group.steps.count if group.steps else 0)
    return -(models.cost or 0.0), -used, -times, group.name is None, group.name or ""


def _slowest_first(group: Group) -> tuple[Any, ...]:
    tools = group.tools or ToolSums()
    return -tools.ms, -tools.calls, group.name is None, group.name or ""


def _by_name(group: Group) -> tuple[Any, ...]:
    return group.name is None, group.name or ""


_ORDERS: dict[str, Callable[[Group], Any]] = {"tool": _slowest_first, "day": _by_name, "run": _by_name}
