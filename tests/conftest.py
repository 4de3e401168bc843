"""Give every test a folder and an environment of its own."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

if TYPE_CHECKING:
    from tests.serving import Served

# A job in the background is started with these ignored, and so would be everything that the tests start.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# No deadline: the machine may be busy. The same examples every time, so that a red run is about the change at hand;
# `make test-hard` searches for new ones.
hypothesis.settings.register_profile("playhead", deadline=None, derandomize=True)
hypothesis.settings.register_profile("search", deadline=None)
hypothesis.settings.load_profile("playhead")

# Programs are started by the thousand here: what they load must not be compiled each time, wherever that is the habit.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Tests run in folders of their own: programs that they start must still find a source that was named relatively.
if _path := os.environ.get("PYTHONPATH"):
    os.environ["PYTHONPATH"] = os.pathsep.join(os.path.abspath(part) for part in _path.split(os.pathsep) if part)


@pytest.fixture(autouse=True)
def a_place_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test in an empty folder, with no setting of the person who runs it."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("PLAYHEAD_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PLAYHEAD_GIT", "0")


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Give a server without keys, on a store with runs of every kind; nobody may change what is in it."""
    from tests import serving

    root = tmp_path_factory.mktemp("served") / ".playhead"
    git, os.environ["PLAYHEAD_GIT"] = os.environ.get("PLAYHEAD_GIT"), "0"
    try:
        runs = serving.fill(root)
    finally:
        del os.environ["PLAYHEAD_GIT"]
        if git is not None:
            os.environ["PLAYHEAD_GIT"] = git
    with serving.serving(root) as server:
        runs["spans"] = serving.send_spans(server)
        serving.damage(root, runs)
        server.runs = runs
        yield server


@pytest.fixture
def with_git(a_place_of_its_own: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the recorder look at git, as it does for users."""
    monkeypatch.delenv("PLAYHEAD_GIT")
