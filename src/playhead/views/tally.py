"""Add up rows of what runs took, cost and saved, in all and by what they have in common."""

from __future__ import annotations

from array import array
from collections import defaultdict
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
        self._sections = SECTIONS.get(by, ())
        self._prices = prices

    def add_models(self, row: ModelRow) -> None:
        """Add calls of models."""
        found = priced(self._prices, row.provider, row.model or "", row.used, row.at_us, row.largest, row.said)
        for sums in self._sums("models", row.group):
            sums.add(row, *found)

    def add_retries(self, group: str | None, number: int) -> None:
        """Add how many questions to models came once more after they had failed."""
        for sums in self._sums("models", group):
            sums.retries += number

    def add_tools(self, row: ToolRow) -> None:
        """Add calls of tools."""
        for sums in self._sums("tools", row.group):
            sums.add(row)

    def add_steps(self, row: StepRow) -> None:
        """Add steps."""
        for sums in self._sums("steps", row.group):
            sums.add(row)

    def add_runs(self, row: RunRow) -> None:
        """Add runs."""
        for sums in self._sums("runs", row.group):
            sums.add(row)

    def add_saved(self, group: str | None, took_us: int, recorded_us: int) -> None:
        """Add how long replays took, and how long the runs did that they replay."""
        for sums in self._sums("runs", group):
            sums.replays_ms = (sums.replays_ms or 0.0) + took_us / MILLI
            sums.saved_ms = (sums.saved_ms or 0.0) + (recorded_us - took_us) / MILLI

    def rank(self, section: str, took: Iterable[tuple[str | None, int]]) -> None:
        """Take how long each of them took, by its group, the shortest first."""
        everything = array("q")
        of_group: defaultdict[str | None, array[int]] = defaultdict(lambda: array("q"))
        if section in self._sections:
            for group, us in took:
                everything.append(us)
                of_group[group].append(us)
        else:
            everything.extend(us for _, us in took)
        _give(everything, getattr(self.total, section))
        for group, found in of_group.items():
            _give(found, getattr(self._group(group), section))

    def finish(self, *, limit: int = 0, run: str | None = None) -> Metrics:
        """Return the sums; of the groups at most so many, those that matter most, 0 for all."""
        groups = sorted(self.groups.values(), key=_ORDERS.get(self.by, _dearest_first), reverse=self.by == "run")
        return Metrics(self.by, self.total, groups, run=run).limited(limit)

    def _group(self, name: str | None) -> Group:
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = new_group(name, self.by)
        return group

    def _sums(self, section: str, name: str | None) -> tuple[Any, ...]:
        whole = getattr(self.total, section)
        return (whole, getattr(self._group(name), section)) if section in self._sections else (whole,)


def _give(took_us: array[int], sums: Timed) -> None:
    """Say which percentiles values have that come in their order: by nearest rank."""
    if took_us:
        ranks = [(percent * len(took_us) + 99) // 100 for percent in PERCENTILES]
        sums.p50_ms, sums.p95_ms, sums.p99_ms = (took_us[rank - 1] / MILLI for rank in ranks)


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
