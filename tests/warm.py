"""Commands of Playhead and sessions of pytest, each a process of its own that need not load them first: a fork.

Loading takes longer than most commands do. What they start is started as ever, and loads all it needs.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import importlib.util
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_TIMEOUT_S = 120
_LOADED = (
    "playhead.cli.main", "playhead._api.reading", "playhead.capture.launch", "playhead.replay.exact", "playhead.views",
    "playhead.cli.replay_text", "playhead.cli.modelling", "playhead.cli.stepping", "playhead.replay.models.serving", "genai_prices.data", *(f"playhead.cli.commands.{name}" for name in ("ls", "record", "replay", "grade", "fork", "resume", "bisect", "show", "debug")),
)  # fmt: skip


# Not the plugin itself, which loads its parts when a project needs them.
_LOADED_BY_PYTEST = (
    "pytest", "httpx", "playhead._api.packing", "playhead.capture.record", "playhead.capture.clients.httpx_clients",
    "playhead.capture.processes.instead", "playhead.replay.session", "playhead.replay.exact", "playhead.views.timeline",
)  # fmt: skip


class _Server:
    """The process that has what it needs loaded, and starts one command after the other."""

    def __init__(self, sort: str) -> None:
        ours, theirs = socket.socketpair()
        command = [sys.executable, "-m", "tests.warm", str(theirs.fileno()), sort]
        self._process = subprocess.Popen(command, cwd=ROOT, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
        theirs.close()
        self._line = ours

    def do(self, job: Mapping[str, Any], streams: Sequence[int]) -> None:
        """Begin it, with these as its standard streams."""
        data = json.dumps(job).encode()
        socket.send_fds(self._line, [len(data).to_bytes(4, "big")], streams)
        self._line.sendall(data)

    def exit_code(self) -> int:
        """Wait for its end."""
        said = self._line.recv(4, socket.MSG_WAITALL)
        assert len(said) == 4, "the process that starts commands has ended"
        return int.from_bytes(said, "big", signed=True)

    def stop(self) -> None:
        """End it with all that it has begun."""
        self._line.close()
        self._process.kill()
        self._process.wait()


_servers: dict[str, list[_Server]] = {"playhead": [], "pytest": []}  # that are free


@atexit.register
def _stop() -> None:
    for free in _servers.values():
        while free:
            free.pop().stop()


def playhead(
    folder: Path,
    *arguments: str,
    variables: Mapping[str, str] | None = None,
    stdin: str = "",
    report: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Call the command line in a folder; the report of an exact replay is also written to the file `report`."""
    job = {"arguments": arguments, "report": report and str(report)}
    return _done("playhead", folder, job, os.environ if variables is None else variables, stdin)


def pytest(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a session of pytest in a folder."""
    return _done("pytest", folder, {"arguments": arguments}, os.environ, "")


def _done(
    sort: str, folder: Path, job: dict[str, Any], variables: Mapping[str, str], stdin: str
) -> subprocess.CompletedProcess[str]:
    job |= {"folder": str(folder), "variables": dict(variables)}
    server = _servers[sort].pop() if _servers[sort] else _Server(sort)
    given, giving = os.pipe()
    assert os.write(giving, stdin.encode()) == len(stdin.encode()), "that is more than a pipe holds"
    os.close(giving)
    out, written = os.pipe()
    errors, complained = os.pipe()
    server.do(job, [given, written, complained])
    os.close(given)
    os.close(written)
    os.close(complained)
    try:
        said = _read(out, errors)
    except subprocess.TimeoutExpired:
        server.stop()
        raise
    code = server.exit_code()
    _servers[sort].append(server)
    return subprocess.CompletedProcess(
        [sort, *job["arguments"]],
        code,
        said[out].decode(errors="surrogateescape"),
        said[errors].decode(errors="surrogateescape"),
    )


def _read(*streams: int) -> dict[int, bytes]:
    """Read to the end of both."""
    said = dict.fromkeys(streams, b"")
    until = time.monotonic() + _TIMEOUT_S
    with selectors.DefaultSelector() as waiting:
        for stream in streams:
            waiting.register(stream, selectors.EVENT_READ)
        while waiting.get_map():
            ready = waiting.select(until - time.monotonic())
            if not ready:
                raise subprocess.TimeoutExpired("playhead", _TIMEOUT_S, *said.values())
            for key, _ in ready:
                data = os.read(key.fd, 65536)
                said[key.fd] += data
                if not data:
                    waiting.unregister(key.fd)
                    os.close(key.fd)
    return said


def _serve(line: socket.socket, sort: str) -> None:
    for name in _LOADED if sort == "playhead" else _LOADED_BY_PYTEST:
        if importlib.util.find_spec(name.partition(".")[0]) is not None:  # prices are an extra
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    while True:
        size, streams, _, _ = socket.recv_fds(line, 4, 3)
        if not size:
            return
        job = json.loads(line.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
        child = os.fork()
        if child == 0:
            line.close()
            _take(job, streams)
            sys.exit(_be_playhead(job) if sort == "playhead" else _be_pytest(job))
        for stream in streams:
            os.close(stream)
        _, status = os.waitpid(child, 0)
        line.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


def _take(job: Mapping[str, Any], streams: Sequence[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, closefd=False) for number, mode in enumerate(("r", "w", "w"))
    )
    os.environ.clear()
    os.environ.update(job["variables"])
    os.chdir(job["folder"])


def _be_pytest(job: Mapping[str, Any]) -> int:
    import pytest

    sys.path[:1] = [job["folder"]]  # in place of our own
    sys.argv = ["pytest", *job["arguments"]]
    return pytest.main()


def _be_playhead(job: Mapping[str, Any]) -> int:
    from playhead.cli import main, replay_text

    if job["report"]:
        told = replay_text.lines

        def kept(report: dict[str, Any]) -> Any:
            Path(job["report"]).write_text(json.dumps(report))
            return told(report)

        replay_text.lines = kept
    sys.argv = ["playhead", *job["arguments"]]
    return main.main()


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2])
