"""`playhead test`: recordings are replayed against the code as it is now."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from tests import warm

from playhead.cli.junit import write
from playhead.cli.retesting import Retested

AGENT = """
import sys
import playhead


@playhead.tool
def look(where: str) -> str:
    return f"seen {where}"


print(look(WHERE), len(sys.argv))
"""


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Record two runs of a program, one of them as a cassette too."""
    (tmp_path / "agent.py").write_text(AGENT.replace("WHERE", '"on the first shelf"'))
    for name in ("first", "second"):
        done = playhead("record", "--name", name, "--tag", f"part={name}", "--", sys.executable, "agent.py")
        assert done.returncode == 0, done.stderr
    (tmp_path / "tapes" / "deep").mkdir(parents=True)
    for name, file in (("first", "tapes/one.cassette.jsonl"), ("second", "tapes/deep/two.cassette")):
        assert playhead("pack", name, "-o", file).returncode == 0
    return tmp_path


def playhead(*arguments: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"}
    return warm.playhead(Path.cwd(), *arguments, variables=clean)


def change(folder: Path) -> None:
    """Let the program ask something else from now on."""
    (folder / "agent.py").write_text(AGENT.replace("WHERE", '"on the second shelf"'))


def test_a_folder_of_cassettes_and_a_store_are_replayed_against_the_present_code(recorded: Path) -> None:
    done = playhead("test", "tapes", "-j", "2", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["tested"], found["faithful"]) == (0, 2, 2), found
    assert [one["name"] for one in found["runs"]] == ["two", "one"]
    assert all(one["calls"] == 1 for one in found["runs"])
    done = playhead("test")
    assert done.returncode == 0, done.stdout
    assert "2 runs replayed against the code as it is now: 2 faithful" in done.stdout
    listed = json.loads(playhead("ls", "--json").stdout)
    assert len(listed) == 2, "the replays are not kept"


def test_a_deviation_is_the_first_line_of_its_row_and_exit_code_one(recorded: Path) -> None:
    change(recorded)
    done = playhead("test", "--name", "first", "--junit", "report.xml")
    assert done.returncode == 1
    row = next(line for line in done.stdout.splitlines() if "deviated" in line)
    assert "tool look was asked something else" in row
    assert "[-first-] {+second+}" in done.stdout
    suite = ElementTree.parse(recorded / "report.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
    failure = suite[0][0]
    assert "tool look was asked something else" in (failure.get("message") or "")
    assert "[-first-] {+second+}" in (failure.text or "")


def test_filters_choose_runs_and_x_stops_at_the_first(recorded: Path) -> None:
    found = json.loads(playhead("test", "--tag", "part=second", "--json").stdout)
    assert [one["name"] for one in found["runs"]] == ["second"]
    assert json.loads(playhead("test", "fir", "--since", "1h", "--json").stdout)["tested"] == 1
    change(recorded)
    done = playhead("test", "-x", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["tested"], found["left_out"], found["deviated"]) == (1, 1, 1, 1)


def test_what_cannot_be_replayed_is_named_and_is_no_pass(recorded: Path) -> None:
    assert playhead("invalidate", "first", "--why", "wrong data").returncode == 0
    done = playhead("test", "--name", "first", "--json", "--junit", "report.xml")
    (one,) = json.loads(done.stdout)["runs"]
    assert (done.returncode, one["verdict"], one["reasons"]) == (3, "not_replayable", ["manually_invalidated"])
    assert "wrong data" in one["first"]
    assert ElementTree.parse(recorded / "report.xml").getroot()[0].get("errors") == "1"
    waived = playhead("test", "--name", "first", "--waive", "manually_invalidated")
    assert waived.returncode == 0


def test_a_file_that_is_no_cassette_does_not_end_the_others(recorded: Path) -> None:
    (recorded / "tapes" / "bad.cassette").write_bytes(b"nothing of ours")
    done = playhead("test", "tapes", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == 3
    assert {one["name"]: one["verdict"] for one in found["runs"]} == {
        "bad": "not_replayable",
        "one": "faithful",
        "two": "faithful",
    }


def test_the_cassette_of_a_test_is_left_to_pytest(recorded: Path) -> None:
    (recorded / "test_it.py").write_text(
        "import pytest, playhead\n\n@playhead.tool\ndef look():\n    return 1\n\n"
        "@pytest.mark.cassette\ndef test_look():\n    assert look() == 1\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "test_it.py"]
    anywhere = {name: value for name, value in os.environ.items() if name != "CI"}  # where nothing is recorded
    subprocess.run(command, check=True, capture_output=True, env=anywhere)
    done = playhead("test", "cassettes", "--json")
    (one,) = json.loads(done.stdout)["runs"]
    assert (done.returncode, one["verdict"]) == (3, "left_to_pytest")
    assert one["first"] == "recorded by a test, which replays it: pytest test_it.py::test_look"


@pytest.mark.parametrize(
    "arguments",
    [("nowhere",), ("--jobs", "0"), ("tapes", "--name", "x"), ("empty",), ("--name", "nobody")],
    ids=lambda arguments: " ".join(arguments),
)
def test_what_cannot_be_asked_is_a_usage_error(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "tapes").mkdir()
    done = playhead("test", *arguments)
    assert done.returncode == 2
    assert done.stderr.startswith("playhead: ")


def test_junit_holds_what_xml_can_hold(tmp_path: Path) -> None:
    text = "line\x00 one\x1b[0m <&> é"
    write(tmp_path / "x.xml", [Retested("a&b", "run", "place", "deviated", first=text, text=text)])
    (case,) = ElementTree.parse(tmp_path / "x.xml").getroot()[0]
    assert (case[0].text or "").endswith("<&> é")
