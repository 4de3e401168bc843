"""What is kept of a body is exact where it is clean, clean where it is not, and its chunks add up either way."""

from __future__ import annotations

import gzip
import itertools
import json
from typing import Any

import httpx2
import pytest

import playhead
from playhead.event import wire
from playhead.testing import Raw, ScriptedProvider, Wire

SECRET = "sk-proj-" + "a1B2c3D4e5F6g7H8i9J0" * 2
EVENTS = [f"data: {json.dumps({'n': n})}\n\n".encode() for n in range(6)]
CLEAN: dict[str, tuple[list[bytes], str, str | None]] = {
    "json": ([b'{"a":', b"1}"], "application/json", None),
    "text": (["grüß".encode()[:3], "grüß".encode()[3:]], "text/plain", None),
    "stream": (EVENTS, "text/event-stream", None),
    "gzip": ([gzip.compress(b"".join(EVENTS))[:20], gzip.compress(b"".join(EVENTS))[20:]], "text/event-stream", "gzip"),
    "binary": ([b"\xff\x00", b"\x01\xfe"], "application/octet-stream", None),
    "cut gzip": ([gzip.compress(b"some text" * 50)[:20], b""], "text/plain", "gzip"),
}
DIRTY: dict[str, tuple[list[bytes], str, str | None]] = {
    "json field": ([b'{"password": "hunt', b'er2-and-more", "a": 1}'], "application/json", None),
    "json value": ([f'{{"a":"{SECRET[:20]}'.encode(), f'{SECRET[20:]}"}}'.encode()], "application/json", None),
    "stream": ([*EVENTS, f"data: {SECRET[:15]}".encode(), f"{SECRET[15:]}\n\n".encode()], "text/event-stream", None),
    "text": ([f"see {SECRET}".encode(), b" and more"], "text/plain", None),
    "gzip": ([gzip.compress(f"see {SECRET}".encode())[:20], gzip.compress(f"see {SECRET}".encode())[20:]], "text/plain", "gzip"),
    "binary": ([b"\xff\x00" + SECRET.encode(), b"\x01\xfe"], "application/octet-stream", None),
}  # fmt: skip


def received(chunks: list[bytes], media: str, encoding: str | None, asks: dict[str, Any]) -> dict[str, Any]:
    """Send these chunks over the wire as the answer to a call, and return what was recorded of it."""
    more = [("Content-Encoding", encoding)] if encoding else []
    raw = Raw(
        tuple(chunk for chunk in chunks if chunk), content_type=media, wire=Wire(headers=more, chunk_delay_s=0.01)
    )
    with ScriptedProvider([raw]) as provider, playhead.record("bodies"), httpx2.Client() as client:
        with client.stream("POST", f"{provider.base_url}/chat/completions", json=asks) as answer:
            got = list(answer.iter_raw())
        assert b"".join(got) == b"".join(chunks)
    events = playhead.load("@last").events()
    kind = "model.responded" if "model" in asks else "http.received"
    return next(event.data for event in events if event.kind == kind)


def adds_up(data: dict[str, Any]) -> None:
    chunks = data.get("chunks")
    if chunks is not None:
        assert len(chunks["sizes"]) == len(chunks["at_us"])
        assert all(a <= b for a, b in itertools.pairwise(chunks["at_us"]))
    assert b"".join(wire.response_chunks(data)) == wire.response_bytes(data)


@pytest.mark.parametrize("asks", [{"model": "m", "messages": []}, {"other": 1}], ids=["model", "http"])
@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_body_comes_back_in_its_chunks(name: str, asks: dict[str, Any]) -> None:
    data = received(*CLEAN[name], asks)
    chunks = [chunk for chunk in CLEAN[name][0] if chunk]
    assert wire.response_bytes(data) == b"".join(chunks)
    adds_up(data)
    assert sum((data.get("chunks") or {"sizes": map(len, chunks)})["sizes"]) == len(b"".join(chunks))
    if len(chunks) > 1:
        assert wire.response_chunks(data) == chunks


@pytest.mark.parametrize("asks", [{"model": "m", "messages": []}, {"other": 1}], ids=["model", "http"])
@pytest.mark.parametrize("name", DIRTY)
def test_a_body_with_a_secret_is_kept_without_it_and_its_chunks_still_add_up(name: str, asks: dict[str, Any]) -> None:
    data = received(*DIRTY[name], asks)
    kept = wire.response_bytes(data)
    assert SECRET.encode() not in kept
    assert b"hunter2" not in kept
    assert kept != b"".join(DIRTY[name][0])
    adds_up(data)
