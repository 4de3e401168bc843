from __future__ import annotations

import hashlib
import json
from typing import Any

from playhead.errors import MissingContent
from playhead.views.report.contents import contents_of

HELD: dict[str, bytes] = {}


def blob(digest: str) -> bytes:
    if digest not in HELD:
        raise MissingContent("a blob is not there")
    return HELD[digest]


def mark(data: bytes, form: str = "text") -> dict[str, Any]:
    digest = hashlib.sha256(data).hexdigest()
    HELD[digest] = data
    return {"$blob": digest, "len": len(data), "as": form}


def line(kind: str, **data: Any) -> str:
    return json.dumps({"v": 1, "kind": kind, "data": data}, separators=(",", ":"))


def test_what_models_were_asked_and_answered_comes_first_and_each_value_once() -> None:
    tool, prompt, answer = (mark(text) for text in (b"tool", b"prompt", b"answer"))
    lines = [
        line("tool.called", input=tool),
        line("model.invoked", request={"messages": [{"content": prompt}, {"content": prompt}]}),
        line("model.responded", response=[answer]),
    ]
    found, left_out = contents_of(lines, blob, 100)
    assert [one["text"] for one in found] == ["prompt", "answer", "tool"]
    assert found[0] == {"digest": prompt["$blob"], "as": "text", "text": "prompt"}
    assert left_out == {"count": 0, "bytes": 0}
    found, left_out = contents_of(lines, blob, 10)  # what is too large for the room that is left does not end it
    assert ([one["text"] for one in found], left_out) == (["prompt", "tool"], {"count": 1, "bytes": 6})


def test_values_inside_of_a_value_are_found() -> None:
    inner = mark(b"inner")
    outer = mark(json.dumps([inner, {"$blob": 1}]).encode(), "json")
    found, _ = contents_of([line("tool.called", input=outer)], blob, 1_000)
    assert [one["as"] for one in found] == ["json", "text"]


def test_what_is_no_text_or_is_not_there_is_counted() -> None:
    gone = {"$blob": "f" * 64, "len": 7, "as": "text"}
    lies = {**mark(b"longer than it says"), "len": 1}
    ones = [mark(b"\xff\xfe", "bytes"), mark(b"\xff", "text"), gone, lies, {"$blob": "e" * 64}]
    found, left_out = contents_of([line("tool.called", input=ones), '{"$blob" is no JSON'], blob, 10)
    assert (found, left_out) == ([], {"count": 5, "bytes": 2 + 1 + 7 + 1})
