"""A cassette that was recorded in one folder is replayed in another, on another machine too."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.replay.again import playhead, record

from playhead.replay.folders import Folders

PROGRAM = """
import json, os, sqlite3, sys
from pathlib import Path
import helper
config = json.loads(Path("data/config.json").read_text())
print(config, sorted(os.listdir("data")), os.stat("data/config.json").st_size, os.path.exists("nothing"))
with open("out.txt", "w") as file:
    file.write(f"{config} by {helper.NAME}")
os.makedirs("made/deep")
Path("made/new").write_text("new")
os.replace("made/new", "made/deep/old")
whole = os.path.abspath("out.txt")
with open(whole, "a") as file:
    file.write("; more")
print(Path("out.txt").read_text(), Path(whole).read_text())
print(os.path.basename(os.getcwd()), [entry.name for entry in os.scandir(Path.cwd() / "made")])
base = Path(__file__).resolve().parent
print((base / "data" / "config.json").read_text(), (base / "out.txt").exists())
print([(entry.name, entry.stat().st_size) for entry in os.scandir(base / "made" / "deep")])
with sqlite3.connect("memory.db") as db:
    db.execute("create table if not exists t (n)")
    db.execute("insert into t values (1)")
    print(db.execute("select count(*) from t").fetchall())
os.chdir("data")
print(Path("config.json").read_text(), Path("../out.txt").read_text())
"""


def _copied(tmp_path: Path, *, gone: bool, into: str = "elsewhere/second") -> tuple[Path, str]:
    """Record in one folder, pack, and return another with the code alone, and what was printed."""
    first, second = tmp_path / "outer" / "first", tmp_path / into
    (first / "data").mkdir(parents=True)
    (first / "data" / "config.json").write_text('{"a": 1}')
    (first / "helper.py").write_text('NAME = "me"\n')
    recorded = record(first, PROGRAM)
    assert playhead(first, "pack", recorded.run, "-o", "x.cassette").returncode == 0
    second.mkdir(parents=True, exist_ok=True)
    for name in ("program.py", "helper.py", "x.cassette"):
        shutil.copy(first / name, second / name)
    if gone:
        shutil.rmtree(first)
    return second, recorded.output


def _replay(folder: Path, cassette: str) -> tuple[str, dict[str, Any]]:
    plain = playhead(folder, "replay", cassette, "--mode", "exact")
    return plain.stdout, json.loads(playhead(folder, "replay", cassette, "--mode", "exact", "--json").stdout)


@pytest.mark.parametrize("into", ["elsewhere/second", "outer", "outer/first/inner"])
@pytest.mark.parametrize("gone", [False, True], ids=["the first is there", "the first is gone"])
def test_a_cassette_is_replayed_where_its_code_was_copied_to(tmp_path: Path, gone: bool, into: str) -> None:
    folder, output = _copied(tmp_path, gone=gone and "inner" not in into, into=into)
    before = sorted(str(path) for path in tmp_path.rglob("*") if ".playhead" not in path.parts)
    printed, report = _replay(folder, "x.cassette")
    assert report["fidelity"]["verdict"] == "faithful", report["deviations"]
    assert printed == output
    assert report["surface"]["code_changed"] == []
    assert sorted(str(path) for path in tmp_path.rglob("*") if ".playhead" not in path.parts) == before


def test_what_it_writes_there_is_compared_and_the_code_that_is_there_counts(tmp_path: Path) -> None:
    folder, _ = _copied(tmp_path, gone=False)
    (folder / "helper.py").write_text('NAME = "you"\n')
    _, report = _replay(folder, "x.cassette")
    assert report["fidelity"]["verdict"] == "deviated"
    assert report["fidelity"]["first"]["name"] == str(folder / "out.txt")
    assert report["surface"]["code_changed"] == [str(folder / "helper.py")]


def test_paths_of_then_are_those_of_now_and_others_stay() -> None:
    here = Folders("/then", "/then/now")
    assert here.recorded("/then/a") == "/then/now/a"
    assert here.recorded("/then") == "/then/now"
    assert here.recorded("/thence/a") == "/thence/a"
    assert here.asked("/then/now/a") == "/then/now/a"
    assert here.asked("/then/a") == "/then/now/a"
    above = Folders("/now/then", "/now")
    assert above.recorded("/now/then/a") == above.asked("/now/then/a") == "/now/a"
    assert above.asked("/now/a") == "/now/a"
    assert above.asked("/now/then") == "/now"
    assert Folders().asked("/a") == Folders().recorded("/a") == "/a"
