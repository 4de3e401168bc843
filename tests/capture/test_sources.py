"""What programs read from is watched as it comes: modules that come again or are others, files that are not as most."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.capture import launching

import playhead
from playhead._api.reading import Run


def gaps(run: Run) -> list[tuple[str, str]]:
    found = [event.data for event in run.events() if event.kind == "gap.noted"]
    assert {gap["reason"] for gap in found} <= {"not_captured"}
    return [(gap["detail"]["source"], gap["detail"]["where"]) for gap in found]


def told(run: Run, of: str) -> list[Any]:
    return [read.value for read in run.reads() if read.of == of]


def recorded(folder: Path, code: str, **env: str) -> tuple[Run, list[str]]:
    """Record a program that is in a file; return its run, and the lines that it wrote."""
    (folder / "prog.py").write_text(code)
    status, out, err = launching.launched(
        folder / ".playhead", [sys.executable, "prog.py"], b"first\nsecond\n", env=env, cwd=folder
    )
    assert (status, err) == (0, b"")
    return launching.only_run(folder / ".playhead"), out.decode().splitlines()


AGAIN = """
import datetime, importlib, random, socket, sys, uuid
before = random.random
importlib.reload(random)
print(before(), random.random())
importlib.reload(datetime)
del sys.modules["datetime"], sys.modules["_socket"], sys.modules["_uuid"]
import datetime, _socket, _uuid
print(datetime.datetime.now().isoformat())
print(_socket.gethostname())
"""


@pytest.mark.parametrize("pure", ["0", "1"])
def test_a_module_that_is_loaded_again_stays_watched(tmp_path: Path, pure: str) -> None:
    run, (numbers, now, host) = recorded(tmp_path, AGAIN, PLAYHEAD_PURE=pure)
    assert [str(value) for value in told(run, "random.random")] == numbers.split()
    assert told(run, "datetime.datetime.now") == [now]
    assert told(run, "socket.gethostname") == [{"value": host}]
    assert gaps(run) == []


def test_a_module_of_the_programs_own_that_has_a_known_name_is_a_named_gap(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("told = 5\n")
    run, out = recorded(tmp_path, "import torch; print(torch.told)")
    assert out == ["5"]
    assert [source for source, _ in gaps(run)] == ["torch"]


def test_what_a_test_put_in_the_place_of_a_module_is_a_named_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    monkeypatch.setitem(sys.modules, "numpy.random", ModuleType("numpy.random"))
    playhead.install()
    try:
        with playhead.record("agent") as run:
            inside = True
    finally:
        playhead.uninstall()
    assert inside
    sources = [source for source, _ in gaps(playhead.load(str(run.id)))]
    assert sorted(set(sources)) == ["numpy.random", "torch"]
