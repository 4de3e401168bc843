from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.event.plain import text_mark
from playhead.views import text
from playhead.views.points import words

marks = ["$str", "$blob", "$same", "$dict", "$tuple", "$object", "$error", "$as", "$enum"]
names = st.text() | st.sampled_from(marks)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(names, inner, max_size=4),
    max_leaves=20,
)


@given(values, st.integers(1, 200))
def test_any_value_is_said_in_one_line_of_bounded_width(value, width):
    for said in (text.short(value, width), text.arguments(value, width)):
        assert text.cells(said) <= width
        assert len(said) <= 4 * width


@given(st.text(st.characters() | st.sampled_from("日本e\u0301👍…")), st.integers(1, 30))
def test_a_cut_text_takes_no_more_columns_than_asked_and_says_that_it_was_cut(whole, width):
    said = text.cut(whole, width)
    assert text.cells(said) <= width
    assert said == whole or said.endswith("…")
    assert whole.startswith(said.removesuffix("…"))


def test_a_text_that_fits_is_not_cut_and_wide_letters_count_twice():
    assert text.cut("日本", 4) == "日本"
    assert text.cut("日本語", 5) == "日本…"
    assert text.cut("日本語", 4) == "日…"
    assert text.cut("cafe\u0301", 4) == "cafe\u0301"
    assert (text.cells("日本"), text.cells("cafe\u0301"), text.cells("👍")) == (4, 4, 2)


@given(st.text("ab 日\u0301"), st.integers(2, 12))
def test_wrapped_lines_lose_no_word_and_folded_ones_fit(whole, width):
    assert " ".join(text.wrap(whole, width)).split() == whole.split()
    folded = text.wrap(whole, width, fold=True)
    assert all(text.cells(line) <= width for line in folded)
    assert "".join("".join(folded).split()) == "".join(whole.split())


def test_a_word_that_is_too_long_stays_whole_so_that_it_can_be_copied():
    assert text.wrap("see run_0123456789 first", 8) == ["see", "run_0123456789", "first"]


@pytest.mark.parametrize(
    ("us", "said"),
    [
        (None, ""), (0, "0 µs"), (999, "999 µs"), (1234, "1.2 ms"), (12_345, "12 ms"), (1_234_567, "1.23 s"),
        (12_345_678, "12.3 s"), (61_000_000, "1 min 1 s"), (3_900_000_000, "1 h 5 min"), (400_000_000_000, "4 d 15 h"),
    ],
)  # fmt: skip
def test_a_duration_is_said_in_its_unit(us, said):
    assert text.duration(us) == said


def test_a_moment_is_said_as_how_long_ago():
    now = 1_700_000_000_000_000
    said = [text.ago(now - seconds * 1_000_000, now) for seconds in (1, 30, 90, 7200, 200_000, -5)]
    assert said == ["just now", "30 s ago", "1 min ago", "2 h ago", "2 d ago", "in the future"]
    assert text.ago(None, now) == ""


def test_marks_are_said_in_words_and_nothing_is_loaded():
    assert text.short({"$blob": "a" * 64, "len": 120_000, "as": "text"}, 80) == "<text, 120.0 kB>"
    assert text.short({"$redacted": "openai_key"}, 80) == "<redacted: openai_key>"
    assert text.short({"$tuple": [1, "a"]}, 80) == '(1, "a")'
    assert text.short({"$dict": [[1, 2], ["a", None]]}, 80) == '{1: 2, "a": null}'
    assert text.short({"$object": "app.Point", "fields": {"x": 1}}, 80) == "Point(x=1)"
    assert text.short({"$same": "3#/a"}, 80) == "<as in 3#/a>"
    assert text.short({"$same": "3#/a"}, 80, lambda value: "found") == '"found"'


def test_text_that_is_no_unicode_is_said_with_escapes_for_what_is_none():
    mark = text_mark("f\udcff.txt")
    assert text.short(mark, 60) == '"f\\udcff.txt"'
    assert words(text_mark("/x/" * 100 + "\udcff")) == "/x/" * 100 + "\\udcff"
    assert text.short({"$str": "no base64!"}, 60) == '"no base64!"'


def test_arguments_are_said_by_name():
    assert text.arguments({"path": "a.py", "n": 3}, 80) == 'path="a.py", n=3'
    assert text.arguments({"args": [1], "kwargs": {"b": 2}}, 80) == "1, b=2"
    assert text.arguments("plain", 80) == '"plain"'


def test_a_large_value_is_not_walked_to_its_end():
    class Endless(list):  # type: ignore[type-arg]
        def __iter__(self):  # type: ignore[no-untyped-def]
            for number in range(10_000):
                assert number < 1000, "walked too far"
                yield number

    assert text.short(Endless(), 50).endswith("…")


@given(st.lists(st.text("abc", min_size=6, max_size=6), min_size=2, max_size=20, unique=True), st.integers(1, 6))
def test_a_short_id_differs_from_every_other_id(ids, shortest):
    ids.sort()
    for at, id in enumerate(ids):
        neighbours = (ids[at - 1] if at else None, ids[at + 1] if at + 1 < len(ids) else None)
        short = text.unique_prefix(id, neighbours, shortest)
        assert len(short) >= shortest
        assert [other for other in ids if other.startswith(short)] == [id]


def test_sizes_and_numbers():
    assert [text.size(count) for count in (5, 1500, 2_000_000, 3_000_000_000_000)] == [
        "5 B",
        "1.5 kB",
        "2.0 MB",
        "3000.0 GB",
    ]
    assert text.several(1, "event") == "1 event"
    assert text.several(2000, "event") == "2,000 events"
    assert text.number(None) == ""
    assert text.error_line({"type": "ValueError", "message": "x"}) == "ValueError: x"
    assert text.error_line(None) is None


def test_what_lies_behind_an_error_is_said():
    inner = {"type": "ZeroDivisionError", "message": "division by zero", "frames": [{"file": "/x/a.py", "line": 3,
             "name": "f"}]}  # fmt: skip
    outer = {"type": "RuntimeError", "message": "outer", "cause": {"type": "KeyError", "message": "k", "cause": inner}}
    assert text.error_causes(outer) == ["caused by ZeroDivisionError: division by zero (a.py:3 in f)"]
    nested = {"type": "ExceptionGroup", "errors": [{"type": "A"}, {"type": "B", "cause": {"type": "C"}}]}
    group = {"type": "ExceptionGroup", "errors": [nested, {"type": "D"}, {"type": "E"}]}
    assert text.error_causes(group) == ["- A", "- B, caused by C", "- D", "- and 1 more"]
    placed = {"type": "E", "errors": [{"type": "A", "frames": [{"file": "/w/a.py", "line": 3, "name": "f"}]}]}
    assert text.error_causes(placed) == ["- A (a.py:3 in f)"]
    assert text.error_causes(None) == text.error_causes("odd") == text.error_causes({"type": "E", "cause": 3}) == []


def test_a_signal_is_said_by_name_where_the_name_is_the_same_everywhere():
    assert [text.signal_name(number) for number in (9, 15, 34)] == ["SIGKILL", "SIGTERM", "signal 34"]


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (["/home/a/agent.py", "/usr/lib/python3.11/urllib/request.py"], "agent.py:1 in f0"),
        (["/home/a/agent.py", "/home/a/.venv/lib/python3.11/site-packages/httpx/_client.py"], "agent.py:1 in f0"),
        (["a.py", "C:\\Python311\\Lib\\json\\decoder.py", "<frozen importlib._bootstrap>"], "a.py:1 in f0"),
        (["<string>", "/x/playhead/capture/tool.py"], "<string>:1 in f0"),
        (["/home/a/agent.py", "/home/a/lib/tools.py"], "tools.py:2 in f1"),
        (["/usr/lib/python3.11/asyncio/runners.py", "/usr/lib/python3.11/asyncio/tasks.py"], "tasks.py:2 in f1"),
    ],
)  # fmt: skip
def test_an_error_was_raised_where_the_program_was_last(files, said):
    frames = [{"file": file, "line": number + 1, "name": f"f{number}"} for number, file in enumerate(files)]
    assert text.error_place({"type": "E", "frames": frames}) == said


def test_an_error_without_frames_has_no_place():
    for error in (None, "no", {"frames": []}, {"frames": [1]}, {"frames": "x"}):
        assert text.error_place(error) is None
