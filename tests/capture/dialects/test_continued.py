"""Neighbours in a stream that only go on with one text are put together, and nothing else is."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead.capture.dialects import DIALECTS, documents
from playhead.capture.dialects.bodies import Parsed
from playhead.capture.dialects.continued import put_together

CHAT = next(dialect for dialect in DIALECTS if dialect.name == "openai.chat")
MESSAGES = next(dialect for dialect in DIALECTS if dialect.name == "anthropic.messages")

texts = st.text(st.sampled_from('ab"\\\n}{],:é😀'), max_size=6) | st.sampled_from(
    ['"}', '\\"', '"},"', '","content":"x']
)
few = st.sampled_from(["a", "", '"', "\\"])  # often the same, so that there are neighbours


def chunk(delta, **more):
    choice = {"index": 0, "delta": delta, **more.pop("choice", {})}
    return {"id": "x", "choices": [choice], **more}


chat_deltas = st.one_of(
    few.map(lambda text: {"content": text}),
    few.map(lambda text: {"role": "assistant", "content": text}),
    few.map(lambda text: {"content": text, "refusal": None}),
    st.tuples(few, few).map(lambda both: {"reasoning": both[0], "content": both[1]}),
    st.tuples(few, few).map(lambda both: {"content": both[0], "reasoning": both[1]}),
    few.map(lambda text: {"tool_calls": [{"index": 0, "function": {"arguments": text}}]}),
    few.map(lambda text: {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": text}}]}),
)
chat_chunks = st.one_of(
    chat_deltas.map(chunk),
    chat_deltas.map(lambda delta: chunk(delta, choice={"logprobs": None, "finish_reason": None})),
    chat_deltas.map(lambda delta: chunk(delta, choice={"logprobs": {"content": [{"token": "a"}]}})),
    chat_deltas.map(lambda delta: chunk(delta, choice={"text": "a"})),
    chat_deltas.map(lambda delta: chunk(delta, usage=None)),
    chat_deltas.map(lambda delta: chunk(delta, usage={"prompt_tokens": 1})),
    chat_deltas.map(
        lambda delta: {"id": "y", "choices": [{"text": "a", "logprobs": None, "index": 0, "delta": delta}]}
    ),
    chat_deltas.map(
        lambda delta: {"choices": [{"message": {"content": "a"}, "index": 0, "delta": delta}], "id": "x", "n": 1}
    ),
    st.tuples(chat_deltas, chat_deltas).map(
        lambda two: {"choices": [{"index": 0, "delta": two[0]}, {"index": 1, "delta": two[1]}]}
    ),
    st.tuples(chat_deltas, st.sampled_from(["", "a", "bb"])).map(lambda two: chunk(two[0], obfuscation=two[1])),
    texts.map(lambda text: chunk({"content": text})),
)
block_deltas = st.one_of(
    few.map(lambda text: {"type": "text_delta", "text": text}),
    few.map(lambda text: {"type": "thinking_delta", "thinking": text}),
    few.map(lambda text: {"type": "signature_delta", "signature": text}),
    few.map(lambda text: {"type": "input_json_delta", "partial_json": text}),
    texts.map(lambda text: {"type": "text_delta", "text": text}),
)
events = st.one_of(
    st.tuples(block_deltas, st.integers(0, 1)).map(
        lambda both: {"type": "content_block_delta", "index": both[1], "delta": both[0]}
    ),
    st.just({"type": "ping"}),
    st.sampled_from(["text", "thinking"]).map(
        lambda kind: {"type": "content_block_start", "index": 0, "content_block": {"type": kind, kind: ""}}
    ),
)


def told_twice(parts: list[bytes], dialect) -> None:
    """Compare what a stream says with what its documents say one by one."""
    found = documents(b"".join(b"data: %b\n\n" % part for part in parts), "text/event-stream")
    assert found is not None
    assert isinstance(found[0], Parsed)
    one_by_one = [json.loads(part) for part in parts]
    assert list(found[0]) == one_by_one
    assert dialect.answered(found[0], True) == dialect.answered(one_by_one, True)


def encoded(values, ascii_only):
    return [json.dumps(value, separators=(",", ":"), ensure_ascii=ascii_only).encode() for value in values]


@given(st.lists(chat_chunks, min_size=33, max_size=60), st.booleans())
def test_a_chat_says_the_same_whether_its_neighbours_are_put_together_or_not(chunks, ascii_only):
    told_twice(encoded(chunks, ascii_only), CHAT)


@given(st.lists(events, min_size=33, max_size=60), st.booleans())
def test_and_so_does_a_message(values, ascii_only):
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    told_twice(encoded([start, *values], ascii_only), MESSAGES)


@given(st.lists(chat_deltas, min_size=40, max_size=40), st.lists(st.text("ab", max_size=3), min_size=40, max_size=40))
def test_what_makes_chunks_equally_long_is_no_difference(deltas, fillings):
    chunks = [chunk(delta, usage=None, obfuscation=filling) for delta, filling in zip(deltas, fillings, strict=True)]
    told_twice(encoded(chunks, True), CHAT)


def test_a_text_of_many_chunks_becomes_one():
    words = [f'"{number}" \\ \n' for number in range(500)]
    parts = encoded([chunk({"content": word}, usage=None, obfuscation="x" * (number % 7)) for number, word in enumerate(words)], True)  # fmt: skip
    together = put_together(parts)
    assert len(together) == 1
    assert json.loads(together[0])["choices"][0]["delta"]["content"] == "".join(words)


def test_a_character_that_was_cut_in_two_is_whole_again():
    parts = [b'{"choices":[{"index":0,"delta":{"content":"%b"}}]}' % half for half in (b"\\ud83d", b"\\ude00")]
    found = documents(b"".join(b"data: %b\n\n" % part for part in parts * 20), "text/event-stream")
    assert found is not None
    assert CHAT.answered(*found).response["choices"][0]["message"]["content"] == "😀" * 20


@pytest.mark.parametrize("odd", [b'{"choices":[{"index":0,"delta":{"content":"\\x"}}]}', b"{", b"\xff", b"7", b"null"])
def test_one_that_is_no_json_among_many_costs_the_others_nothing(odd):
    good = b'{"choices":[{"index":0,"delta":{"content":"a"}}]}'
    body = b"".join(b"data: %b\n\n" % part for part in [good] * 30 + [odd] + [good] * 30)
    found = documents(body, "text/event-stream")
    assert found is not None
    assert CHAT.answered(*found).response["choices"][0]["message"]["content"] == "a" * 60
