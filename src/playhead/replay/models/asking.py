"""Have a question to a model asked in the world, by the process that started this one, which has no network."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import orjson

from playhead.capture import answering
from playhead.capture.clients.failures import NOT_REACHED
from playhead.capture.scope import muted
from playhead.errors import DeviationError

if TYPE_CHECKING:
    from playhead.replay.onward import OnwardPlayer
    from playhead.replay.tape import Call


class Given:
    """An answer that came just now, in the form of one on a tape."""

    kind = "model.responded"
    span: str | None = None

    def __init__(self, head: dict[str, Any], body: bytes, began_us: int, ended_us: int) -> None:
        self._head, self._body = head, body
        self.began_us, self.ended_us = began_us, ended_us

    def whole(self) -> tuple[dict[str, Any], bytes] | None:
        """Return head and body; None where nothing came."""
        return None if self._head["status"] is None else (self._head, self._body)

    @property
    def data(self) -> dict[str, Any]:
        """Return what is said of a question that nobody answered."""
        return {"status": "error", "error": {"type": NOT_REACHED, "message": self._head["problem"]}}


class Question(answering.Unasked):
    """A question that is to be asked live, and its counterpart on the tape, where it has one."""

    kind = "model.invoked"

    def __init__(self, player: OnwardPlayer, path: str, span: str, then: Call | None) -> None:
        self._player, self._path, self._span = player, path, span
        now = player.order.now_us
        self._times = (now, now) if then is None else (then.began_us, then.ended_us)
        self._over = False
        player.order.expect(f"model {span}", self._times[1], lambda: self._over)  # nobody goes on past it meanwhile

    def ask(self, method: str, url: str, headers: list[tuple[str, str]], body: bytes) -> answering.Answer:
        """Ask, and wait for the answer; DeviationError where it was refused."""
        token = muted.set(True)  # it is no traffic of the program's
        try:
            head, came = _exchanged(self._path, method, url, headers, body)
        finally:
            muted.reset(token)
            self._over = True
            self._player.order.came(f"model {self._span}")
        if head["refused"]:
            text = f"a question to a model was not asked: {head['refused']}"
            found = {"type": "refused", "at": int(self._span), "text": text, "kind": "model.invoked"}
            self._player.live -= 1
            self._player.differs(None, found)
            raise DeviationError(text, deviation=found)
        return Given(head, came, *self._times)


def _exchanged(
    path: str, method: str, url: str, headers: list[tuple[str, str]], body: bytes
) -> tuple[dict[str, Any], bytes]:
    head = {"method": method, "url": url, "headers": headers, "size": len(body)}
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.connect(path)
        connection.sendall(orjson.dumps(head) + b"\n" + body)
        connection.shutdown(socket.SHUT_WR)
        with connection.makefile("rb") as coming:
            line = coming.readline()
            if not line.endswith(b"\n"):
                return {"status": None, "problem": "whoever asks models for this program is gone", "refused": ""}, b""
            return orjson.loads(line), coming.read()
