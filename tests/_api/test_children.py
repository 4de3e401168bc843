from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import playhead
from playhead._api.children import children_of, with_children

STARTS = (
    "import subprocess, sys\nopen('made by ' + sys.argv[0], 'w')\nsubprocess.run([sys.executable, {!r}], check=True)\n"
)


def test_runs_come_with_those_that_they_started_each_once_in_whatever_order_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(STARTS.format("second.py"))
    (tmp_path / "second.py").write_text(STARTS.format("third.py"))
    (tmp_path / "third.py").write_text("open('made', 'w')\n")
    store = tmp_path / ".playhead"
    command = [sys.executable, "-m", "playhead", "record", "--quiet", "--store", str(store), "--"]
    for _ in range(2):
        subprocess.run([*command, sys.executable, "first.py"], cwd=tmp_path, check=True)
    found = playhead.runs(store=store)[::-1]
    names = [run.name for run in found]
    assert names == ["first", "second", "third"] * 2
    ids = [run.id for run in found]
    assert [run.id for run in children_of(found[0])] == ids[1:3]
    assert [run.id for run in children_of(found[1])] == ids[2:3]
    assert [run.id for run in with_children([found[0], found[3]])] == ids
    assert [run.id for run in with_children(found[::-1])] == ids[::-1]
    assert [run.id for run in with_children([found[4], found[3]])] == [ids[4], ids[5], ids[3]]
    assert with_children([]) == []
