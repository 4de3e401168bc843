"""Run a program with its models live many times, and say how often and where the outcome changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from playhead.replay.models.asker import Asker
from playhead.replay.onwards import Rerun
from playhead.store.reader import RunReader


@dataclass
class Repeated:
    """What came of a program that was run many times with its models live."""

    origin: dict[str, Any]
    mode: str
    times: int
    left_out: int  # not run any more: the budget was spent
    same: int
    changed: int
    outcomes: list[dict[str, Any]]  # each with how often it came, the most frequent first
    answers: list[dict[str, Any]]  # of models: how often each was another
    runs: list[str]
    live_calls: int
    cost: float | None
    unpriced: list[str]

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON shape of `playhead replay --mode model --times N`."""
        return asdict(self)


class Times:
    """Adds up what came of each."""

    def __init__(self, reader: RunReader) -> None:
        self._run = reader.id
        self._all: list[Rerun] = []
        self._outcomes: dict[bytes, dict[str, Any]] = {}
        self._changed: Counter[int] = Counter()  # by the event of an answer: how often it was another
        self._first: Counter[int] = Counter()  # how often it was the first that was

    def add(self, went: Rerun) -> None:
        """Take one in."""
        self._all.append(went)
        differences = went.outcome["differences"]
        key = orjson.dumps([[one["what"], one["now"]] for one in differences], default=str)
        found = self._outcomes.setdefault(
            key,
            {
                "same": not differences,
                "count": 0,
                "told": _told(differences) if differences else "as recorded",
                "runs": [],
                "differences": differences,
            },
        )
        found["count"] += 1
        found["runs"].append(went.run)
        changed = [one["seq"] for one in went.answers["changed"] if one["seq"] is not None]
        self._changed.update(changed)
        if changed:
            self._first[min(changed)] += 1

    def sum(self, wanted: int, asker: Asker) -> Repeated:
        """Return what came of all of them."""
        same = sum(went.same for went in self._all)
        return Repeated(
            origin={"run": self._run, "mode": "model"},
            mode="model",
            times=len(self._all),
            left_out=wanted - len(self._all),
            same=same,
            changed=len(self._all) - same,
            outcomes=sorted(self._outcomes.values(), key=lambda one: -int(one["count"])),
            answers=[
                {"seq": seq, "changed": count, "first": self._first[seq]}
                for seq, count in sorted(self._changed.items())
            ],
            runs=[went.run for went in self._all],
            live_calls=sum(went.live_calls for went in self._all),
            cost=asker.cost,
            unpriced=asker.bill.unpriced,
        )


def _told(differences: list[dict[str, Any]]) -> str:
    """Say an outcome in one line."""
    for what in ("error", "output", "stdout", "exit_code", "status"):
        for one in differences:
            if one["what"] == what and one["now"] is not None:
                return f"{what} {one['now']}"
    return "another"
