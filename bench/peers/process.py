"""Run a server and everything it starts: how soon it answers, how much memory and disk it takes."""

from __future__ import annotations

import http.client
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

START_S_MAX = 300
STOP_S_MAX = 30
_POLL_S = 0.01


class ServerFailed(Exception):
    """A server did not start, ended, or answered what it should not; the message ends with its last words."""


class Process:
    """One server process, in a session of its own, with its children."""

    def __init__(self, command: Sequence[str], variables: dict[str, str], folder: Path, log: Path) -> None:
        self._log = log
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                list(command),
                env=variables,
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def wait_until_ready(self, port: int, path: str) -> None:
        """Return as soon as a GET of the path is answered with 200."""
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise ServerFailed(f"it ended with {self._process.returncode}\n{self.last_words()}")
            if _answers(port, path):
                return
            time.sleep(_POLL_S)
        self.kill()
        raise ServerFailed(f"it was not ready within {START_S_MAX} s\n{self.last_words()}")

    def memory_bytes(self) -> int:
        """Return the proportional set size of the process and all below it: what is shared is counted once."""
        return sum(_pss_bytes(pid) for pid in self._tree())

    def stop(self) -> None:
        """Ask it to end, as a service manager does, and kill what is left of it."""
        tree = self._tree()
        self._process.terminate()
        try:
            self._process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # Workers that outlive the one who started them.
        _kill(tree[1:])

    def kill(self) -> None:
        """Kill it and everything below it with SIGKILL, at once."""
        _kill(self._tree())
        self._process.wait()

    def last_words(self) -> str:
        """Return the end of what it printed."""
        return "\n".join(self._log.read_text("utf-8", "replace").splitlines()[-15:])

    def _tree(self) -> list[int]:
        children: dict[int, list[int]] = {}
        for entry in os.listdir("/proc"):
            if entry.isdigit() and (parent := _parent(int(entry))) is not None:
                children.setdefault(parent, []).append(int(entry))
        found = [self._process.pid]
        for pid in found:  # it grows while it is walked
            found += children.get(pid, [])
        return found


def disk_bytes(folder: Path) -> int:
    """Return what a stopped server left in its folder, after SQLite's logs were folded into their databases."""
    for log in folder.rglob("*-wal"):
        # A log that was not folded yet says nothing about what the data takes; and some fold it when they end.
        with closing(sqlite3.connect(log.with_name(log.name.removesuffix("-wal")))) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def _answers(port: int, path: str) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _parent(pid: int) -> int | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None  # it ended meanwhile
    # The name, in parentheses, may hold spaces.
    return int(stat.rpartition(")")[2].split()[1])


def _pss_bytes(pid: int) -> int:
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text("utf-8").splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def _kill(pids: list[int]) -> None:
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
