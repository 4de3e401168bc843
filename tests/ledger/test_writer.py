"""One writer, one chain: nothing interrupts it, nothing is lost without a count."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Callable
from typing import Any

import orjson
import pytest

from playhead._clock import FakeClock
from playhead.errors import LedgerClosed, WriteFailed
from playhead.event import envelope
from playhead.ledger.writer import Ledger
from playhead.store.memory import MemoryLog
from tests.ledger.timelines import OTHER, RUN, events_of, finish, judged, ledger, lines_of, timeline


class FailingLog(MemoryLog):
    """Fail, or do something else, at chosen moments."""

    def __init__(self) -> None:
        super().__init__()
        self.fail: set[str] = set()
        self.short: int | None = None  # write this much, then fail
        self.during: Callable[[], None] | None = None

    def _check(self, name: str) -> None:
        if name in self.fail:
            raise WriteFailed(f"{name} failed")

    def acquire(self) -> None:
        self._check("acquire")
        super().acquire()

    def append(self, data: bytes) -> None:
        if self.during is not None:
            action, self.during = self.during, None
            action()
        self._check("append")
        if self.short is not None:
            self.buffer += data[: self.short]
            raise WriteFailed("short")
        super().append(data)

    def truncate(self, size: int) -> None:
        self._check("truncate")
        super().truncate(size)


def note(writer: Ledger, text: str = "x") -> Any:
    return writer.append("note.added", orjson.dumps({"text": text}))


def texts(log: MemoryLog) -> list[str]:
    return [event.data["text"] for event in events_of(log) if event.kind == "note.added"]


def gaps(log: MemoryLog) -> dict[str, int]:
    out: dict[str, int] = {}
    for event in events_of(log):
        if event.kind == "gap.noted":
            out[event.data["reason"]] = out.get(event.data["reason"], 0) + event.data["count"]
    return out


# Reentrancy


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
        got.append(writer.append("a.b", b"{}", span="s", parent="p", lane="0.1", key="k1:x", time_us=5_000_000, elapsed_us=9))

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


# Torn tails


@pytest.mark.parametrize("keep", range(1, 12))
def test_a_torn_tail_is_set_aside_and_counted_and_the_chain_goes_on(keep: int) -> None:
    lines = timeline(5)
    torn = lines[4][: len(lines[4]) * keep // 12]
    log = MemoryLog()
    log.buffer += b"".join(lines[:4]) + torn
    writer, _, aside = ledger(log=log)
    note(writer, "after")
    assert list(aside.values()) == [torn]
    gap = events_of(log)[4]
    assert (gap.kind, gap.data["reason"], gap.data["count"]) == ("gap.noted", "torn_tail", 1)
    assert gap.data["detail"] == {"bytes": len(torn), "blob": next(iter(aside))}
    found = judged(bytes(log.buffer))
    assert (found.integrity.verdict, found.events, found.gaps) == ("intact", 6, {"torn_tail": 1})


def test_a_line_that_lacks_only_its_newline_is_kept() -> None:
    lines = timeline(5)
    log = MemoryLog()
    log.buffer += b"".join(lines)[:-1]
    writer, _, aside = ledger(log=log)
    note(writer, "after")
    assert aside == {}
    assert lines_of(log)[:5] == lines
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"
    assert gaps(log) == {}


def test_a_whole_line_without_newline_that_does_not_follow_is_set_aside() -> None:
    lines = timeline(5)
    for foreign in (lines[2], timeline(5, OTHER)[4]):
        log = MemoryLog()
        log.buffer += b"".join(lines[:4]) + foreign[:-1]
        writer, _, aside = ledger(log=log)
        note(writer, "after")
        assert list(aside.values()) == [foreign[:-1]]
        assert judged(bytes(log.buffer)).integrity.verdict == "intact"


def test_a_torn_first_line_is_set_aside_too() -> None:
    log = MemoryLog()
    log.buffer += timeline(5)[0][:50]
    writer, _, aside = ledger(log=log)
    note(writer, "first")
    assert len(aside) == 1
    assert [event.kind for event in events_of(log)] == ["gap.noted", "note.added"]
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


@pytest.mark.parametrize("written", [1, 40, 150, 300])
def test_the_rest_of_a_failed_write_is_mended_by_the_same_writer(written: int) -> None:
    log = FailingLog()
    writer, _, aside = ledger(log=log)
    note(writer, "a")
    log.short = written
    with pytest.raises(WriteFailed):
        note(writer, "lost")
    writer.lose("write_failed")
    log.short = None
    note(writer, "b")
    finish(writer)
    found = judged(bytes(log.buffer), deep=True)
    assert (found.integrity.verdict, found.root_checked) == ("intact", True)
    assert texts(log) == ["a", "b"]
    assert len(aside) == 1


def test_a_torn_tail_that_is_cut_off_but_cannot_be_noted_is_counted_all_the_same() -> None:
    log = FailingLog()
    log.buffer += b"".join(timeline(5)[:3]) + b"{torn"
    writer, _, _ = ledger(log=log)
    log.fail = {"append"}
    with pytest.raises(WriteFailed):
        note(writer, "lost")
    log.fail = set()
    note(writer, "b")
    assert gaps(log) == {"torn_tail": 1}
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


def test_a_torn_tail_that_cannot_be_cut_off_blocks_nothing_for_ever() -> None:
    log = FailingLog()
    log.buffer += b"".join(timeline(5)[:3]) + b"{torn"
    writer, _, _ = ledger(log=log)
    log.fail = {"truncate"}
    for _ in range(3):
        with pytest.raises(WriteFailed):
            note(writer, "lost")
    log.fail = set()
    note(writer, "b")
    assert texts(log)[-1] == "b"
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


# A file that is damaged or cut under its writer


def test_a_run_whose_last_line_is_damaged_is_not_written_to_however_often_one_tries() -> None:
    lines = timeline(5)
    damaged = b"".join(lines[:-1]) + lines[-1].replace(b'"ok"', b'"no"')
    for bad in (damaged, b"".join(lines) + b"\n", b"".join(lines) + b"{}\n", b"".join(timeline(5, OTHER))):
        log = MemoryLog()
        log.buffer += bad
        writer, _, _ = ledger(log=log)
        for _ in range(3):
            with pytest.raises(WriteFailed):
                note(writer)
            writer.lose("write_failed")
        assert bytes(log.buffer) == bad
        assert writer.loss_total == 3


@pytest.mark.parametrize("left", range(0, 10))
def test_a_timeline_cut_under_its_writer_goes_on_and_says_how_much_is_gone(left: int) -> None:
    writer, log, _ = ledger()
    for number in range(10):
        note(writer, str(number))
    del log.buffer[sum(map(len, lines_of(log)[:left])) :]
    note(writer, "after")
    finish(writer)
    assert texts(log) == [*map(str, range(left)), "after"]
    assert gaps(log) == {"timeline_cut": 10 - left}
    assert writer.cuts == 1
    assert judged(bytes(log.buffer), deep=True).integrity.verdict == "intact"


@pytest.mark.parametrize("left", range(0, 10))
def test_a_timeline_cut_inside_a_line_under_its_writer_counts_that_line_once(left: int) -> None:
    writer, log, aside = ledger()
    for number in range(10):
        note(writer, str(number))
    del log.buffer[sum(map(len, lines_of(log)[:left])) + 100 :]
    note(writer, "after")
    finish(writer)
    assert sum(gaps(log).values()) == 10 - left
    assert len(aside) == 1
    assert judged(bytes(log.buffer), deep=True).integrity.verdict == "intact"


def test_a_timeline_that_was_cut_and_grew_again_is_followed() -> None:
    writer, log, _ = ledger()
    for number in range(10):
        note(writer, str(number))
    kept = b"".join(lines_of(log)[:3])
    del log.buffer[len(kept) :]
    other, _, _ = ledger(log=log)
    for number in range(20):
        note(other, f"other {number}")
    note(writer, "after")
    assert texts(log)[-1] == "after"
    assert gaps(log).get("timeline_cut", 0) >= 1
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


def test_an_event_that_may_refer_to_what_was_cut_off_is_refused() -> None:
    writer, log, _ = ledger()
    for number in range(5):
        note(writer, str(number))
    del log.buffer[len(lines_of(log)[0]) :]
    with pytest.raises(WriteFailed):
        writer.append("note.added", b'{"text":{"$same":"4#/text"}}')
    writer.append("note.added", b'{"text":"in full"}')
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


def test_garbage_put_after_the_last_line_by_somebody_else_is_set_aside() -> None:
    writer, log, aside = ledger()
    note(writer, "a")
    log.buffer += b"rm -rf"
    note(writer, "b")
    assert list(aside.values()) == [b"rm -rf"]
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


# Several writers


def test_writers_that_take_turns_make_one_dense_chain() -> None:
    log = MemoryLog()
    writers = [ledger(log=log)[0] for _ in range(3)]
    for number in range(60):
        note(writers[number * 7 % 3], str(number))
    finish(writers[2])
    found = judged(bytes(log.buffer), deep=True)
    assert (found.integrity.verdict, found.completeness.verdict, found.events) == ("intact", "complete", 61)
    assert texts(log) == [str(number) for number in range(60)]


def test_threads_on_one_writer_and_on_several_lose_nothing() -> None:
    log = MemoryLog()
    writers = [ledger(log=log)[0] for _ in range(3)]

    def work(name: int) -> None:
        for number in range(100):
            note(writers[name % 3], f"{name} {number}")

    threads = [threading.Thread(target=work, args=(name,)) for name in range(9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(texts(log)) == sorted(f"{name} {number}" for name in range(9) for number in range(100))
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


class StuckClock:
    """A wall clock that jumps, and a monotonic one that starts anywhere."""

    def __init__(self, wall_us: int, monotonic_us: int) -> None:
        self.wall, self.monotonic = wall_us, monotonic_us

    def wall_us(self) -> int:
        self.wall += 10
        return self.wall

    def monotonic_us(self) -> int:
        self.monotonic += 10
        return self.monotonic


@pytest.mark.parametrize("ahead_us", [-3_600_000_000, -1, 0, 1, 3_600_000_000])
@pytest.mark.parametrize("monotonic_us", [0, 5, 10**15])
def test_elapsed_time_never_goes_back_whoever_writes(ahead_us: int, monotonic_us: int) -> None:
    log = MemoryLog()
    first = ledger(log=log, clock=StuckClock(1_700_000_000_000_000, 10**9))[0]
    for _ in range(3):
        note(first)
    second = ledger(log=log, clock=StuckClock(1_700_000_000_000_000 + ahead_us, monotonic_us))[0]
    for number in range(30):
        note([first, second][number % 2])
    third = ledger(log=log, clock=StuckClock(0, 0))[0]
    note(third)
    note(first)
    elapsed = [event.elapsed_us for event in events_of(log)]
    assert elapsed == sorted(elapsed)
    assert min(elapsed) >= 0


def test_imported_times_are_kept_as_given_and_do_not_move_the_clock() -> None:
    writer, log, _ = ledger(clock=FakeClock(step_us=1000))
    note(writer)
    writer.append("a.b", b"{}", time_us=1, elapsed_us=10**12)
    writer.append("a.b", b"{}", time_us=2, elapsed_us=-5)
    note(writer)
    assert [event.elapsed_us for event in events_of(log)][1:3] == [10**12, -5]
    assert events_of(log)[3].elapsed_us < 10**6
    assert events_of(log)[1].time == "1970-01-01T00:00:00.000001Z"


def test_a_writer_joins_an_existing_run_where_it_ends() -> None:
    lines = timeline(5)
    log = MemoryLog()
    log.buffer += b"".join(lines)
    writer, _, _ = ledger(log=log)
    sealed = writer.append("a.b", b"{}", opens=True)
    assert sealed is not None
    assert (sealed.seq, sealed.span, sealed.offset) == (5, "5", sum(map(len, lines)))
    assert writer.head == (5, orjson.loads(lines_of(log)[5])["hash"])
    assert writer.line_at(sealed.offset) == lines_of(log)[5][:-1]
    finish(writer)
    assert judged(bytes(log.buffer), deep=True).completeness.verdict == "complete"


def test_a_writer_joins_a_run_whose_last_lines_are_large() -> None:
    log = MemoryLog()
    writer, _, _ = ledger(log=log)
    for size in (10, 70_000, 200_000, 65_536, 3):
        note(writer, "x" * size)
        note(ledger(log=log)[0], "y")
    finish(ledger(log=log)[0])
    assert judged(bytes(log.buffer), deep=True).completeness.verdict == "complete"


def test_the_declared_root_is_that_of_all_lines_whoever_wrote_them() -> None:
    log = MemoryLog()
    first, second = ledger(log=log)[0], ledger(log=log)[0]
    for number in range(7):
        note([first, second][number % 2])
    finish(first)
    note(second)
    finish(second)
    assert judged(bytes(log.buffer), deep=True).integrity.verdict == "intact"


def test_a_span_is_named_by_its_seq_unless_it_has_a_name() -> None:
    writer, log, _ = ledger()
    sealed = [writer.append("a.b", b"{}", opens=True), writer.append("a.b", b"{}", opens=True, span="mine"), note(writer)]
    assert [item.span for item in sealed] == ["0", "mine", None]
    assert [event.span for event in events_of(log)] == ["0", "mine", None]


def test_a_forked_copy_starts_with_no_losses_and_no_lock_of_its_parent() -> None:
    writer, log, _ = ledger()
    note(writer)
    writer.lose("parent", 3)
    writer.hold()
    locked = threading.Event()

    def child() -> None:
        writer.after_fork()
        note(writer, "child")
        locked.set()

    thread = threading.Thread(target=child)
    thread.start()
    thread.join(5)
    assert locked.is_set()
    assert gaps(log) == {}


def test_the_first_line_belongs_to_the_run() -> None:
    writer, log, _ = ledger()
    note(writer)
    assert events_of(log)[0].prev == envelope.genesis(RUN)
