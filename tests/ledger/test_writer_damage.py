"""A writer that finds a torn, damaged or cut timeline does the best that can be done, and says so."""

from __future__ import annotations

import threading

import pytest
from tests.ledger.logs import FailingLog, gaps, note, texts
from tests.ledger.timelines import OTHER, events_of, finish, judged, ledger, lines_of, timeline

from playhead.errors import WriteFailed
from playhead.event import envelope
from playhead.store.memory import MemoryLog


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


@pytest.mark.parametrize("left", range(10))
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


@pytest.mark.parametrize("left", range(10))
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


def test_an_event_made_before_another_thread_noticed_a_cut_is_refused() -> None:
    writer, log, _ = ledger()
    for number in range(5):
        note(writer, str(number))
    made_at = writer.cuts
    del log.buffer[len(lines_of(log)[0]) :]
    note(writer, "another thread")
    with pytest.raises(WriteFailed):
        writer.append("note.added", b'{"text":{"$same":"4#/text"}}', cuts=made_at)
    writer.append("note.added", b'{"text":{"$same":"0#/text"}}', cuts=writer.cuts)
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


def test_an_interrupt_while_following_others_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    log = MemoryLog()
    one, other = ledger(log=log)[0], ledger(log=log)[0]
    note(one, "a")
    note(other, "b")
    for interrupted in ("elapsed_of", "sound", "seq_of"):
        note(other, "meanwhile")
        with monkeypatch.context() as patched:
            patched.setattr(envelope, interrupted, _interrupt)
            with pytest.raises(KeyboardInterrupt):
                note(one, "never written")
        note(one, "c")
    finish(one)
    found = judged(bytes(log.buffer), deep=True)
    assert (found.integrity.verdict, found.completeness.verdict, found.gaps) == ("intact", "complete", {})


@pytest.mark.parametrize("place", ["acquire", "release"])
def test_the_lock_does_not_stay_when_a_signal_handler_raises(place: str) -> None:
    class Interrupted(MemoryLog):
        armed = False

        def acquire(self) -> int:
            size = super().acquire()
            self._signal("acquire")
            return size

        def release(self) -> None:
            self._signal("release")
            super().release()

        def _signal(self, where: str) -> None:
            if self.armed and where == place:
                self.armed = False
                raise KeyboardInterrupt

    log = Interrupted()
    one, other = ledger(log=log)[0], ledger(log=log)[0]
    note(one, "a")
    log.armed = True
    with pytest.raises(KeyboardInterrupt):
        note(one, "b")
    done = threading.Thread(target=note, args=(other, "c"), daemon=True)
    done.start()
    done.join(10)
    assert not done.is_alive()
    assert judged(bytes(log.buffer)).integrity.verdict == "intact"


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt
