"""`pack` and `unpack` at the command line, and a cassette wherever a run is named."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.store.packed import FORMS, relined, rezipped

import playhead
from playhead.errors import Altered
from playhead.store.files import FileStore
from playhead.testing import ScriptedProvider

AGENT = """
import subprocess, sys, time, random
import openai, playhead

@playhead.tool
def read_issue(number):
    return f"issue {number}: addresses differ in case"

client = openai.OpenAI()
told = client.chat.completions.create(model="gpt-5", messages=[{"role": "user", "content": "Fix " + read_issue(1842)}])
print(told.choices[0].message.content, random.random(), time.time())
print(open(__file__).read()[:20])
subprocess.run([sys.executable, "-c", "import time; print('child', time.time())"], check=True)
playhead.artifact("answer.txt", told.choices[0].message.content)
"""


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def recorded(store: Path, shell: Any, tmp_path: Path) -> dict[str, Any]:
    """Record a program that asks a real SDK, reads files and clocks, and starts another Python."""
    pytest.importorskip("openai")
    (tmp_path / "agent.py").write_text(AGENT)
    with ScriptedProvider(lambda request: "Compare addresses in lower case. " * 2000) as provider:
        variables = {"OPENAI_BASE_URL": provider.base_url, "OPENAI_API_KEY": "sk-test-0000"}
        said = shell("record", "--json", "--", sys.executable, "agent.py", env=variables)
    assert said.code == 0, said.err
    document: dict[str, Any] = json.loads(said.err[said.err.index("{") :])
    return document


def test_a_recorded_program_is_taken_elsewhere_whole(recorded: Any, shell: Any, tmp_path: Path, form: str) -> None:
    run, children = recorded["run"], [child["run"] for child in recorded["children"]]
    assert len(children) == 1
    packed = shell("pack", "@last", "-o", f"agent{form}", "--json")
    assert (packed.code, packed.json["run"], packed.json["runs"]) == (0, run, [run, *children])
    assert packed.json["bytes"] == Path(f"agent{form}").stat().st_size
    assert packed.json["unfinished"] == []
    far = tmp_path / "far"
    far.mkdir()
    os.rename(f"agent{form}", far / f"agent{form}")
    here = {"cwd": far, "env": {"PLAYHEAD_DIR": str(far / "none")}}
    original = {name: shell(name, run).out for name in ("show", "replay")}
    for name, out in original.items():
        # What is said of a run of a cassette is the same, but for how the next command would name it.
        ago = re.compile(r"just now|\d+ (s|min) ago|playhead show (?=run_)|next .*", re.DOTALL)
        assert ago.sub("", shell(name, f"agent{form}", **here).out) == ago.sub("", out)
    for arguments in (
        ["--raw"],
        ["--output", "stdout"],
        ["--reads"],
        ["--artifact", "answer.txt"],
        ["--event", "3"],
        ["--at", "3", "--json"],
    ):
        assert shell("show", f"agent{form}", *arguments, **here).out == shell("show", run, *arguments).out
    verified = shell("verify", f"agent{form}", "--json", **here)
    assert [one["run"] for one in verified.json["runs"]] == [run, *children]
    assert verified.code == 0, verified.out
    assert shell("export", f"agent{form}", **here).out == shell("export", run).out
    assert not (far / "none").exists(), "reading a cassette needs no store"

    assert shell("unpack", f"agent{form}", **here).code == 0
    assert shell("verify", "--all", **here).code == 0
    again = shell("pack", run, "-o", f"again{form}", **here)
    assert again.code == 0, again.err
    assert (far / f"again{form}").read_bytes() == (far / f"agent{form}").read_bytes()
    listed = shell("ls", "--json", **here).json
    assert {one["id"] for one in listed} >= {run}


def test_it_says_what_was_done_and_how_large_it_is(ask: Any, sample: str, store: Path) -> None:
    said = ask("pack", sample, "-o", "x.cassette")
    assert re.fullmatch(rf"packed {sample} into x\.cassette: 18 events, 3 contents, \d\.\d kB\n", said.out)
    said = ask("unpack", "x.cassette", "--store", "other")
    assert said.out == f"unpacked {sample} into {store.parent / 'other'}: 18 events\n"
    said = ask("unpack", "x.cassette", "--store", "other")
    assert said.out == f"{sample} is in {store.parent / 'other'} already: the same 18 events\n"
    playhead.load(sample, "other").invalidate("later")
    assert ask("unpack", "x.cassette", "--store", "other").out.endswith(
        "the same 18 events; the store has 1 event more\n"
    )


def test_unpack_answers_with_json(ask: Any, sample: str, store: Path) -> None:
    ask("pack", sample, "-o", "x.cassette.jsonl")
    assert ask("unpack", "x.cassette.jsonl", "--store", "other", "--json").json == {
        "file": "x.cassette.jsonl",
        "store": str(store.parent / "other"),
        "run": sample,
        "runs": [{"run": sample, "there": False, "events": 18, "more": 0}],
    }


def test_a_file_that_is_there_is_replaced_only_by_force(ask: Any, sample: str) -> None:
    Path("x.cassette").write_bytes(b"mine")
    said = ask("pack", sample, "-o", "x.cassette", "--json")
    assert (said.code, said.json["error"]["hint"]) == (2, "`--force` replaces it.")
    assert Path("x.cassette").read_bytes() == b"mine"
    assert ask("pack", sample, "-o", "x.cassette", "--force").code == 0
    assert stat.S_IMODE(os.stat("x.cassette").st_mode) == 0o644


def test_a_run_that_goes_on_is_packed_when_asked(ask: Any, store: Path) -> None:
    with playhead.record("open", store=store) as run:
        playhead.note("here")
        said = ask("pack", str(run.id), "-o", "x.cassette")
        assert (said.code, said.err.splitlines()[0]) == (2, f"playhead: {run.id} is still running: it is not packed")
        said = ask("pack", str(run.id), "-o", "x.cassette", "--unfinished")
        assert (said.code, said.err) == (0, f"playhead: {run.id} has no end; the cassette says so\n")
    assert ask("verify", "x.cassette").code == 3


def test_an_altered_run_is_not_packed(ask: Any, sample: str, store: Path) -> None:
    timeline = store / "runs" / sample / "timeline.jsonl"
    timeline.write_bytes(timeline.read_bytes().replace(b"fix-login", b"fix-logon", 1))
    said = ask("pack", sample, "-o", "x.cassette")
    assert (said.code, Path("x.cassette").exists()) == (1, False)
    assert f"{sample} is not packed: event 0 was edited" in said.err


def _edit(path: Path, old: bytes, new: bytes) -> None:
    if path.name.endswith(".jsonl"):
        relined(path, lambda lines: lines.__setitem__(slice(None), [line.replace(old, new) for line in lines]))
    else:
        rezipped(path, lambda members: members.__setitem__(slice(None), [(a, b.replace(old, new)) for a, b in members]))


def test_verify_names_the_line_that_was_edited(ask: Any, sample: str, form: str) -> None:
    path = Path(f"x{form}")
    ask("pack", sample, "-o", str(path))
    _edit(path, b'"depth":2', b'"depth":3')
    said = ask("verify", str(path))
    place = "line 3 of x.cassette.jsonl" if form.endswith(".jsonl") else f"line 2 of timelines/{sample}.jsonl"
    assert (said.code, said.out.splitlines()[0]) == (1, f"{sample}  broken")
    assert f"edited: event 1 ({place}) was edited" in said.out
    for command in (["show"], ["replay"], ["export"], ["tail"], ["unpack", "--store", "other"]):
        refused = ask(*command, str(path))
        assert refused.code == 1
        assert "event 1 was edited" in refused.err
    assert not Path("other").exists()


def test_verify_tells_of_a_cut_tail_without_the_index(ask: Any, sample: str, form: str) -> None:
    path = Path(f"x{form}")
    ask("pack", sample, "-o", str(path))
    last = list(playhead.load(sample).lines())[-1] + b"\n"
    if form.endswith(".jsonl"):
        relined(path, lambda lines: lines.remove(last))
    else:
        rezipped(path, lambda members: members.__setitem__(1, (members[1][0], members[1][1].replace(last, b""))))
    said = ask("verify", str(path))
    assert said.code == 1
    assert "cut tail: 18 events were packed, 17 are left" in said.out
    assert "index" not in said.out


def test_verify_gives_its_own_shape_to_a_file_that_is_damaged(ask: Any, sample: str, form: str) -> None:
    path = Path(f"x{form}")
    ask("pack", sample, "-o", str(path))
    path.write_bytes(path.read_bytes()[:-10])
    said = ask("verify", str(path), "--json")
    assert (said.code, said.json["integrity"]["verdict"], said.json["integrity"]["reason"]) == (
        1,
        "broken",
        "bad_cassette",
    )
    assert "its end is" in said.json["integrity"]["message"]
    assert ask("show", str(path)).code == 3


def test_the_verb_in_python_reports_as_the_command_does(ask: Any, sample: str, form: str) -> None:
    path = Path(f"x{form}")
    ask("pack", sample, "-o", str(path))
    assert playhead.verify(path).integrity.verdict == "intact"
    _edit(path, b'"depth":2', b'"depth":3')
    told = playhead.verify(str(path), deep=True).integrity
    assert (told.verdict, told.at, told.reason) == ("broken", 1, "edited")
    with pytest.raises(Altered):
        playhead.load(path)


def test_verify_finds_what_no_line_tells_of(ask: Any, sample: str) -> None:
    path = Path("x.cassette.jsonl")
    ask("pack", sample, "-o", str(path))
    _edit(path, b'"finished":true', b'"finished":false')
    said = ask("verify", str(path), "--json")
    assert (said.code, said.json["integrity"]["reason"], said.json["level"]) == (1, "bad_cassette", "broken")


@pytest.mark.parametrize("name", ["x.cassette", "x.cassette.jsonl"])
def test_a_file_of_something_else_is_said_to_be_none(ask: Any, store: Path, name: str) -> None:
    Path(name).write_text("hello\n")
    for command in ("show", "verify", "unpack"):
        said = ask(command, name, "--json")
        assert (said.code, said.json["error"]["code"]) == (3, "bad_cassette")
        assert said.json["error"]["message"].endswith(f"{name} is not a cassette")


def test_a_newer_format_gets_the_hint_to_upgrade(ask: Any, sample: str) -> None:
    ask("pack", sample, "-o", "x.cassette.jsonl")
    _edit(Path("x.cassette.jsonl"), b'"format":1,', b'"format":2,')
    said = ask("verify", "x.cassette.jsonl")
    assert (said.code, "Upgrade" in said.err) == (3, True)


def test_a_cassette_that_is_not_there_is_not_found(ask: Any, store: Path) -> None:
    assert ask("show", "none.cassette").code == 2
    assert ask("unpack", "none.cassette").code == 2
    assert list(FileStore(store).runs()) == []


def test_a_cassette_is_known_by_its_content_whatever_its_name(ask: Any, sample: str) -> None:
    ask("pack", sample, "-o", "x.cassette")
    os.rename("x.cassette", "downloaded.bin")
    assert ask("verify", "./downloaded.bin").code == 0


def test_a_program_is_replayed_from_a_cassette_without_the_store(shell: Any, store: Path, form: str) -> None:
    Path("agent.py").write_text("import random, time\nprint(random.random(), time.time())\n")
    told = shell("record", "--", sys.executable, "agent.py").out
    assert shell("pack", "@last", "-o", f"x{form}").code == 0
    shutil.rmtree(store)
    for _ in range(2):
        replayed = shell("replay", f"x{form}", "--mode", "exact")
        assert (replayed.code, told in replayed.out) == (0, True), replayed.out
