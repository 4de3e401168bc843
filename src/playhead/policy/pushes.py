"""Say whether a command pushes what is in a git repository to another, as far as can be seen."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from playhead import _limits
from playhead.policy import commands

UNKNOWN = "?"  # where a command does not say where it pushes to

_WITH_VALUE = frozenset(
    {"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--attr-source"}
)
_PUSH_WITH_VALUE = frozenset({"-o", "--push-option", "--receive-pack", "--exec"})
_PUSHING = frozenset({"push", "send-pack", "http-push"})
_PUSHING_BELOW = {"lfs": "push", "p4": "submit", "subtree": "push", "svn": "dcommit"}
_ALIAS = re.compile(r"^\s*([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*?)\s*$")
_SECTION = re.compile(r"^\s*\[\s*([^\]\s]+)[^\]]*\]")


def pushed_to(argv: Sequence[str], cwd: str | None = None) -> str | None:
    """Return where a command pushes to, `?` where it does not say; None where it is no push."""
    return _first(argv, cwd or os.getcwd(), _limits.POLICY_ALIASES_MAX)


def _first(argv: Sequence[str], cwd: str, depth: int) -> str | None:
    for command in commands.inside(argv):
        found = _of_git(command.argv, cwd, depth)
        if found is not None:
            return found
    return None


def _of_git(argv: Sequence[str], cwd: str, depth: int) -> str | None:
    """Return where a command of git pushes to."""
    name = os.path.basename(argv[0])
    if name.startswith("git-"):
        return _of_words([name.removeprefix("git-"), *argv[1:]])
    if name != "git":
        return None
    at, aliases, git_dir = 1, dict[str, str](), ""
    while at < len(argv) and argv[at].startswith("-"):
        option, _, value = argv[at].partition("=")
        if not value and option in _WITH_VALUE:
            at += 1
            value = argv[at] if at < len(argv) else ""
        if option == "-C":
            cwd = os.path.join(cwd, value)
        elif option == "--git-dir":
            git_dir = value
        elif option == "-c" and value.lower().startswith("alias."):
            key, _, meant = value.partition("=")
            aliases[key[len("alias.") :].lower()] = meant
        at += 1
    words = list(argv[at:])
    found = _of_words(words)
    if found is not None or not words or not depth:
        return found
    alias = aliases.get(words[0].lower()) or _configured(cwd, git_dir).get(words[0].lower())
    if alias is None:
        return None
    if alias.startswith("!"):
        return _first(["sh", "-c", alias[1:] + " " + " ".join(words[1:])], cwd, depth - 1)
    return _of_git([*argv[:at], *commands.words_of(alias), *words[1:]], cwd, depth - 1)


def _of_words(words: Sequence[str]) -> str | None:
    """Return where it goes by the words after `git`."""
    if not words:
        return None
    below = _PUSHING_BELOW.get(words[0])
    if below is not None:
        return UNKNOWN if below in words[1:] else None
    if words[0].startswith("remote-"):  # what carries a push, or a fetch: it cannot be seen which
        return words[1] if len(words) > 1 else UNKNOWN
    if words[0] not in _PUSHING:
        return None
    to, at = UNKNOWN, 1
    while at < len(words):
        option, _, value = words[at].partition("=")
        if option == "--repo":
            to = value or (words[at + 1] if at + 1 < len(words) else UNKNOWN)
        at += 2 if not value and (option == "--repo" or option in _PUSH_WITH_VALUE) else 1
        if not option.startswith("-"):
            return words[at - 1]
    return to


def _configured(cwd: str, git_dir: str) -> dict[str, str]:
    """Return the aliases that the usual files of git name; what they include is not looked at."""
    found: dict[str, str] = {}
    for path in _files(cwd, git_dir):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                lines = file.read(_limits.POLICY_GIT_CONFIG_BYTES_MAX).splitlines()
        except OSError:
            continue
        section = ""
        for line in lines:
            named = _SECTION.match(line)
            section = named[1].lower() if named else section
            alias = _ALIAS.match(line[named.end() :] if named else line)
            if alias is not None and section == "alias":
                found[alias[1].lower()] = alias[2].strip('"')
    return found


def _files(cwd: str, git_dir: str) -> Iterator[str]:
    home = os.path.expanduser("~")
    yield "/etc/gitconfig"
    yield os.path.join(os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git", "config")
    yield os.environ.get("GIT_CONFIG_GLOBAL") or os.path.join(home, ".gitconfig")
    if git_dir:
        yield os.path.join(_repository(os.path.join(cwd, git_dir)), "config")
        return
    folder = os.path.realpath(cwd)
    while not os.path.exists(os.path.join(folder, ".git")) and folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
    yield os.path.join(_repository(os.path.join(folder, ".git")), "config")


def _repository(git: str) -> str:
    """Return the folder of a repository: in a submodule and in another worktree `.git` is a file that leads there."""
    if os.path.isfile(git):
        git = os.path.join(os.path.dirname(git), _line(git).removeprefix("gitdir:").strip())
    return os.path.join(git, _line(os.path.join(git, "commondir")))  # as it is, where there is no such file


def _line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read(_limits.POLICY_GIT_CONFIG_BYTES_MAX).strip()
    except OSError:
        return ""
