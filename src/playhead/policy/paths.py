"""Say whether a pattern of a policy means a file, by whichever name that file is called.

A path has several names on its way: as it is written, and with one link more followed each time. What is forbidden is
so by each of them, in any letter case; what is allowed only by the last, which has no link in it, and only as written.
"""

from __future__ import annotations

import functools
import os
import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from playhead import _limits

# What is done to a path: to what it leads to, to the name itself as when it is deleted, to the one or the other. Or
# nobody can tell which file it is; or it was in a run that is over, of whose files the recorded name is known.
Touch = Literal["target", "name", "both", "unknown", "recorded"]

_LINKS_MAX = 40  # as many as Linux follows
_ANY_NAME = "\0" * 255  # what no pattern means but one that means every name


def path_of(path: str, root: str, *, itself: bool = False) -> str:
    """Return the one name of a file: absolute, without `.` and `..`, and with every link in it followed.

    `itself` is for what is done to a link and not to what it leads to, as when it is deleted.
    """
    return names_of(path, root, itself=itself)[-1]


def recorded_name(path: str, root: str) -> str:
    """Return the name by which a file was recorded in a run: where its links led then is not asked of today's disk."""
    return os.path.normpath(os.path.join(os.path.abspath(root), os.path.expanduser(path)))


def names_of(path: str, root: str, *, itself: bool = False) -> list[str]:
    """Return the names that a path has on its way to the file, as the kernel goes it; the last has no link in it.

    With a `..` in it a path is no name yet: where that leads is known when what stands before it has been followed.
    """
    left = os.path.join(os.path.abspath(root), os.path.expanduser(path)).split("/")[::-1]
    done, names, links, new = "", [], 0, True
    while left:
        if new and ".." not in left:
            names.append("/".join([done, *(part for part in reversed(left) if part not in ("", "."))]))
            new = False
        part = left.pop()
        if part == "..":
            done, new = done.rpartition("/")[0], True
        elif part not in ("", "."):
            leads = _leads(f"{done}/{part}") if links < _LINKS_MAX and (any(left) or not itself) else None
            if leads is None:
                done = f"{done}/{part}"
            else:
                done, new, links = "" if leads.startswith("/") else done, True, links + 1
                left += leads.split("/")[::-1]
    return list(dict.fromkeys(name or "/" for name in [*names, done]))


def _leads(path: str) -> str | None:
    try:
        return os.readlink(path)
    except (OSError, ValueError):  # a name with a null character
        return None  # no link, or nothing that we could go through


def fits_path(pattern: str, path: str, root: str, *, any_case: bool) -> bool:
    """Say whether a pattern means a path. `*` stays in one folder, `**` does not; a folder means all that is in it.

    In any case, as what is forbidden is: `folder/**` means the folder too, which would take what is in it along.
    """
    if any_case and not path.isascii():
        path = unicodedata.normalize("NFC", path)
    return path_pattern(pattern, root, any_case).fullmatch(path) is not None


@functools.lru_cache(maxsize=_limits.POLICY_PATTERNS_KEPT_MAX)
def path_pattern(pattern: str, root: str, any_case: bool) -> re.Pattern[str]:
    """Return what a path has to match. What stands before the first wildcard may itself be a link, as /tmp on macOS."""
    fixed, rest = _before_wildcards(_whole(pattern, root))
    itself = any_case and (rest.endswith("/**") or (rest == "**" and bool(fixed)))
    if itself:
        rest = rest[:-2].rstrip("/")
    # A folder means all in it.
    inside = "(?:/.*)?" if itself or not rest.endswith(("*", "/")) else ".*" if rest.endswith("/") else ""
    starts = "|".join(re.escape(start.rstrip("/")) for start in _starts(fixed, any_case)) if fixed else ""
    found = f"(?:{starts})" + (f"/{_globbed(rest)}" if rest else "") + inside
    if any_case:
        found = unicodedata.normalize("NFC", found)
    return re.compile(found, re.DOTALL | (re.IGNORECASE if any_case else 0))


def _whole(pattern: str, root: str) -> str:
    whole = os.path.expanduser(pattern)
    return whole if whole.startswith(("/", "**")) else os.path.join(root, whole)


@functools.lru_cache(maxsize=_limits.POLICY_PATTERNS_KEPT_MAX)
def _starts(fixed: str, any_case: bool) -> tuple[str, ...]:
    """Return the names of what a pattern begins with: a link that is named means itself, and where it leads to.

    As written, too: only a name that was recorded may have a link in it where that is allowed.
    """
    names = names_of(fixed, "/")
    return tuple(dict.fromkeys([*(names if any_case else (names[0], names[-1])), path_of(fixed, "/", itself=True)]))


def means_all_in(pattern: str, folder: str, root: str) -> bool:
    """Say whether a pattern that allows means everything that a folder can hold."""
    if pattern.endswith("*") and not pattern.endswith("**"):
        return False
    return fits_path(pattern, f"{folder}/{_ANY_NAME}", root, any_case=False)


def reaches(pattern: str, folder: str, root: str) -> bool:
    """Say whether a pattern that forbids may mean something that is in a folder."""
    fixed, _ = _before_wildcards(_whole(pattern, root))
    if not fixed:
        return True
    held = f"{folder.rstrip('/')}/".casefold()
    starts = [f"{start.rstrip('/')}/".casefold() for start in _starts(fixed, True)]
    return any(start.startswith(held) or held.startswith(start) for start in starts)


def inside(folder: str) -> Iterator[str]:
    """Yield the names of all that a folder holds, relative to it. OSError where it cannot be looked into."""

    def stop(problem: OSError) -> None:
        raise problem

    for place, folders, files in os.walk(folder, onerror=stop):
        for name in (*folders, *files):
            yield os.path.relpath(os.path.join(place, name), folder)


def _before_wildcards(pattern: str) -> tuple[str, str]:
    """Return the folders before the first part with a wildcard, and the rest; all of it and nothing without one."""
    at = min((pattern.find(letter) for letter in "*?" if letter in pattern), default=-1)
    if at < 0:
        return pattern, ""
    cut = pattern.rfind("/", 0, at)
    return (pattern[:cut] or "/", pattern[cut + 1 :]) if cut >= 0 else ("", pattern)


def _globbed(pattern: str) -> str:
    out = []
    at = 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out.append("(?:.*/)?")
            at += 3
        elif pattern.startswith("**", at):
            out.append(".*")
            at += 2
        elif pattern[at] == "*":
            out.append("[^/]*")
            at += 1
        elif pattern[at] == "?":
            out.append("[^/]")
            at += 1
        else:
            out.append(re.escape(pattern[at]))
            at += 1
    return "".join(out)


def has_other_names(path: str) -> bool:
    """Say whether a file has hard links besides this name: nobody knows what they are called."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return False
    return found.st_nlink > 1 and os.path.isfile(path)
