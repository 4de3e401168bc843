from __future__ import annotations

import pytest

import playhead
from playhead.store import layout


def test_a_long_message_says_how_much_of_it_is_not_shown(ask, store):
    request = {"messages": [{"role": "system", "content": "x" * 5_000}]}
    with playhead.record("r"), playhead.model_call(provider="openai", model="gpt-5", request=request) as call:
        call.respond({"text": "y"})
    shown = ask("show", "@last", "--at", "1").out
    assert "x… (1,000 more characters)" in shown
    assert ask("show", "@last", "--at", "1", "--json").json["messages"] == request["messages"]


def test_of_many_open_spans_the_innermost_are_shown(ask, store):
    with playhead.record("r") as run:
        open_steps = [playhead.step(f"s{number}") for number in range(70)]
        for step in open_steps:
            step.__enter__()
        shown = ask("show", run.id, "--at", "70").out
        for step in reversed(open_steps):
            step.__exit__(None, None, None)
    assert "open: the last 50 of 70" in shown
    assert "step s69 " in shown
    assert "step s19 " not in shown


@pytest.mark.parametrize("said", [b'"seq":2,', b'"seq":500,'])
def test_an_event_of_an_altered_run_is_found_by_its_line_whatever_number_it_says(ask, sample, store, said):
    path = layout.timeline(layout.run_dir(store, sample))
    path.write_bytes(path.read_bytes().replace(b'"seq":4,', said, 1))
    for seq in (3, 4, 7):
        answer = ask("show", sample, "--at", str(seq))
        assert "altered" in answer.err
        assert answer.out.startswith(f"after event {seq} ")
