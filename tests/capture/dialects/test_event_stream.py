"""Amazon's binary event stream."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.capture.dialects import test_anthropic

from playhead.capture.dialects import documents
from playhead.capture.dialects.anthropic import MESSAGES

MEDIA = "application/vnd.amazon.eventstream"


def frame(payload: bytes, **headers: str) -> bytes:
    """Return one frame as Bedrock writes it, checksums included."""
    named = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + len(value).to_bytes(2, "big") + value.encode()
        for name, value in ((":" + key.replace("_", "-"), value) for key, value in headers.items())
    )
    prelude = (16 + len(named) + len(payload)).to_bytes(4, "big") + len(named).to_bytes(4, "big")
    body = prelude + zlib.crc32(prelude).to_bytes(4, "big") + named + payload
    return body + zlib.crc32(body).to_bytes(4, "big")


def chunk(event: Any) -> bytes:
    payload = {"bytes": b64encode(json.dumps(event).encode()).decode(), "p": "abcd"}
    return frame(
        json.dumps(payload).encode(), event_type="chunk", content_type="application/json", message_type="event"
    )


def test_a_stream_of_bedrock_is_the_stream_of_anthropic() -> None:
    body = b"".join(chunk(event) for event in test_anthropic.EVERYTHING)
    assert documents(body, MEDIA) == (test_anthropic.EVERYTHING, True)


def test_a_frame_that_was_cut_is_left_out() -> None:
    first, second = chunk({"a": 1}), chunk({"b": 2})
    for cut in range(1, len(second)):
        assert documents((first + second)[:-cut], MEDIA) == ([{"a": 1}], True)


def test_an_exception_is_told_as_the_error_of_a_stream() -> None:
    body = chunk(test_anthropic.start()) + frame(
        b'{"message":"Too many tokens"}', exception_type="throttlingException", content_type="application/json", message_type="exception"
    )  # fmt: skip
    found = documents(body, MEDIA)
    assert found is not None
    answered = MESSAGES.answered(*found)
    assert answered.error == {"type": "throttlingException", "message": "Too many tokens"}
    assert answered.response["id"] == "msg_01"


@pytest.mark.parametrize("payload", [b"", b"no json", b'{"bytes": "%"}', b'{"bytes": "bm8="}'])
def test_a_frame_that_holds_no_json_is_left_out(payload: bytes) -> None:
    assert documents(frame(payload, event_type="chunk") + chunk({"a": 1}), MEDIA) == ([{"a": 1}], True)


@given(st.binary(max_size=80), st.integers(0, 200), st.binary(min_size=1, max_size=4))
def test_no_bytes_make_it_raise(body: bytes, at: int, put: bytes) -> None:
    documents(body, MEDIA)
    whole = chunk({"a": 1}) + frame(b'{"message":"x"}', exception_type="y")
    documents(whole[:at] + put + whole[at + len(put) :], MEDIA)
