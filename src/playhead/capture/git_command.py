"""Run git as a pure reader: no hook, no pager, no network, no lock, and never for longer than asked.

Only `playhead log --link` has it write something: a note.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from playhead import _limits

# Variables that would point git at another repository than the one of the directory asked about. A hook sets them.
_REPOSITORY_VARIABLES = frozenset({
    "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_DIR", "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX",
    "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
})  # fmt: skip
# Variables that would make git run a program, change the form of its output, or write somewhere.
_BEHAVIOUR_VARIABLES = frozenset({
    "GIT_DIFF_OPTS", "GIT_EXTERNAL_DIFF", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_LITERAL_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
})  # fmt: skip
_FIXED_VARIABLES = {
    "GIT_ALLOW_PROTOCOL": "none",  # a partial clone would otherwise fetch what it lacks
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",  # the agent's own git commands must never find the index locked by us
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.quotePath": "false",
    "core.safecrlf": "false",
    "diff.autoRefreshIndex": "false",  # without this `git diff` rewrites the index even when locks are optional
    "diff.suppressBlankEmpty": "false",
}
_PREFIX = ["git", "--no-pager", *(part for name, value in _SETTINGS.items() for part in ("-c", f"{name}={value}"))]


class GitFailed(Exception):
    """Say why git gave no answer. Stays inside capture: the fact finders turn it into a `problem`."""


@dataclass(frozen=True)
class Output:
    """What git printed: at most the bytes that were to be kept, and the size of all."""

    kept: bytes
    size: int

    @property
    def complete(self) -> bool:
        """Say whether everything was kept."""
        return len(self.kept) == self.size


def deadline_after(timeout_s: float) -> float:
    """Return the moment, on the monotonic clock, at which a series of git processes must be over."""
    return time.monotonic() + timeout_s


def run(
    arguments: Sequence[str],
    cwd: Path,
    deadline: float,
    *,
    stdin: bytes = b"",
    keep_bytes_max: int | None = None,
    accept: frozenset[int] = frozenset({0}),
) -> Output:
    """Run one git command and return its output; raise GitFailed when there is none by the deadline."""
    with _source(stdin) as source:
        try:
            process = subprocess.Popen(
                [*_PREFIX, *arguments],
                cwd=cwd,
                env=_environment(),
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError as error:
            raise GitFailed(f"git could not be started: {error.strerror}: {error.filename}") from error
        except OSError as error:
            raise GitFailed(f"git could not be started: {error}") from error
    with process:
        try:
            output, complaint = _read(process, deadline, keep_bytes_max)
        except BaseException:
            process.kill()
            raise
    if process.returncode not in accept:
        lines = complaint.decode("utf-8", "replace").strip().splitlines()
        # Warnings come before what git died of.
        why = [line for line in lines if line.startswith(("fatal:", "error:"))] or lines
        reason = why[0] if why else f"exit code {process.returncode}"
        raise GitFailed(f"git {arguments[0]}: {reason}")
    return output


def _environment() -> dict[str, str]:
    dropped = _REPOSITORY_VARIABLES | _BEHAVIOUR_VARIABLES
    kept = {
        name: value for name, value in os.environ.items() if name not in dropped and not name.startswith("GIT_TRACE")
    }
    return kept | _FIXED_VARIABLES


@contextlib.contextmanager
def _source(stdin: bytes) -> Iterator[int]:
    if not stdin:
        yield subprocess.DEVNULL
        return
    import tempfile  # here, because it is rarely needed and loads much

    # A file and not a pipe: git may answer before it has read everything, and nobody has to feed it meanwhile.
    with tempfile.TemporaryFile() as file:
        file.write(stdin)
        file.seek(0)
        yield file.fileno()


def _read(process: subprocess.Popen[bytes], deadline: float, keep_bytes_max: int | None) -> tuple[Output, bytes]:
    """Read both streams in one thread: a helper thread would count as a lane of the agent."""
    assert process.stdout is not None
    assert process.stderr is not None
    kept, complaint, size = bytearray(), bytearray(), 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        selector.register(process.stderr, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise GitFailed("git did not answer in time")
            for key, _ in ready:
                chunk = os.read(key.fd, _limits.READ_CHUNK_BYTES)
                if not chunk:
                    selector.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    complaint += chunk[: _limits.GIT_COMPLAINT_BYTES_MAX - len(complaint)]
                else:
                    size += len(chunk)
                    room = len(chunk) if keep_bytes_max is None else keep_bytes_max - len(kept)
                    kept += chunk[: max(0, room)]
            if time.monotonic() > deadline:
                raise GitFailed("git did not answer in time")
    try:
        process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired as error:
        raise GitFailed("git did not answer in time") from error
    return Output(bytes(kept), size), bytes(complaint)
