"""One writer: nothing interrupts it, nothing is lost without a count."""

from __future__ import annotations

import gc
import signal
import threading
from typing import Any

import pytest
from tests.ledger.logs import FailingLog, gaps, note, texts
from tests.ledger.timelines import events_of, finish, judged, ledger

from playhead.errors import LedgerClosed, WriteFailed


def test_an_append_from_within_an_append_is_written_right_after_it() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    log.during = lambda: note(writer, "inner")
    assert note(writer, "outer") is not None
    note(writer, "next")
    assert texts(log) == ["outer", "inner", "next"]
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


def test_an_append_from_within_returns_none_and_keeps_all_its_fields() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    got: list[Any] = []

    def inner() -> None:
        got.append(
            writer.append("a.b", b"{}", span="s", parent="p", lane="0.1", key="k1:x", time_us=5_000_000, elapsed_us=9)
        )

    log.during = inner
    note(writer)
    assert got == [None]
    event = events_of(log)[1]
    assert (event.span, event.parent, event.lane, event.key, event.elapsed_us) == ("s", "p", "0.1", "k1:x", 9)
    assert event.time == "1970-01-01T00:00:05.000000Z"


def test_a_signal_handler_may_record_while_an_event_is_recorded() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    before = signal.signal(signal.SIGUSR1, lambda *_: note(writer, "signal"))
    try:
        for number in range(50):
            log.during = lambda: signal.raise_signal(signal.SIGUSR1)
            note(writer, str(number))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert texts(log) == [text for number in range(50) for text in (str(number), "signal")]
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


def test_a_finaliser_may_record_while_an_event_is_recorded() -> None:
    class Resource:
        def __del__(self) -> None:
            note(writer, "closed")

    def collect() -> None:
        ring: list[Any] = [Resource()]
        ring.append(ring)
        del ring
        gc.collect()

    log = FailingLog()
    writer, _, _ = ledger(log=log)
    log.during = collect
    note(writer, "outer")
    assert texts(log) == ["outer", "closed"]


def test_what_came_during_a_failing_append_is_written_and_only_the_failed_one_is_lost() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)

    def inner() -> None:
        note(writer, "inner")
        log.fail.add("append")

    log.during = inner
    real = log._check

    def once(name: str) -> None:
        try:
            real(name)
        finally:
            log.fail.clear()

    log._check = once  # type: ignore[method-assign]
    with pytest.raises(WriteFailed):
        note(writer, "outer")
    assert texts(log) == ["inner"]


def test_what_came_during_an_append_and_cannot_be_written_is_counted_and_blames_nobody_else() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    real = log.append
    calls = 0

    def second_fails(data: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise WriteFailed("no")
        real(data)

    log.append = second_fails  # type: ignore[method-assign]
    log.during = lambda: note(writer, "inner")
    assert note(writer, "outer") is not None
    assert writer.pending_losses == {"write_failed": 1}
    note(writer, "next")
    assert texts(log) == ["outer", "next"]
    assert gaps(log) == {"write_failed": 1}


def test_a_keyboard_interrupt_inside_an_append_leaves_a_usable_writer() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    note(writer, "before")

    def interrupt() -> None:
        note(writer, "deferred")
        raise KeyboardInterrupt

    log.during = interrupt
    with pytest.raises(KeyboardInterrupt):
        note(writer, "interrupted")
    note(writer, "after")
    assert texts(log) == ["before", "deferred", "after"]
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


def test_an_interrupt_right_after_the_write_does_not_write_twice() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    real = log.append

    def interrupted(data: bytes) -> None:
        real(data)
        log.append = real  # type: ignore[method-assign]
        raise KeyboardInterrupt

    log.append = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        note(writer, "first")
    note(writer, "second")
    finish(writer)
    assert texts(log) == ["first", "second"]
    assert judged(bytes(log.buffer), deep=True).completeness.verdict == "complete"


# Losses


def test_losses_are_declared_with_exact_counts_before_the_next_event() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    note(writer, "a")
    for reason, count in (("write_failed", 2), ("OSError", 1), ("write_failed", 3)):
        writer.lose(reason, count)
    assert writer.pending_losses == {"write_failed": 5, "OSError": 1}
    assert writer.loss_total == 6
    note(writer, "b")
    assert [event.kind for event in events_of(log)] == ["note.added", "gap.noted", "gap.noted", "note.added"]
    assert gaps(log) == {"write_failed": 5, "OSError": 1}
    assert writer.pending_losses == {}
    assert writer.loss_total == 6


def test_losses_survive_a_failed_attempt_to_declare_them() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    note(writer, "a")
    writer.lose("one", 1)
    writer.lose("two", 2)
    for step in ("append", "acquire"):
        log.fail = {step}
        with pytest.raises(WriteFailed):
            note(writer, "lost")
        writer.lose("write_failed")
    log.fail = set()
    note(writer, "b")
    assert gaps(log) == {"one": 1, "two": 2, "write_failed": 2}
    assert writer.loss_total == 5


def test_losses_counted_by_many_threads_and_by_a_signal_handler_are_exact() -> None:
    writer, log, _ = ledger()
    before = signal.signal(signal.SIGALRM, lambda *_: writer.lose("handler"))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    fired = 0
    try:

        def work() -> None:
            for _ in range(3000):
                writer.lose("thread")

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(2000):
            writer.lose("thread")
            note(writer)
        for thread in threads:
            thread.join()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    note(writer)
    found = gaps(log)
    fired = found.pop("handler", 0)
    assert found == {"thread": 14_000}
    assert writer.loss_total == 14_000 + fired


def test_what_is_undeclared_at_the_end_is_left_to_be_told() -> None:
    writer, _, _ = ledger()
    note(writer)
    writer.lose("late", 4)
    writer.close()
    assert writer.pending_losses == {"late": 4}
    with pytest.raises(LedgerClosed):
        note(writer)


def opened(writer: Any, **around: Any) -> Any:
    """Write an event with a span opened around it, closed by it, or both."""
    if around.pop("opening", True):
        around["before"] = ("step.started", b'{"name":"turn"}', "0")
    if around.pop("closing", True):
        around["after"] = ("step.finished", b'{"status":"ok"}', "0")
    return writer.append("model.invoked", b'{"model":"m"}', lane="0.2", opens=True, **around)


def test_a_span_around_an_event_is_written_with_it() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    note(writer)
    sealed = opened(writer)
    assert (sealed.seq, sealed.span) == (2, "2")
    before, event, after = events_of(log)[1:]
    assert (before.kind, before.span, before.parent) == ("step.started", "1", "0")
    assert (event.kind, event.span, event.parent) == ("model.invoked", "2", "1")
    assert (after.kind, after.span, after.parent) == ("step.finished", "1", "0")
    assert {one.lane for one in (before, event, after)} == {"0.2"}
    assert writer.line_at(sealed.offset).startswith(b'{"v":1')
    assert b'"kind":"model.invoked"' in writer.line_at(sealed.offset)
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


def test_an_event_that_closes_a_span_gives_its_parent_as_that_span() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    sealed = opened(writer, closing=False)
    writer.append("model.responded", b"{}", span=sealed.span, parent="0", after=("step.finished", b"{}", None))
    kinds = [(event.kind, event.span, event.parent) for event in events_of(log)]
    assert kinds[2:] == [("model.responded", "1", "0"), ("step.finished", "0", None)]


def test_losses_are_declared_before_the_span_that_is_opened_around_an_event() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    writer.lose("some", 3)
    sealed = opened(writer)
    assert [event.kind for event in events_of(log)] == ["gap.noted", "step.started", "model.invoked", "step.finished"]
    assert sealed.span == "2"


def test_where_the_three_cannot_be_written_none_is_there_and_nothing_is_called_cut() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    note(writer)
    log.fail = {"append"}
    with pytest.raises(WriteFailed):
        opened(writer)
    log.fail = set()
    assert [event.kind for event in events_of(log)] == ["note.added"]
    assert opened(writer).span is not None
    finish(writer)
    kinds = [event.kind for event in events_of(log)]
    assert kinds == ["note.added", "step.started", "model.invoked", "step.finished", "run.finished"]
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


def test_a_span_around_an_event_that_has_to_wait_is_kept() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)
    log.during = lambda: opened(writer)
    note(writer, "outer")
    assert [event.kind for event in events_of(log)] == ["note.added", "step.started", "model.invoked", "step.finished"]
    parents = [(event.span, event.parent) for event in events_of(log)[1:]]
    assert parents == [("1", "0"), ("2", "1"), ("1", "0")]


def test_threads_that_open_spans_at_once_get_each_their_own() -> None:
    log = FailingLog()
    writer, _, _ = ledger(log=log)

    def work() -> None:
        for _ in range(50):
            sealed = opened(writer)
            assert sealed.span == str(sealed.seq)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = events_of(log)
    assert len(events) == 600
    for before, event, after in zip(events[::3], events[1::3], events[2::3], strict=True):
        assert (event.parent, after.span) == (before.span, before.span)
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"
