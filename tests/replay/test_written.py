"""What a program wrote is compared, whether or not it reads it again: by what its files hold at the end."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.replay.again import Recorded, playhead, record

from playhead.replay.written import Files, differences
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

TOOL = """
import playhead
@playhead.tool
def look(n):
    {body}
    return n
"""


def _change(recorded: Recorded, old: str, new: str) -> None:
    program = recorded.folder / "program.py"
    assert old in program.read_text()
    program.write_text(program.read_text().replace(old, new))


WRITES = {
    "pathlib": 'import pathlib\npathlib.Path("out.txt").write_text("VALUE")',
    "left open": 'held = open("out.txt", "w")\nheld.write("VALUE")',
    "os.open": 'import os\nos.write(os.open("out.txt", os.O_WRONLY | os.O_CREAT), b"VALUE")',
    "renamed": 'import os\nopen("new", "w").write("VALUE")\nos.replace("new", "out.txt")',
    "in a folder that is renamed": (
        'import os\nos.mkdir("a")\nopen("a/out.txt", "w").write("VALUE")\nos.rename("a", "b")'
    ),
    "ends at once": 'import os\nwith open("out.txt", "w") as f: f.write("VALUE")\nos._exit(0)',
    "a forked process": (
        "import os\n"
        "if os.fork() == 0:\n"
        '    with open("out.txt", "w") as f: f.write("VALUE")\n'
        "    os._exit(0)\n"
        "os.wait()"
    ),
    "logging": (
        'import logging\nlogging.basicConfig(filename="out.txt", format="%(asctime)s %(process)d %(message)s")\n'
        'logging.error("VALUE")'
    ),
}


@pytest.mark.parametrize("program", WRITES.values(), ids=WRITES)
def test_another_content_is_a_deviation_and_the_same_is_none(tmp_path: Path, program: str) -> None:
    recorded = record(tmp_path, program)
    assert recorded.report()["fidelity"]["verdict"] == "faithful"
    _change(recorded, "VALUE", "other")  # of the same length
    found = recorded.report()
    assert found["fidelity"]["verdict"] == "deviated"
    first = found["fidelity"]["first"]
    assert first["type"] == "write"
    assert Path(first["name"]).name == "out.txt"
    assert "replayed as well" in first["text"]
    assert "program.py:" in first["text"]


def test_the_sizes_are_named(tmp_path: Path) -> None:
    recorded = record(tmp_path, 'open("out.txt", "w").write("short")')
    _change(recorded, "short", "much longer")
    assert "5 bytes were recorded, 11 replayed" in recorded.report()["fidelity"]["first"]["text"]


def test_of_a_file_that_was_there_what_is_added_is_compared_whatever_it_held(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("before\n")
    recorded = record(tmp_path, 'open("log.txt", "a").write("one\\n")\nopen("log.txt", "a").write("two\\n")')
    log.write_text("something else altogether\n")
    assert recorded.report()["fidelity"]["verdict"] == "faithful"
    _change(recorded, "two", "2")
    assert "8 bytes that were added to it were recorded, 6 replayed" in recorded.report()["fidelity"]["first"]["text"]


def test_a_file_that_was_there_and_was_changed_in_place_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"0123456789")
    recorded = record(tmp_path, 'f = open("data", "r+b")\nf.seek(5)\nf.write(b"X")')
    (tmp_path / "data").write_bytes(b"another one")
    assert recorded.report()["fidelity"]["verdict"] == "faithful"


def test_what_is_gone_again_is_not_kept(tmp_path: Path) -> None:
    program = """
    import os, tempfile
    with tempfile.NamedTemporaryFile("w") as f:
        f.write(str(os.urandom(4)))
    with tempfile.TemporaryDirectory() as folder:
        open(folder + "/a", "w").write("b")
    """
    recorded = record(tmp_path, program)
    assert "files" not in _finished(recorded)
    assert recorded.report()["fidelity"]["verdict"] == "faithful"


def _finished(recorded: Recorded) -> dict[str, object]:
    reader = RunReader(FileStore(recorded.folder / ".playhead"), recorded.run)
    return next(event.data for event in reader.resolved() if event.kind == "run.finished")


@pytest.mark.parametrize(
    "body",
    [
        'open("out.txt", "a").write("by the tool")',
        "held.write('by the tool')",
        "import logging; logging.error('by the tool')",
        "import os; os.rename('out.txt', 'x'); os.rename('x', 'out.txt')",
    ],
    ids=["opens it", "has it open", "logs to it", "moves it"],
)
def test_a_file_that_the_body_of_a_tool_has_written_to_is_left_out_and_named(tmp_path: Path, body: str) -> None:
    program = (
        TOOL.format(body=body)
        + 'import logging\nheld = open("out.txt", "a")\nlogging.basicConfig(stream=held)\nheld.write("by the agent")\n'
        + "look(1)\nprint('done')\n"
    )
    recorded = record(tmp_path, program)
    found = recorded.report()
    assert found["fidelity"]["verdict"] == "faithful", found["deviations"]
    assert [line.partition(":")[0] for line in found["surface"]["not_compared"]] == [str(tmp_path / "out.txt")]


def test_a_file_that_a_process_has_changed_is_left_out_and_named(tmp_path: Path) -> None:
    program = """
    import subprocess
    open("code.txt", "w").write("unformatted")
    subprocess.run(["sh", "-c", "echo formatted > code.txt"], check=True)
    """
    recorded = record(tmp_path, program)
    found = recorded.report()
    assert found["fidelity"]["verdict"] == "faithful", found["deviations"]
    assert "at work meanwhile" in found["surface"]["not_compared"][0]
    shown = recorded.replay().errors
    assert "not compared: " in shown
    assert "code.txt" in shown


def test_a_file_written_after_tools_and_processes_is_compared(tmp_path: Path) -> None:
    program = TOOL.format(body='open("other.txt", "w").write("by the tool")') + (
        "import subprocess\n"
        "look(1)\n"
        'subprocess.run(["sh", "-c", "echo before > report.txt"], check=True)\n'
        'open("report.txt", "w").write("first")\n'
    )
    recorded = record(tmp_path, program)
    found = recorded.report()
    assert (found["fidelity"]["verdict"], found["surface"]["not_compared"]) == ("faithful", [])
    _change(recorded, "first", "other")
    assert recorded.report()["fidelity"]["first"]["name"] == str(tmp_path / "report.txt")


def test_a_traceback_in_a_log_is_compared_without_the_way_that_an_error_took(tmp_path: Path) -> None:
    program = """
    import logging, urllib.request
    import playhead
    logging.basicConfig(filename="log.txt")
    @playhead.tool
    def fails():
        raise ValueError("no")
    try:
        fails()
    except ValueError:
        logging.getLogger().handlers[0].close()
        logging.getLogger().handlers.clear()
        logging.basicConfig(filename="log.txt", filemode="w")
        logging.exception("it failed")
    """
    recorded = record(tmp_path, program)
    assert recorded.report()["fidelity"]["verdict"] == "faithful"
    _change(recorded, "it failed", "it broke!")
    assert recorded.report()["fidelity"]["verdict"] == "deviated"


def test_a_secret_in_a_file_is_no_difference_and_its_digest_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-" + "a1b2c3d4" * 5
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    program = 'import os\nopen("key", "w").write(os.environ["OPENAI_API_KEY"])'
    recorded = record(tmp_path, program)
    (entry,) = _finished(recorded)["files"]  # type: ignore[misc, attr-defined]
    assert entry["digest"] != hashlib.sha256(secret.encode()).hexdigest()
    monkeypatch.delenv("OPENAI_API_KEY")
    assert recorded.report()["fidelity"]["verdict"] == "faithful"


def test_what_is_too_large_or_too_many_is_named(tmp_path: Path) -> None:
    program = """
    open("large", "w").write("x" * (4 * 1024 * 1024 + 1))
    for number in range(1001):
        open(f"small-{number:04}", "w").write("x")
    """
    recorded = record(tmp_path, program)
    kept = _finished(recorded)
    assert len(kept["files"]) == 1000  # type: ignore[arg-type]
    assert kept["files_omitted"] == 2
    found = recorded.report()
    assert found["fidelity"]["verdict"] == "faithful"
    named = {Path(line.partition(":")[0]).name for line in found["surface"]["not_compared"]}
    assert named == {"large"}


def test_a_cassette_knows_what_files_held(tmp_path: Path) -> None:
    recorded = record(tmp_path, 'open("out.txt", "w").write("first")')
    cassette = tmp_path / "x.cassette.jsonl"
    assert playhead(tmp_path, "pack", recorded.run, "-o", str(cassette)).returncode == 0
    _change(recorded, "first", "other")
    assert playhead(tmp_path, "replay", str(cassette), "--mode", "exact").returncode == 1


def test_of_a_recording_that_does_not_know_nothing_is_compared() -> None:
    now = Files({"/out": {"path": "/out", "size": 1, "digest": "00"}})
    assert differences(Files(), now, {}, set()) == ([], [])


def test_an_agent_in_this_process_is_compared_too(tmp_path: Path) -> None:
    program = """
    import sys, playhead
    playhead.install()
    def agent():
        open("out.txt", "w").write(TEXT)
    TEXT = "first"
    with playhead.record("writes") as run:
        agent()
    for TEXT in ("first", "other"):
        found = playhead.replay(run.id, agent=agent)
        print(found.fidelity["verdict"], [one.get("name") for one in found.differences])
    """
    (tmp_path / "own.py").write_text("\n".join(line[4:] for line in program.splitlines()))
    done = subprocess.run(
        [sys.executable, "own.py"], cwd=tmp_path, capture_output=True, text=True, check=False, env={**os.environ}
    )
    assert done.stdout == f"faithful []\ndeviated ['{tmp_path / 'out.txt'}']\n", done.stderr
