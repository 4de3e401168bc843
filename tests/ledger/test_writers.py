"""Several writers of one run make one dense chain, in which time never goes back."""

from __future__ import annotations

import threading

import orjson
import pytest
from tests.ledger.logs import gaps, note, texts
from tests.ledger.timelines import RUN, events_of, finish, judged, ledger, lines_of, timeline

from playhead._clock import FakeClock, parse_utc
from playhead.event import envelope
from playhead.ledger import writer
from playhead.store.memory import MemoryLog


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


def test_a_second_writer_misses_no_time_while_it_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    class Clock:
        now = 1_700_000_000_000_000

        def wall_us(self) -> int:
            return self.now

        def monotonic_us(self) -> int:
            return self.now

    def slow(text: str) -> int:
        clock.now += 1_000_000  # the first call imports a module
        return parse_utc(text)

    log, clock = MemoryLog(), Clock()
    note(ledger(log=log, clock=clock)[0])
    monkeypatch.setattr(writer, "parse_utc", slow)
    note(ledger(log=log, clock=clock)[0])
    assert [event.elapsed_us for event in events_of(log)] == [0, 1_000_000]


def test_imported_times_are_kept_as_given_and_do_not_move_the_clock() -> None:
    one, log, _ = ledger(clock=FakeClock(step_us=1000))
    note(one)
    one.append("a.b", b"{}", time_us=1, elapsed_us=10**12)
    one.append("a.b", b"{}", time_us=2, elapsed_us=-5)
    note(one)
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
    sealed = [
        writer.append("a.b", b"{}", opens=True),
        writer.append("a.b", b"{}", opens=True, span="mine"),
        note(writer),
    ]
    assert [item.span for item in sealed] == ["0", "mine", None]
    assert [event.span for event in events_of(log)] == ["0", "mine", None]


def test_a_forked_copy_starts_with_no_losses_and_no_lock_of_its_parent() -> None:
    writer, log, _ = ledger()
    note(writer)
    writer.lose("parent", 3)
    writer.lock.acquire()
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
