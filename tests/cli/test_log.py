from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.repositories import commit, make

Ask = Callable[..., Any]


@pytest.fixture
def repo(store: Path, tmp_path: Path, record: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Give a repository with a commit that names a run, and the run."""
    monkeypatch.delenv("PLAYHEAD_GIT")
    make(tmp_path)
    commit(tmp_path, "begin", **{".gitignore": ".playhead\n"})
    run = record(store)
    commit(tmp_path, f"made \x1b[31mred\n\nPlayhead-Run: {run}", a="x\ny\n")
    return run


def test_the_stream_is_a_table_of_one_line_each(repo: str, ask: Ask) -> None:
    said = ask("log")
    head, *rows = said.out.splitlines()
    assert head.split()[:2] == ["when", "(UTC)"]
    assert [row.split()[2] for row in rows] == ["commit", "run", "commit"]
    made, run, begin = rows
    assert r"made \x1b[31mred (Ada Löv) +2 −0" in made
    assert made.rstrip().endswith(repo[:16])
    assert f"{repo[:16]}  fix-login ok, " in run
    assert run.rstrip().endswith(begin.split()[3])


def test_json_has_every_field(repo: str, ask: Ask) -> None:
    told = ask("log", "--limit", "2", "--json").json
    made, run = told["entries"]
    assert set(told) == {"repository", "entries", "problem"}
    assert (made["type"], made["runs"], made["added"]) == ("commit", [{"run": repo, "link": "trailer"}], 2)
    assert (run["type"], run["run"], run["name"], run["status"]) == ("run", repo, "fix-login", "ok")


def test_a_commit_is_linked_by_a_note(repo: str, ask: Ask) -> None:
    said = ask("log", "--link", "@last", "HEAD~1")
    assert (said.code, f"is linked to {repo}" in said.out) == (0, True)
    assert f"was linked to {repo}" in ask("log", "--link", repo, "HEAD~1").out
    (begin,) = (one for one in ask("log", "--json").json["entries"] if one.get("subject") == "begin")
    assert begin["runs"] == [{"run": repo, "link": "note"}]
    assert ask("log", "--link", "nope", "HEAD").code == 2
    assert ask("log", "--link", repo, "nope", "--json").json["error"]["code"] == "usage"


def test_where_there_is_nothing_that_is_said(store: Path, ask: Ask) -> None:
    assert ask("log").out == "Nothing is known here yet: no run, no commit, no result of CI.\n"
    assert ask("log", "--since", "1h").out == ask("log").out
    assert ask("log", "--json").json == {"repository": None, "entries": [], "problem": None}


def test_where_only_the_filter_leaves_nothing_that_is_said(repo: str, ask: Ask) -> None:
    assert ask("log", "--since", "2130-01-01").out == (
        "Nothing happened since 2130-01-01. Without --since there is more.\n"
    )
    assert ask("log", "--since", "2130-01-01", "--json").json["entries"] == []


@pytest.mark.parametrize(
    "arguments", [("--limit", "0"), ("--repo", "/nowhere"), ("--since", "soon"), ("--store", "/nowhere")]
)
def test_bad_input_is_a_usage_error(store: Path, ask: Ask, arguments: tuple[str, ...]) -> None:
    assert ask("log", *arguments).code == 2


def test_where_git_is_missing_that_is_said(repo: str, ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    said = ask("log")
    assert (said.code, "git did not answer" in said.err) == (0, True)
    assert repo[:16] in said.out
