"""What a lane read, packed into one event and taken out again."""

from __future__ import annotations

import struct
import uuid

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.capture import hooks, packs
from playhead.errors import BrokenLine
from playhead.event import reads
from playhead.event.reads import BYTES, INT, NS, VALUES, Read

TAPS = [packs.Tap, *([hooks.compiled.Tap] if hooks.compiled is not None else [])]


def data_of(order: str, groups: list[reads.Group]) -> dict[str, object]:
    fields, members = reads.written(order, groups)
    encoded = orjson.dumps(fields)
    comma = b"," if fields and members else b""
    loaded: dict[str, object] = orjson.loads(encoded[:-1] + comma + members + b"}")
    return loaded


def test_a_clock_costs_a_few_bytes_and_comes_back_exactly() -> None:
    seconds = [(1794757338415924735 + step * 1_000_003) / 1e9 for step in range(1000)]  # as Python makes them
    tap = packs.Tap(lambda pack: None, lambda *_: None, 10**6, 10**6)
    pack = tap.pack("0")
    for value in seconds:
        pack.add_number("time.time", "agent", round(value * 1e9 / 256) * 256)
    order, groups, _ = pack.take()
    _, members = reads.written(order, groups)
    assert len(members) / len(seconds) <= 12
    assert [read.value for read in reads.read(data_of(order, groups))] == seconds


def test_no_number_of_a_group_is_larger_than_every_reader_can_hold() -> None:
    groups: list[reads.Group] = [("time.time_ns", "agent", NS, 2, b"1794757338415932659,7", None)]
    (group,) = data_of("", groups)["packed"]  # type: ignore[misc]
    assert max(*group["at"], *group["ns"]) < 2**53
    assert [read.value for read in reads.read({"packed": [group]})] == [1794757338415932659, 1794757338415932666]


def test_the_order_among_groups_comes_back_wherever_their_values_are_kept() -> None:
    groups: list[reads.Group] = [
        ("os.environ", "agent", VALUES, 2, [{"A": "1"}, {"B": None}], None),
        ("time.time_ns", "agent", NS, 2, b"5,1", None),
        ("os.getpid", "library", INT, 1, b"77", None),
    ]
    found = reads.read(data_of("abcba", groups))
    assert [(read.of, read.value) for read in found] == [
        ("os.environ", {"A": "1"}),
        ("time.time_ns", 5),
        ("os.getpid", 77),
        ("time.time_ns", 6),
        ("os.environ", {"B": None}),
    ]


def test_random_bytes_are_told_as_what_was_made_of_them() -> None:
    raw, unit = bytes(range(16)), struct.pack("<d", 0.25)
    groups: list[reads.Group] = [
        ("uuid.uuid4:os.urandom", "agent", BYTES, 1, raw, 16),
        ("secrets.token_hex:os.urandom", "agent", BYTES, 1, raw[:4], 4),
        ("os.urandom", "agent", BYTES, 2, raw[:5], b"2,3"),
        ("random.random", "agent", BYTES, 1, unit, 8),
        ("random.Random.randint:random.getrandbits", "agent", BYTES, 2, b"\x05", b"0,1"),
    ]
    found = reads.read(data_of("abc2de2", groups))
    assert [read.value for read in found] == [
        str(uuid.UUID(bytes=raw, version=4)), "00010203", raw[:2], raw[2:5], 0.25, 0, 5,
    ]  # fmt: skip
    assert (found[0].of, found[0].via, found[2].via) == ("os.urandom", "uuid.uuid4", "")


def test_moments_are_told_as_dates() -> None:
    day = 20_000 * 86400 * 10**9
    groups: list[reads.Group] = [
        ("datetime.datetime.now", "a", NS, 2, b"%d,1" % day, None),  # the second with its fold set
        ("datetime.datetime.now(tz)", "a", NS, 1, b"%d" % (day + 1000), None),
        ("datetime.date.today", "a", NS, 1, b"%d" % day, None),
        ("time.localtime", "a", NS, 1, b"%d" % day, None),
    ]
    told = [read.value for read in reads.read(data_of("a2bcd", groups))]
    assert told == [
        "2024-10-04T00:00:00", "2024-10-04T00:00:00", "2024-10-04T00:00:00.000001+00:00", "2024-10-04", day / 1e9,
    ]  # fmt: skip


@pytest.mark.parametrize("data", [
    {"packed": [{"of": "time.time"}]},
    {"packed": [{"of": "os.urandom", "by": "a", "bytes": "?", "sizes": 1}]},
    {"packed": [{"of": "os.getpid", "by": "a", "values": [1]}], "order": "b"},
    {"packed": [{"of": "os.getpid", "by": "a", "values": [1]}], "order": "a2"},
    {"reads": 5},
])  # fmt: skip
def test_what_is_not_in_this_form_is_a_broken_line_and_can_still_be_counted(data: dict[str, object]) -> None:
    with pytest.raises(BrokenLine):
        reads.read(data)
    if data != {"reads": 5}:
        assert reads.count(data) >= 1


def test_reads_as_they_were_written_at_first_are_read() -> None:
    assert reads.read({"reads": [["clock", 1.5]]}) == [Read("clock", "", "", 1.5)]


@given(st.lists(st.one_of(
    st.tuples(st.just("value"), st.sampled_from("xy"), st.integers(0, 9)),
    st.tuples(st.just("bytes"), st.sampled_from("xy"), st.binary(max_size=5)),
)))  # fmt: skip
def test_whatever_is_added_comes_back_in_order_from_every_kind_of_pack(added: list[tuple[str, str, object]]) -> None:
    for make in TAPS:
        pack = make(lambda pack: None, lambda *_: None, 10**6, 10**6).pack("0")
        for how, by, value in added:
            if how == "bytes" and hasattr(pack, "add_bytes"):
                pack.add_bytes("os.urandom", by, value)
            else:
                pack.add(how, by, value)
        assert pack.count == len(added)
        order, groups, _ = pack.take()
        assert sum(group[3] for group in groups) == len(added) == reads.count(fields := data_or_nothing(order, groups))
        if not any(how == "bytes" for how, _, _ in added):
            assert [(read.of, read.by, read.value) for read in reads.read(fields)] == added
        assert pack.count == 0


def data_or_nothing(order: str, groups: list[reads.Group]) -> dict[str, object]:
    plain = [
        (*group[:4], [str(value) for value in group[4]], group[5]) if group[0] == "bytes" else group for group in groups
    ]
    return data_of(order, plain) if groups else {}  # type: ignore[arg-type]


@pytest.mark.parametrize("make", TAPS)
def test_a_pack_is_sealed_when_it_is_full_and_nothing_is_kept_beyond_the_limit(make: type) -> None:
    sealed: list[int] = []
    full: list[tuple[str, str]] = []

    def seal(pack: packs.Pack) -> None:
        sealed.append(sum(group[3] for group in pack.take()[1]))

    tap = make(seal, lambda of, by: full.append((of, by)), 25, 10)
    pack = tap.pack("0.1")
    assert pack.lane == "0.1"
    for number in range(40):
        pack.add("os.environ", "agent", number)
    assert (sealed, pack.count, full) == ([10, 10], 5, [("os.environ", "agent")])
    assert tap.waiting() == [pack]
    tap.open = 0
    pack.add("os.environ", "agent", 1)
    assert pack.count == 5
    pack.take()
    assert tap.waiting() == []


@pytest.mark.parametrize("make", TAPS)
def test_a_pack_keeps_the_span_of_its_first_read(make: type) -> None:
    pack = make(lambda pack: None, lambda *_: None, 100, 100).pack("0")
    pack.add("a", "b", 1, 10, "7")
    pack.add("a", "b", 1, 10, "8")
    assert pack.take()[2] == "7"
    pack.add("a", "b", 1)
    assert pack.take()[2] is None


@pytest.mark.parametrize("make", TAPS)
def test_a_pack_has_no_more_groups_than_there_are_letters(make: type) -> None:
    taken: list[tuple[str, list[reads.Group]]] = []
    tap = make(lambda pack: taken.append(pack.take()[:2]), lambda *_: None, 10**6, 10**6)
    pack = tap.pack("0")
    for number in range(130):
        pack.add("source", f"module{number}", number)
    taken.append(pack.take()[:2])
    assert [len(groups) for _, groups in taken] == [51, 51, 28]
    assert [read.value for order, groups in taken for read in reads.read(data_of(order, groups))] == list(range(130))
