"""Make the OTLP requests that every server is sent: the same bytes for all of them.

A trace is one run of an agent: a root, five calls of a model whose conversation grows, and four calls of tools between
them. The attributes are those of OpenInference, which is Phoenix's own convention and which MLflow and Playhead read.
Spans come in the order in which a few agents at work at once end theirs, a hundred to a request, so that some traces
are spread over two requests, as an exporter spreads them.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
import random
import time
from collections.abc import Iterator
from typing import Literal, NamedTuple

Texts = Literal["prose", "incompressible"]
SPANS_OF_A_TRACE = 10
SPANS_OF_A_BRIEF_TRACE = 2
SPANS_OF_A_REQUEST = 100
ERRORS_EVERY = 20  # traces: one in so many ends in an error
_AGENTS_AT_ONCE = 4
_SECOND_NS = 1_000_000_000
# One for all that is made while this is loaded, so that every server is sent the same bytes; and in the past.
_START_NS = time.time_ns() - 7 * 86_400 * _SECOND_NS
_VOCABULARY = 4000
_TOOLS = ("read_file", "search_code", "run_tests", "apply_patch", "list_issues", "fetch_page")
_MODELS = ("gpt-5", "gpt-5-mini", "claude-sonnet-4-5", "gemini-3-pro")
_SYSTEM_PROMPT = 350  # characters, like those below; in all about 2 kB of attributes per span
_TASK, _TOOL_RESULT, _REMARK, _ANSWER = 250, 500, 160, 400

Attributes = dict[str, str | int]


class Request(NamedTuple):
    """The body of one POST to `/v1/traces`, and how many spans it holds."""

    body: bytes
    spans: int


class Load:
    """A stream of traces, numbered from 0; the same seed gives the same bytes."""

    def __init__(self, seed: int = 1, texts: Texts = "prose", *, is_brief: bool = False) -> None:
        self.seed = seed
        self.spans_of_a_trace = SPANS_OF_A_BRIEF_TRACE if is_brief else SPANS_OF_A_TRACE
        self.is_brief = is_brief
        self._texts = texts
        self._chance = random.Random(seed)
        self._writer = _Prose(seed) if texts == "prose" else _Noise(seed)
        # Every team has its own prompt, and uses it for all its runs.
        self._system_prompt = self._writer.text(_SYSTEM_PROMPT)
        self._next = 0

    def word(self, number: int) -> str:
        """Return the word that occurs in the run of that number and in no other."""
        # The vocabulary has neither q nor x, and the length is fixed: no planted word is a part of another.
        return "qx" + "".join("bcdfghjkmnprstvw"[int(digit, 16)] for digit in f"{self.seed:02x}{number:06x}")

    def requests(self, traces: int, spans_of_a_request: int = SPANS_OF_A_REQUEST) -> Iterator[Request]:
        """Yield the requests of so many further traces."""
        spans: list[bytes] = []
        for span in self._spans(traces):
            spans.append(span)
            if len(spans) == spans_of_a_request:
                yield Request(_export(spans), len(spans))
                spans = []
        if spans:
            yield Request(_export(spans), len(spans))

    def _spans(self, traces: int) -> Iterator[bytes]:
        first, self._next = self._next, self._next + traces
        make = self._brief_trace if self.is_brief else self._trace
        for begin in range(first, self._next, _AGENTS_AT_ONCE):
            # Each agent's own order stays: children before the root.
            at_work = [make(number) for number in range(begin, min(begin + _AGENTS_AT_ONCE, self._next))]
            while at_work:
                spans = self._chance.choice(at_work)
                yield spans.pop(0)
                if not spans:
                    at_work.remove(spans)

    def _trace(self, number: int) -> list[bytes]:
        failed = number % ERRORS_EVERY == ERRORS_EVERY - 1
        planted = self._chance.randrange(4)  # the tool whose result holds the word
        task = self._writer.text(_TASK)
        messages = [("system", self._system_prompt), ("user", task)]
        trace = _Trace(self.seed, number, _START_NS + number * _SECOND_NS)
        spans: list[bytes] = []
        for turn in range(4):
            remark, tool = self._writer.text(_REMARK), self._chance.choice(_TOOLS)
            spans.append(self._model_call(trace, messages, remark))
            result = self._writer.text(_TOOL_RESULT)
            if turn == planted:
                result = f"{result[: _TOOL_RESULT // 2]} {self.word(number)} {result[_TOOL_RESULT // 2 :]}"
            spans.append(self._tool_call(trace, tool, result, failed=failed and turn == 3))
            messages += [("assistant", remark), ("tool", result)]
        answer = self._writer.text(_ANSWER)
        spans.append(self._model_call(trace, messages, answer))
        root: Attributes = {
            "openinference.span.kind": "AGENT",
            "agent.name": f"agent-{number % 7}",
            "input.value": task,
            "output.value": answer,
        }
        spans.append(trace.root(f"agent-{number % 7}", self._as_said(root), failed=failed))
        return spans

    def _brief_trace(self, number: int) -> list[bytes]:
        failed = number % ERRORS_EVERY == ERRORS_EVERY - 1
        trace = _Trace(self.seed, number, _START_NS + number * _SECOND_NS)
        task, answer = self._writer.text(40), f"{self._writer.text(60)} {self.word(number)}"
        root: Attributes = {"openinference.span.kind": "AGENT", "input.value": task, "output.value": answer}
        child = self._model_call(trace, [("user", task)], answer)
        return [child, trace.root(f"agent-{number % 7}", root, failed=failed)]

    def _model_call(self, trace: _Trace, messages: list[tuple[str, str]], answer: str) -> bytes:
        model = _MODELS[trace.number % len(_MODELS)]
        tokens_in, tokens_out = sum(len(text) for _, text in messages) // 4, len(answer) // 4
        attributes: Attributes = {
            "openinference.span.kind": "LLM",
            "llm.model_name": model,
            "llm.provider": "openai",
            "llm.invocation_parameters": '{"temperature": 0.2, "max_tokens": 1024}',
            "input.value": messages[-1][1],
            "output.value": answer,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": answer,
            "llm.token_count.prompt": tokens_in,
            "llm.token_count.completion": tokens_out,
            "llm.token_count.total": tokens_in + tokens_out,
        }
        for place, (role, text) in enumerate(messages):
            attributes[f"llm.input_messages.{place}.message.role"] = role
            attributes[f"llm.input_messages.{place}.message.content"] = text
        return trace.child("ChatCompletion", self._as_said(attributes))

    def _tool_call(self, trace: _Trace, name: str, result: str, *, failed: bool) -> bytes:
        asked = json.dumps({"path": f"src/{self._chance.randrange(10_000)}.py", "query": self._writer.text(60)})
        attributes: Attributes = {
            "openinference.span.kind": "TOOL",
            "tool.name": name,
            "tool.parameters": asked,
            "input.value": asked,
            "input.mime_type": "application/json",
            "output.value": result,
        }
        return trace.child(name, self._as_said(attributes), failed=failed)

    def _as_said(self, attributes: Attributes) -> Attributes:
        if self._texts == "prose":
            return attributes
        # Nothing is said twice, not even within a span, so nothing can be kept once. (No word is planted, then.)
        return {
            key: self._writer.text(len(value)) if isinstance(value, str) and len(value) > 100 else value
            for key, value in attributes.items()
        }


class _Prose:
    """Text of a few thousand words, some frequent and most rare, with the punctuation and numbers of real text."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        syllables = [a + b + c for a in "bcdfghjklmnprstvw" for b in "aeiou" for c in ("", "n", "r", "s", "l", "t")]
        words: set[str] = set()
        while len(words) < _VOCABULARY:
            words.add("".join(self._chance.choices(syllables, k=self._chance.choice((1, 1, 2, 2, 3)))))
        self._words = self._chance.sample(sorted(words), _VOCABULARY)
        # Zipf: the n-th word is as frequent as 1/n, offset so that no word is every tenth.
        self._weights = list(itertools.accumulate(1 / (place + 5) for place in range(_VOCABULARY)))
        self._marks = [". ", ", ", ", ", ".\n", "? ", ": ", " (", ") ", "\n- ", " = "]

    def text(self, characters: int) -> str:
        """Return so many characters."""
        parts: list[str] = []
        length = 0
        words, weights, chance = self._words, self._weights, self._chance.random
        total = weights[-1]
        while length < characters:
            word = words[bisect.bisect(weights, chance() * total)]
            mark = chance()
            if mark > 0.88:
                word += self._marks[int(chance() * len(self._marks))]
            elif mark > 0.85:
                word = f"{int(chance() * 100_000)} "
            else:
                word += " "
            parts.append(word)
            length += len(word)
        return "".join(parts)[:characters]


class _Noise:
    """Characters by chance: 96 of them, so that no compressor gets below 83 %."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        alphabet = bytes(range(32, 127)) + b"\n"
        self._table = bytes(alphabet[value % 96] for value in range(256))

    def text(self, characters: int) -> str:
        """Return so many characters."""
        # 256 values for 96 characters: some come a little more often, which makes no difference here.
        return self._chance.randbytes(characters).translate(self._table).decode()


class _Trace:
    """The ids and times of one trace."""

    def __init__(self, seed: int, number: int, start_ns: int) -> None:
        self.number = number
        self._ids = hashlib.sha256(f"{seed}/{number}".encode()).digest()
        self._start_ns = self._now_ns = start_ns
        self._spans = 0

    def child(self, name: str, attributes: Attributes, *, failed: bool = False) -> bytes:
        """Encode a span below the root that begins where the one before ended."""
        self._spans += 1
        start_ns, self._now_ns = self._now_ns, self._now_ns + 400_000_000 + self._ids[self._spans] * 1_000_000
        return self._span(self._spans, 0, name, start_ns, attributes, failed)

    def root(self, name: str, attributes: Attributes, *, failed: bool) -> bytes:
        """Encode the root, which ends last."""
        return self._span(0, None, name, self._start_ns, attributes, failed)

    def _span(
        self, place: int, parent: int | None, name: str, start_ns: int, attributes: Attributes, failed: bool
    ) -> bytes:
        fields = [
            _bytes(1, self._ids[:16]),
            _bytes(2, self._id(place)),
            b"" if parent is None else _bytes(4, self._id(parent)),
            _bytes(5, name.encode()),
            _number(6, 1),
            _fixed64(7, start_ns),
            _fixed64(8, self._now_ns),
            *(_bytes(9, _attribute(key, value)) for key, value in attributes.items()),
            _bytes(15, _bytes(2, b"the tool failed") + _number(3, 2) if failed else _number(3, 1)),
        ]
        return b"".join(fields)

    def _id(self, place: int) -> bytes:
        return self._ids[16:23] + bytes([place])


def _export(spans: list[bytes]) -> bytes:
    """Encode an `ExportTraceServiceRequest`. By hand: the client needs no library, and its bytes no version."""
    resource = _bytes(1, _attribute("service.name", "bench")) + _bytes(
        1, _attribute("telemetry.sdk.language", "python")
    )
    scope = _bytes(1, _bytes(1, b"openinference.instrumentation.openai") + _bytes(2, b"0.1.40"))
    return _bytes(1, _bytes(1, resource) + _bytes(2, scope + b"".join(_bytes(2, span) for span in spans)))


def _attribute(key: str, value: str | int) -> bytes:
    encoded = _bytes(1, value.encode()) if isinstance(value, str) else _number(3, value)
    return _bytes(1, key.encode()) + _bytes(2, encoded)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _fixed64(field: int, value: int) -> bytes:
    return _varint(field << 3 | 1) + value.to_bytes(8, "little")


def _varint(value: int) -> bytes:
    if value < 128:
        return _SMALL[value]
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


_SMALL = [bytes([value]) for value in range(128)]
