"""Make real git repositories for tests, with an identity of their own and nothing of the person who runs them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

_ENVIRONMENT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{role}_NAME": "Ada Löv" for role in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{role}_EMAIL": "ada@example.org" for role in ("AUTHOR", "COMMITTER")},
}


def git_in(folder: Path, *arguments: str, **variables: str) -> str:
    """Run git in a folder, and return what it prints."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, env={**kept, **_ENVIRONMENT, **variables},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def make(folder: Path) -> Path:
    """Make an empty repository."""
    folder.mkdir(parents=True, exist_ok=True)
    git_in(folder, "init", "-q", "-b", "main")
    git_in(folder, "config", "user.name", "Ada Löv")
    git_in(folder, "config", "user.email", "ada@example.org")
    return folder


def commit(folder: Path, message: str, variables: dict[str, str] | None = None, /, **files: str) -> str:
    """Write files and commit all there is; return the commit."""
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    git_in(folder, "add", "-A")
    git_in(folder, "commit", "-q", "--allow-empty", "-m", message, **(variables or {}))
    return git_in(folder, "rev-parse", "HEAD")
