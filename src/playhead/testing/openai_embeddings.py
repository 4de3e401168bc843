"""Put scripted vectors into the wire form of OpenAI embeddings.

Pure functions: no clock and no randomness, so the same text gives the same vector.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
from typing import Any

from playhead.testing import openai_chat
from playhead.testing.script import Embeddings
from playhead.testing.turn import Asked

error = openai_chat.error


def whole(asked: Asked, answer: Embeddings) -> dict[str, Any]:
    """Return the body of an answer with one vector for each input, in base64 if the request wants it so."""
    inputs = _inputs(asked.request.get("input"))
    dimensions = asked.request.get("dimensions") or answer.dimensions
    vectors = answer.vectors or tuple(_made(text, dimensions) for text in inputs)
    encoded = asked.request.get("encoding_format") == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _base64(vector) if encoded else list(vector)}
        for index, vector in enumerate(vectors)
    ]
    tokens = sum(max(1, len(text.encode()) // 4) for text in inputs)
    if answer.usage is not None and answer.usage.input is not None:
        tokens = answer.usage.input
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": asked.request.get("model"), "usage": usage}


def _inputs(value: Any) -> list[str]:
    """Return each input as text: a string, or a list of strings, or of tokens."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and not all(isinstance(one, int) for one in value):
        return [one if isinstance(one, str) else json.dumps(one) for one in value]
    return [json.dumps(value)]


def _made(text: str, dimensions: int) -> tuple[float, ...]:
    """Return numbers from -1 to 1 that the text decides and that a float of four bytes holds exactly."""
    data = b"".join(hashlib.sha256(f"{at}:{text}".encode()).digest() for at in range(-(-dimensions // 32)))
    return tuple((byte - 128) / 128 for byte in data[:dimensions])


def _base64(vector: tuple[float, ...]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()
