from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from playhead.cli.table import Table
from playhead.views import text


def laid(width: int, columns: list[str], rows: list[list[str]], **options: object) -> list[str]:
    table = Table(columns, [[(cell, "") for cell in row] for row in rows], right={"n"}, whole={"id", "n"})
    wanted: dict[str, object] = {"drop": (), "short": None, "below": None, **options}
    table.fit(width, **wanted)  # type: ignore[arg-type]
    return ["".join(told for told, _ in line).rstrip() for line in table.lines()]


def test_columns_are_dropped_whole_in_the_order_asked_for():
    columns, row = ["id", "a", "b", "n"], ["x" * 10, "aaaa", "bbbb", "12345"]
    drop = {"drop": ("b", "a", "n")}
    assert laid(29, columns, [row], **drop)[0].split() == ["id", "a", "b", "n"]
    assert laid(28, columns, [row], **drop)[0].split() == ["id", "a", "n"]
    assert laid(22, columns, [row], **drop)[0].split() == ["id", "n"]
    assert laid(16, columns, [row], **drop)[0].split() == ["id"]


def test_a_column_gives_way_before_others_are_dropped_and_says_what_is_cut():
    columns, row = ["id", "name", "n"], ["x" * 10, "y" * 40, "12345"]
    assert laid(40, columns, [row], drop=("n",), short="name")[1] == "x" * 10 + "  " + "y" * 20 + "…" + "  12345"
    assert laid(30, columns, [row], drop=("n",), short="name")[1] == "x" * 10 + "  " + "y" * 17 + "…"


def test_a_remark_stands_below_where_it_has_no_room_beside():
    columns, row = ["id", "n", "why"], ["x" * 10, "12345", "because it was asked for by somebody"]
    assert laid(60, columns, [row], below="why")[1].endswith("because it was asked for by somebody")
    assert laid(50, columns, [row], below="why")[1:] == [
        "x" * 10 + "  12345  because it was asked for by",
        " " * 19 + "somebody",
    ]
    assert laid(30, columns, [row, ["y", "1", ""]], below="why") == [
        "id              n",
        "x" * 10 + "  12345",
        "    because it was asked for",
        "    by somebody",
        "y               1",
    ]


def test_what_is_shortened_beside_is_whole_below() -> None:
    columns, row = ["id", "n", "why"], ["x" * 10, "12345", "because it was asked for by somebody"]
    both = {"short": "why", "below": "why"}
    assert laid(45, columns, [row], **both)[1:] == ["x" * 10 + "  12345  because it was asked for …"]
    assert laid(30, columns, [row], **both)[2:] == ["    because it was asked for", "    by somebody"]
    long = {"one": "y" * 40, "why": row[2]}
    assert laid(34, ["id", *long], [["x" * 10, *long.values()]], **both)[-2:] == [
        "    because it was asked for by",
        "    somebody",
    ]


@given(st.lists(st.lists(st.text("ab 日"), min_size=3, max_size=3), max_size=5), st.integers(34, 80))
def test_no_word_is_lost_however_narrow_and_the_width_is_kept(rows, width):
    lines = laid(width, ["one", "two", "one"], rows)  # a query may name two columns alike
    assert all(text.cells(line) <= width for line in lines)
    shown = "".join("".join(lines[1:]).split())
    assert sorted(shown) == sorted("".join("".join(cell.split()) for row in rows for cell in row))


def test_a_column_that_is_not_there_cannot_be_dropped() -> None:
    table = Table(["run", "name"], [[("run_1", ""), ("x" * 50, "")]], right=set(), whole={"run"})
    table.fit(20, drop=("cost", "name"), short=None, below=None)
    assert len(list(table.lines())) == 2
