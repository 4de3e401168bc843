from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from playhead import _limits
from playhead.cli.beside import beside
from playhead.views import text
from playhead.views.words import plain


def laid_out(left: str, right: str, width: int = 60) -> list[str]:
    return [plain(line).rstrip() for line in beside(left, right, width, unicode=True)]


def test_what_changed_far_down_a_text_is_shown_and_what_is_the_same_is_counted():
    lines = [f"line {number}" for number in range(1000)]
    other = [*lines[:700], "changed", *lines[701:]]
    assert laid_out("\n".join(lines), "\n".join(other)) == [
        "… 698 lines the same",
        "line 698                     │  line 698",
        "line 699                     │  line 699",
        "line 700                     │  changed",
        "line 701                     │  line 701",
        "line 702                     │  line 702",
        "… 297 lines the same",
    ]


def test_lines_that_came_leave_those_after_them_beside_each_other():
    assert laid_out("a\nb\n", "a\nx\ny\nb\n") == [
        "a                            │  a",
        "                             │  x",
        "                             │  y",
        "b                            │  b",
    ]


def test_of_a_long_line_what_changed_is_shown():
    start, end = "word " * 2000, " more" * 2000
    told = laid_out(f"{start}old{end}", f"{start}new{end}")
    assert len(told) < 12
    assert "old" in "".join(told)
    assert "new" in "".join(told)


def test_more_than_fits_is_counted():
    told = laid_out("\n".join("a" * 100), "\n".join("b" * 100))
    assert told[-1] == "… 40 more lines; --json has all"
    assert len(told) == _limits.DEVIATION_LINES_MAX + 1


TEXTS = st.text(st.sampled_from("ab \n\t漢🎉\u202e\x1b"), max_size=80)


@given(TEXTS, TEXTS, st.integers(20, 80))
def test_no_line_is_wider_than_there_is_room(left: str, right: str, width: int):
    for line in beside(left, right, width, unicode=True):
        assert text.cells(plain(line)) <= width
