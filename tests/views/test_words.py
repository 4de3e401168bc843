from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead import _limits
from playhead.views import text as views_text
from playhead.views.words import Piece, hunks, in_one_line, plain, rows, shown, words

TEXTS = st.text(st.sampled_from(list("ab .\n\t2é漢\x1b")) | st.characters(), max_size=80)


def told(left: str, right: str) -> list[str]:
    return [plain(line) for line in hunks(words(left, right))]


@given(TEXTS, TEXTS)
def test_the_pieces_make_both_texts_again(left: str, right: str) -> None:
    pieces = words(left, right)
    assert "".join(piece.text for piece in pieces if piece.how != "added") == left
    assert "".join(piece.text for piece in pieces if piece.how != "removed") == right
    assert all(piece.text for piece in pieces)
    assert all(piece.how == "same" for piece in pieces) == (left == right)


@given(TEXTS, TEXTS)
def test_rows_hold_all_of_both_texts(left: str, right: str) -> None:
    found = rows(words(left, right))
    for side, text in enumerate((left, right)):
        held = "".join(piece.text for row in found for piece in row[side])
        assert held.replace("\n", "") == text.replace("\n", "")
    assert all(row.left == row.right for row in found if row.same)


@given(TEXTS, TEXTS, st.integers(40, 120))
def test_lines_fit_and_hold_nothing_that_a_terminal_acts_on(left: str, right: str, width: int) -> None:
    for line in hunks(words(left, right), width):
        assert views_text.cells(plain(line)) <= width
        assert not set(plain(line)) & {"\n", "\x1b", "\r", "\u202e"}


@given(TEXTS, st.integers(12, 60))
def test_a_text_is_shown_in_the_room_there_is(text: str, width: int) -> None:
    assert views_text.cells(shown(text, width)) <= width


def test_one_changed_word_stands_with_a_few_words_around_it() -> None:
    before = "one two three four five six seven eight nine ten the year is 2025 and "
    after = "so on it goes for a long while until nobody remembers what was said at the beginning"
    assert told(before + after, before.replace("2025", "2026") + after) == [
        "… eight nine ten the year is [-2025-] {+2026+} and so on it goes for …"
    ]


def test_in_one_line_what_stands_between_two_changes_is_there_once() -> None:
    left = "normalise() strips spaces but keeps capitals. Compare addresses in lower case, then run all of the checks."
    right = "normalise() keeps capitals. Compare addresses case-folded, then run all of the checks."
    assert in_one_line(words(left, right)) == (
        "normalise() [-strips spaces but -]keeps capitals. Compare addresses [-in lower case-] {+case-folded+}, then run"
        " all of the …"
    )
    far = "word " * 40
    found = in_one_line(words(f"a1 {far}b1", f"a2 {far}b2"))
    assert found.startswith("[-a1-] {+a2+} word ")
    assert found.endswith(" word [-b1-] {+b2+}")
    assert found.count(" … ") == 1
    assert len(found) < 130
    assert in_one_line(words("one\ntwo\n", "one\nthree\n")) == "line 2: [-two-] {+three+}"


def test_in_a_text_of_several_lines_each_change_names_its_line() -> None:
    left = "You are careful.\nThe year is 2025.\nAnswer in one sentence.\n"
    right = "You are careful.\nThe year is 2026.\nAnswer in two sentences.\n"
    assert told(left, right) == [
        "line 2: The year is [-2025-] {+2026+}.",
        "line 3: Answer in [-one sentence-] {+two sentences+}.",
    ]


def test_an_inserted_line_is_one_change_and_the_rest_stays_the_same() -> None:
    left = "".join(f"rule {number}\n" for number in range(50))
    right = left.replace("rule 20\n", "rule 20\nnever guess\n")
    assert [piece for piece in words(left, right) if piece.how != "same"] == [Piece("added", "never guess\n")]
    assert told(left, right) == ["line 22: {+never guess⏎+}rule 21"]


@pytest.mark.parametrize("changed", ["来去", "xy"])
@pytest.mark.parametrize(
    "letters", ["今天天气很好我们一起去", "ひらがなとカタカナ", "สวสดครบ", "8fd2c1", "{a:1,b:2}", "한국어"]
)
def test_in_a_long_text_without_spaces_the_place_that_differs_is_shown(letters: str, changed: str) -> None:
    for times in (20, 20_000):
        left, right = (letters * times + one + letters * times for one in changed)
        (line,) = told(left, right)
        before, after = line.split(f"[-{changed[0]}-] {{+{changed[1]}+}}")
        assert before.endswith(letters[-3:])
        assert after.startswith(letters[:3])


def test_texts_without_spaces_that_have_little_in_common_are_one_change() -> None:
    assert told("我想去公园", "他要去图书馆") == ["[-我想去公园-] {+他要去图书馆+}"]
    assert told("understanding", "understandable") == ["[-understanding-] {+understandable+}"]


def test_a_word_that_got_longer_says_by_what() -> None:
    assert words("x" * 40, "x" * 40 + "y") == [Piece("same", "x" * 40), Piece("added", "y")]


def test_removed_text_is_red_and_added_text_green() -> None:
    assert [part for part in hunks(words("a b c", "a d c"))[0] if isinstance(part, tuple)] == [
        ("[-b-]", "red"),
        ("{+d+}", "green"),
    ]


def test_a_long_piece_is_shown_by_its_ends() -> None:
    line = told("x", "the beginning " + "blah " * 100 + "the end")[0]
    assert "the beginning" in line
    assert "the end" in line
    assert " … " in line


def test_texts_too_long_for_words_are_compared_at_their_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "DIFFERENCE_WORDS_MAX", 10)
    left, right = "a " * 20 + "x y" + " b" * 20, "a " * 20 + "y z" + " b" * 20
    assert words(left, right) == [
        Piece("same", "a " * 20),
        Piece("removed", "x y"),
        Piece("added", "y z"),
        Piece("same", " b" * 20),
    ]


def test_megabytes_are_compared_without_harm() -> None:
    left, right = "lorem ipsum " * 200_000 + "2025", "lorem ipsum " * 200_000 + "2026"
    assert [piece for piece in words(left, right) if piece.how != "same"] == [
        Piece("removed", "5"),
        Piece("added", "6"),
    ]
    assert len(told("a" * 3_000_000, "b" * 3_000_000)[0]) <= 120
