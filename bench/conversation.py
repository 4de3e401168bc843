"""A conversation of 200 turns, everything resent every turn: bytes on disk and CPU of the last turn."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import orjson

import samples
from table import Row

TURNS = 200
MESSAGE = 1000


def run() -> list[Row]:
    import playhead
    from playhead.event.kinds import ModelInvoked, ModelResponded

    os.environ["PLAYHEAD_GIT"] = "0"
    tools = [
        {
            "type": "function",
            "function": {"name": f"tool_{n}", "description": samples.text(900), "parameters": _schema()},
        }
        for n in range(12)
    ]
    messages: list[dict[str, str]] = [{"role": "system", "content": samples.text(MESSAGE)}]
    turn_us: list[float] = []
    naive = 0
    with tempfile.TemporaryDirectory() as folder, playhead.record("conversation", store=folder) as handle:
        recording = handle.recording
        assert recording is not None
        assert handle.path is not None
        path = Path(handle.path) / "timeline.jsonl"
        before = path.stat().st_size
        for _ in range(TURNS):
            messages.append({"role": "user", "content": samples.text(MESSAGE)})
            # A client builds its body anew: nothing is the same object as in the turn before.
            request = orjson.loads(orjson.dumps({"model": "gpt-5", "messages": messages, "tools": tools}))
            answer = {"role": "assistant", "content": samples.text(MESSAGE)}
            naive += len(orjson.dumps(request))
            start = time.process_time_ns()
            span = recording.emit(ModelInvoked(provider="openai", model="gpt-5", request=request))
            recording.emit(ModelResponded(status="ok", response={"choices": [{"message": answer}]}), span=span)
            turn_us.append((time.process_time_ns() - start) / 1000)
            messages.append(answer)
        size = path.stat().st_size - before
        data = sum(len(orjson.dumps(event.data)) for event in playhead.load(handle.path).events(resolve=False)) - before
        last = list(playhead.load(handle.path).events())[-2].data["request"]
        assert last["messages"] == messages[:-1], "the last turn reads back whole"
    distinct = len(orjson.dumps(tools)) + sum(len(orjson.dumps(message)) for message in messages)
    late = statistics.median(turn_us[-10:]) / 1000
    early = statistics.median(turn_us[5:15]) / 1000
    per_turn = (size - distinct) / TURNS
    return [
        Row(
            f"{TURNS} turns: data",
            f"{data / 1000:.0f} kB",
            f"{data / distinct:.2f} × distinct content (max 1.2)",
            data <= 1.2 * distinct,
        ),
        Row(
            f"{TURNS} turns: file",
            f"{size / 1000:.0f} kB",
            f"distinct content + {per_turn:.0f} B a turn (max 1200); naively {naive / distinct:.0f} ×",
            per_turn <= 1200,
        ),
        Row(f"CPU of turn {TURNS}", f"{late:.2f} ms", f"max 3 ms; turn 10: {early:.2f} ms", late <= 3),
    ]


def _schema() -> dict[str, Any]:
    names = ("path", "start", "end", "pattern", "encoding")
    fields = {name: {"type": "string", "description": samples.text(80)} for name in names}
    return {"type": "object", "properties": fields, "required": list(names)}


if __name__ == "__main__":
    for row in run():
        print(*row, sep="\t")
