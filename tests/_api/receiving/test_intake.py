"""What comes from outside becomes runs that say what was sent, however it came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from playhead import settings
from playhead._api.reading import Run
from playhead._api.receiving.intake import Intake
from playhead._api.receiving.reading_back import ReadingBack
from playhead._api.receiving.standing import Standing
from playhead._api.stores import open_own_index
from playhead._clock import parse_utc
from playhead.ingest.otlp.spans import Emitter, Span
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

_START_NS = 1_790_000_000_000_000_000
_TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


def span(number: int, parent: int | None = None, *, start_ns: int = 0, end_ns: int = 0, **attributes: Any) -> Span:
    return Span(
        trace=_TRACE,
        span=f"{number:016x}",
        parent=None if parent is None else f"{parent:016x}",
        name=str(attributes.pop("name", f"work {number}")),
        start_ns=start_ns or _START_NS + number * 1000,
        end_ns=end_ns or _START_NS + number * 2000,
        attributes=attributes,
        emitter=Emitter({"attributes": {"service.name": "shop", "telemetry.sdk.name": "opentelemetry"}}, {}),
    )


class Shop:
    """One store, and what takes in for it; begun anew as after a restart."""

    def __init__(self, root: Path) -> None:
        self.root = root
        FileStore(root).make_root()
        self.index = open_own_index(FileStore(root))
        self.begin()

    def begin(self) -> None:
        self.intake = Intake(self.root, lambda: self.index, settings.load())

    def restart(self) -> None:
        self.intake.close()
        self.begin()

    def run(self) -> Run:
        (row,) = self.index.list_runs()
        return Run(FileStore(self.root), row["id"])


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / ".playhead")


def test_the_end_counts_what_was_redacted_before_a_restart_too(shop: Shop) -> None:
    for number in (2, 3, 4):
        shop.intake.take([span(number, 1, api_key=f"sk-secret-number-{number}-of-this-test")])
    shop.restart()
    shop.intake.take([span(5, 1, api_key="sk-secret-number-5-of-this-test"), span(1)])
    shop.intake.finish(shop.run().id)
    counted = [event.data["redacted"] for event in shop.run().events() if event.kind == "run.finished"]
    once = Shop(shop.root.parent / "other")
    once.intake.take([span(number, 1, api_key=f"sk-secret-number-{number}-of-this-test") for number in (2, 3, 4, 5)])
    once.intake.take([span(1)])
    once.intake.finish(once.run().id)
    (expected,) = [event.data["redacted"] for event in once.run().events() if event.kind == "run.finished"]
    assert counted == [expected]
    assert sum(expected.values()) >= 4


@pytest.mark.parametrize(("start_ns", "end_ns"), [(0, _START_NS + 5000), (_START_NS + 5000, 0), (0, 0)])
def test_a_span_that_does_not_say_when_stands_where_it_came_and_is_kept_as_it_was(
    shop: Shop, start_ns: int, end_ns: int
) -> None:
    odd = span(2, 1)
    odd.start_ns, odd.end_ns = start_ns, end_ns
    shop.intake.take([odd, span(1)])
    run = shop.run()
    times = [parse_utc(event.time) for event in run.events() if event.span == odd.span]
    known_us = (start_ns or end_ns) // 1000
    assert all(at_us == known_us for at_us in times) if known_us else min(times) > 1_700_000_000_000_000
    reader, standing = RunReader(run.store, run.id), Standing()
    standing.take_all(reader.lines())
    first = reader.first()
    back = ReadingBack(run.store, run.id, standing, parse_utc(first.time) - first.elapsed_us)
    assert back.span(odd.span) == odd


@pytest.mark.parametrize("late", [False, True])
def test_a_run_goes_by_the_agent_that_its_root_names_whenever_that_comes(shop: Shop, late: bool) -> None:
    root = span(1, name="invoke_agent fixer", **{"gen_ai.agent.name": "fixer", "gen_ai.operation.name": "invoke_agent"})
    if late:
        shop.intake.take([span(2, 1)])
        shop.intake.take([root])
    else:
        shop.intake.take([span(2, 1), root])
    (row,) = shop.index.list_runs()
    assert (row["name"], row["agent"]) == ("fixer", "fixer")
    assert shop.run().name == "fixer"


def test_what_a_run_reports_of_itself_does_not_depend_on_restarts(shop: Shop) -> None:
    for number in (4, 3, 2):
        shop.intake.take([span(number, 1)])
        shop.restart()
    shop.intake.take([span(1)])
    shop.intake.take([span(3, 1)])
    shop.intake.finish(shop.run().id)
    found = shop.run().verify(deep=True)
    assert (found.integrity.verdict, found.completeness.verdict) == ("intact", "complete")
    spans = [event.span for event in shop.run().events() if event.kind == "step.started"]
    assert sorted(spans) == sorted({span(number).span for number in (1, 2, 3, 4)})
