"""What was done is compared with how it was done, and not only by what it was done to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.replay.again import Recorded, record

from playhead import _limits
from playhead.event.envelope import Event
from playhead.replay.detail import changed, detail_of

DONE = {
    "a link that leads elsewhere": ('os.symlink("one", "link")', '"one"', '"two"', "link.created"),
    "another mode": ('open("f", "w").close()\nos.chmod("f", 0o600)', "0o600", "0o640", "mode.changed"),
    "a folder of another mode": ('os.mkdir("d", 0o700)', "0o700", "0o750", "directory.created"),
    "another time": ('open("f", "w").close()\nos.utime("f", (5, 1))', "(5, 1)", "(5, 2)", "times.changed"),
    "now in place of a time": ('open("f", "w").close()\nos.utime("f", (5, 1))', ', (5, 1)', "", "times.changed"),
    "another name": ('open("f", "w").close()\nos.rename("f", "g")', '"g"', '"h"', "file.renamed"),
    "a process with another environment": (
        "import subprocess\n"
        'subprocess.run(["sh", "-c", "echo $ZZ"], env={**os.environ, "ZZ": "1"}, capture_output=True)',
        '"1"', '"2"', "process sh",
    ),
    "a process with one variable less": (
        "import subprocess\n"
        'subprocess.run(["sh", "-c", "echo $ZZ"], env={**os.environ, "ZZ": "1"}, capture_output=True)',
        ', "ZZ": "1"', "", "process sh",
    ),
    "a process that is given another file": (
        "import subprocess\n"
        'with open("given", "w+") as file:\n'
        '    file.write("not for it, VALUE")\n'
        "    file.flush()\n"
        "    os.lseek(file.fileno(), 12, os.SEEK_SET)\n"
        '    subprocess.run(["cat"], stdin=file, capture_output=True)\n'
        'os.remove("given")',
        "VALUE", "other", "process cat",
    ),
    "a variable of another value": ('os.environ["MODE"] = "a"', '"a"', '"b"', "environment.changed"),
}  # fmt: skip


def _change(recorded: Recorded, old: str, new: str) -> None:
    program = recorded.folder / "program.py"
    assert old in program.read_text()
    program.write_text(program.read_text().replace(old, new))


@pytest.mark.parametrize(("program", "old", "new", "what"), DONE.values(), ids=DONE)
def test_what_is_done_otherwise_is_a_difference_and_the_same_is_none(
    tmp_path: Path, program: str, old: str, new: str, what: str
) -> None:
    recorded = record(tmp_path, f"import os\n{program}\n")
    assert recorded.report()["fidelity"]["verdict"] == "faithful"
    _change(recorded, old, new)
    report = recorded.report()
    assert report["fidelity"]["verdict"] == "deviated"
    first = next(one for one in report["deviations"] if what in one["text"])
    assert first["type"] == "changed"
    assert "was done otherwise" in first["text"]
    assert "program.py" in first["where"]


COPIES = """
import os, shutil
shutil.copy2("in.txt", "copy.txt")
shutil.copytree("tree", "tree2")
open("own.txt", "w").write("mine")
shutil.copy2("own.txt", "own2.txt")
os.environ["PATH"] = "/more:" + os.environ["PATH"]
os.environ["API_KEY"] = "one that nobody may know 123"
os.environ["HERE"] = os.getcwd() + "/below"
print("done")
"""


def test_times_and_modes_that_are_copied_are_those_of_the_tape_in_a_changed_world(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.txt").write_text("in")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "a").write_text("a")
    recorded = record(tmp_path, COPIES)
    (tmp_path / "in.txt").write_text("something else")
    (tmp_path / "tree" / "a").write_text("b")
    (tmp_path / "tree" / "a").chmod(0o600)
    monkeypatch.setenv("PATH", "/another:/one")
    recorded.faithful()


GIVEN = """
import os, subprocess
shown = subprocess.run(["sh", "-c", "echo $HOME $ZZ; cat"], env={**os.environ, "ZZ": "1"}, stdin=open("in.txt"),
                       capture_output=True, text=True).stdout
print(shown)
print(subprocess.run(["sh", "-c", "echo $HOME"], env={"HOME": os.environ["HOME"]}, capture_output=True).stdout)
"""


def test_what_a_process_is_given_of_a_world_that_has_changed_is_no_difference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in.txt").write_text("in")
    monkeypatch.setenv("GONE", "later")
    recorded = record(tmp_path, GIVEN)
    (tmp_path / "in.txt").write_text("something else")
    monkeypatch.setenv("HOME", "/another/home")
    monkeypatch.setenv("NEW", "variable")
    monkeypatch.delenv("GONE")
    recorded.faithful()


def test_a_large_file_that_a_process_is_given_is_named_as_not_compared(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"x" * (_limits.GIVEN_FILE_BYTES_MAX + 1))
    program = 'import os, subprocess\nsubprocess.run(["true"], stdin=os.open("in.txt", os.O_RDONLY))\n'
    report = record(tmp_path, program).report()
    assert any("stdin of a process" in one for one in report["surface"]["not_compared"]), report["surface"]


def _effect(what: str, **detail: Any) -> Event:
    data = {"what": what, "target": "/w/x", **({"detail": detail} if detail else {})}
    return Event(v=1, run="r", seq=1, time="", elapsed_us=0, kind="effect.observed", data=data, prev="", hash="")


def test_what_an_older_recording_did_not_keep_is_not_compared() -> None:
    assert not changed(detail_of(_effect("directory.created")), detail_of(_effect("directory.created", mode="0700")))
    assert changed(detail_of(_effect("times.changed")), detail_of(_effect("times.changed", modified_ns=1)))


@pytest.mark.parametrize(
    ("name", "was", "now"),
    [
        ("PATH", "/a", "/b"),
        ("KEY", "[redacted:env]", "[redacted:known]"),
        ("PYTHON", "/v1/bin/python", "/v2/bin/python3.12"),
        ("CERTS", "/v1/lib/python3.11/site-packages/c.pem", "/v2/lib/python3.12/site-packages/c.pem"),
    ],
)
def test_variables_of_the_machine_and_secrets_are_not_compared(name: str, was: str, now: str) -> None:
    recorded, replayed = (detail_of(_effect("environment.changed", set={name: value})) for value in (was, now))
    assert not changed(recorded, replayed)
