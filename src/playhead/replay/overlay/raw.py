"""Call what the operating system offers past the overlay, which stands in place of it everywhere else."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any

from playhead.capture import answering, hooks

# What is replaced, where this Python has it; each is found here by its name, as it was.
NAMES = (
    *("access", "chdir", "chmod", "chown", "fstat", "getcwd", "getcwdb", "getxattr", "lchown", "link", "listdir"),
    *("listxattr", "lstat", "mkdir", "mkfifo", "mknod", "open", "pathconf", "readlink", "remove", "removexattr"),
    *("rename", "replace", "rmdir", "scandir", "setxattr", "stat", "statvfs", "symlink", "truncate", "unlink", "utime"),
    *("chflags", "lchflags", "lchmod"),  # of macOS
)


class Raw:
    """The functions of the operating system as they were before the overlay."""

    def __init__(self, *, may_pass: bool = False) -> None:
        """Note them; with `may_pass`, whoever is past the tape meets them, and not what is in their place."""
        self._may_pass = may_pass
        self._known: dict[str, Any] = {name: getattr(os, name) for name in NAMES if hasattr(os, name)}
        self._known |= {"io_open": io.open, "open_code": io.open_code}

    def __getattr__(self, name: str) -> Any:
        try:
            return self._known[name]
        except KeyError:
            raise AttributeError(name) from None

    def __contains__(self, name: str) -> bool:
        return name in self._known

    def replace_all(self, instead: dict[str, Callable[..., Any]]) -> None:
        """Put these in place of the functions that they are named after."""
        for name, function in instead.items():
            if name in self._known:
                put = self._unless_past(name, function) if self._may_pass else function
                self._known[name] = hooks.replace(self._known[name], put)

    def _unless_past(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def either(*args: Any, **options: Any) -> Any:
            return (self._known[name] if answering.is_in_world() else function)(*args, **options)

        return either

    def look(self, path: str) -> os.stat_result | None:
        """Return what is at a place, itself and not where it leads; None where nothing is."""
        try:
            facts: os.stat_result = self.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        return facts
