"""The tape hands out recorded outcomes by lane, key and occurrence, and knows what nobody asked for."""

from __future__ import annotations

import threading

import playhead
from playhead.replay.lookup import Lookup
from playhead.replay.tape import Tape
from playhead.store.memory import MemoryStore
from playhead.store.reader import RunReader


@playhead.tool
def double(number: int) -> int:
    playhead.note("inside")
    return number * 2


def taped(store: MemoryStore) -> Tape:
    (run,) = store.runs()
    return Tape(RunReader(store, run))


def test_the_same_question_in_one_lane_is_answered_one_after_the_other() -> None:
    store = MemoryStore()
    with playhead.record("twice", store=store):
        with playhead.model_call(model="m", request={"ask": 1}) as call:
            call.respond("first")
        with playhead.model_call(model="m", request={"ask": 1}) as call:
            call.respond("second")
    tape = taped(store)
    key = tape.calls[0].key
    first, second = tape.take("0", key), tape.take("0", key)
    assert first is not None
    assert second is not None
    assert (first.data["response"], second.data["response"]) == ("first", "second")
    assert (first.occurrence, second.occurrence) == (0, 1)
    assert tape.take("0", key) is None
    assert tape.asked(key) == 2


def test_a_lane_gets_its_own_and_another_lane_what_is_left() -> None:
    store = MemoryStore()
    with playhead.record("lanes", store=store):

        def ask(answer: str) -> None:
            with playhead.model_call(model="m", request="same") as call:
                call.respond(answer)

        for answer in ("one", "two"):
            thread = threading.Thread(target=ask, args=(answer,))
            thread.start()
            thread.join()
    tape = taped(store)
    key = tape.calls[0].key
    second = tape.take("0.2", key)
    assert second is not None
    assert second.data["response"] == "two"
    other = tape.take("0.7", key)
    assert other is not None
    assert (other.data["response"], other.lane) == ("one", "0.1")


def test_what_nobody_asked_for_is_known() -> None:
    store = MemoryStore()
    with playhead.record("left", store=store):
        for number in (1, 2, 3):
            double(number)
    tape = taped(store)
    assert tape.take("0", tape.calls[1].key) is tape.calls[1]
    assert [call.seq for call in tape.unasked()] == [tape.calls[0].seq, tape.calls[2].seq]


def test_what_happened_inside_of_a_tool_is_no_part_of_it() -> None:
    store = MemoryStore()

    @playhead.tool
    def outer() -> int:
        return double(4)

    with playhead.record("nested", store=store):
        outer()
    tape = taped(store)
    assert [call.question.data["name"] for call in tape.calls] == ["outer"]


def test_it_is_pinned_to_a_head() -> None:
    store = MemoryStore()
    with playhead.record("pinned", store=store):
        double(1)
        double(2)
    (run,) = store.runs()
    whole = taped(store)
    cut = Tape(RunReader(store, run), whole.calls[0].closing)
    assert len(whole.calls) == 2
    assert len(cut.calls) == 1
    assert cut.head[0] == whole.calls[0].closing


def test_a_call_that_was_never_answered_has_no_answer() -> None:
    store = MemoryStore()
    run = playhead.record("crashed", store=store)
    run.__enter__()
    call = playhead.model_call(model="m", request="anyone there?")
    call.__enter__()
    tape = taped(store)
    found = tape.take("0", tape.calls[0].key)
    assert found is not None
    assert found.closing is None
    call.__exit__(None, None, None)
    run.__exit__(None, None, None)


def test_reads_are_handed_out_in_order_and_by_module() -> None:
    import time

    store = MemoryStore()
    playhead.install()
    try:
        with playhead.record("reads", store=store):
            told = [time.time_ns() for _ in range(3)]
    finally:
        playhead.uninstall()
    lookup = Lookup(taped(store))
    found = [lookup.next("0", "time.time_ns", __name__) for _ in range(3)]
    assert [one.value for one in found if one is not None] == told
    assert lookup.next("0", "time.time_ns", __name__) is None
