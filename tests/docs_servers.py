"""Let the commands of a page start servers: `playhead serve &` is one, on a port of its own, until the page ends.

Pages say `localhost:4000`, as a reader would; what runs has another port, since several pages are read at the same time.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

PORT = 4000  # what a page says
CURL = Path(__file__).parent / "docs_curl.py"
_PORTS: dict[Path, int] = {}
_STARTED: dict[Path, list[subprocess.Popen[bytes]]] = {}


@contextlib.contextmanager
def servers_of(folder: Path) -> Iterator[None]:
    """End, at the end, what the commands of a page left running in a folder."""
    try:
        yield
    finally:
        for process in _STARTED.pop(folder, []):
            process.kill()
            process.wait()
        _PORTS.pop(folder, None)


def with_port(text: str, folder: Path) -> str:
    """Return what a page says, with the port of this folder."""
    if f":{PORT}" not in text and "playhead serve" not in text:
        return text
    return text.replace(f":{PORT}", f":{_port(folder)}")


def without_port(text: str, folder: Path) -> str:
    """Return what was printed, with the port that a page has."""
    port = _PORTS.get(folder)
    return text if port is None else text.replace(f":{port}", f":{PORT}")


def start(command: str, folder: Path, env: Mapping[str, str]) -> str:
    """Start what a command before a `&` says, and return what a server prints first."""
    out = folder.parent / f"{folder.name}-server-{len(_STARTED.get(folder, []))}.out"
    command = command.replace("playhead serve", f"exec playhead serve --port {_port(folder)}", 1)
    with out.open("wb") as stdout:
        process = subprocess.Popen(
            ["sh", "-c", command], cwd=folder, env=dict(env), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stdout
        )
    _STARTED.setdefault(folder, []).append(process)
    until = time.monotonic() + 60
    while not out.stat().st_size and time.monotonic() < until and process.poll() is None:
        time.sleep(0.02)
    time.sleep(0.05)  # what it prints comes in one piece, once it answers
    return out.read_text("utf-8")


def programs() -> dict[str, str]:
    """Return what a page needs and this machine lacks: `curl`, as far as pages use it."""
    return {} if shutil.which("curl") else {"curl": f'"{sys.executable}" "{os.fspath(CURL)}"'}


def _port(folder: Path) -> int:
    if folder not in _PORTS:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            _PORTS[folder] = taken.getsockname()[1]
    return _PORTS[folder]
