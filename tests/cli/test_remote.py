"""Ask a server what a folder is asked: every read command says the same, to the byte."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.serving import TRACE, Served, key_of, serving

import playhead

Ask = Callable[..., Any]

# What is asked; `{…}` is the id of a run of that sort.
QUESTIONS = [
    "ls", "ls -n 3", "ls --status error", "ls --error", "ls --name fix-login --tag team=search", "ls login",
    "ls --text milk", "ls --text 'nothing like it'", "ls --before {crashing}", "ls --since 1h --agent whole-program",
    "log", "log --since 1h --limit 3",
    "show {good}", "show fix-login", "show fix-login~1", "show @last", "show {spans}", f"show {TRACE}",
    "show {good} --at 5", "show {good} --at gpt-5", "show {good} --event 3", "show whole-program", "show crashing",
    "show {flipped}", "show {cut}", "show {withdrawn}", "show whole-program --reads", "show whole-program --limit 3",
    "show whole-program --output stdout", "show {blob} --event 1", "show {blob} --full",
    "tail {good} --no-follow", "tail crashing", "tail {flipped} -n -1", "tail {good} -n 2",
    "verify {good}", "verify {good} --deep", "verify {flipped}", "verify {cut}", "verify {blob} crashing", "verify --all",
    "verify {removed}", "verify {spans}",
    "replay {good}", "replay {bad}", "replay crashing", "replay crashing --force", "replay {withdrawn}", "replay {spans}",
    "diff {good} {bad}", "diff fix-login~1 fix-login --all", "diff {good} {good} --exit-code", "diff {good} {flipped}",
    "stats", "stats --by run", "stats --by day --chart cost", "stats {good} --by step", "stats whole-program",
    "stats --name fix-login --csv", "audit {good}", "audit whole-program --fail-on write", "audit --all",
    "audit whole-program --format md", "audit {flipped} --rule integrity",
    "query 'SELECT id, name, status, events FROM runs ORDER BY id'", "query --tables", "query tokens-by-model --csv",
    "query runs-touching-a-file -p file=out.txt", "query nonsense", "query 'DELETE FROM runs'",
    "query \"SELECT x'00ff' AS bytes, 1.5 AS number, NULL AS nothing\"",
    "report {good} --format md", "report {good} {bad} --format html", "report whole-program --format md",
    "export {good}", "export {good} {flipped} --format csv", "export {blob} --format json", "export crashing --resolve",
    "show no-such-run", "show run_0", "show @last~999", "verify run_01jqk3zzzzzzzzzzzzzzzzzzzz", "show fix-logn",
    "replay {good} --suggest {bad}",
]  # fmt: skip
# What belongs to where it is asked: paths and addresses, how long ago, where the exact lines are.
_PLACES = (r"\S*/api/runs/(run_\w+)/lines", r"\S*/runs/(run_\w+)/timeline\.jsonl")


def words(question: str, served: Served) -> list[str]:
    return [served.runs.get(word.strip("{}"), word) if "{" in word else word for word in shlex.split(question)]


def alike(text: str, served: Served) -> str:
    for pattern in _PLACES:
        text = re.sub(pattern, r"LINES OF \1", text)
    return text.replace(served.address, "STORE").replace(str(served.root), "STORE")


@pytest.mark.parametrize("form", ["text", "json"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_server_is_answered_like_its_own_folder(ask: Ask, served: Served, question: str, form: str) -> None:
    given = words(question, served) + (["--json"] if form == "json" else [])
    for left in (2, 1, 0):  # a second may pass between the two, which `3 s ago` tells
        here = ask(*given, "--store", str(served.root))
        there = ask(*given, "--store", served.address)
        if (here.out, here.err) == (there.out, there.err) or not left:
            break
    assert alike(there.out, served) == alike(here.out, served)
    assert alike(there.err, served) == alike(here.err, served)
    assert there.code == here.code


def test_what_is_packed_from_a_server_is_what_its_folder_packs(ask: Ask, served: Served, tmp_path: Path) -> None:
    for number, store in enumerate((str(served.root), served.address)):
        done = ask("pack", "whole-program", "-o", f"{number}.cassette.jsonl", "--store", store)
        assert done.code == 0, done.err
    assert (tmp_path / "0.cassette.jsonl").read_bytes() == (tmp_path / "1.cassette.jsonl").read_bytes()
    refused = ask("pack", "flipped", "-o", "2.cassette", "--store", served.address, "--json")
    assert refused.json["error"]["code"] == "altered"
    assert refused.code == 1


def test_a_program_is_replayed_here_from_what_a_server_recorded(served: Served, tmp_path: Path) -> None:
    for name in ("agent.py", "notes.txt"):
        (tmp_path / name).write_bytes((served.root.parent / "work" / name).read_bytes())
    command = [sys.executable, "-m", "playhead", "replay", "whole-program", "--mode", "exact", "--json"]
    done = subprocess.run([*command, "--store", served.address], capture_output=True, check=False, cwd=tmp_path)
    told = json.loads(done.stdout)
    assert (done.returncode, told["fidelity"]["verdict"], told["live_calls"]) == (0, "faithful", 0), done.stderr
    assert (tmp_path / ".playhead" / "runs" / told["run"]).is_dir(), "the replay is recorded here"
    assert not (served.root / "runs" / told["run"]).exists()


@pytest.mark.parametrize(
    "command",
    ["record -- true", "demo", "resume @last", "rerun", "test", "import git", "unpack x.cassette", "keys list",
     "reindex", "prune --older-than 1d", "serve", "doctor"],
)  # fmt: skip
def test_what_needs_a_folder_says_so_before_anything_is_done(ask: Ask, served: Served, command: str) -> None:
    name, *more = command.split(" ")
    at = more.index("--") if "--" in more else len(more)
    done = ask(name, *more[:at], "--json", "--store", served.address, *more[at:])
    assert done.json["error"]["message"] == f"`playhead {name}` needs a folder, and {served.address} is a server"
    assert done.code == 2
    assert list(Path().iterdir()) == []


def test_a_grade_is_not_written_into_a_run_of_a_server(ask: Ask, served: Served) -> None:
    done = ask("grade", "whole-program", "--store", served.address)
    assert done.code == 2
    assert f"playhead pack whole-program --store {served.address} -o x.cassette" in done.err


def test_the_variable_names_a_server_too(ask: Ask, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    there = ask("ls", "--json", "--store", served.address)
    monkeypatch.setenv("PLAYHEAD_DIR", served.address)
    assert ask("ls", "--json").out == there.out
    assert ask("verify", "fix-login").code == 0
    assert ask("diff", "fix-login~1", "fix-login").code == 0
    assert ask("record", "--", "true").code == 2
    assert ask("show", "whole-program").code == 0
    assert list(Path().iterdir()) == []


def test_a_run_that_is_being_written_is_followed_to_its_end(served: Served) -> None:
    program = (
        "import sys, time, playhead\n"
        "with playhead.record('slow', store=sys.argv[1]) as run:\n"
        "    print(run.id, flush=True)\n"
        "    for number in range(3):\n"
        "        sys.stdin.readline()\n"
        "        playhead.note(f'news {number}')\n"
    )
    writing = subprocess.Popen(
        [sys.executable, "-c", program, str(served.root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with writing:
        assert writing.stdin is not None
        assert writing.stdout is not None
        run = writing.stdout.readline().strip()
        command = [sys.executable, "-m", "playhead", "tail", run, "--json", "--store", served.address]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as tail:
            assert tail.stdout is not None
            assert '"run.started"' in tail.stdout.readline()
            for number in range(3):
                writing.stdin.write("\n")
                writing.stdin.flush()
                assert f"news {number}" in tail.stdout.readline(), "told while the run goes on"
            assert '"run.finished"' in tail.stdout.read()
            assert tail.wait(30) == 0


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Give a server with two projects, a run in each, and a key to each."""
    root = tmp_path_factory.mktemp("locked") / ".playhead"
    keys = {"ours": key_of(root, "--scope", "read"), "admin": key_of(root, "--scope", "admin")}
    keys["theirs"] = key_of(root, "--project", "other", "--scope", "read")
    for name, store in (("ours", root), ("theirs", root / "projects" / "other")):
        with playhead.record(name, store=store):
            playhead.note("hello")
    with serving(root) as server:
        yield server, keys


def test_a_key_opens_its_own_project_and_no_other(ask: Ask, locked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server, keys = locked
    for mine, other in (("ours", "theirs"), ("theirs", "ours")):
        monkeypatch.setenv("PLAYHEAD_API_KEY", keys[mine])
        assert [run["name"] for run in ask("ls", "--json", "--store", server.address).json] == [mine]
        assert ask("show", other, "--store", server.address).code == 2
        assert ask("verify", "--all", "--json", "--store", server.address).json["store"]["runs"] == 1
        assert ask("query", "SELECT name FROM runs", "--json", "--store", server.address).json == [{"name": mine}]
        assert ask("ls", "--text", "hello", "--json", "--store", server.address).json[0]["name"] == mine


def test_without_the_right_key_nothing_is_told_and_no_key_is_shown(
    ask: Ask, locked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, keys = locked
    done = ask("ls", "--json", "--store", server.address)
    assert done.json["error"]["code"] == "key_refused"
    assert "PLAYHEAD_API_KEY" in done.json["error"]["hint"]
    wrong = keys["ours"][:-1] + ("a" if keys["ours"][-1] != "a" else "b")
    for key, code in ((wrong, "key_refused"), ("ph_nonsense", "key_refused"), ("a b\n c", "config")):
        monkeypatch.setenv("PLAYHEAD_API_KEY", key)
        done = ask("show", "ours", "--json", "--store", server.address)
        assert done.json["error"]["code"] == code
        assert key not in done.out + done.err
    monkeypatch.setenv("PLAYHEAD_API_KEY", keys["ours"])
    refused = ask("invalidate", "ours", "--why", "stale", "--json", "--store", server.address)
    assert refused.json["error"]["code"] == "forbidden"
    assert keys["ours"] not in refused.out


def test_a_run_of_a_server_is_invalidated_with_a_key_that_may(
    ask: Ask, locked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, keys = locked
    monkeypatch.setenv("PLAYHEAD_API_KEY", keys["admin"])
    done = ask("invalidate", "ours", "--why", "stale", "--by", "me", "--json", "--store", server.address)
    assert done.json["replayable"] is False
    assert done.json["reasons"] == ["manually_invalidated"]
    assert ask("replay", "ours", "--json", "--store", server.address).json["error"]["code"] == "not_replayable"


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:1", "cannot be reached: connection refused"),
        ("http://user:secret@localhost:4000", "holds a name or a password"),
        ("http://", "not the address of a server"),
        ("http://localhost:99999", "not the address of a server"),
        ("http://localhost:4000/?x=1", "has a question mark"),
        ("https://no-such-host.invalid", "cannot be reached"),
    ],
)
def test_an_address_that_is_none_is_told_in_a_line(ask: Ask, address: str, said: str) -> None:
    done = ask("ls", "--store", address)
    assert said in done.err
    assert "secret" not in done.err
    assert done.code in (2, 3)


def test_a_server_that_stops_in_the_middle_is_an_error_and_not_less(ask: Ask, tmp_path: Path) -> None:
    root = tmp_path / "store"
    with playhead.record("one", store=root):
        playhead.note("hello")
    with serving(root) as server:
        assert ask("ls", "--store", server.address).code == 0
        server.process.kill()
        server.process.wait()
        done = ask("ls", "--json", "--store", server.address)
        assert done.code == 3
        assert done.json["error"]["code"] == "server"
