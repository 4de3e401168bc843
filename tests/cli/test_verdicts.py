from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

import playhead

UNSEEN = "import ctypes, playhead\nwith playhead.record('n'):\n    ctypes.CDLL(None)\n"


def header(text: str) -> dict[str, str]:
    """Return the facts of a header by their labels."""
    lines = text.partition("\n\n")[0].splitlines()[1:]
    return {line[2:13].strip(): line[13:] for line in lines if line[2:3].strip()}


def test_the_header_keeps_the_three_claims_and_the_playback_apart(ask, sample):
    said = ask("show", "@last")
    facts = header(said.out)
    assert facts["record"] == "integrity: intact, completeness: complete, fidelity: not compared"
    assert facts["playback"] == "possible"
    assert f"playhead replay {sample}" in said.out


def test_a_run_that_is_not_played_back_says_every_reason(ask, store):
    code = "import os, playhead\nplayhead.record('dies').__enter__()\nos.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code], check=False)
    playhead.load("dies").invalidate("stale", by="ada")
    said = ask("show", "dies")
    facts = header(said.out)
    assert facts["record"] == "integrity: intact, completeness: unfinished, fidelity: not compared"
    assert facts["playback"] == (
        "refused: the run did not finish (execution_incomplete); "
        "somebody declared that this run must not be played back (manually_invalidated)"
    )
    assert "playhead replay" not in said.out
    ready = ask("show", "dies", "--json").json["readiness"]
    assert (ready["replayable"], ready["reasons"]) == (False, ["execution_incomplete", "manually_invalidated"])
    assert ready["detail"]["manually_invalidated"] == "stale"


def test_a_running_one_is_not_called_refused(ask, store):
    with playhead.record("goes-on", store=store):
        assert header(ask("show", "goes-on").out)["playback"] == "not while it is running"


def test_what_was_not_captured_is_named_line_by_line_and_in_json(ask, store, tmp_path):
    (tmp_path / "unseen.py").write_text(UNSEEN + "    ctypes.CDLL('libc.so.6')\n")
    subprocess.run([sys.executable, "unseen.py"], check=True, cwd=tmp_path)
    lines = ask("show", "n").out.splitlines()
    (first,) = [at for at, line in enumerate(lines) if line.startswith("  not captured: ")]
    assert lines[first] == "  not captured: ctypes the libraries of the process at __main__:3"
    assert lines[first + 1] == "                ctypes libc.so.6 at __main__:4"
    ready = ask("show", "n", "--json").json["readiness"]
    assert [gap["source"] for gap in ready["not_captured"]] == ["ctypes", "ctypes", "reads"]
    assert (ready["integrity"], ready["completeness"], ready["fidelity"]) == ("intact", "complete", "not_compared")


@pytest.mark.parametrize(("install", "watched"), [("", False), ("playhead.install()\n", True)])
def test_a_run_whose_reads_nobody_watched_says_so(ask, store, tmp_path, install, watched):
    program = f"import playhead, time\n{install}with playhead.record('n'):\n    time.time()\n"
    (tmp_path / "agent.py").write_text(program)
    subprocess.run([sys.executable, "agent.py"], check=True, cwd=tmp_path)
    told, unseen = header(ask("show", "n").out)["reads"], playhead.load("n").readiness().not_captured
    assert playhead.load("n").event(0).data["ambient"] is watched
    if watched:
        assert told.startswith(("1, of clocks", "2, of clocks"))  # the time, and its own source
        assert unseen == []
    else:
        assert told.startswith("not watched: ")
        assert "`playhead.install()`" in told
        assert [gap["source"] for gap in unseen] == ["reads"]
    assert playhead.load("n").readiness().replayable


def test_switched_off_is_as_not_watched(ask, shell, store):
    for option, told in (("--no-ambient", "not watched: "), (None, "")):
        options = [option] if option else []
        code = "import threading, time; t = threading.Thread(target=print); t.start(); t.join(); time.time()"
        said = shell("record", *options, "--", sys.executable, "-c", code)
        assert header(ask("show", "@last").out)["reads"].startswith(told)
        assert ("reads: " in said.err) is (option is None)
    with playhead.record("apart", store=store, capture=False):
        pass
    assert playhead.load("apart").event(0).data["ambient"] is False


def test_a_child_run_says_whether_it_was_watched(shell, store, tmp_path):
    child = "import os; os.mkdir('made')"
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    (tmp_path / "program.py").write_text(program)
    assert shell("record", "--quiet", "--", sys.executable, "program.py").code == 0
    found = [playhead.load(folder.name).event(0).data for folder in sorted((store / "runs").iterdir())]
    assert [(bool(data.get("origin")), data["ambient"]) for data in found] == [(False, True), (True, True)]


@pytest.fixture
def replayed(shell, store):
    """Record a program that reads a file which nobody watches, and return a function that replays it."""
    (store.parent / "program.py").write_text("import sys\nprint('hello', *sys.argv[1:])\n")

    def replay(*arguments: str) -> str:
        shell("replay", "@last", "--mode", "exact", "--", sys.executable, "program.py", *arguments)
        return shell("ls", "--json").json[0]["id"]

    assert shell("record", "--quiet", "--", sys.executable, "program.py").code == 0
    return replay


def test_a_replay_says_what_it_replays_and_how_the_two_compare(ask, shell, store, replayed):
    original = playhead.load("@last", store).id
    same, other = replayed(), replayed("world")
    facts = header(ask("show", same).out)
    assert facts["replays"].startswith(f"{original} (exact), up to event ")
    assert facts["record"].endswith("fidelity: faithful")
    assert facts["fidelity"] == f"faithful over the recorded surface, that of {original} (exact)"
    assert ask("show", same, "--json").json["readiness"]["fidelity"] == "faithful"
    said = ask("verify", other)
    assert "fidelity     deviated" in said.out
    assert "stdout differs: line 1 was hello, and is hello world" in " ".join(said.out.split())
    found = ask("verify", other, "--json").json["fidelity"]
    assert (found["verdict"], found["count"], found["of"]) == ("deviated", 1, original)
    page, told = (ask("report", other, "--format", form).out for form in ("html", "md"))
    assert 'fidelity: <b class="bad">deviated</b>' in page
    assert f"of {original}: stdout differs: line 1 was hello, and is hello world" in page
    assert ("| completeness | fidelity |" in told, "| complete | deviated |" in told) == (True, True)
    assert ask("report", other, "--json").json["runs"][0]["verify"] == ask("verify", other, "--json").json
    assert "fidelity" not in ask("report", original, "--format", "md").out


def test_a_replay_without_its_original_is_not_compared(ask, store, replayed):
    original, replay = playhead.load("@last", store).id, replayed()
    shutil.rmtree(store / "runs" / original)
    found = ask("verify", replay, "--json").json["fidelity"]
    assert found["verdict"] == "not_compared"
    assert original in found["why"]
