"""From the bytes of an answer to its JSON documents."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.capture.dialects import documents

SSE = "text/event-stream; charset=utf-8"
JSON = "application/json"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def test_one_json_value_is_one_document() -> None:
    assert documents(b' {"a": 1}\n', JSON) == ([{"a": 1}], False)
    assert documents(b'\xef\xbb\xbf{"a": 1}', "") == ([{"a": 1}], False)
    assert documents(b'[{"a": 1}]', JSON) == ([[{"a": 1}]], False)


@pytest.mark.parametrize(
    "body",
    [
        b'data: {"a": 1}\n\ndata: {"b": 2}\n\ndata: [DONE]\n\n',
        b'data:{"a": 1}\r\n\r\ndata:{"b": 2}\r\n\r\ndata:[DONE]\r\n\r\n',
        b'data: {"a": 1}\r\rdata: {"b": 2}\r\r',
        b': OPENROUTER PROCESSING\n\nevent: x\nid: 7\nretry: 10\ndata: {"a": 1}\n\n:\ndata: {"b":\ndata:  2}\n\n',
        b'\n\ndata: {"a": 1}\n\n\n\ndata: {"b": 2}',
        b'\xef\xbb\xbfdata: {"a": 1}\n\ndata: not json\n\ndata\n\ndata: {"b": 2}\n\n',
    ],
    ids=["plain", "crlf", "cr", "comments and several lines", "no end", "what is no JSON"],
)
def test_server_sent_events_are_one_document_each(body: bytes) -> None:
    assert documents(body, SSE) == ([{"a": 1}, {"b": 2}], True)
    assert documents(body, "") == ([{"a": 1}, {"b": 2}], True)


def test_an_event_that_was_cut_is_left_out() -> None:
    assert documents(b'data: {"a": 1}\n\ndata: {"b": "z\xc3', SSE) == ([{"a": 1}], True)
    assert documents(b'data: {"a": 1}\n\ndat', SSE) == ([{"a": 1}], True)
    assert documents(b"", SSE) == ([], True)


def test_lines_of_json_are_one_document_each() -> None:
    assert documents(b'{"a": 1}\n{"b": 2}\n', "application/x-ndjson") == ([{"a": 1}, {"b": 2}], True)
    assert documents(b'{"a": 1}\r\n\r\n{"b": 2}\r\n{"c"', "application/x-ndjson") == ([{"a": 1}, {"b": 2}], True)
    assert documents(b'{"a": 1}\n{"b": 2}\n', JSON) == ([{"a": 1}, {"b": 2}], True)
    assert documents(b'{"error": "x"}\n', "application/x-ndjson") == ([{"error": "x"}], True)


def test_an_array_that_was_cut_is_a_stream_of_what_came() -> None:
    assert documents(b'[{"a": 1}\n,\r\n{"b": [2]}, {"c": "z', JSON) == ([{"a": 1}, {"b": [2]}], True)


def test_an_error_page_that_calls_itself_a_stream_is_read_as_what_it_is() -> None:
    assert documents(b'{"error": {"message": "no"}}', SSE) == ([{"error": {"message": "no"}}], False)


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b'{"a": ', b"[", b"\x1f\x8b\x08", b"data: x\n\n", b"[" * 100_000, b'{"a":' * 100_000]
)
def test_what_holds_no_json_is_nothing(body: bytes) -> None:
    assert documents(body, JSON) is None


def test_numbers_keep_their_digits_and_what_strict_parsers_refuse_is_read() -> None:
    assert documents(b"[123456789012345678901234567890]", JSON) == ([[123456789012345678901234567890]], False)
    found = documents(b'data: {"logprob": -Infinity}\n\n', SSE)
    assert found == ([{"logprob": float("-inf")}], True)


@given(st.lists(VALUES, max_size=5), st.sampled_from(["\n", "\r\n", "\r"]))
def test_whatever_is_streamed_is_read_again(values: list[object], newline: str) -> None:
    body = "".join(f"data: {json.dumps(value)}{newline}{newline}" for value in values).encode()
    assert documents(body, SSE) == (values, True)
    lines = "".join(json.dumps(value) + "\n" for value in values).encode()
    assert documents(lines, "application/x-ndjson") == (values, True)


@given(st.binary(max_size=200), st.sampled_from([SSE, JSON, "application/x-ndjson", "", ";;"]))
def test_no_bytes_make_it_raise(body: bytes, media: str) -> None:
    documents(body, media)
    documents(b"data: " + body, media)
    documents(b'[{"a": 1},' + body, media)
