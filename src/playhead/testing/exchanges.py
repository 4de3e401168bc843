"""Keep what a scripted provider was asked and what it sent, byte for byte."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SPOKEN_BY_MODEL = ("assistant", "model")
_MODEL_ITEMS = ("function_call", "reasoning")
_NOT_SAID = ("role", "type", "id", "call_id", "tool_call_id", "tool_use_id")  # keys whose text nobody wrote


@dataclass(frozen=True)
class ReceivedRequest:
    """One request as it came in."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes

    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)

    @property
    def prompt(self) -> str:
        """Return every text that came after the model's last turn: the question, or the results of its tools."""
        try:
            request = json.loads(self.body)
        except ValueError:
            return self.body.decode("utf-8", "replace")
        if not isinstance(request, dict):
            return "\n".join(_texts(request))
        said = next((request[name] for name in ("messages", "input", "contents") if name in request), request)
        if not isinstance(said, list):
            return "\n".join(_texts(said))
        new: list[Any] = []
        for item in reversed(said):
            if isinstance(item, dict) and _by_model(item):
                break
            new.insert(0, item)
        return "\n".join(_texts(new))


@dataclass(frozen=True)
class Exchange:
    """One request, and exactly what was sent for it."""

    number: int  # in the order of arrival, from one
    request: ReceivedRequest
    status: int | None  # None: the connection was cut before the head
    headers: list[tuple[str, str]]
    chunks: list[bytes]  # of the body, still content-encoded, without the framing of the transfer
    cut: bool  # by the script, before the answer was complete
    left: bool  # the client hung up before everything was sent
    done: bool  # nothing more will be sent

    @property
    def body(self) -> bytes:
        """Return all that was sent of the body."""
        return b"".join(self.chunks)

    def as_json(self) -> str:
        """Return one line of the log; bytes are in base64."""
        request = self.request
        asked = {
            "method": request.method,
            "path": request.path,
            "headers": request.headers,
            "body": _base64(request.body),
        }
        return json.dumps({
            "number": self.number,
            "request": asked,
            "status": self.status,
            "headers": self.headers,
            "chunks": [_base64(chunk) for chunk in self.chunks],
            "cut": self.cut,
            "left": self.left,
            "done": self.done,
        })  # fmt: skip


def read_log(path: str | Path) -> list[Exchange]:
    """Read the exchanges that a provider of another process logged, in the order of arrival."""
    lines = Path(path).read_text("utf-8").splitlines()
    return sorted((_from_json(json.loads(line)) for line in lines), key=lambda exchange: exchange.number)


def _from_json(line: dict[str, Any]) -> Exchange:
    asked = line.pop("request")
    headers = [(name, value) for name, value in asked["headers"]]
    request = ReceivedRequest(asked["method"], asked["path"], headers, base64.b64decode(asked["body"]))
    line["headers"] = [(name, value) for name, value in line["headers"]]
    line["chunks"] = [base64.b64decode(chunk) for chunk in line["chunks"]]
    return Exchange(request=request, **line)


def _by_model(item: dict[str, Any]) -> bool:
    return item.get("role") in _SPOKEN_BY_MODEL or item.get("type") in _MODEL_ITEMS


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name not in _NOT_SAID:
                yield from _texts(inner)
