from __future__ import annotations

import io

from playhead._clock import utc_text
from playhead.cli.output import Output
from playhead.cli.run_text import in_flight_text, print_header, print_row, running_us
from playhead.views.summary import Summary
from playhead.views.timeline import Row

STARTED_US = 1_700_000_000_000_000
NOW_US = STARTED_US + 3_100_000


def output() -> tuple[Output, io.StringIO]:
    stream = io.StringIO()
    return Output(stdout=stream, stderr=io.StringIO()), stream


def hanging() -> Summary:
    return Summary(id="run_x", name="n", started=utc_text(STARTED_US), duration_us=68_000, events=3)


def test_a_run_that_hangs_says_how_long_it_has_been_running():
    out, stream = output()
    print_header(hanging(), "running", out, lambda value: value, NOW_US)
    assert "so far     3.10 s, 3 events" in stream.getvalue()


def test_a_run_that_crashed_says_how_long_it_is_known_to_have_run():
    assert running_us(hanging(), "crashed", NOW_US) == 68_000
    assert running_us(Summary(started="odd", duration_us=5), "running", NOW_US) == 5


def test_an_open_row_says_for_how_long_and_one_that_nothing_closed_was_in_flight():
    row = Row(2, "tool", "t", "", "open", "0", at_us=100_000)
    for status, expected in (("running", "open for 3.00 s"), ("crashed", "in flight"), ("error", "in flight")):
        out, stream = output()
        print_row(row, status, out, lanes=False, seq_width=4, open_us=3_100_000)
        line = stream.getvalue().rstrip("\n")
        assert line.endswith(f" {expected}")
        assert len(line) == 100


def test_wide_letters_do_not_push_the_duration_past_the_edge():
    row = Row(2, "tool", "t", "日本語" * 40, "ok", "0", at_us=0, duration_us=5000)
    out, stream = output()
    print_row(row, "ok", out, lanes=False, seq_width=4)
    line = stream.getvalue().rstrip("\n")
    wide = sum(letter in "日本語" for letter in line)
    assert len(line) + wide == 100
    assert line.endswith("5.0 ms")


def test_many_spans_in_flight_are_counted():
    flying = [{"seq": seq, "kind": "step.started", "name": "s", "lane": "0"} for seq in range(30)]
    told = in_flight_text(Summary(in_flight=flying))
    assert told.startswith("step s (event 0), ")
    assert told.endswith(", and 22 more")


def test_causes_stand_below_the_error():
    row = Row(2, "step", "s", "", "error", "0", 0, error="E: m", causes=["caused by C: c", "- D"], where="a.py:3 in f")
    out, stream = output()
    print_row(row, "ok", out, lanes=False, seq_width=4)
    assert [line.strip() for line in stream.getvalue().splitlines()[1:]] == [
        "E: m", "a.py:3 in f", "caused by C: c", "- D",
    ]  # fmt: skip
