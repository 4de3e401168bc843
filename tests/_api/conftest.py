"""Give tests a real repository with a store inside, as the current folder, outside of any CI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.repositories import commit, make

import playhead
from playhead.capture.record import Record
from playhead.store.files import FileStore


@pytest.fixture(autouse=True)
def _outside_of_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("GITHUB_", "GITLAB_", "CI_", "GIT_")) or name in ("CI", "BUILD_URL", "BUILD_NUMBER"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_git: None) -> Path:
    """Give a repository with one commit."""
    folder = make(tmp_path / "repo")
    commit(folder, "first", **{"a.py": "1\n", ".gitignore": ".playhead\n"})
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def store(repo: Path) -> FileStore:
    """Give the store of that repository."""
    return FileStore(repo / ".playhead")


def record(store: FileStore, name: str = "agent") -> str:
    """Record a short run, and return its id."""
    with playhead.record(name, store=store, capture=False) as run:
        run.output = "done"
    assert run.id is not None
    return run.id


def record_child(store: FileStore, parent: str) -> str:
    """Record the run of a Python that the program of a run started, and return its id."""
    with Record("child", store=store, origin={"run": parent, "mode": "child"}, capture=False) as run:
        pass
    assert run.id is not None
    return run.id
