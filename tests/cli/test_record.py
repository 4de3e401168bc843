from __future__ import annotations

import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from playhead._api.reading import load
from playhead.policy.rules import FILE
from playhead.store.files import FileStore

AGENT = """
import playhead

@playhead.tool
def look(path):
    return "text"

@playhead.agent("fix-login")
def agent(issue):
    with playhead.model_call(model="gpt-5", request={"issue": issue}) as call:
        call.respond({"text": "look"}, usage={"input": 1200, "output": 34})
    return look("src/login.py")

agent(1842)
"""


def test_the_exit_code_and_the_output_are_those_of_the_program(shell, store):
    said = shell("record", "--", "sh", "-c", "echo out; echo err >&2; exit 3")
    assert (said.code, said.out) == (3, "out\n")
    assert said.err.startswith("err\n")


def test_the_summary_says_how_it_ended_what_was_recorded_and_what_to_type_next(shell, store, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    said = shell("record", "--", sys.executable, "agent.py")
    assert (said.code, said.out) == (0, "")
    (run,) = FileStore(store).runs()
    for told in (
        "fix-login  ok (exit 0)",
        "1 model call, 1 tool call, 1,200 tokens in, 34 out",
        "  cost: about $0.0018, estimated\n",
        f".playhead/runs/{run}",
        "next: playhead show run_",
        "playhead verify run_",
        f"playhead replay {run} --mode exact\n",
    ):
        assert told in said.err
    assert "NOT" not in said.err
    assert load("@last", store).playback().payload == "text"


def test_a_policy_that_is_named_rules_the_program_and_what_it_starts(shell, store, tmp_path):
    (tmp_path / "strict.toml").write_text('mode = "enforce"\n[capabilities."process.exec"]\nallow = "*"\n')
    inner = "import playhead\nwith playhead.record('inner'):\n    open('inner.txt', 'w')"
    (tmp_path / "agent.py").write_text(
        f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {inner!r}])\nopen('outer.txt', 'w')\n"
    )
    said = shell("record", "--policy", "strict.toml", "--", sys.executable, "agent.py")
    assert said.code == 1
    assert said.err.count("PermissionError") + said.err.count("EffectDenied") >= 2
    assert not list(tmp_path.glob("*.txt"))
    missing = shell("record", "--policy", "nothing.toml", "--", "true")
    assert (missing.code, "nothing.toml" in missing.err) == (2, True)


def test_a_policy_holds_in_what_is_recorded_inside_of_what_it_rules(shell, store, tmp_path):
    every = 'mode = "enforce"\n[capabilities."process.exec"]\nallow = "*"\n[capabilities."fs.write"]\n'
    (tmp_path / "loose").mkdir()
    (tmp_path / "loose" / FILE).write_text(f'{every}allow = "**"\n')
    (tmp_path / FILE).write_text(f'{every}deny = "**"\n')
    (tmp_path / "inner.py").write_text(f"open({str(tmp_path / 'written')!r}, 'w')\n")
    (tmp_path / "agent.py").write_text(
        "import os, subprocess, sys\n"
        "record = [sys.executable, '-m', 'playhead', 'record', '--quiet']\n"
        f"program = ['--', sys.executable, {str(tmp_path / 'inner.py')!r}]\n"
        "named = ['--policy', 'loose/playhead.policy.toml']\n"
        "for options, place in ((), 'loose'), (named, '.'), (named[:1] + ['playhead.policy.toml'], '.'):\n"
        "    print(subprocess.run([*record, *options, *program], cwd=place).returncode)\n"
        "elsewhere = {**os.environ, 'PLAYHEAD_DIR': 'elsewhere'}\n"
        "print(subprocess.run([*record, *program], env=elsewhere).returncode)\n"
    )
    said = shell("record", "--quiet", "--", sys.executable, "agent.py")
    assert said.out.split() == ["1", "2", "1", "1"], said.err
    assert not (tmp_path / "written").exists()
    assert "cannot be in force here" in said.err
    assert "in which this was started, cannot be read" in said.err


@pytest.mark.parametrize(
    ("inner", "denied"),
    [
        ("with playhead.record('inner'):\n    write()", "nothing allows"),
        ("os.chdir('/')\nwith playhead.record('inner', store=STORE):\n    write()", "nothing allows"),
        ("with playhead.record('inner', capture=False):\n    write()", "capture=False"),
        (
            "with playhead.record('inner'):\n    late = threading.Timer(0.2, write)\n    late.start()\nlate.join()",
            "nothing allows",
        ),
        (
            "def again():\n    with playhead.record('again'):\n        write()\n"
            "with playhead.record('inner'):\n    late = threading.Timer(0.2, again)\n    late.start()\nlate.join()",
            "nothing allows",
        ),
    ],
    ids=["a run of its own", "elsewhere", "uncaptured", "what outlives a run", "a run in what outlives one"],
)
@pytest.mark.parametrize("is_child", [True, False])
def test_a_policy_holds_in_every_run_that_is_opened_in_what_it_rules(shell, store, tmp_path, inner, denied, is_child):
    (tmp_path / FILE).write_text(
        f'mode = "enforce"\n[capabilities."process.exec"]\nallow = "*"\n[capabilities."fs.write"]\nallow = "{FILE}"\n'
    )
    (tmp_path / "inner.py").write_text(
        f"import os, threading, playhead\nSTORE = {str(tmp_path / 'other')!r}\n"
        f"def write():\n    open({str(tmp_path / 'written')!r}, 'w').close()\n{inner}\n"
    )
    started = "subprocess.run([sys.executable, 'inner.py'])" if is_child else "exec(open('inner.py').read())"
    (tmp_path / "agent.py").write_text(
        f"import subprocess, sys\nopen({FILE!r}, 'w').write('mode = \"observe\"')\n{started}\n"
    )
    said = shell("record", "--quiet", "--", sys.executable, "agent.py")
    assert denied in said.err or not is_child  # inside of the run of its process it is a step of that
    assert "Denied" in said.err
    assert not (tmp_path / "written").exists()


def test_with_json_the_summary_is_json_on_stderr_and_stdout_stays_the_programs(shell, store, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)
    said = shell("record", "--json", "--", sys.executable, "agent.py")
    assert said.out == ""
    summary = json.loads(said.err)
    events = len(list(load(summary["run"], store).lines()))
    assert summary["path"] == str(store / "runs" / summary["run"])
    assert (summary["name"], summary["status"], summary["exit_code"], summary["signal"]) == ("fix-login", "ok", 0, None)
    assert (summary["events"], summary["model_calls"], summary["tool_calls"]) == (events, 1, 1)
    assert (summary["tokens_in"], summary["tokens_out"], summary["lost"], summary["redacted"]) == (1200, 34, 0, {})
    assert summary["cost"] == pytest.approx((1200 * 1.25 + 34 * 10) / 1_000_000)
    assert (summary["cost_unpriced"], summary["gaps"], summary["not_attached"]) == ([], {}, [])


def test_quiet_says_nothing(shell, store):
    said = shell("record", "--quiet", "--", "echo", "hi")
    assert (said.code, said.out, said.err) == (0, "hi\n", "")


def test_options_after_the_program_are_the_programs(shell, store):
    said = shell("record", "--quiet", "--", "echo", "--json", "--store", "x", "--", "--quiet")
    assert said.out == "--json --store x -- --quiet\n"
    assert shell("record", "--quiet", "echo", "--name", "x").out == "--name x\n"


def test_name_tags_and_store_are_those_that_were_given(shell, store, tmp_path):
    other = tmp_path / "other"
    said = shell("record", "--name", "nightly", "--tag", "a=b=c", "--tag", "d=", "--store", str(other), "--", "true")
    assert said.code == 0
    assert f" --store {other}" in said.err
    assert not store.exists()
    first = next(load("nightly", other).events()).data
    assert (first["name"], first["tags"]) == ("nightly", {"a": "b=c", "d": ""})


@pytest.mark.parametrize(("arguments", "told"), [([], "say what to run"), (["--tag", "x", "--", "true"], "not a tag")])
def test_what_cannot_be_asked_is_refused_before_anything_runs(ask, store, arguments, told):
    said = ask("record", *arguments)
    assert (said.code, store.exists()) == (2, False)
    assert told in said.err


@pytest.mark.parametrize("program", ["no-such-program", "./no-such-program", "no/such/program", ""])
def test_a_program_that_is_not_there_is_127_and_no_run(shell, store, program):
    said = shell("record", "--", program, "x")
    assert (said.code, store.exists()) == (127, False)
    assert f"cannot run {program}: there is no such program\n" in said.err
    said = shell("record", "--json", "--", program)
    assert (said.code, json.loads(said.err)["error"]["code"]) == (127, "usage")


def test_whoever_forgot_what_runs_a_program_is_told(shell, store, tmp_path):
    for name in ("my agent.py", "tool"):
        (tmp_path / name).write_text("print(1)")
    said = shell("record", "my agent.py", "--issue", "1")
    assert (said.code, store.exists()) == (127, False)
    assert "Did you mean `playhead record -- python 'my agent.py' --issue 1`?" in said.err
    assert "Did you mean `playhead record -- ./tool`?" in shell("record", "--", "tool").err


@pytest.mark.parametrize("content", ["#!/no/such/interpreter\n", "plain text"])
def test_a_file_that_cannot_be_executed_is_126(shell, store, tmp_path, content):
    program = tmp_path / "program"
    program.write_text(content)
    program.chmod(0o755 if content.startswith("#!") else 0o644)
    assert shell("record", "--quiet", "--", str(program)).code == 126


def test_what_a_program_redacted_that_was_killed_is_said_as_the_least(shell, store):
    Path("agent.py").write_text(
        "import os, playhead\n"
        "with playhead.record('agent'):\n"
        "    playhead.note('sk-proj-abcdefghijklmnopqrstuvwxyz0123456789')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    said = shell("record", "--", sys.executable, "agent.py")
    assert "redacted: at least 1 openai-key\n" in said.err
    assert "redacted   at least 1 openai-key" in shell("show", "@last").out
    assert "at least 1 value redacted by the rule openai-key" in shell("audit", "@last").out


def test_a_program_killed_by_a_signal_is_128_and_the_signals_number(shell, store):
    said = shell("record", "--", "sh", "-c", "kill -SEGV $$")
    assert said.code == 128 + signal.SIGSEGV
    assert "error (SIGSEGV)" in said.err


def test_disabled_means_the_program_runs_plainly(shell, store):
    said = shell("record", "--", "sh", "-c", "echo plain; exit 4", env={"PLAYHEAD_DISABLED": "1"})
    assert (said.code, said.out, said.err) == (4, "plain\n", "")
    assert not store.exists()
    said = shell("record", "--", "no-such-program", env={"PLAYHEAD_DISABLED": "1"})
    assert (said.code, "cannot run no-such-program" in said.err) == (127, True)


def test_a_program_that_runs_plainly_can_still_be_ended_by_a_closed_pipe(store):
    command = f"{sys.executable} -m playhead record -- yes | head -1"
    environment = {**os.environ, "PLAYHEAD_DISABLED": "1"}
    done = subprocess.run(["bash", "-c", f"{command}; exit ${{PIPESTATUS[0]}}"], capture_output=True, env=environment)
    assert (done.returncode, done.stdout) == (128 + signal.SIGPIPE, b"y\n")


def test_where_nothing_can_be_written_the_program_runs_and_a_warning_says_so(shell, store, tmp_path):
    (tmp_path / "file").write_text("in the way")
    said = shell("record", "--store", "file/store", "--", "sh", "-c", "echo still; exit 5")
    assert (said.code, said.out) == (5, "still\n")
    assert "NOT recorded" in said.err


def test_where_a_policy_is_to_be_enforced_nothing_runs_that_cannot_be_recorded(shell, store, tmp_path):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "playhead.policy.toml").write_text('mode = "enforce"\n')
    said = shell("record", "--store", "file/store", "--", "sh", "-c", "echo still > made")
    assert said.code == 1
    assert "policy is to be enforced, and the run cannot be recorded: cannot write to" in said.err
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "setting",
    [
        "[redact]\npatterns = { bad = '(' }\n",
        "[redact]\noff = ['no-such-rule']\n",
        "[redact]\nfields = ['?']\n",
        "[prices]\n'm' = 1\n",
    ],
)
def test_a_setting_that_is_wrong_refuses_before_the_program_starts(shell, store, tmp_path, setting):
    (tmp_path / "playhead.toml").write_text(setting)
    said = shell("record", "--", "touch", "ran")
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith("playhead: ")
    assert not Path(tmp_path, "ran").exists()
    assert not store.exists()


def test_strict_refuses_to_run_what_cannot_be_recorded(shell, store, tmp_path):
    (tmp_path / "file").write_text("in the way")
    said = shell("record", "--strict", "--store", "file/store", "--", "touch", "ran")
    assert (said.code, said.out) == (3, "")
    assert not Path(tmp_path, "ran").exists()


def test_strict_is_passed_on_to_the_agent_inside(shell, store):
    assert shell("record", "--quiet", "--strict", "--", "sh", "-c", "echo $PLAYHEAD_STRICT").out == "1\n"


def test_secrets_in_the_output_are_passed_on_but_not_recorded(shell, store):
    secret = "s3cr3t-value-of-mine"
    said = shell("record", "--", "sh", "-c", "echo token $MY_API_KEY", env={"MY_API_KEY": secret})
    assert said.out == f"token {secret}\n"
    assert "redacted: 1 env" in said.err
    assert not [path for path in store.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]


def test_strict_ends_a_program_that_can_no_longer_be_recorded(shell, store):
    def limit():  # every write to a file beyond it fails, as on a full disk
        resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

    script = "while :; do echo a line of output that takes some room; sleep 0.001; done"
    said = shell("record", "--strict", "--", "sh", "-c", script, preexec_fn=limit)
    assert said.code == 3
    assert "File too large" in said.err


def test_prices_come_from_the_configuration_and_a_model_without_one_is_named(shell, ask, store, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT.replace('"gpt-5"', '"my-llama"'))
    said = shell("record", "--", sys.executable, "agent.py")
    assert "  cost: no price is known for my-llama\n" in said.err
    assert (ask("ls", "--json").json[0]["cost"], ask("ls", "--json").json[0]["cost_unpriced"]) == (None, ["my-llama"])
    assert ask("ls").out.splitlines()[1].endswith(" ?")
    (tmp_path / "playhead.toml").write_text('[prices]\n"my-llama" = { input = 1000, output = 10_000 }')
    said = shell("record", "--", sys.executable, "agent.py")
    assert "  cost: about $1.54, estimated\n" in said.err
    assert ask("ls", "--json").json[0]["cost"] == pytest.approx(1.54)
    assert ask("ls").out.splitlines()[1].endswith(" $1.54")
    assert "  cost       about $1.54, estimated\n" in ask("show", "@last").out
    assert ask("show", "@last", "--json").json["run"]["cost"] == pytest.approx(1.54)


@pytest.mark.parametrize("wrong", ["3", "{ input = 1 }", '{ input = 1, output = "x" }', "{ input = -1, output = 1 }"])
def test_a_price_of_the_wrong_form_is_an_error_in_the_configuration(ask, tmp_path, wrong):
    (tmp_path / "playhead.toml").write_text(f"[prices]\nmodel = {wrong}")
    said = ask("ls", "--json")
    assert (said.code, said.json["error"]["code"]) == (2, "config")
    assert "prices must be a table" in said.json["error"]["message"]


def test_a_python_that_was_not_attached_is_named_and_what_is_known_can_be_played_back(shell, store):
    said = shell("record", "--", sys.executable, "-I", "-c", "print(1)")
    assert (said.code, said.out) == (0, "1\n")
    assert f"  not captured: what happens inside Python ({sys.executable}): it ran no sitecustomize (-I" in said.err
    assert load("@last", store).playback().metadata == {"exit_code": 0}
    assert load("@last", store).playback().payload == {"exit_code": 0, "stdout": "1\n"}
    summary = json.loads(shell("record", "--json", "--", sys.executable, "-I", "-c", "print(1)").err)
    assert (summary["gaps"], summary["lost"]) == ({}, 0)
    assert summary["not_captured"][0].startswith("what happens inside Python (")
    assert [item["executable"] for item in summary["not_attached"]] == [sys.executable]


TROUBLED = """
import sys, urllib.error, urllib.request
from openai import OpenAI
import websockets.sync.client
from playhead.testing import ScriptedProvider, ToolCall, ToolCalls

with ScriptedProvider([500, 500, 500, ToolCalls((ToolCall("read_issue", {"number": 1}),))]) as provider:
    for status in (200, 503):
        try:
            urllib.request.urlopen(f"{provider.root_url}/plain/{'long' * 40}?status={status}").read()
        except urllib.error.HTTPError:
            pass
    try:
        websockets.sync.client.connect("ws" + provider.root_url.removeprefix("http") + "/plain")
    except websockets.exceptions.InvalidStatus:
        pass
    client = OpenAI(base_url=provider.base_url, api_key="none", max_retries=0)
    ask = {"model": "gpt-5", "messages": [{"role": "user", "content": "?"}]}
    for _ in range(3):
        try:
            client.chat.completions.create(**ask)
        except Exception:
            pass
    client.chat.completions.create(**ask)
    raise ValueError("no such issue")
"""


def test_what_failed_what_was_not_captured_and_what_came_of_nothing_is_said_at_the_end_and_in_the_header(
    shell, ask, store, tmp_path
):
    (tmp_path / "agent.py").write_text(TROUBLED)
    said = shell("record", "--", sys.executable, "agent.py")
    assert said.code == 1
    summary = said.err[said.err.index("playhead: agent") :].splitlines()
    assert "4 model calls, 3 failed, 2 http requests, " in summary[1]
    assert summary[2] == "  stderr: … ValueError: no such issue"
    (missed,) = [line for line in summary if line.startswith("  not captured: ")]
    assert missed.startswith("  not captured: websocket ws://127.0.0.1:")
    assert "not seen; the rest is on record" in summary[summary.index(missed) + 1]
    assert [line.split()[-2] for line in summary[-3:]] == ["show", "verify", "replay"]
    assert max(map(len, summary)) <= 80
    shown = ask("show", "@last").out
    header, rows = shown.split("\n\n")[:2]
    assert missed in header
    assert "lost" not in shown
    assert "4 to models (gpt-5), 3 failed, 0 to tools, 2 http requests" in header
    assert re.search(r"asked for  read_issue\(number=1\) \(event \d+\), no result recorded$", header, re.MULTILINE)
    assert re.search(r"^ *\d+ +✓ http 200 GET http://127", rows, re.MULTILINE)
    assert re.search(r"^ *\d+ +! http 503 GET http://127", rows, re.MULTILINE)
    assert re.search(r"^ *\d+ +○ not captured: websocket ws://127\S+ at __main__:\d+$", rows, re.MULTILINE)
    refused = [row for row in ask("show", "@last", "--json").json["timeline"] if row["result"] == "503"]
    assert [row["status"] for row in refused] == ["ok"]
    last = ask("ls", "--json").json[0]["events"] - 1
    assert "gap" not in ask("show", "@last", "--at", str(last)).out


STREAMING = """
import sys
from openai import OpenAI
from playhead.testing import ScriptedProvider

with ScriptedProvider(["one", "two", "three"]) as provider:
    client = OpenAI(base_url=provider.base_url, api_key="none")
    ask = {"model": "gpt-5", "messages": [{"role": "user", "content": "?"}]}
    list(client.chat.completions.create(**ask, stream=True))
    if sys.argv[1:]:
        client.chat.completions.create(**ask)
        list(client.chat.completions.create(**ask, stream=True, stream_options={"include_usage": True}))
"""


def test_calls_that_did_not_say_their_tokens_are_counted_and_said(shell, ask, store, tmp_path):
    (tmp_path / "agent.py").write_text(STREAMING)
    said = shell("record", "--", sys.executable, "agent.py").err
    assert "1 model call, which did not say its tokens\n" in said
    assert "0 to tools; 1 call did not say its tokens\n" in ask("show", "@last").out
    said = shell("record", "--", sys.executable, "agent.py", "more").err
    assert re.search(r"3 model calls, \d+ tokens in, \d+ out \(1 call did not say\)\n", said)
    assert re.search(r"cost: .+, estimated; 1 call did not say its tokens\n", said)
    assert re.search(r"tokens \d+ in → \d+ out\s+\(1\s+call\s+did not say\)", ask("show", "@last").out)
    assert ask("show", "@last", "--json").json["run"]["calls_without_usage"] == 1
    said = shell("record", "--json", "--", sys.executable, "agent.py").err
    assert json.loads(said[said.index("{\n") :])["calls_without_usage"] == 1


def test_with_json_the_troubles_are_counted_and_named(shell, store, tmp_path):
    (tmp_path / "agent.py").write_text(TROUBLED)
    said = shell("record", "--json", "--", sys.executable, "agent.py").err
    summary = json.loads(said[said.index("\n{\n") :])
    assert (summary["model_calls"], summary["model_failures"], summary["http_requests"]) == (4, 3, 2)
    assert (summary["gaps"], summary["lost"], summary["last_words"]) == ({}, 0, "ValueError: no such issue")
    assert [re.sub(r":\d+", "", told) for told in summary["not_captured"]] == [
        "websocket ws://127.0.0.1/plain at __main__"
    ]


def test_a_program_is_played_back_as_what_it_wrote(shell, ask, store):
    shell("record", "--quiet", "--", "sh", "-c", "echo one; echo two >&2; exit 3")
    played = ask("replay", "@last", "--json").json
    assert played["payload"] == {"exit_code": 3, "stderr": "two\n", "stdout": "one\n"}
    assert (played["status"], played["error"]["type"]) == ("error", "ProgramFailed")


def test_a_run_that_a_program_started_answers_to_its_name(shell, ask, store, tmp_path):
    (tmp_path / "inner.py").write_text("import playhead\nplayhead.note('hello')")
    (tmp_path / "outer.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'inner.py'])")
    shell("record", "--quiet", "--", sys.executable, "outer.py")
    child = ask("show", "inner", "--json").json["run"]
    shell("record", "--quiet", "--", sys.executable, "inner.py")
    mine = ask("show", "inner", "--json").json["run"]
    assert child["origin"]["mode"] == "child"
    assert mine["origin"] is None
    shell("record", "--quiet", "--", sys.executable, "outer.py")
    assert ask("show", "inner", "--json").json["run"]["id"] == mine["id"]  # one of its own comes first


def test_runs_of_programs_that_it_started_are_summed_up_too(shell, store, tmp_path):
    inner = "import playhead\n@playhead.tool\ndef t(x): pass\nt(1); t(2)"
    (tmp_path / "inner.py").write_text(inner)
    (tmp_path / "middle.py").write_text(
        f"{inner}\nimport subprocess, sys\nsubprocess.run([sys.executable, 'inner.py'])"
    )
    (tmp_path / "outer.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'middle.py'])")
    shell("record", "--quiet", "--", sys.executable, "inner.py")  # not of this family
    said = shell("record", "--", sys.executable, "outer.py").err
    assert re.search(
        r"^  it started middle, a run of its own: ok, \d+ events, 2 tool calls \(run_\w{26}\)$", said, re.MULTILINE
    )
    assert re.search(
        r"^  it started inner, a run of its own: ok, \d+ events, 2 tool calls \(run_\w{26}\)$", said, re.MULTILINE
    )
    summary = json.loads(shell("record", "--json", "--", sys.executable, "outer.py").err)
    assert summary["tool_calls"] == 0
    assert [(one["name"], one["status"], one["tool_calls"]) for one in summary["children"]] == [
        ("middle", "ok", 2),
        ("inner", "ok", 2),
    ]


def test_redactions_are_counted_by_rule(shell, store, tmp_path):
    key = "sk-" + "proj-" + "a1B2" * 12
    (tmp_path / "agent.py").write_text(f"import playhead\n@playhead.tool\ndef t(x): pass\nt('{key}'); t('{key}')")
    said = shell("record", "--", sys.executable, "agent.py")
    assert "  redacted: 2 openai-key\n" in said.err
    assert key.encode() not in b"".join(path.read_bytes() for path in store.rglob("*") if path.is_file())


def test_what_a_program_changed_in_the_working_tree_is_kept(shell, store, tmp_path, with_git):
    def git(*arguments):
        fixed = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
        subprocess.run(["git", *fixed, *arguments], cwd=tmp_path, check=True, capture_output=True)

    git("init", "-q")
    (tmp_path / "login.py").write_text("broken\n")
    (tmp_path / "mine.py").write_text("mine\n")
    git("add", ".")
    git("commit", "-qm", "first")
    (tmp_path / "mine.py").write_text("mine, changed before\n")
    key = "sk-" + "proj-" + "a1B2" * 12
    shell("record", "--quiet", "--", "sh", "-c", f"echo fixed {key} > login.py; echo x > new.txt")
    run = load("@last", store)
    diff = run.artifact("changes.diff").decode()
    assert "-broken\n+fixed [redacted:openai-key]" in diff
    assert "mine" not in diff
    (note,) = [event.data for event in run.events() if event.kind == "note.added"]
    assert (note["text"], note["data"]) == (
        "files in the working tree: 1 changed, 1 new",
        {"root": str(tmp_path), "files": ["login.py"], "new": ["new.txt"]},
    )
    assert "+++ b/new.txt\n@@ -0,0 +1 @@\n+x\n" in diff
    assert run.verify(deep=True).completeness.verdict == "complete"


def test_a_name_that_the_agent_inside_overrules_is_told(shell, tmp_path):
    (tmp_path / "agent.py").write_text("import playhead\n@playhead.agent('inner')\ndef agent(): pass\nagent()\n")
    said = shell("record", "--name", "outer", "--", sys.executable, "agent.py")
    assert "playhead: the run is called inner, as the agent is that adopted it\n" in said.err
    assert "is called" not in shell("record", "--name", "inner", "--", sys.executable, "agent.py").err
