from __future__ import annotations

import concurrent.futures
import json
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.capture import dialects
from playhead.capture.dialects.base import Answered, Asked, Dialect, ToolAsked, mapping
from playhead.testing import ScriptedProvider


def test_the_timeline_tells_what_happened(ask, sample):
    said = ask("show", "@last")
    assert said.code == 0
    assert said.err == ""
    for expected in (
        f"fix-login  {sample}  ok",
        "request    fix-login issue=1842",
        "calls      2 to models (gpt-5), 2 to tools; tokens 912 in → 50 out",
        "✓ step plan depth=2",
        '✓ model gpt-5 · 312 → 45 tokens · tool_calls → "look"',
        'tool read_file(path="src/login.py") → "def normalise',
        "policy repo.write src/ · allow",
        "artifact patch.diff patch, 12 B",
        "✗ tool failing(",
        "ValueError: no such thing: boo",
        '"fixed": true',
        f"playhead replay {sample}",
    ):
        assert expected in said.out, expected


def test_a_step_is_named_and_shows_its_own_pack(ask, store):
    with playhead.record("packs", store=store):
        for name in ("one", "two", "three"):
            with playhead.step(name):
                playhead.context_pack({"for": name})
                with playhead.model_call(
                    provider="p",
                    model="gpt-4o",
                    request={"messages": [{"role": "user", "content": f"Do {name}.\nNow."}], "seed": 3},
                ) as call:
                    call.respond({"text": name}, usage={"input": 10, "output": 2})
    for number, name in enumerate(("one", "two", "three"), 1):
        found = ask("show", "@last", "--step", name, "--json").json
        assert (found["context_pack"]["content"], found["model_calls"], found["seq"]) == (
            {"for": name},
            number,
            number * 5,
        )
        assert found["messages"] == [{"role": "user", "content": f"Do {name}.\nNow."}]
        assert found["cost"] > 0
    shown = ask("show", "@last", "--at", "two").out
    assert "after event 6 of" in shown
    shown = ask("show", "@last", "--step", "two").out
    assert "  user: Do two.\n    Now.\n  with seed=3\n" in shown
    assert '"for": "two"' in shown
    assert ask("show", "@last", "--step", "four").code == 2
    assert ask("show", "@last", "--step", "one", "--at", "3").code == 2


def test_moving_in_python_goes_back_and_forth(sample):
    run = playhead.load(sample)
    assert [run.at(seq).model_calls for seq in (11, 4, 0, 11)] == [2, 1, 0, 2]
    assert run.at(11).steps == ["edit"]
    with pytest.raises(playhead.PlayheadError, match="has no event 999"):
        run.at(999)
    with pytest.raises(playhead.PlayheadError, match=r"not an event: 1\.5"):
        run.at(1.5)


def test_children_are_indented_and_durations_stand_at_the_right_edge(ask, sample):
    lines = ask("show", "@last").out.splitlines()
    step = next(line for line in lines if "step plan" in line)
    model = next(line for line in lines if "312 → 45" in line)
    assert model.index("✓") == step.index("✓") + 2
    assert len(step) == len(model) == 100
    assert step.endswith("s")


def test_text_of_an_agent_never_reaches_a_terminal_as_an_escape(sample, store):
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    for arguments in (["show", "@last"], ["show", "@last", "--event", "13"], ["tail", "@last", "-n", "-1"]):
        command = [sys.executable, "-m", "playhead", *arguments]
        with subprocess.Popen(command, stdout=theirs, env=environment) as process:
            shown = b""
            while process.poll() is None or _waiting(ours):
                if _waiting(ours):
                    shown += os.read(ours, 65536)
        text = shown.decode()
        assert "\x1b[" in text or "--event" in arguments  # it is a terminal, so our own styles are there
        assert "\x1b[31mred" not in text.replace("\x1b[31m\\x1b", "")
        assert "\u202e" not in text
        assert "\x9b" not in text
    os.close(ours)
    os.close(theirs)


def _waiting(descriptor: int) -> bool:
    import select

    return bool(select.select([descriptor], [], [], 0.05)[0])


def test_json_holds_the_run_and_flat_rows_with_their_parents(ask, sample):
    found = ask("show", "@last", "--json").json
    assert found["run"]["id"] == sample
    assert (found["run"]["status"], found["run"]["output"]) == ("ok", {"fixed": True, "issue": 1842})
    rows = {row["seq"]: row for row in found["timeline"]}
    plan = next(row for row in rows.values() if row["name"] == "plan")
    model = next(row for row in rows.values() if row["kind"] == "model")
    assert (model["parent"], model["depth"], plan["depth"]) == (plan["seq"], 1, 0)
    assert (model["tokens_in"], model["tokens_out"]) == (312, 45)
    assert found["left_out"] == 0
    assert found["problem"] is None


def test_lanes_are_shown_when_there_are_several(ask, store):
    import threading

    with playhead.record("lanes", store=store):
        with playhead.step("main"):
            pass
        thread = threading.Thread(target=lambda: playhead.note("from the side"))
        thread.start()
        thread.join()
    one = ask("show", "@last", "--json").json
    assert len(one["run"]["lanes"]) == 2
    assert any("0.1" in line and "from the side" in line for line in ask("show", "@last").out.splitlines())


def test_many_rows_are_cut_in_the_middle_and_the_end_is_kept(ask, store):
    with playhead.record("long", store=store):
        for number in range(100):
            playhead.note(f"note {number:03}")
    said = ask("show", "@last", "--limit", "20").out
    assert "80 rows left out" in said
    assert "note 000" in said
    assert "note 099" in said
    assert "note 050" not in said
    assert "note 050" in ask("show", "@last", "--limit", "0").out
    assert ask("show", "@last", "--json", "--limit", "20").json["left_out"] == 80


def test_a_crashed_run_shows_what_was_in_flight(ask, store):
    code = (
        "import playhead, os, signal\n"
        "with playhead.record('doomed'), playhead.step('dying'), playhead.model_call(model='gpt-5', request='x'):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    said = ask("show", "@last")
    assert said.code == 0
    assert "crashed without an end; in flight: step dying (event 1), model gpt-5 (event 2)" in said.out
    assert said.out.count("in flight\n") == 2
    assert ask("show", "@last", "--json").json["run"]["in_flight"][1]["kind"] == "model.invoked"


def test_the_state_at_an_event_knows_only_what_was_before(ask, sample):
    early = ask("show", "@last", "--at", "4", "--json").json
    assert [item["name"] for item in early["open_spans"]] == ["plan", "read_file"]
    assert (early["tokens_in"], early["model_calls"], early["tool_calls"]) == (312, 1, 1)
    assert early["last_answer"]["response"] == {"text": "look"}
    assert early["policy_checks"] == []
    assert early["context_pack"]["name"] is None
    late = ask("show", "@last", "--at", "11", "--json").json
    assert late["context_pack"]["content"] == {"files": ["src/login.py"]}
    assert [check["decision"] for check in late["policy_checks"]] == ["allow"]
    assert len(late["last_request"]["request"]["messages"]) == 2
    assert late["last_request"]["request"]["messages"][0]["content"].startswith("Please fix")
    shown = ask("show", "@last", "--at", "11").out
    for title in ("open:", "prompt: event", "last answer: event", "context pack: context_", "artifacts:"):
        assert title in shown


def test_one_event_is_shown_with_every_value_as_it_was(ask, sample, store):
    written = [json.loads(line) for line in (store / "runs" / sample / "timeline.jsonl").read_text().splitlines()]
    second = [event for event in written if event["kind"] == "model.invoked"][1]
    assert "$" in json.dumps(second["data"])  # written as a reference
    found = ask("show", "@last", "--event", str(second["seq"]), "--json").json
    assert list(found) == list(second)
    assert found["data"]["request"]["messages"][0] == {"role": "user", "content": "Please fix the login. " * 30}
    shown = ask("show", "@last", "--event", str(second["seq"])).out
    assert "model.invoked" in shown
    assert "Please fix the login." in shown


def test_raw_lines_are_the_exact_bytes(shell, sample, store):
    timeline = (store / "runs" / sample / "timeline.jsonl").read_text()
    assert shell("show", sample, "--raw").out == timeline
    assert shell("show", sample, "--raw", "--event", "3").out == timeline.splitlines(keepends=True)[3]
    assert shell("show", sample, "--raw", "--at", "3").out == "".join(timeline.splitlines(keepends=True)[:4])


def test_an_event_that_is_not_there_is_a_usage_error_that_says_which_are(ask, sample):
    for option in ("--event", "--at"):
        said = ask("show", "@last", option, "999")
        assert said.code == 2
        assert "Its events are 0 to" in said.err
    assert "Did you mean plan? " in ask("show", "@last", "--at", "plam").err
    assert ask("show", "@last", "--event", "-1").code == 2
    assert ask("show", "@last", "--event", "1", "--at", "1").code == 2


def test_a_damaged_run_is_shown_up_to_the_damage_and_could_not_be_told(ask, sample, store, tmp_path):
    lines = (store / "runs" / sample / "timeline.jsonl").read_bytes().splitlines(keepends=True)
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "timeline.jsonl").write_bytes(b"".join(lines[:6]) + b"garbage\n" + b"".join(lines[6:]))
    said = ask("show", str(copy))
    assert said.code == 3
    assert "step plan" in said.out
    assert "nothing after event 5 can be read" in said.err
    assert ask("show", str(copy), "--json").json["problem"]["code"] == "broken_line"
    assert ask("show", str(copy), "--at", "4").code == 0


def test_a_run_whose_blob_is_gone_is_still_shown(ask, store):
    with playhead.record("large", store=store) as run:
        run.output = "x" * 100_000
    blob = next(path for path in (store / "blobs").rglob("*") if path.is_file())
    blob.unlink()
    said = ask("show", "@last")
    assert said.code == 0
    assert "$blob" in said.out
    assert ask("show", "@last", "--event", "1").code == 3


def test_output_of_the_program_is_folded(ask, store):
    with playhead.record("chatty", store=store) as run:
        for number in range(30):
            run.recording.emit_fields("output.written", {"stream": "stdout", "text": f"line {number}\n"})
        run.recording.emit_fields("output.written", {"stream": "stderr", "text": "oops\n"})
    rows = ask("show", "@last", "--json").json["timeline"]
    assert [(row["name"], row["folded"]) for row in rows] == [("stdout", 30), ("stderr", 1)]
    assert "wrote stdout line 0 (and 29 more, to event 30)" in ask("show", "@last").out


def test_what_the_program_wrote_and_what_it_kept_can_be_printed(ask, store):
    with playhead.record("chatty", store=store) as run:
        run.recording.emit_fields("output.written", {"stream": "stdout", "text": "one\n"})
        run.recording.emit_fields("output.written", {"stream": "stderr", "text": "oops\n"})
        run.recording.emit_fields("output.written", {"stream": "stdout", "text": "two\n"})
        playhead.artifact("patch.diff", "-a\n+b\n")
    assert ask("show", "@last", "--output", "stdout").out == "one\ntwo\n"
    assert ask("show", "@last", "--output", "stderr").out == "oops\n"
    assert ask("show", "@last", "--artifact", "patch.diff").out == "-a\n+b\n"
    missing = ask("show", "@last", "--artifact", "nothing.txt")
    assert missing.code == 2
    assert "has no artifact 'nothing.txt'" in missing.err
    assert "There are: patch.diff." in missing.err


ALTERED = "this record was altered: event 12 (line 13 of timeline.jsonl) was edited: its bytes do not match its hash"


def alter(store: Path, run: str) -> None:
    path = store / "runs" / run / "timeline.jsonl"
    path.write_bytes(path.read_bytes().replace(b"boo", b"foo"))


@pytest.mark.parametrize(
    "options",
    [(), ("--at", "3"), ("--event", "3"), ("--raw",), ("--raw", "--event", "3"), ("--output", "stdout"),
     ("--artifact", "patch.diff")],
)  # fmt: skip
def test_an_altered_run_is_shown_with_a_warning(ask, sample, store, options):
    assert "altered" not in ask("show", "@last", *options).err
    alter(store, sample)
    for more in ((), ("--json",)):
        said = ask("show", "@last", *options, *more)
        assert said.code == 0
        assert said.err.count(ALTERED) == 1
        assert f"`playhead verify {sample}` says more" in said.err


@pytest.mark.parametrize("options", [(), ("--at", "3"), ("--event", "3")])
def test_json_carries_that_a_run_was_altered(ask, sample, store, options):
    assert ask("show", sample, *options, "--json").json.get("problem") is None
    alter(store, sample)
    problem = ask("show", sample, *options, "--json").json["problem"]
    assert (problem["code"], problem["message"]) == ("altered", ALTERED)
    assert problem["detail"] == {"at": 12, "reason": "edited"}


def test_a_run_whose_end_was_cut_off_is_shown_with_a_warning(ask, sample, store):
    ask("ls")
    path = store / "runs" / sample / "timeline.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))
    assert "this record was altered: cut tail" in ask("show", sample).err


def test_the_warning_about_a_copy_names_the_copy(ask, sample, store, tmp_path):
    alter(store, sample)
    copy = tmp_path / "my copy"
    shutil.copytree(store / "runs" / sample, copy)
    exported = tmp_path / "run.jsonl"
    shutil.copy(copy / "timeline.jsonl", exported)
    for path in (copy, exported):
        said = ask("show", str(path))
        assert f"`playhead verify {shlex.quote(str(path))}` says more" in said.err
        assert f"playhead verify {shlex.quote(str(path))}\n" in said.out
        assert "playhead replay" not in said.out  # which would be refused
    assert "(line 13 of run.jsonl)" in ask("show", str(exported)).err


def test_a_forged_artifact_is_shown_and_a_no(ask, sample, store):
    (store / "runs" / sample / "artifacts" / "patch.diff").write_text("forged\n")
    said = ask("show", sample, "--artifact", "patch.diff")
    assert (said.code, said.out) == (1, "forged\n")
    assert "artifact patch.diff was altered: it is not what event 14 of" in said.err


def test_an_artifact_that_no_event_recorded_is_not_one(ask, sample, store):
    (store / "runs" / sample / "artifacts" / "extra.txt").write_text("smuggled\n")
    said = ask("show", sample, "--artifact", "extra.txt")
    assert (said.code, said.out) == (2, "")
    assert "There are: context_pack.json, patch.diff." in said.err
    with playhead.record("bare", store=store):
        pass
    assert "It has none." in ask("show", "@last", "--artifact", "extra.txt").err


def test_an_error_says_where_it_was_raised(ask, sample):
    assert "conftest.py:" in ask("show", "@last").out


def test_an_event_of_ones_own_kind_is_shown(ask, store):
    with playhead.record("custom", store=store) as run:
        run.record("review.requested", {"from": "ada", "lines": 12})
    assert 'review.requested from="ada", lines=12' in ask("show", "@last").out


def test_a_run_directory_anywhere_can_be_shown(ask, sample, store, tmp_path):
    import shutil

    elsewhere = tmp_path / "downloads" / "that-run"
    shutil.copytree(store / "runs" / sample, elsewhere)
    said = ask("show", str(elsewhere), "--store", str(Path(tmp_path) / "nothing"))
    assert said.code == 0
    assert f"playhead verify {elsewhere}" in said.out


AGENT = """
import os, pathlib, sys, time
import playhead

timeline = next(pathlib.Path(os.environ["PLAYHEAD_DIR"]).glob("runs/*/timeline.jsonl"))

@playhead.agent("bot", tags={"team": "ops"})
def bot(how):
    with playhead.step("work"):
        print("working", flush=True)
        while b"working" not in timeline.read_bytes():  # the recorder has it
            time.sleep(0.01)
        if how == "kill":
            os.kill(os.getpid(), 9)
    try:
        {}["key"]
    except KeyError as problem:
        raise RuntimeError("outer") from problem

bot(sys.argv[1])
"""


@pytest.fixture
def recorded(shell, store, tmp_path):
    """Give a function that records a failing agent with `playhead record`."""

    def record(how):
        (tmp_path / "agent.py").write_text(AGENT)
        return shell("record", "--tag", "tier=1", "--", sys.executable, "agent.py", how)

    return record


def test_a_failed_program_names_the_cause_in_its_header(ask, recorded):
    recorded("fail")
    header = ask("show", "@last").out.partition("\n\n")[0]
    assert 'tags       tier="1", team="ops"' in header
    assert "error      RuntimeError: outer; caused by KeyError: 'key' (agent.py:" in header
    assert ask("show", "@last", "--json").json["run"]["tags"] == {"tier": "1", "team": "ops"}


def test_rows_of_a_recorded_program_stand_in_the_order_in_which_they_happened(ask, recorded):
    recorded("fail")
    rows = ask("show", "@last", "--json").json["timeline"]
    assert [row["seq"] for row in rows] == sorted(row["seq"] for row in rows)
    inside = {row["seq"]: row for row in rows}
    printed = next(row for row in rows if row["kind"] == "output.written")
    assert inside[printed["parent"]]["name"] == "work"
    assert inside[inside[printed["parent"]]["parent"]]["name"] == "bot"


def test_a_program_that_was_killed_reads_like_an_agent_that_was(ask, recorded):
    recorded("kill")
    shown = ask("show", "@last").out
    assert "→ killed by SIGKILL" in shown
    assert "error      ProgramKilled: the program was killed by SIGKILL" in shown
    assert re.search(r"; in flight: step bot \(event \d\), step work \(event \d\)", shown)
    assert [line.split()[-2:] for line in shown.splitlines() if "… step" in line] == [["in", "flight"]] * 2


def test_a_program_without_an_agent_shows_its_last_words(ask, shell):
    shell("record", "--", sys.executable, "-c", "print(1)\nraise KeyError('x')")
    header = ask("show", "@last").out.partition("\n\n")[0]
    assert "error      ProgramFailed: the program ended with exit code 1" in header
    assert "stderr     … KeyError: 'x'" in header
    offered = ask("show", "@last").out.splitlines()[-1].split()
    assert (offered[:2], offered[3:]) == (["playhead", "show"], ["--output", "stderr"])
    assert "KeyError: 'x'" in ask(*offered[1:]).out
    for quiet in ("import sys; print('odd', file=sys.stderr)", "raise SystemExit(3)"):
        shell("record", "--", sys.executable, "-c", quiet)
        assert "--output" not in ask("show", "@last").out


def test_the_state_at_the_end_of_a_failed_run_says_that_it_failed(ask, store):
    def fail():
        with playhead.model_call(provider="p", model="m") as call:
            call.respond("hm")
        raise RuntimeError("no")

    with pytest.raises(RuntimeError), playhead.record("failing", store=store):
        fail()
    shown = ask("show", "@last", "--at", "3").out
    assert "✗ the run had ended: error" in shown
    assert "RuntimeError: no" in shown
    assert "1 call to models" in shown
    assert "ended" not in ask("show", "@last", "--at", "2").out


def test_what_a_model_said_and_asked_for_is_in_its_row(ask, store):
    asked = {"choices": [{"message": {"content": None, "tool_calls": [{"function": {"name": "grep"}}]}}]}
    with playhead.record("talk", store=store):
        for answer, finish in (("compare in lower case", "stop"), (asked, "tool_calls"), ("cut o", "length")):
            with playhead.model_call(provider="p", model="m") as call:
                call.respond(answer, finish=finish)
        with playhead.model_call(provider="p", model="m"):
            pass
    shown = ask("show", "@last").out
    for expected in (
        '✓ model m → "compare in lower case"',
        "✓ model m → calls grep",
        '✓ model m · length → "cut o"',
        "? model m · no answer recorded",
    ):
        assert expected in shown


def test_an_event_names_the_other_end_of_its_span(ask, sample):
    question = ask("show", "@last", "--event", "2").out
    answer = ask("show", "@last", "--event", "3").out
    assert "closed by  event 3, model.responded, " in question
    assert "opened by  event 2, model.invoked" in answer
    run = ask("show", "@last", "--event", "0").out
    assert "closed by  event " in run
    assert "run.finished" in run


def test_no_output_is_explained(ask, shell, sample):
    said = ask("show", "@last", "--output", "stdout")
    assert (said.code, said.out) == (0, "")
    assert "was not made with `playhead record`" in said.err
    shell("record", "--", sys.executable, "-c", "print(1)")
    said = ask("show", "@last", "--output", "stderr")
    assert (said.code, said.out, said.err) == (0, "", "playhead: the program wrote nothing to stderr\n")


def own_answered(documents: Any, streamed: bool) -> Answered:
    reply = mapping(mapping(documents[0]).get("reply"))
    calls = [ToolAsked(None, str(name), given) for name, given in mapping(reply.get("do")).items()]
    return Answered(documents[0], said=reply.get("words"), calls=tuple(calls))


def test_a_dialect_tells_what_answers_mean_that_the_viewer_does_not_understand(ask, store, monkeypatch):
    own = Dialect("own", "own", ("/own$",), "talk", (), lambda body, path: Asked("own-1"), own_answered)
    known = dialects.find
    monkeypatch.setattr(dialects, "find", lambda *to: (own, "own", "talk") if "/own" in to[1] else known(*to))
    answers = [{"words": "Let me look."}, {"words": "Hm.", "do": {"weather": {"city": "Bern"}}}, {"do": {"stop": None}}]
    with ScriptedProvider() as provider, playhead.record("talk", store=store):
        for answer in answers:
            body = json.dumps({"reply": answer}).encode()  # which is given back
            asked = urllib.request.Request(f"{provider.root_url}/plain/own", body, {"Content-Type": "own/json"})
            with urllib.request.urlopen(asked) as response:
                response.read()
    shown = ask("show", "@last").out
    assert re.findall(r"model own-1 (.*?)  ", shown) == [
        '→ "Let me look."', '→ calls weather(city="Bern"), "Hm."', "→ calls stop",
    ]  # fmt: skip
    assert re.search(
        r"asked for  weather\(city=\"Bern\"\) \(event \d+\), stop \(event \d+\), no result recorded", shown
    )
    assert 'own-1 → calls weather(city="Bern"), "Hm."' in ask("tail", "@last", "-n", "-1").out
    monkeypatch.setattr(dialects, "find", known)  # whoever does not have the dialect sees what there is to see
    assert re.findall(r"model own-1 (.*?)  ", ask("show", "@last").out) == [""] * 3


def test_the_header_says_what_a_policy_denied(ask, store):
    with playhead.record("r", store=store, policy=lambda capability, resource, context: resource != "elsewhere.md"):
        playhead.check("fs.write", resource="here.md")
        with pytest.raises(playhead.PolicyDenied):
            playhead.check("fs.write", resource="elsewhere.md")
    assert re.search(r"^  policy +1 denied: fs.write elsewhere.md$", ask("show", "@last").out, re.MULTILINE)
    assert ask("show", "@last", "--json").json["run"]["denied"] == [
        {"capability": "fs.write", "resource": "elsewhere.md", "enforced": True, "times": 1}
    ]


def test_after_a_failure_the_next_step_is_to_compare_it_with_the_run_before_that_ended_well(ask, store, record):
    first, good = record(store, "a"), record(store, "a")
    record(store, "b")
    assert "playhead diff" not in ask("show", first).out
    with pytest.raises(KeyError), playhead.record("a", store=store) as failed:
        raise KeyError("priority")
    assert f"      playhead diff {good} {failed.id}\n" in ask("show", "a").out
    with pytest.raises(KeyError), playhead.record("c", store=store):
        raise KeyError("priority")
    assert "playhead diff" not in ask("show", "c").out


def test_of_a_program_that_failed_its_last_words_are_shown_wherever_it_is_said_to_have_failed(shell, store, tmp_path):
    agent = tmp_path / "agent.py"
    agent.write_text("import sys\nif len(sys.argv) > 1:\n    {}['priority']\n")
    good = shell("record", "--json", "--", sys.executable, "agent.py")
    said = shell("record", "--", sys.executable, "agent.py", "fail").err
    good_id = json.loads(good.err)["run"]
    failed = re.search(r"runs/(run_\w+)", said)
    assert failed is not None
    assert f"playhead diff {good_id} {failed[1]}\n" in said
    shown = shell("show", "@last").out
    assert "wrote stderr … KeyError: 'priority'" in shown
    assert shown.count("stderr: … KeyError: 'priority'\n") == 2  # of the process, and at the end
    assert f"playhead diff {good_id} {failed[1]}\n" in shown


def test_what_the_program_wrote_and_what_it_kept_are_json_where_that_is_asked_for(ask, store):
    with playhead.record("chatty", store=store) as run:
        for stream, text in (("stdout", "one\n"), ("stderr", "oops\n"), ("stdout", "two\n")):
            run.recording.emit_fields("output.written", {"stream": stream, "text": text})
        playhead.artifact("patch.diff", "-a\n+b\n")
        playhead.artifact("image", b"\xff\x00")
    told = {"run": run.id, "problem": None}
    assert ask("show", "@last", "--output", "stdout", "--json").json == {
        **told, "stream": "stdout", "content": "one\ntwo\n"
    }  # fmt: skip
    assert ask("show", "@last", "--artifact", "patch.diff", "--json").json == {
        **told, "artifact": "patch.diff", "content": "-a\n+b\n"
    }  # fmt: skip
    assert ask("show", "@last", "--artifact", "image", "--json").json["content"] == {"$bytes": "/wA="}


def test_the_next_steps_name_the_store_that_was_named(ask, sample, store, tmp_path, monkeypatch):
    monkeypatch.delenv("PLAYHEAD_DIR")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    told = ask("show", "@last", "--store", str(store)).out.partition("\nnext  ")[2].splitlines()
    for command in told:
        words = shlex.split(command)[1:]
        assert ask(*("3" if word == "SEQ" else word for word in words)).code == 0, command
    assert len(told) == 3


def test_python_names_events_and_steps_as_the_command_line_does(ask, store):
    with playhead.record("r", store=store) as run, playhead.step("plan"):
        playhead.note("a")
    found = playhead.load(run.id)
    assert [found.at("plan").seq, found.at(step="plan").seq, found.at("2").seq, found.at(2).seq] == [1, 3, 2, 2]
    assert f"after event {found.at(step='plan').seq} " in ask("show", run.id, "--step", "plan").out
    for wrong in ({}, {"seq": 1, "step": "plan"}, {"seq": "nothing"}, {"step": "nothing"}):
        with pytest.raises(playhead.PlayheadError):
            found.at(**wrong)


def test_a_step_that_never_ended_stands_where_it_was_last_heard_of_and_not_after_the_run(ask, store):
    with playhead.record("r", store=store) as run:
        playhead.step("plan").__enter__()
        playhead.note("last words")
    at = playhead.load(run.id).at(step="plan").seq
    playhead.load(run.id).invalidate("wrong")
    assert playhead.load(run.id).at(step="plan").seq == at
    assert ask("show", run.id, "--at", "").code == 2


def test_several_threads_may_look_at_one_run(store):
    with playhead.record("r", store=store) as run:
        for number in range(200):
            playhead.note(str(number))
    found = playhead.load(run.id)
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        seqs = [number % 200 for number in range(800)]
        assert [moment.seq for moment in pool.map(found.at, seqs)] == seqs
        assert all(pool.map(lambda _: sum(1 for _ in found.events()) == 202, range(16)))
    assert found.event(201).kind == "run.finished"


def test_of_a_process_that_failed_its_last_words_are_shown(ask, shell):
    commands = ["echo out; echo no such thing >&2; exit 3", "echo 1 failed; exit 1", "echo fine >&2"]
    runs = [f"subprocess.run({one!r}, shell=True, capture_output=True)" for one in commands]
    shell("record", "--", sys.executable, "-c", "\n".join(["import subprocess", *runs]))
    out = ask("show", "@last").out
    assert "→ exit 3" in out
    assert "stderr: … no such thing\n" in out
    assert "stdout: … 1 failed\n" in out
    assert "… fine" not in out
