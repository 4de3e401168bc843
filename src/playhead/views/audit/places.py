"""Say where a path lies, as seen from a run: in its repository, among temporary files, elsewhere.

Names are compared and nothing is looked up: a link inside of the repository may lead out of it.
"""

from __future__ import annotations

import posixpath
from typing import Final

# The sort of a place: what it is called, how grave it is to write there, and to delete.
SORTS: Final = {
    "repo": ("repo", "low", "medium"),
    "here": ("file", "low", "medium"),  # in the working directory, where there is no repository
    "git": ("git folder", "medium", "high"),  # hooks and settings in it are run by the next command of git
    "record": ("store", "high", "high"),  # of Playhead: the record itself
    "temporary": ("temporary file", "info", "info"),
    "cache": ("cache", "info", "info"),
    "device": ("device", "info", "info"),
    "elsewhere": ("file", "medium", "high"),
}
QUIET: Final = frozenset({"temporary", "cache", "device"})

_TEMPORARY = ("/tmp/", "/var/tmp/", "/dev/shm/", "/private/tmp/", "/private/var/folders/", "/var/folders/")
_DEVICES = frozenset({"/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/stdout", "/dev/stderr", "/dev/stdin"})


class Places:
    """Know the repository and the working directory of a run."""

    def __init__(self, root: str = "", folder: str = "") -> None:
        self.root = root
        self._root, self._folder = _folder(root), _folder(folder)

    def sort(self, path: str) -> str:
        """Return what sort of place a path is: one of SORTS."""
        path = _plain(path)
        parts = path.split("/")
        if ".playhead" in parts[:-1]:
            return "record"
        if "__pycache__" in parts:
            return "cache"
        if path in _DEVICES or path.startswith("/dev/pts/"):
            return "device"
        if self._root and path.startswith(self._root):
            return "git" if ".git" in path[len(self._root) :].split("/") else "repo"
        if self._folder and path.startswith(self._folder):
            return "here"
        return "temporary" if path.startswith(_TEMPORARY) else "elsewhere"

    def shown(self, path: str) -> str:
        """Return a path as people of the project would write it: relative, where it is inside."""
        plain = _plain(path)
        for folder in (self._root, self._folder):
            if folder and plain.startswith(folder) and plain != folder:
                return plain[len(folder) :]
        return path

    def is_outside(self, path: str) -> bool:
        """Say whether a path is in none of the places that are the run's own, where those are known."""
        known = path.startswith("/") and bool(self._root or self._folder)
        return known and self.sort(path) == "elsewhere"


def _folder(path: str) -> str:
    """Return a folder with its last slash; nothing for one that holds everything, or that is not known in full."""
    plain = _plain(path)
    return f"{plain}/" if plain.startswith("/") and plain != "/" else ""


def _plain(path: str) -> str:
    """Return a path without `..`, and without doubled slashes at its beginning."""
    return "/" + posixpath.normpath(path).lstrip("/") if path.startswith("/") else path
