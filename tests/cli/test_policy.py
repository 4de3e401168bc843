from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pytest

import playhead
from playhead.capture.record import Record
from playhead.cli.commands.policy import _RESOURCES
from playhead.policy.rules import FILE, KNOWN, UNPRICED
from playhead.store.price_list import PriceList


@playhead.tool
def deploy(where: str) -> None:
    Path(where).write_text("x")


def recorded(store: Path) -> str:
    with playhead.record("r", store=store) as run:
        deploy("prod")
        playhead.check("shop.order", "apple")
        with playhead.model_call(provider="openai", model="gpt-5"):
            pass
    return run.id


def test_a_policy_is_checked(ask, store):
    assert ask("policy", "check").code == 2
    Path(FILE).write_text('[capabilities."tool.call"]\nallow = ["read_*"]\n')
    said = ask("policy", "check")
    assert said.code == 0
    assert "allow read_*" in said.out
    assert "denied, since it is not named: fs.write" in said.out
    Path("bad.toml").write_text("mode = 1")
    found = ask("policy", "check", "bad.toml", "--json")
    assert (found.code, found.json["valid"], found.json["error"]["code"]) == (1, False, "config")


def test_a_decision_is_explained(ask, store):
    Path(FILE).write_text('[capabilities."fs.write"]\nallow = ["src/**"]\n')
    assert ask("policy", "explain", "fs.write", "src/a").code == 0
    said = ask("policy", "explain", "fs.write", "src/../a", "--json")
    assert (said.code, said.json["decision"], said.json["rule"]) == (1, "deny", "fs.write default")


def test_a_command_that_pushes_is_explained_with_the_push(ask, store):
    command = '[capabilities."process.exec"]\nallow = ["git"]\n'
    Path(FILE).write_text(command)
    said = ask("policy", "explain", "process.exec", "git -C x push origin")
    assert said.code == 1
    assert "allow  process.exec git -C x push origin" in said.out
    assert "deny  git.push origin" in said.out
    found = ask("policy", "explain", "process.exec", "git push origin", "--json").json
    assert (found["decision"], found["reason"]) == ("deny", "the policy does not name git.push")
    assert [(one["capability"], one["resource"], one["decision"]) for one in found["asked"]] == [
        ("process.exec", "git push origin", "allow"),
        ("git.push", "origin", "deny"),
    ]
    Path(FILE).write_text(f'{command}[capabilities."git.push"]\nallow = ["origin"]\n')
    assert ask("policy", "explain", "process.exec", "git push origin").code == 0
    assert ask("policy", "explain", "process.exec", "git push other").code == 1
    assert len(ask("policy", "explain", "process.exec", "git status", "--json").json["asked"]) == 1


def test_a_policy_is_tested_against_what_was_recorded(ask, store):
    run = recorded(store)
    Path("strict.toml").write_text(
        '[capabilities."model.use"]\nallow = ["gpt-5"]\n[capabilities."fs.write"]\nallow = ["**"]\n'
    )
    found = ask("policy", "test", run, "--policy", "strict.toml", "--json")
    assert found.code == 0
    assert [(one["capability"], one["resource"]) for one in found.json["runs"][0]["denied"]] == [
        ("tool.call", "deploy"),
        ("shop.order", "apple"),
    ]
    assert all(isinstance(one["seq"], int) for one in found.json["runs"][0]["denied"])
    said = ask("policy", "test", "--since", "1h", "--policy", "strict.toml", "--exit-code")
    assert said.code == 1
    assert said.out.startswith("2 of 4 would have been denied in 1 run")
    assert ask("policy", "test", run, "--since", "1h", "--policy", "strict.toml").code == 2
    assert ask("policy", "test", "--policy", "nothing.toml").code == 2


@pytest.mark.parametrize("chosen", [["r"], ["--name", "r"], []])
def test_a_policy_is_tested_against_what_pythons_did_that_a_run_started_too(ask, store, chosen):
    with playhead.record("r", store=store) as run:
        pass
    with Record("helper", store=store, origin={"run": run.id, "mode": "child"}):
        Path("written").write_text("x")
    Path(FILE).write_text('[capabilities."fs.write"]\nallow = ["elsewhere"]\n')
    found = ask("policy", "test", *chosen, "--json").json
    assert [one["capability"] for told in found["runs"] for one in told["denied"]] == ["fs.write"]
    assert len(found["runs"]) == 2


@pytest.mark.parametrize("mode", ["observe", "enforce"])
@pytest.mark.parametrize("rule", ["allow", "deny"])
def test_each_act_counts_once_whatever_policy_it_was_recorded_under(ask, store, mode, rule):
    every = "".join(f'[capabilities."{name}"]\n{rule} = ["*"]\n' for name in (*KNOWN, "shop.order"))
    Path("strict.toml").write_text('[capabilities."fs.read"]\nallow = ["*"]\n')
    Path(FILE).write_text(
        f'mode = "{mode}"\n{every}'.replace('"fs.write"]\nallow = ["*"]', '"fs.write"]\nallow = ["**"]')
    )
    acts = (lambda: deploy("prod"), lambda: Path("out").write_text("x"), lambda: playhead.check("shop.order", "apple"))
    with playhead.record("r", store=store) as run:
        for act in acts:
            with contextlib.suppress(playhead.PolicyDenied):
                act()
    denied = ask("policy", "test", run.id, "--policy", "strict.toml", "--json").json["runs"][0]["denied"]
    inside = [] if (mode, rule) == ("enforce", "deny") else ["fs.write"]  # the tool did not run
    assert [one["capability"] for one in denied] == ["tool.call", *inside, "fs.write", "shop.order"]


def test_limits_are_held_against_what_a_run_used(ask, store):
    with playhead.record("r", store=store) as run:
        for _ in range(3):
            with playhead.model_call(provider="mine", model="m") as call:
                call.respond("x", usage={"input": 1000, "output": 0})
            playhead.note("between")
    Path("playhead.toml").write_text('[prices."m"]\ninput = 1000\noutput = 1\n')
    allowed = 'mode = "enforce"\n[capabilities."model.use"]\nallow = ["*"]\n[limits]\n'
    for limit, denied in (("cost = 1.5", 1), ("cost = 3", 0), ("tokens = 1000", 2), ("model_calls = 1", 2)):
        Path(FILE).write_text(allowed + limit)
        found = ask("policy", "test", run.id, "--json").json["runs"][0]
        assert [one["rule"] for one in found["denied"]] == [f"limits.{limit.split()[0]}"] * denied, limit


def test_a_limit_of_dollars_that_cannot_be_judged_is_said_before_and_after(ask, store, monkeypatch):
    run = recorded(store)
    rules = 'mode = "enforce"\n[capabilities."model.use"]\nallow = ["*"]\n'
    Path(FILE).write_text(f"{rules}[limits]\ncost = 10\n")
    assert "limits.cost" not in ask("policy", "check").out
    assert ask("policy", "test", run, "--json").json["doubts"] == []
    monkeypatch.setattr(PriceList, "_find_package", lambda self: "")
    said = ask("policy", "check").out
    assert "which is every model here: `pip install 'playhead[prices]'`, or say what it costs under [prices]" in said
    assert len(ask("policy", "check", "--json").json["doubts"]) == 1
    found = ask("policy", "test", run, "--json").json
    assert [one["rule"] for one in found["runs"][0]["denied"] if one["capability"] == "model.use"] == [UNPRICED]
    assert found["doubts"][0].startswith("limits.cost cannot be judged, since nobody knows what openai/gpt-5 costs")
    assert found["doubts"][0] in ask("policy", "test", run).out
    Path("playhead.toml").write_text("[prices]\ngpt-5 = { input = 1, output = 1 }\n")
    assert "which is all but gpt-5 here" in ask("policy", "check").out
    assert ask("policy", "test", run, "--json").json["doubts"] == []
    Path(FILE).write_text(rules)
    assert "limits.cost" not in ask("policy", "check").out


def test_a_replay_takes_for_unknown_what_the_run_did(ask, store):
    Path("agent.py").write_text(
        "import playhead\n"
        "try:\n"
        "    with playhead.model_call(provider='acme', model='mine') as call:\n"
        "        call.respond('x')\n"
        "    print('asked')\n"
        "except playhead.PolicyDenied:\n"
        "    print('denied')\n"
    )
    Path(FILE).write_text(
        'mode = "enforce"\n[capabilities."model.use"]\nallow = "*"\n[capabilities."process.exec"]\nallow = "*"\n'
        "[limits]\ncost = 10\n"
    )
    settings = Path("playhead.toml")
    for prices, ends in (("[prices]\nmine = { input = 1, output = 1 }\n", "asked"), ("", "denied")):
        settings.write_text(prices)
        said = ask("record", "--", sys.executable, "agent.py")
        assert ends in said.out, said.err
        settings.write_text("" if prices else "[prices]\nmine = { input = 1, output = 1 }\n")
        said = ask("replay", "@last", "--mode", "exact")
        assert (said.code, ends in said.out, "0 live calls" in said.err) == (0, True, True), said.err


@pytest.mark.parametrize("mode", ["observe", "enforce"])
def test_what_would_be_denied_is_named_by_the_event_that_an_audit_names(ask, store, mode):
    Path(FILE).write_text(f'mode = "{mode}"\n[capabilities."shop.order"]\nallow = ["*"]\n')
    with playhead.record("r", store=store) as run:
        for act in (lambda: deploy("prod"), lambda: deploy("stage"), lambda: Path("out").write_text("x")):
            with contextlib.suppress(playhead.PolicyDenied):
                act()
    tested = ask("policy", "test", run.id, "--json").json["runs"][0]["denied"]
    audited = ask("audit", run.id, "--json").json["policy"]
    assert len(tested) == (5 if mode == "observe" else 3)
    assert [one["seq"] for one in tested] == sorted(seq for one in audited for seq in one["seqs"])


def test_what_is_probably_not_meant_is_said(ask, store):
    Path(FILE).write_text(
        '[capabilities."fs.wite"]\nallow = ["a"]\n[capabilities."process.exec"]\nallow = ["no-such-program *"]\n'
        '[capabilities."tool.call"]\nallow = ["save"]\ndeny = ["save"]\n'
    )
    said = ask("policy", "check")
    assert said.code == 0
    assert "was 'fs.write' meant?" in said.out
    assert "no program 'no-such-program'" in said.out
    assert "since deny has it too" in said.out
    assert len(ask("policy", "check", "--json").json["doubts"]) == 3


def test_a_policy_that_only_denies_is_said_to_allow_nothing(ask, store):
    Path(FILE).write_text(
        '[capabilities."fs.write"]\ndeny = ["deploy/**"]\n[capabilities."tool.call"]\ndeny = ["rm"]\n'
    )
    out = ask("policy", "check").out
    assert (
        'capabilities."fs.write" allows nothing, so all of it is denied; to deny no more than that, add allow = ["**"]'
        in out
    )
    assert 'capabilities."tool.call" allows nothing' in out
    assert 'add allow = ["*"]' in out
    Path(FILE).write_text('[capabilities."fs.write"]\nallow = ["**"]\ndeny = ["deploy/**"]\n')
    assert "allows nothing" not in ask("policy", "check").out
    said = ask("policy", "explain", "fs.write", "anywhere/x")
    assert said.code == 0
    assert "mode observe" not in said.out
    assert "mode observe: it would be recorded" in ask("policy", "explain", "fs.write", "deploy/x").out


def test_a_policy_of_a_folder_above_is_named(ask, store, monkeypatch):
    Path(FILE).write_text('[capabilities."fs.write"]\nallow = ["**"]\n')
    Path("inside/deeper").mkdir(parents=True)
    monkeypatch.chdir("inside/deeper")
    said = ask("policy", "check")
    assert f"there is {Path.cwd().parent.parent / FILE}" in said.err
    Path("../.git").mkdir()  # where another repository begins
    assert "there is /" not in ask("policy", "check").err


def test_what_can_never_fit_is_an_error(ask, store):
    for capability, pattern, told in (
        ("net.connect", "https://api.example.com/v1", "write 'api.example.com:443'"),
        ("fs.write", "file:///etc", "a path has no scheme"),
        ("tool.call", "", "it is empty"),
    ):
        Path(FILE).write_text(f'[capabilities."{capability}"]\nallow = ["{pattern}"]\n')
        said = ask("policy", "check")
        assert said.code == 1
        assert told in said.err
    Path(FILE).write_text("[limits]\ncost = nan\n")
    assert "must be a number from 0 on" in ask("policy", "check").err


def test_a_missing_policy_is_said_alike_everywhere(ask, store):
    for arguments in (["check"], ["explain", "fs.write", "a"], ["test"]):
        said = ask("policy", *arguments)
        assert (said.code, said.err.splitlines()[0]) == (2, f"playhead: there is no policy here: no {FILE}"), arguments
        said = ask("policy", *arguments, "--policy", "nothing.toml")
        assert (said.code, said.err.splitlines()[0]) == (2, "playhead: there is no policy nothing.toml")
        assert FILE in said.err.splitlines()[1]
    assert ask("policy", "check", "nothing.toml").code == 2
    Path(FILE).symlink_to("nothing.toml")
    assert "cannot be read" in ask("policy", "check").err


def test_check_takes_the_file_as_the_others_do(ask, store):
    Path("mine.toml").write_text('[capabilities."fs.write"]\nallow = ["src/**"]\n')
    assert ask("policy", "check", "--policy", "mine.toml").out == ask("policy", "check", "mine.toml").out
    assert ask("policy", "check", "mine.toml", "--policy", "mine.toml").code == 2


def test_explain_asks_what_is_meant(ask, store):
    Path(FILE).write_text('[capabilities."fs.write"]\nallow = ["**"]\n[capabilities."shop.order"]\nallow = ["*"]\n')
    said = ask("policy", "explain", "fs.write")
    assert said.code == 2
    assert "fs.write on what?" in said.err
    assert "playhead policy explain fs.write out/report.md" in said.err
    for wrong, right in (("fs.wirte", "fs.write"), ("shop.oder", "shop.order")):
        said = ask("policy", "explain", wrong, "x")
        assert said.code == 1
        assert f"did you mean {right}?" in said.out
        assert ask("policy", "explain", wrong, "x", "--json").json["did_you_mean"] == right
    assert ask("policy", "explain", "shop.order").code == 0
    assert "did you mean" not in ask("policy", "explain", "fs.write", "x").out


def test_every_capability_has_an_example(ask, store):
    assert set(_RESOURCES) == set(KNOWN)


def test_runs_of_pythons_that_a_run_started_are_asked_about_with_it(ask, shell, tmp_path):
    (tmp_path / "kid.py").write_text("open('made', 'w').close()\n")
    (tmp_path / "agent.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'kid.py'])\n")
    shell("record", "--quiet", "--", sys.executable, "agent.py")
    Path("strict.toml").write_text('[capabilities."process.exec"]\nallow = ["*"]\n')
    for choice in ([], ["@last"], ["--name", "kid"]):
        found = ask("policy", "test", *choice, "--policy", "strict.toml", "--json").json
        assert [one["capability"] for run in found["runs"] for one in run["denied"]] == ["fs.write"], choice


def test_a_run_that_was_altered_is_warned_of(ask, store):
    run = recorded(store)
    Path("strict.toml").write_text('[capabilities."process.exec"]\nallow = ["*"]\n')
    assert ask("policy", "test", run, "--policy", "strict.toml").err == ""
    timeline = store / "runs" / run / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b'"apple"', b'"pears"'))
    assert "this record was altered" in ask("policy", "test", run, "--policy", "strict.toml").err
