"""Make the values that the benches record: text like that of a conversation, the same at every run."""

from __future__ import annotations

import random
from typing import Any

_random = random.Random(7)
_WORDS = ["".join(_random.choices("etaoinshrdlu", k=_random.randint(2, 9))) for _ in range(800)]


_CODE = '    if user.name == "{}" and not session["{}"]:\n        return render("{}.html", error=\'{}\')\n'


def text(characters: int) -> str:
    """Return prose with some code in it, of about that length and different at every call."""
    parts: list[str] = []
    length = 0
    while length < characters:
        words = _random.choices(_WORDS, k=12)
        if _random.random() < 0.3:
            part = _CODE.format(*words[:4])
        else:
            part = " ".join(words).capitalize() + _random.choice([". ", ", ", "?\n", " — ", ":\n- ", '. "Done". '])
        parts.append(part)
        length += len(part)
    return "".join(parts)[:characters]


def model_request(size: int = 4000, messages: int = 8) -> dict[str, Any]:
    """Return the fields of a model call of about `size` bytes."""
    each = (size - 700) // messages - 36
    history = [{"role": ("user", "assistant")[n % 2], "content": text(each)} for n in range(messages)]
    history[3] = {"role": "assistant", "content": None, "tool_calls": [_tool_call(), _tool_call()]}
    history[4] = {"role": "tool", "tool_call_id": "call_" + _token(24), "content": text(each * 2)}
    return {
        "provider": "openai",
        "model": "gpt-5",
        "request": {
            "model": "gpt-5",
            "temperature": 0.2,
            "max_tokens": 1024,
            "messages": history,
        },
    }


def _tool_call() -> dict[str, Any]:
    start = _random.randint(1, 99)
    arguments = f'{{"path": "src/{text(8)}.py", "start": {start}, "end": {start + 40}}}'
    return {"id": "call_" + _token(24), "type": "function", "function": {"name": "read_file", "arguments": arguments}}


def _token(characters: int) -> str:
    return "".join(_random.choices("abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", k=characters))
