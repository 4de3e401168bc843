"""Ask models for programs that have no network: at a socket, in the process that has started them."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import orjson

from playhead.errors import PlayheadError, UsageError
from playhead.replay.models.asker import Asker, BudgetSpent, Came
from playhead.replay.models.overrides import Asked

NAME = "models"  # of the socket, in the scratch folder


@contextlib.contextmanager
def served(asker: Asker, folder: Path) -> Iterator[str]:
    """Ask what programs bring to a socket in a folder, for as long as this lasts; gives its path."""
    path = str(folder / NAME)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listening.bind(path)
    except OSError as problem:
        listening.close()
        raise UsageError(f"no socket can be made at {path}: {problem}", hint="Set TMPDIR to a shorter path.") from None
    os.chmod(path, 0o600)
    listening.listen()
    thread = threading.Thread(target=_serve, args=(listening, asker), name="playhead-models", daemon=True)
    thread.start()
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            listening.shutdown(socket.SHUT_RDWR)
        listening.close()


def _serve(listening: socket.socket, asker: Asker) -> None:
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:
            return  # it is over
        threading.Thread(target=_answer, args=(connection, asker), daemon=True).start()


def _answer(connection: socket.socket, asker: Asker) -> None:
    with connection, contextlib.suppress(OSError):  # whoever asked may be gone
        with connection.makefile("rb") as coming:
            asked = _read(coming)
        if asked is None:
            return
        try:
            came, refused = asker.ask(asked), ""
        except (BudgetSpent, PlayheadError, ValueError, http.client.HTTPException) as problem:
            came, refused = Came(None, "", [], b""), str(problem) or type(problem).__name__
        head = {"status": came.status, "reason": came.reason, "headers": came.headers, "problem": came.problem}
        connection.sendall(orjson.dumps({**head, "refused": refused}) + b"\n" + came.body)


def _read(coming: BinaryIO) -> Asked | None:
    line = coming.readline()
    if not line.endswith(b"\n"):
        return None
    head = orjson.loads(line)
    body = coming.read(head["size"])
    return Asked(head["method"], head["url"], [(name, value) for name, value in head["headers"]], body)
