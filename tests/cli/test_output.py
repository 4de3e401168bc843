from __future__ import annotations

import io
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import playhead
from playhead.cli.output import Output, clean, one_line


def written(json_mode: bool = False, **options: bool) -> tuple[Output, io.StringIO]:
    stream = io.StringIO()
    return Output(json=json_mode, stdout=stream, stderr=io.StringIO(), **options), stream


@given(st.text())
def test_no_text_can_act_on_a_terminal(text):
    for shown in (clean(text), one_line(text)):
        assert not any(ord(letter) < 32 and letter not in "\n\t" for letter in shown)
        assert not any(127 <= ord(letter) < 160 or letter in "\u202e\u2066\u200f\u2028" for letter in shown)
    assert "\n" not in one_line(text)


def test_ordinary_text_stays_as_it_is():
    assert clean("naïve 日本語 ✓\n\tx") == "naïve 日本語 ✓\n\tx"
    assert clean("\x1b[31m") == "\\x1b[31m"


def test_markup_in_a_cell_or_a_line_is_shown_and_not_interpreted():
    out, stream = written(terminal=True)
    out.table(("a", "b"), [("[bold]x[/bold]", ("[red]y", "green"))])
    out.styled(("[link=http://x]z", "red"))
    shown = stream.getvalue()
    assert "[bold]x[/bold]" in shown
    assert "[red]y" in shown
    assert "[link=http://x]z" in shown


def test_no_color_leaves_no_escape_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for color, expected in ((True, True), (False, False)):
        out, stream = written(terminal=True, color=color)
        out.styled(("x", "red"))
        out.table(("a",), [(("x", "red"),)])
        assert ("\x1b" in stream.getvalue()) is expected
    monkeypatch.setenv("NO_COLOR", "1")
    out, stream = written(terminal=True)
    out.styled(("x", "red"))
    assert "\x1b" not in stream.getvalue()


def test_a_table_in_a_pipe_is_aligned_and_loses_nothing():
    out, stream = written()
    out.table(("name", "count"), [("日本", 5), ("a" * 300, None)], right=("count",))
    lines = stream.getvalue().splitlines()
    assert lines[0].rstrip() == "name" + " " * 298 + "count"
    assert lines[1].startswith("日本" + " " * 298)
    assert lines[1].endswith("    5")
    assert lines[2] == "a" * 300


def test_a_table_on_a_narrow_terminal_keeps_every_column(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    out, stream = written(terminal=True, color=False)
    out.table(("run", "name", "count"), [("r" * 30, "n" * 30, 123456)], right=("count",), whole=("run",))
    shown = stream.getvalue()
    assert "r" * 30 in shown
    assert shown.count("n") - shown.splitlines()[0].count("n") >= 30
    assert "".join(letter for letter in shown if letter.isdigit()) == "123456"


class Point(msgspec.Struct):
    x: int
    data: bytes = b"\x00"


def test_emit_writes_one_document_of_whatever_is_given():
    out, stream = written(json_mode=True)
    out.emit({"point": Point(1), "big": 2**80, "set": (1, 2), 3: "key", "odd": "\x9b\u202e\ud800"})
    shown = stream.getvalue()
    assert json.loads(shown) == {
        "point": {"x": 1, "data": "AA=="}, "big": 2**80, "set": [1, 2], "3": "key", "odd": "\x9b\u202e\ud800",
    }  # fmt: skip


def test_emitted_json_cannot_act_on_a_terminal_and_means_the_same():
    hostile = "\x1b[31m \x7f \x9b2J \u202e \u2028"
    out, stream = written(json_mode=True)
    out.emit({"text": hostile})
    shown = stream.getvalue()
    assert json.loads(shown) == {"text": hostile}
    assert shown.isascii()
    assert "\x1b" not in shown
    assert "\x7f" not in shown


def test_emit_refuses_what_has_no_json_form():
    out, _ = written(json_mode=True)
    with pytest.raises(TypeError):
        out.emit({"x": object()})


def test_progress_is_silent_where_stderr_is_no_terminal():
    out, stream = written()
    with out.progress(3, "working") as advance:
        advance(1)
    assert stream.getvalue() == ""
    assert out.stderr.getvalue() == ""  # type: ignore[attr-defined]


def test_json_is_json_whatever_the_encoding_of_the_terminal(shell, store):
    name = "emo 😀 ã"
    with playhead.record(name, store=store):
        pass
    for encoding in ("cp1252", "ascii", "cp437", "utf-8"):
        said = shell("ls", "--json", env={"PYTHONIOENCODING": encoding})
        assert [run["name"] for run in said.json] == [name], encoding
        said = shell("query", "SELECT name FROM runs", "--csv", env={"PYTHONIOENCODING": encoding})
        assert name in said.out, encoding
