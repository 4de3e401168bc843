"""What comes from outside becomes runs that say what was sent, however it came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from playhead import settings
from playhead._api.reading import Run
from playhead._api.receiving.intake import Intake
from playhead._api.receiving.open_run import OpenRun
from playhead._api.receiving.reading_back import ReadingBack
from playhead._api.receiving.standing import Standing
from playhead._api.stores import open_own_index
from playhead._clock import parse_utc
from playhead.errors import WriteFailed
from playhead.ingest.otlp.spans import Emitter, Span
from playhead.store.batch_log import BatchStore
from playhead.store.files import FileStore
from playhead.store.flushing import Flusher
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


def test_an_option_and_its_secret_stay_together_where_arguments_are_kept_once(shop: Shop) -> None:
    secret = "hunter2-of-this-test"
    words = [f"word {number} " * 30 for number in range(5)]
    shop.intake.take([span(2, 1, args=[*words, "--password", "x"]), span(3, 1, args=[*words, "--password", secret])])
    shop.intake.take([span(1)])
    shop.intake.finish(shop.run().id)
    written = b"".join(path.read_bytes() for path in shop.root.rglob("*") if path.is_file())
    assert secret.encode() not in written


def test_a_run_that_is_gone_is_begun_anew_once_for_all_that_a_request_has_of_it(shop: Shop) -> None:
    def of(trace: str, number: int, session: str) -> Span:
        one = span(number, **{"session.id": session})
        one.trace = trace
        return one

    shop.intake.take([of(_TRACE, 1, "s"), of("a" * 32, 2, "s")])
    gone = shop.run().id
    shop.intake.finish(gone)
    FileStore(shop.root).delete(gone)
    shop.intake.take([of(_TRACE, 3, "s"), of("a" * 32, 4, "s")])
    assert len(set(FileStore(shop.root).runs()) - {gone}) == 1


def test_a_run_that_the_system_refuses_just_now_is_not_given_up_for_another(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.intake.take([span(2, 1)])
    shop.restart()
    ledger = BatchStore.ledger

    def refused(*args: Any, **more: Any) -> Any:
        raise WriteFailed("too many files are open")

    monkeypatch.setattr(BatchStore, "ledger", refused)
    with pytest.raises(WriteFailed):
        shop.intake.take([span(3, 1)])
    monkeypatch.setattr(BatchStore, "ledger", ledger)
    shop.intake.take([span(3, 1), span(1)])
    assert len(list(FileStore(shop.root).runs())) == 1


def test_a_mistake_in_the_middle_of_a_run_loses_no_span_that_is_acknowledged_later(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.intake.take([span(2, 1)])
    told = OpenRun._know
    monkeypatch.setattr(OpenRun, "_know", _raising_after(told, 1))
    with pytest.raises(MemoryError):
        shop.intake.take([span(3, 1), span(4, 1)])
    monkeypatch.setattr(OpenRun, "_know", told)
    shop.intake.take([span(3, 1), span(4, 1), span(1)])
    shop.intake.finish(shop.run().id)
    opened = [event.span for event in shop.run().events() if event.kind == "step.started"]
    assert sorted(opened) == sorted(f"{number:016x}" for number in (1, 2, 3, 4))


def _raising_after(told: Any, calls: int) -> Any:
    left = [calls]

    def know(self: OpenRun, *args: Any) -> None:
        told(self, *args)
        left[0] -= 1
        if left[0] < 0:
            raise MemoryError

    return know


def test_what_was_written_and_not_flushed_is_flushed_when_it_is_sent_again(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[Any] = []
    monkeypatch.setattr(Flusher, "flush", lambda self, one_by_one: flushed.append(one_by_one))
    shop.intake.take([span(2, 1)])
    shop.intake.take([span(2, 1)])
    assert len(flushed) == 2


def test_messages_of_which_a_field_has_no_value_are_kept_as_they_came(shop: Shop) -> None:
    said = {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Which wine goes with it? " * 5,
        "llm.input_messages.0.message.name": None,
    }
    one = span(2, 1, **said)
    shop.intake.take([one, span(1)])
    run = shop.run()
    reader, standing = RunReader(run.store, run.id), Standing()
    standing.take_all(reader.lines())
    first = reader.first()
    back = ReadingBack(run.store, run.id, standing, parse_utc(first.time) - first.elapsed_us)
    assert back.span(one.span).attributes == one.attributes
