from __future__ import annotations

import json
import re
import sys
import threading

import pytest
from tests.cli.loops import record_loop

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


def test_a_loop_of_tools_is_told_as_a_conversation(ask, store):
    run = record_loop(store)
    shown = ask("show", run, "--at", "read_ticket#2").out
    lines = shown.splitlines()
    at = lines.index("  user: Triage the tickets.")
    assert lines[at + 1] == "  assistant calls list_tickets()"
    assert lines[at + 2].startswith("  tool list_tickets: as {'name': 'list_tickets'")
    assert '  with model="gpt-5", tools=[list_tickets, read_ticket]' in lines
    answer = lines.index(next(line for line in lines if line.startswith("last answer: event ")))
    assert lines[answer + 1 : answer + 3] == [
        '  assistant calls read_ticket(name="a.json")',
        '  assistant calls read_ticket(name="b.json")',
    ]
    assert "chatcmpl" not in shown
    assert "choices" in ask("show", run, "--at", "read_ticket#2", "--json").json["last_answer"]["response"]
    assert "  assistant: Two tickets, one of them urgent." in ask("show", run, "--at", "gpt-5#3").out


def test_a_long_answer_says_how_much_of_it_is_not_shown_and_one_of_no_known_form_is_shown_as_it_is(ask, store):
    with playhead.record("r"):
        for response in ({"text": "x" * 5_000}, {"score": 3}):
            with playhead.model_call(provider="p", model="m", request="?") as call:
                call.respond(response)
        with pytest.raises(ValueError, match="down"), playhead.model_call(provider="p", model="m", request="?"):
            raise ValueError("down")
    assert "x… (1,000 more characters)" in ask("show", "@last", "--at", "m").out
    assert '    "score": 3\n' in ask("show", "@last", "--at", "m#2").out
    assert "  ValueError: down\n" in ask("show", "@last", "--at", "m#3").out


def test_a_policy_is_said_in_a_line(ask, store, tmp_path):
    (tmp_path / "playhead.policy.toml").write_text('mode = "observe"\n[capabilities."fs.write"]\nallow = ["out/**"]\n')
    with playhead.record("r"):
        pass
    lines = ask("show", "@last", "--at", "0").out.splitlines()
    at = lines.index(f"policy: observe, {tmp_path / 'playhead.policy.toml'} (--json has all of it)")
    assert lines[at + 1].startswith("policy checks:")
    found = ask("show", "@last", "--at", "0", "--json").json["policy"]["content"]["policy"]
    assert found["capabilities"] == {"fs.write": {"allow": ["out/**"]}}


def test_what_is_not_listed_of_the_reads_is_counted_and_can_be_seen(ask, shell, store, tmp_path):
    (tmp_path / "agent.py").write_text("import os\nfor n in range(15):\n    os.environ.get(f'V{n}')\n")
    run = json.loads(shell("record", "--json", "--", sys.executable, "agent.py").err)["run"]
    last = str(json.loads(shell("show", run, "--json").out)["run"]["events"] - 1)
    lines = shell("show", run, "--at", last).out.splitlines()
    at, told = next((at, line) for at, line in enumerate(lines) if line.startswith("read: "))
    found = re.fullmatch(
        rf"read: (\d+) so far; (\d+) are not listed here: playhead (show {run} --reads --at {last})", told
    )
    assert found is not None
    assert int(found[1]) - int(found[2]) == len(lines) - at - 1
    assert len(shell(*found[3].split()).out.splitlines()) == int(found[1])
    (tmp_path / "agent.py").unlink()
    store.rename(tmp_path / "other")
    told = shell("show", run, "--at", last, "--store", "other").out
    assert f"not listed here: playhead show {run} --store other --reads --at {last}\n" in told


def test_steps_and_calls_are_found_by_name_whatever_else_is_gone(ask, store):
    @playhead.tool
    def read() -> str:
        return "line\n" * 20_000

    with playhead.record("r"):
        with playhead.step("first"):
            read()
        with playhead.step("second"):
            playhead.context_pack({"files": 2})
    for blob in (store / "blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    said = ask("show", "@last", "--step", "second", "--json")
    assert (said.code, said.json["context_pack"]["content"]) == (0, {"files": 2})
    assert ask("show", "@last", "--at", "second").out.startswith("after event 5 ")


def test_a_name_with_a_number_in_it_is_found_as_it_is(ask, store):
    with playhead.record("r"):
        for name in ("fix #1", "fix ", "issue#7", "issue#7", "plan", "plan"):
            with playhead.step(name):
                pass
    found = {
        name: ask("show", "@last", "--at", name).out.split()[2]
        for name in ("fix #1", "fix ", "issue#7", "issue#7#2", "plan#2")
    }
    assert found == {"fix #1": "1", "fix ": "3", "issue#7": "5", "issue#7#2": "7", "plan#2": "11"}


def test_of_a_step_that_never_ended_the_last_of_its_lane_is_shown(ask, store):
    with playhead.record("r") as run:
        step = playhead.step("first")
        step.__enter__()
        playhead.context_pack({"files": 1})
        other = threading.Thread(target=lambda: playhead.context_pack({"files": 2}), name="other")
        other.start()
        other.join()
        shown = ask("show", run.id, "--step", "first", "--json").json
        step.__exit__(None, None, None)
    assert (shown["seq"], shown["steps"]) == (2, ["first"])


def test_what_was_written_by_an_event_is_shown(ask, store):
    with playhead.record("r") as run:
        for text in ("one", "two"):
            run.recording.emit_fields("output.written", {"stream": "stdout", "text": text})
    assert ask("show", "@last", "--output", "stdout", "--at", "1").out == "one"
    assert ask("show", "@last", "--output", "stdout").out == "onetwo"


def test_a_cost_that_is_not_all_says_what_is_missing(ask, store):
    def call(**usage):
        with playhead.model_call(provider="openai", model="gpt-4o", request="?") as asked:
            asked.respond({"text": "y"}, usage=usage)

    with playhead.record("silent"):
        call()
        call(input=1_000, output=100)
        call()
    lines = {seq: ask("show", "silent", "--at", str(seq)).out.splitlines()[1] for seq in (0, 2, 4, 6)}
    assert lines[0].endswith("; tokens 0 in → 0 out")
    assert lines[2].endswith(" to tools; cost unknown; 1 call had not said its tokens")
    assert lines[4].endswith(
        "; tokens 1,000 in → 100 out; cost about $0.0035, estimated; 1 call had not said its tokens"
    )
    assert lines[6].endswith("; cost about $0.0035, estimated; 2 calls had not said their tokens")
    found = ask("show", "silent", "--at", "6", "--json").json
    assert (found["calls_without_usage"], playhead.load("silent").at(6).calls_without_usage) == (2, 2)
