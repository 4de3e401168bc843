"""Repeated content is written once, and every value comes back as it was."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.event.values import json_values

from playhead import _limits
from playhead.errors import MissingContent
from playhead.event.plainer import Plainer
from playhead.event.references import Held
from playhead.event.resolve import Resolver, has_references

LONG = "lorem ipsum dolor sit amet " * 12  # over the limit from which content is referred to


class Lines:
    """Write data as a recording does, and read it back: one writer, lines in memory."""

    def __init__(self) -> None:
        self.encoded: list[bytes] = []
        self.blobs: dict[str, bytes] = {}
        self.held = Held(self.read)

    def read(self, seq: int) -> Any:
        return orjson.loads(self.encoded[seq])

    def write(self, value: dict[str, Any], held: Held | None = None) -> int:
        held = held or self.held
        plainer = Plainer()
        encoded, news = held.encode(plainer.value(value), plainer)
        self.blobs.update(plainer.blobs)
        self.encoded.append(encoded)
        seq = len(self.encoded) - 1
        if news is not None:
            held.remember(seq, news, seq, len(encoded), held.known)  # the seq serves as the offset
        return seq

    def resolver(self, private: Callable[[str], bytes | None] | None = None) -> Resolver:
        return Resolver(self.read, self.blobs.__getitem__, private)

    def resolved(self, seq: int, resolver: Resolver | None = None) -> bytes:
        return orjson.dumps((resolver or self.resolver()).resolve(self.read(seq)))


def check(values: list[dict[str, Any]], seed: int = 0) -> Lines:
    """Write all values; each must come back byte for byte, read in order, backwards and at random."""
    lines = Lines()
    expected = [orjson.dumps(value) for value in values]
    for value in values:
        lines.write(value)
    assert [orjson.dumps(value) for value in values] == expected, "writing changed a value of the agent"
    order = list(range(len(values)))
    shared = lines.resolver()
    for seq in order:
        assert lines.resolved(seq, shared) == expected[seq]
    for seq in reversed(order):
        assert lines.resolved(seq) == expected[seq]
    shared = lines.resolver()
    random.Random(seed).shuffle(order)
    for seq in order:
        assert lines.resolved(seq, shared) == expected[seq]
    for seq, line in enumerate(lines.encoded):
        _refers_to_earlier(orjson.loads(line), seq)
    return lines


def _refers_to_earlier(value: Any, seq: int) -> None:
    if isinstance(value, list):
        for item in value:
            _refers_to_earlier(item, seq)
    elif isinstance(value, dict):
        for name in ("$same", "$extends"):
            if name in value:
                assert int(value[name].partition("#")[0]) < seq
        for item in value.values():
            _refers_to_earlier(item, seq)


# Small alphabets, so that values collide, begin alike and differ in what Python's == calls equal.
parts = st.sampled_from(
    [0, 1, True, False, 1.0, 0.0, -0.0, 12, 123, None, "", "1", LONG, LONG + "!", "x" * 300, "ü" * 300, "a" * 9000,
     "b" * 33_000, "😀" * 9000, [], {}, [1], [12], {"a": 1}, {"a": True}, {"a": 1.0}, [LONG], [[LONG]], {"t": LONG, "n": 1},
     {"role": "user", "content": LONG}, {"role": "user", "content": LONG, "n": 1.0}, {"~": LONG, "/": LONG, "~1": [LONG], "": LONG},
     {str(number): number for number in range(60)}, {str(number): float(number) for number in range(60)},
     list(range(100)), [*range(99), 990], [True] * 90, [1] * 90, [1.0] * 90, [[1] * 90, [1] * 91]]
)  # fmt: skip
arrays = st.lists(parts, max_size=12)
edits = st.lists(
    st.tuples(
        st.sampled_from(["extend", "cut", "edit", "fork", "new", "same", "nest", "twice"]), st.integers(0, 30), arrays
    ),
    min_size=1,
    max_size=14,
)


def conversation(steps: list[tuple[str, int, list[Any]]]) -> list[dict[str, Any]]:
    """Make a sequence of events whose arrays grow, are cut, edited and forked."""
    histories: list[list[Any]] = [[]]
    out: list[dict[str, Any]] = []
    for what, number, items in steps:
        base = histories[number % len(histories)]
        match what:
            case "extend":
                new = base + items
            case "cut":
                new = base[: number % (len(base) + 1)]
            case "edit" if base:
                at = number % len(base)
                new = base[:at] + items[:1] + base[at + 1 :]
            case "fork":
                new = base[: number % (len(base) + 1)] + items
            case "same":
                new = list(base)
            case "nest":
                new = [base, {"inner": base, "items": items}]
            case "twice":
                new = base + base
            case _:
                new = items
        histories.append(new)
        out.append({"request": {"messages": new, "model": "m"}, "n": number, LONG: {"also": items}})
    return out


@given(edits, st.integers(0, 9))
@settings(max_examples=150)
def test_any_history_comes_back_byte_for_byte(steps: list[tuple[str, int, list[Any]]], seed: int) -> None:
    check(conversation(steps), seed)


@pytest.mark.hard
@given(edits, st.integers(0, 9))
@settings(max_examples=5000)
def test_any_history_comes_back_byte_for_byte_many_times(steps: list[tuple[str, int, list[Any]]], seed: int) -> None:
    check(conversation(steps), seed)


@given(st.lists(st.dictionaries(st.sampled_from(["a", "b", "~0", "a/b"]), parts | json_values, max_size=4), max_size=8))
@settings(max_examples=150)
def test_any_values_come_back_byte_for_byte(values: list[dict[str, Any]]) -> None:
    check([value for value in values if b'"$' not in orjson.dumps(value)])


def test_what_python_calls_equal_is_not_the_same_content() -> None:
    values = [{"v": [item] * 200} for item in (1, True, 1.0, 0, False, 0.0, -0.0, "1")]
    values += [{"v": {str(n): item for n in range(60)}} for item in (1, True, 1.0, "1", "true", "1.0")]
    check(values)


@pytest.mark.parametrize(
    "tail", [[1], [12], [1, 2], [1, 23], ["a"], ["ab"], [None], [[1]], [[1, 2]], [{}], [{"a": 1}]], ids=str
)
@pytest.mark.parametrize("again", [[1], [12], [123], [1, 2], ["a"], ["abc"], [[]], [[1, 2, 3]], [{"a": 12}]], ids=str)
def test_an_item_that_begins_like_another_is_not_that_item(tail: list[Any], again: list[Any]) -> None:
    start = ["x" * 100] * 5
    check(
        [
            {"m": start + tail},
            {"m": start + again},
            {"m": start + tail + again},
            {"m": start + again + tail},
            {"m": start},
        ]
    )


def test_repeated_content_is_a_reference_and_small_content_is_not() -> None:
    lines = check([{"a": LONG, "b": "short"}, {"c": {"deep": [LONG, "short"]}}])
    assert orjson.loads(lines.encoded[1]) == {"c": {"deep": [{"$same": "0#/a"}, "short"]}}


def test_content_at_the_limit_is_written_and_over_it_referred_to() -> None:
    at, over = "x" * _limits.REFERENCE_BYTES_MIN, "y" * (_limits.REFERENCE_BYTES_MIN + 1)
    lines = check([{"a": at, "b": over}, {"a": at, "b": over}])
    assert orjson.loads(lines.encoded[1]) == {"a": at, "b": {"$same": "0#/b"}}


def test_a_growing_array_is_an_extension() -> None:
    first = [{"role": "user", "content": LONG}, {"role": "assistant", "content": "no"}]
    lines = check([{"m": first}, {"m": [*first, {"role": "user", "content": "why"}]}])
    assert orjson.loads(lines.encoded[1]) == {
        "m": {"$extends": "0#/m", "keep": 2, "then": [{"role": "user", "content": "why"}]}
    }


def test_an_edited_array_keeps_what_stands_before_the_edit() -> None:
    base = [{"n": number, "text": f"message {number} " * 5} for number in range(20)]
    edited = [*base[:15], {"n": 15, "text": "another"}, *base[16:]]
    lines = check([{"m": base}, {"m": edited}])
    assert orjson.loads(lines.encoded[1])["m"]["$extends"] == "0#/m"
    assert orjson.loads(lines.encoded[1])["m"]["keep"] == 15


def test_branches_of_one_conversation_are_each_extended() -> None:
    base: list[Any] = [{"n": number, "text": "hello " * 10} for number in range(10)]
    branches = [list(base) for _ in range(4)]
    values = []
    for turn in range(12):
        for number, branch in enumerate(branches):
            branch.append({"branch": number, "turn": turn, "text": f"{number} {turn} " * 8})
            values.append({"m": list(branch)})
    lines = check(values)
    assert max(len(line) for line in lines.encoded[4:]) < 600


def test_a_conversation_among_many_other_arrays_stays_an_extension() -> None:
    history: list[Any] = [{"n": number, "text": "hello " * 10} for number in range(40)]
    values: list[dict[str, Any]] = []
    for turn in range(30):
        history = [*history, {"turn": turn}]
        values.append({"m": history})
        values += [{"other": [f"{turn} {number}"] * 100} for number in range(10)]
    lines = check(values)
    assert all(len(line) < 300 for line in lines.encoded[11::11])


def test_large_values_go_to_blobs_and_come_back() -> None:
    values: list[dict[str, Any]] = [
        {
            "text": "a" * 100_000,
            "wide": "ü" * 20_000,
            "list": list(range(20_000)),
            "table": {str(n): n for n in range(9000)},
        },
        {"text": "a" * 100_000, "list": [*range(20_000), 5], "nested": [["b" * 40_000, {"c": ["d" * 40_000] * 3}] * 2]},
        {"list": [*range(20_000), 5, 6], "part": ["d" * 40_000]},
    ]
    lines = check(values)
    assert all(len(line) < _limits.INLINE_BYTES_MAX + 1000 for line in lines.encoded)
    assert all(hashlib.sha256(data).hexdigest() == digest for digest, data in lines.blobs.items())


def test_content_inside_a_blob_can_be_referred_to() -> None:
    inner = {"k": "v" * 500, "n": [1] * 300}
    check(
        [
            {"big": [inner, "f" * 600, *range(20_000)]},
            {"again": inner, "f": "f" * 600},
            {"n": [1] * 300, "k": "v" * 500},
        ]
    )


def test_a_chain_of_three_thousand_turns_resolves_without_recursion_and_reads_in_linear_time() -> None:
    lines = Lines()
    history: list[Any] = [LONG]
    for turn in range(3000):
        history.append({"turn": turn})
        lines.write({"m": history})
    expected = orjson.dumps({"m": history})
    assert lines.resolved(2999) == expected
    reads = 0
    read = lines.read

    def counted(seq: int) -> Any:
        nonlocal reads
        reads += 1
        return read(seq)

    resolver = Resolver(counted, lines.blobs.__getitem__)
    for seq in range(3000):
        data = read(seq)
        assert len(resolver.resolve(data)["m"]) == seq + 2
    assert reads < 9000
    assert orjson.dumps(resolver.resolve(read(2999))) == expected


def test_two_hundred_turns_cost_what_is_new() -> None:
    def text(seed: int, size: int) -> str:
        made = random.Random(seed)
        return "".join(made.choice("abcdefghij klmnop") for _ in range(size))

    tools = [{"name": f"tool_{n}", "description": text(n, 1800), "parameters": {"type": "object"}} for n in range(11)]
    distinct = len(orjson.dumps(tools))
    history: list[Any] = []
    lines = Lines()
    naive = 0
    for turn in range(200):
        history.append({"role": "user" if turn % 2 else "assistant", "content": text(1000 + turn, 1000)})
        distinct += len(orjson.dumps(history[-1]))
        request = {"model": "m", "messages": history, "tools": tools}
        naive += len(orjson.dumps(request))
        lines.write({"provider": "p", "request": request})
    written = sum(map(len, lines.encoded))
    assert written <= 1.2 * distinct
    assert naive > 50 * written
    assert lines.resolved(199) == orjson.dumps({"provider": "p", "request": request})


def test_what_was_forgotten_is_written_in_full_again() -> None:
    lines = Lines()
    lines.write({"a": LONG, "m": [LONG, 1]})
    lines.held.forget()
    seq = lines.write({"a": LONG, "m": [LONG, 1]})
    assert not has_references(lines.encoded[seq])
    assert has_references(lines.encoded[lines.write({"a": LONG})])


def test_a_writer_forgets_when_it_holds_too_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "HELD_BYTES_MAX", 100_000)
    lines = Lines()
    values = [{"t": f"{number} " * 200, "m": [f"{number % 7} " * 200] * 2} for number in range(400)]
    for value in values:
        lines.write(value)
        assert lines.held.held_bytes <= 100_000
    assert [lines.resolved(seq) for seq in range(400)] == [orjson.dumps(value) for value in values]


def test_a_second_writer_never_refers_to_lines_of_the_first() -> None:
    lines = Lines()
    other = Held(lines.read)
    lines.write({"a": LONG})
    seq = lines.write({"a": LONG}, other)
    assert not has_references(lines.encoded[seq])
    lines.write({"b": LONG}, other)
    assert orjson.loads(lines.encoded[-1]) == {"b": {"$same": f"{seq}#/a"}}


def test_text_with_lone_surrogates_is_handed_to_the_careful_walk() -> None:
    lines = Lines()
    with pytest.raises((TypeError, UnicodeEncodeError)):  # both are what the gate tries again after
        lines.write({"a": "\ud800" * 40_000})


# What a reader must bear


def test_a_commitment_is_read_while_its_bytes_exist_and_stays_when_they_were_erased() -> None:
    form = {"$commit": "c" * 64, "len": 9}
    resolver = Resolver(
        lambda seq: {}, lambda digest: b"", lambda commitment: b'{"x":[1]}' if commitment == "c" * 64 else None
    )
    assert resolver.resolve({"a": [form]}) == {"a": [{"x": [1]}]}
    assert Resolver(lambda seq: {}, lambda digest: b"", lambda commitment: None).resolve({"a": form}) == {"a": form}
    assert Resolver(lambda seq: {}, lambda digest: b"").resolve({"a": form}) == {"a": form}


HOSTILE: list[Any] = [
    {"$same": "0#/a"}, {"$same": "0#"}, {"$same": "0#/a/b"}, {"$same": "7#/a"}, {"$same": "x"}, {"$same": None}, {"$same": "0#/a/9"},
    {"$extends": "0#/a", "keep": 1, "then": []}, {"$extends": "0#/a/0", "keep": 1, "then": []}, {"$extends": "0#/b", "keep": 1, "then": []},
    {"$extends": "0#/list", "keep": 99, "then": []}, {"$extends": "0#/list", "keep": "x", "then": []}, {"$extends": "0#/list"},
    {"$extends": "0#/text", "keep": 0, "then": []}, {"$blob": "f" * 64, "len": 1, "as": "json"}, {"$blob": None},
    {"$blob": "b" * 64, "as": "text"}, {"$blob": "b" * 64, "as": "json"}, {"$commit": None}, {"$extends": {"$same": 1}},
]  # fmt: skip


@pytest.mark.parametrize("form", HOSTILE, ids=range(len(HOSTILE)))
def test_references_made_to_mislead_are_refused_and_never_hang(form: Any) -> None:
    data = {"a": form, "list": [1, 2], "text": "t", "b": {"$same": "1#/a"}}

    def fetch(seq: int) -> Any:
        return [data, {"a": {"$same": "0#/b"}}][seq]

    def blob(digest: str) -> bytes:
        if digest == "b" * 64:
            return b"\xff"
        raise MissingContent("gone")

    try:
        Resolver(fetch, blob, lambda commitment: None).resolve(data)
    except MissingContent:
        return
    assert form == {"$commit": None}


def test_a_cached_value_is_not_shared_between_turns_in_a_way_that_grows() -> None:
    lines = Lines()
    base = [LONG] * 3
    for value in ({"m": base}, {"m": [*base, 1]}, {"m": [*base, 2]}):
        lines.write(value)
    resolver = lines.resolver()
    assert [len(resolver.resolve(lines.read(seq))["m"]) for seq in (1, 2, 1, 2, 0)] == [4, 4, 4, 4, 3]


def test_small_arrays_are_not_remembered() -> None:
    lines = Lines()
    for number in range(20):
        rows = [[number, at] for at in range(40)]
        lines.write({"text": f"{number} " * 100, "tags": ["a"], "stop": [{"at": "end"}], "rows": rows})
    arrays = [key for key in lines.held.known if isinstance(key, bytes) and key.startswith(b"[")]
    assert len(arrays) == 20, "one for the rows of each event, none for the rows themselves, the tags, the stops"


def test_what_was_forgotten_while_a_line_was_written_is_not_remembered() -> None:
    lines = Lines()
    known, plainer = lines.held.known, Plainer()
    encoded, news = lines.held.encode(plainer.value({"text": "x" * 500}), plainer)
    lines.held.forget()
    assert news is not None
    lines.held.remember(0, news, 0, len(encoded), known)
    assert lines.held.known == {}


def test_deep_values_are_referred_to_like_others() -> None:
    lines = Lines()
    deep: Any = "bottom"
    for _ in range(98):
        deep = [deep]
    for _ in range(3):
        lines.write({"deep": deep, "text": "x" * 5000})
    assert len(lines.encoded[1]) < 1000
