"""Say whether a pattern of a policy means a thing, by whichever name that thing is called.

One thing has many names, as a path with `..` in it or behind a link. So a thing is brought into one form first, and
patterns are held against that: paths here, hosts and commands in modules of their own. Where case may or may not
matter, what is forbidden is forbidden in any case, and what is allowed only as written.
"""

from __future__ import annotations

import functools
import os
import re

# Paths.


def path_of(path: str, root: str, *, itself: bool = False) -> str:
    """Return the one name of a file: absolute, without `.` and `..`, and with every link in it followed.

    `itself` is for what is done to a link and not to what it leads to, as when it is deleted.
    """
    found = os.path.join(root, os.path.expanduser(path))
    if not itself:
        return os.path.realpath(found)
    folder, name = os.path.split(found.rstrip("/"))
    return os.path.realpath(found) if name in ("", ".", "..") else os.path.join(os.path.realpath(folder), name)


def fits_path(pattern: str, path: str, root: str, *, any_case: bool) -> bool:
    """Say whether a pattern means a path. `*` stays in one folder, `**` does not; a folder means all that is in it."""
    return _path_pattern(pattern, root, any_case).fullmatch(path) is not None


@functools.lru_cache(maxsize=1024)
def _path_pattern(pattern: str, root: str, any_case: bool) -> re.Pattern[str]:
    whole = os.path.expanduser(pattern)
    if not whole.startswith(("/", "**")):
        whole = os.path.join(root, whole)
    fixed, rest = _before_wildcards(whole)
    # What stands before the first wildcard may itself be a link, as /tmp is on macOS.
    start = re.escape(os.path.realpath(fixed)).rstrip("/") if fixed else ""
    if rest:
        inside = "" if rest.endswith("*") else ".*" if rest.endswith("/") else "(?:/.*)?"  # a folder means all in it
        found = start + ("/" if fixed else "") + _globbed(rest) + inside
    else:
        found = start + "(?:/.*)?"
    return re.compile(found if fixed else f"/{found}", re.DOTALL | (re.IGNORECASE if any_case else 0))


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
    except OSError:
        return False
    return found.st_nlink > 1 and os.path.isfile(path)


# Anything else.


def fits_text(pattern: str, text: str, *, any_case: bool) -> bool:
    """Say whether a pattern means a text; `*` stands for any."""
    return _any_text(pattern, any_case).fullmatch(text) is not None


@functools.lru_cache(maxsize=1024)
def _any_text(pattern: str, any_case: bool = False) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL | (re.IGNORECASE if any_case else 0))
