"""A secret that a stream gives out word by word is found, and the rest of the stream stays as it was."""

from __future__ import annotations

import json
import random

import pytest
from tests.capture.redact_samples import letters

from playhead.capture.redact import Redactor
from playhead.capture.redact_stream import without_split_secrets

KEY = "sk-ant-api03-" + letters(40)
WORDS = f"The key is {KEY} and żółć; keep it."


def chat(text: str, choice: int = 0) -> str:
    return json.dumps({"id": "c1", "choices": [{"index": choice, "delta": {"content": text}, "finish_reason": None}]})


def messages(text: str, choice: int = 0) -> str:
    return json.dumps({"type": "content_block_delta", "index": choice, "delta": {"type": "text_delta", "text": text}})


def arguments(text: str, choice: int = 0) -> str:
    return json.dumps({"type": "response.function_call_arguments.delta", "output_index": choice, "delta": text})


def content(text: str, choice: int = 0) -> str:
    return json.dumps({"candidates": [{"content": {"parts": [{"text": text}]}, "index": choice}]}, ensure_ascii=False)


def unheard_of(text: str, choice: int = 0) -> str:
    return json.dumps({"kind": "morsel", "seat": choice, "crumb": {"whispered": text}}, separators=(", ", " : "))


def partial(text: str, choice: int = 0) -> str:
    piece = {"jsonPath": "$.note", "stringValue": text, "willContinue": True}
    return json.dumps({"candidates": [{"content": {"parts": [{"functionCall": {"partialArgs": [piece]}}]}}]})


def parts_of(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


@pytest.mark.parametrize("event", [chat, messages, arguments, content, unheard_of, partial])
@pytest.mark.parametrize("size", [1, 3, 7])
def test_a_secret_spread_over_events_is_found_whatever_the_dialect(event, size: int) -> None:  # type: ignore[no-untyped-def]
    pieces = [f"data: {event(part)}\n\n".encode() for part in parts_of(WORDS, size)]
    counts: dict[str, int] = {}
    out = without_split_secrets(Redactor(environ={}), pieces, counts)
    assert counts == {"anthropic-key": 1}
    assert len(out) == len(pieces)
    said = b"".join(out).decode()
    whole = "".join(
        next(text for text in walk(json.loads(line[6:])) if text is not None) for line in said.split("\n\n") if line
    )
    assert whole == WORDS.replace(KEY, "[redacted:anthropic-key]")
    for before, after in zip(pieces, out, strict=True):
        assert after == before or b'""' in after or b"redacted" in after or len(after) < len(before)


def walk(document: object) -> list[str | None]:
    """Return the texts under the names that carry deltas."""
    names = ("content", "text", "delta", "whispered", "stringValue")
    if isinstance(document, dict):
        inner = [value for key, value in document.items() if key in names]
        return [text for value in inner for text in ([value] if isinstance(value, str) else walk(value))] + [
            text for key, value in document.items() if key not in names for text in walk(value)
        ]
    if isinstance(document, list):
        return [text for value in document for text in walk(value)]
    return []


def test_streams_that_run_side_by_side_are_told_apart() -> None:
    gate = Redactor(environ={"A_TOKEN": "hunter2-hunter2"})
    pieces = []
    for left, right in zip(parts_of("say hunter2-hunter2 ", 3), parts_of("nothing secret here ", 3), strict=True):
        pieces += [f"data: {chat(left, 0)}\n\n".encode(), f"data: {chat(right, 1)}\n\n".encode()]
    counts: dict[str, int] = {}
    out = without_split_secrets(gate, pieces, counts)
    assert counts == {"env": 1}
    assert out[1::2] == pieces[1::2]


def test_a_stream_without_secrets_is_the_same_object() -> None:
    pieces = [b'data: {"text": "a"}\n\n', b'data: {"text": "b', b'"}\n\ndata: [DONE]\n\n', b"", b"\xff"]
    assert without_split_secrets(Redactor(environ={}), pieces, {}) is pieces


def test_cuts_inside_an_event_keep_the_number_of_pieces_and_everything_around() -> None:
    gate = Redactor(environ={})
    whole = b"".join(f"data: {chat(part)}\n\n".encode() for part in parts_of(WORDS, 5))
    expected = without_split_secrets(gate, [whole], {})[0]
    source = random.Random(4)
    for _ in range(50):
        places = sorted(source.sample(range(len(whole)), 12))
        pieces = [whole[a:b] for a, b in zip([0, *places], [*places, len(whole)], strict=True)]
        out = without_split_secrets(gate, pieces, {})
        assert len(out) == len(pieces)
        assert b"".join(out) == expected
    assert KEY.encode()[20:26] not in expected


def lines_of(events: list[str]) -> list[bytes]:
    return [f"data: {event}\n\n".encode() for event in events]


FORMS = {
    "two choices in one chunk": [
        json.dumps({"choices": [{"index": 0, "delta": {"content": part}}, {"index": 1, "delta": {"content": "word "}}]})
        for part in parts_of(WORDS, 7)
    ],
    "a number that counts": [json.dumps({"token": part, "index": at}) for at, part in enumerate(parts_of(WORDS, 7))],
    "an id that changes": [json.dumps({"delta": part, "item_id": f"i{at}"}) for at, part in enumerate(parts_of(WORDS, 7))],
    "blanks around the colon": [f'{{"a" :  {json.dumps(part)}}}' for part in parts_of(WORDS, 7)],
    "plain text": parts_of(WORDS, 7),
    "a JSON text": [json.dumps(part) for part in parts_of(WORDS, 7)],
    "an array": [json.dumps(["tok", part]) for part in parts_of(WORDS, 7)],
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_spread_over_events_is_found_whatever_they_look_like(form: str) -> None:
    pieces = lines_of(FORMS[form])
    counts: dict[str, int] = {}
    out = without_split_secrets(Redactor(environ={}), pieces, counts)
    assert counts == {"anthropic-key": 1}
    assert len(out) == len(pieces)
    said = b"".join(out)
    assert said.count(b"[redacted:anthropic-key]") == 1
    assert not any(KEY[at : at + 6].encode() in said for at in range(13, len(KEY) - 6))


@pytest.mark.parametrize(
    "values",
    [
        [{"href": "https://example.com"}, {"href": "mailto:joe@example.com"}],
        [{"line": "token"}, {"line": "=foobarbaz123"}],
        [{"w": "the password"}, {"w": ": is not needed here 1a2b3c4d"}],
    ],
)
def test_values_that_are_whole_are_not_taken_for_one_text(values: list[dict[str, str]]) -> None:
    pieces = lines_of([json.dumps(value) for value in values])
    assert without_split_secrets(Redactor(environ={}), pieces, {}) is pieces


@pytest.mark.parametrize("start", [b'data: ["', b'data: "', b'data: {"a": "', b'data: {"'])
def test_a_text_without_an_end_is_read_once(start: bytes) -> None:
    # Quadratic, this would take half an hour.
    body = start + b'\\"x' * 400_000
    assert without_split_secrets(Redactor(environ={}), [body], {}) == [body]


def test_a_stream_that_is_not_utf_8_is_looked_through_as_well() -> None:
    pieces = [f"data: {chat(part)}\n\n".encode() for part in parts_of(WORDS, 7)]
    pieces.insert(1, b'data: {"id": "c1", "choices": [{"index": 0, "delta": {"content": "\xe9"}}]}\n\n')
    out = b"".join(without_split_secrets(Redactor(environ={}), pieces, {}))
    assert b"[redacted:anthropic-key]" in out
    assert not any(KEY[at : at + 6].encode() in out for at in range(13, len(KEY) - 6))
    assert b'"\xe9"' in out
