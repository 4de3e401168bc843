"""What became of the working tree is part of every run, also of one that an agent opens inside a program."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

import playhead
from playhead.capture import git_command

pytestmark = pytest.mark.usefixtures("with_git")


def git(*arguments: str) -> None:
    subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *arguments], check=True)


@pytest.fixture(autouse=True)
def repository() -> None:
    git("init", "-q")
    Path("login.py").write_text("broken\n")
    git("add", ".")
    git("commit", "-qm", "first")


def notes(run: playhead.Run) -> list[Any]:
    return [event.data for event in run.events() if event.kind == "note.added"]


def test_an_agents_changes_are_an_artifact_with_new_files_and_without_secrets(tmp_path: Path) -> None:
    key = "sk-" + "proj-" + "a1B2" * 12
    with playhead.record("fix"):
        Path("login.py").write_text("fixed\n")
        Path("notes").mkdir()
        Path("notes/new.txt").write_text(f"key {key}\n")
    run = playhead.load("@last")
    diff = run.artifact("changes.diff").decode()
    assert "-broken\n+fixed\n" in diff
    assert "+++ b/notes/new.txt\n@@ -0,0 +1 @@\n+key [redacted:openai-key]\n" in diff
    assert ".playhead" not in diff
    (note,) = notes(run)
    assert note["text"] == "files in the working tree: 1 changed, 1 new"
    assert note["data"] == {"root": str(tmp_path), "files": ["login.py"], "new": ["notes/new.txt"]}
    assert run.verify(deep=True).completeness.verdict == "complete"


def test_nothing_changed_leaves_no_artifact_and_asks_git_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    original = subprocess.Popen

    def counted(argv: Any, *args: Any, **options: Any) -> Any:
        asked.append(" ".join(argv))
        return original(argv, *args, **options)

    with playhead.record("look"):
        Path("login.py").read_text()
        monkeypatch.setattr(git_command.subprocess, "Popen", counted)
    assert [command.split(" status ")[0].startswith("git") for command in asked] == [True]
    run = playhead.load("@last")
    assert notes(run) == []
    assert not [event for event in run.events() if event.kind == "artifact.created"]


def test_commits_made_in_the_run_are_still_recorded() -> None:
    with playhead.record("commit"):
        Path("login.py").write_text("fixed\n")
        git("commit", "-qam", "second")
    run = playhead.load("@last")
    assert [event.data["message"] for event in run.events() if event.kind == "git.committed"] == ["second"]
    assert b"+fixed" in run.artifact("changes.diff")


def test_a_run_that_fails_keeps_its_changes_too() -> None:
    def agent() -> None:
        with playhead.record("fails"):
            Path("new").write_text("x\n")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        agent()
    assert b"+x" in playhead.load("@last").artifact("changes.diff")


def test_git_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAYHEAD_GIT", "0")
    with playhead.record("off"):
        Path("new").write_text("x\n")
    run = playhead.load("@last")
    assert notes(run) == []


def test_the_index_knows_the_files_of_effects_and_of_the_diff() -> None:
    from playhead.store.files import FileStore
    from playhead.store.index import Index
    from playhead.store.questions import QUESTIONS

    with playhead.record("touch"):
        Path("old.txt").write_text("x")
        Path("old.txt").rename("new.txt")
        subprocess.run(["sh", "-c", "echo fixed > login.py"], check=True)

    def touched(file: str) -> list[str]:
        with Index(FileStore(Path(".playhead")).root) as index:
            columns, rows = index.query(QUESTIONS["runs-touching-a-file"].sql, {"file": file})
            return [dict(zip(columns, row, strict=True))["what"] for row in rows]

    assert touched("old.txt") == ["file.written", "file.renamed"]
    assert touched("new.txt") == ["file.renamed", "file.changed"]
    assert touched("login.py") == ["file.changed"]
    assert touched("other") == []
