"""The runs of Pythons that two programs started are compared with them."""

from __future__ import annotations

import shutil
import sys

import pytest

import playhead
from playhead import _limits
from playhead.store.files import FileStore

KID = "import playhead\n@playhead.tool\ndef act(x): return x\nact(int(open('amount').read()))\n"
AGENT = (
    "import subprocess, sys\n"
    "for number in range(int(open('kids').read())):\n"
    "    subprocess.run([sys.executable, 'kid.py'], check=True)\n"
)


@pytest.fixture
def started(shell, tmp_path):
    """Record a program that starts Pythons, and return its id."""
    (tmp_path / "kid.py").write_text(KID)
    (tmp_path / "agent.py").write_text(AGENT)

    def record(amount: int, kids: int = 1) -> str:
        (tmp_path / "amount").write_text(str(amount))
        (tmp_path / "kids").write_text(str(kids))
        shell("record", "--quiet", "--", sys.executable, "agent.py")
        return playhead.load("@last").id

    return record


def test_a_python_that_was_started_and_did_something_else_is_a_difference(ask, started):
    runs = [started(1), started(1), started(2)]
    said = ask("diff", *runs[:2], "--exit-code")
    assert said.code == 0
    assert said.out.endswith("\nruns of Pythons that these started\n      kid  identical\n")
    assert playhead.diff(*runs[:2]).identical is True

    said = ask("diff", *runs[1:], "--exit-code")
    found = ask("diff", *runs[1:], "--json").json
    (child,) = found["children"]
    assert said.code == 1
    assert "no difference in the two runs themselves, but in those of Pythons that they started\n" in said.out
    assert "      kid  differs: 2  tool act  in kid  asked something else\n" in said.out
    assert (found["identical"], found["deviations"], child["identical"]) == (False, [], False)
    assert (child["name"], child["headline"]["name"], child["why"]) == ("kid", "act", None)
    command = f"playhead diff {child['left']} {child['right']}"
    assert f"        {command}\n" in said.out
    assert ask(*command.split()[1:], "--exit-code").code == 1
    assert ask("diff", *runs[1:], "--only", "model", "--exit-code").code == 0
    assert ask("diff", *runs[1:], "--only", "tool", "--exit-code").code == 1
    ignored = ask("diff", *runs[1:], "--ignore", "/input/x", "--ignore", "/output", "--exit-code")
    assert (ignored.code, "kid  identical" in ignored.out) == (0, True)
    compared = playhead.diff(*runs[1:])
    assert compared
    assert [(one.name, one.identical) for one in compared.children] == [("kid", False)]
    for form in ("md", "html"):
        report = ask("report", *runs[1:], "--format", form).out
        assert "Runs of Pythons that these started" in report
        assert "1 of 1 differ" in report
        assert "kid: changed kid / act" in report


def test_a_python_that_only_one_of_the_runs_started_is_a_difference(ask, started):
    runs = started(1, kids=1), started(1, kids=2)
    found = playhead.diff(*runs)
    assert [(one.left is None, one.right is None, one.identical) for one in found.children] == [
        (False, False, True),
        (True, False, False),
    ]
    assert "      kid  only the right run started it\n" in ask("diff", *runs).out
    assert "      kid  only the left run started it\n" in ask("diff", *runs[::-1]).out


def test_what_could_not_be_compared_is_never_said_to_be_identical(ask, started, store, monkeypatch):
    runs = started(1, kids=2), started(1, kids=2)
    with monkeypatch.context() as patched:
        patched.setattr(_limits, "DIFFERENCE_CHILDREN_MAX", 1)
        said = ask("diff", *runs, "--exit-code")
    assert said.code == 3
    assert "could not tell: nothing differs of what could be compared\n" in said.out
    assert "      kid  could not tell: only the first 1 are compared\n" in said.out
    copied = shutil.copytree(FileStore(store).folder(runs[0]), store.parent / "alone")
    said = ask("diff", str(copied), runs[1])
    assert said.code == 3
    assert "could not tell: the left run is in no store, where those would be that it started\n" in said.out
    child = playhead.diff(*runs).children[0].left
    timeline = FileStore(store).folder(child) / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b'"name":"kid"', b'"name":"kit"', 1))
    said = ask("diff", *runs)
    assert said.code == 3
    assert f"`playhead verify {child}` says more" in said.err


def test_an_exact_replay_starts_no_python_and_misses_none(ask, shell, started):
    run = started(1)
    shell("replay", run, "--mode", "exact")
    assert ask("diff", run, playhead.runs(limit=1)[0].id, "--exit-code").code == 0


def test_a_run_names_what_it_started_and_how_to_look_at_it(ask, started, store):
    run = started(1, kids=7)
    children = [child.left for child in playhead.diff(run, run).children]
    shown, added = ask("show", run), ask("stats", run)
    assert f"\nstarted, each a run of its own\n  kid  ok, 1 tool call  playhead show {children[0]}\n" in shown.out
    assert "  and 2 more; --json has them all\n" in shown.out
    assert "Its program started 7 runs of Pythons, added up apart:\n" in added.out
    assert f"  kid  ok, 1 tool call  playhead stats {children[0]}\n" in added.out
    found = ask("show", run, "--json").json["children"]
    assert (
        ask("stats", run, "--json").json["children"]
        == ask("report", run, "--json").json["runs"][0]["children"]
        == found
    )
    told = ("run", "name", "status", "model_calls", "tool_calls", "tokens_in", "cost", "denied")
    listed = [(id, "kid", "ok", 0, 1, 0, None, 0) for id in children]
    assert [tuple(child[name] for name in told) for child in found] == listed
    ask("pack", run, "-o", "run.cassette")
    packed = ask("show", "run.cassette")
    assert f"  kid  ok, 1 tool call  {children[0]}\n" in packed.out
    packed = ask("show", "run.cassette", "--json").json["children"]
    assert [tuple(child[name] for name in told) for child in packed] == listed
    alone = ask("show", children[0])
    assert "each a run of its own" not in alone.out
    assert ask("show", children[0], "--json").json["children"] == []


def test_only_a_command_that_works_is_proposed(ask, started, store, tmp_path, monkeypatch):
    runs = started(1), started(2)
    for number, run in enumerate(runs):
        ask("pack", run, "-o", f"{number}.cassette")
    apart = tmp_path / "apart"
    shutil.copytree(store, apart)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    monkeypatch.delenv("PLAYHEAD_DIR", raising=False)

    assert proposed(ask("diff", "../0.cassette", "../1.cassette").out) is None
    named = proposed(ask("diff", *runs, "--store", str(apart)).out)
    assert named is not None
    assert named.endswith(f" --store {apart}")
    assert ask(*named.split()[1:], "--exit-code").code == 1
    elsewhere = proposed(ask("diff", *(f"{apart}/runs/{run}" for run in runs)).out)
    assert elsewhere is not None
    assert ask(*elsewhere.split()[1:], "--exit-code").code == 1
    monkeypatch.chdir(tmp_path)
    assert proposed(ask("diff", runs[0], "0.cassette", "--store", str(apart)).out) is None
    assert proposed(ask("diff", runs[0], runs[0], "--store", str(apart)).out) is None


def proposed(out: str) -> str | None:
    return next((line.strip() for line in out.splitlines() if line.strip().startswith("playhead diff")), None)


def test_what_runs_that_were_started_used_and_were_denied_is_told_with_the_run(ask, shell, tmp_path):
    (tmp_path / "kid.py").write_text(
        "import playhead\n"
        "with playhead.record('kid'):\n"
        "    with playhead.model_call(provider='openai', model='gpt-5') as call:\n"
        "        call.respond('x', usage={'input': 1000, 'output': 20})\n"
        "    open('made', 'w')\n"
    )
    (tmp_path / "agent.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'kid.py'])\n")
    (tmp_path / "playhead.policy.toml").write_text(
        'mode = "enforce"\n[capabilities."process.exec"]\nallow = ["*"]\n[capabilities."model.use"]\nallow = ["*"]\n'
    )
    recorded = shell("record", "--", sys.executable, "agent.py")
    (child,) = ask("show", "@last", "--json").json["children"]
    assert (child["tokens_in"], child["tokens_out"], child["denied"]) == (1000, 20, 1)
    assert "it started kid, a run of its own: " in recorded.err
    assert "1 denied: fs.write " in recorded.err.partition("it started kid")[2].splitlines()[0]
    assert "1 model call, 1 denied  playhead show" in ask("show", "@last").out
    told = ask("report", "@last", "--format", "md").out
    assert "\n- kid error, 1 model call, 1,000 → 20 tokens, " in told
    assert ", 1 denied\n" in told
    assert "1,000 → 20 tokens" in ask("report", "@last", "--format", "html").out
