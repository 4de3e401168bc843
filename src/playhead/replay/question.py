"""Say what a call asked, in a form that can be read, compared and normalised; and find the recorded one nearest to it.

The input of a question has names for all of its parts, so that a JSON pointer says where something is: of a model the
fields of the request, with `operation` beside them; of HTTP `url` and `body`; of a process `argv`, `stdin` and its
options. What a dialect calls volatile is no part of it.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from playhead import _limits
from playhead.event.envelope import Event
from playhead.event.keys import ASKED
from playhead.views import text as views_text

_WORD = re.compile(r"\w+")
_LEAVES_MAX = 4000
_ALIKE_MIN = 0.3  # of the words of two questions to different tools or models
_WORDS_SHOWN = 80  # characters of what was asked, beside who was
_TALK = ("messages", "input", "contents", "prompt")  # where a request to a model has its conversation
_SAID = ("content", "parts", "text", "output")  # where a message has its words
# How a call of each kind is named to people.
NOUNS = {
    "model.invoked": "model",
    "tool.called": "tool",
    "mcp.requested": "MCP",
    "http.sent": "HTTP",
    "process.started": "process",
}


@dataclass(frozen=True, slots=True)
class Question:
    """One question: recorded, or asked in a replay."""

    seq: int | None
    kind: str
    lane: str
    name: str | None
    input: Any
    key: str | None = None

    @property
    def title(self) -> str:
        """Say who was asked: `model gpt-5`, `tool read_file`, `process git status`."""
        name = self.name
        if self.kind == "process.started" and name is None and isinstance(self.input, dict):
            argv = self.input.get("argv")
            name = " ".join(map(str, argv[:20])) if isinstance(argv, list) else None
        if self.kind == "http.sent" and isinstance(self.input, dict):
            name = f"{name or ''} {self.input.get('url') or ''}".strip()
        noun = NOUNS.get(self.kind, self.kind)
        return f"{noun} {views_text.cut(name, 80)}" if name else noun

    @property
    def words(self) -> str:
        """Say in few words what was asked: of a model the last that it was told, else the input; empty for nothing."""
        if self.kind == "process.started" or not self.input:
            return ""  # the title has it
        asked: Any = self.input
        if self.kind == "model.invoked" and isinstance(asked, dict):
            asked = next((asked[name] for name in _TALK if asked.get(name)), asked)
            while isinstance(asked, (dict, list)) and (inner := _inner(asked)) is not None:
                asked = inner
        elif self.kind == "http.sent" and isinstance(asked, dict):
            asked = asked.get("body")
        elif self.kind == "mcp.requested" and isinstance(asked, dict):
            asked = asked.get("params")
        return "" if asked is None else views_text.arguments(asked, _WORDS_SHOWN)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "seq": self.seq, "kind": self.kind, "lane": self.lane, "name": self.name, "input": self.input,
            "key": self.key,
        }  # fmt: skip


def _inner(value: Any) -> Any:
    """Return the last message of a conversation, or what a message says; None for something else."""
    if isinstance(value, list):
        return value[-1] if value else None
    return next((value[name] for name in _SAID if value.get(name)), None)


def question_of(event: Event) -> Question:
    """Return what an event asked; its data must be resolved. An event of another kind asks with all of its data."""
    return question(event.seq, event.kind, event.lane, event.data, event.key)


def question(seq: int | None, kind: str, lane: str, data: Mapping[str, Any], key: str | None = None) -> Question:
    """Return what the plain data of a call asks."""
    asked = ASKED.get(kind)
    if asked is None:
        return Question(seq, kind, lane, _text(data.get("name")), dict(data), key)
    name, value = asked(dict(data))
    return Question(seq, kind, lane, _text(name), _named(kind, data, value), key)


def _named(kind: str, data: Mapping[str, Any], value: Any) -> Any:
    """Give the parts of an input their names."""
    match kind:
        case "model.invoked":
            return _of_model(data, value)
        case "http.sent":
            return {"url": value[0], **({} if value[1] is None else {"body": value[1]})}
        case "process.started":
            named = {"argv": value[0], **({} if value[1] is None else {"stdin": value[1]})}
            return {**named, **({"options": value[2]} if len(value) > 2 else {})}
        case "mcp.requested":
            named = {"params": value[1]} if value[1] is not None else {}
            return {**named, **({"from_server": True} if value[0] else {})}
    return value


def _of_model(data: Mapping[str, Any], request: Any) -> Any:
    """Return a request as its dialect normalises it; one that was made by hand as it is."""
    http = data.get("http")
    if not isinstance(http, dict):
        return request
    from playhead.capture import dialects  # here: a program that asks no model has no need of them

    found = dialects.find(str(http.get("method")), str(http.get("url")))
    if found is not None:
        request = dialects.normalised(found[0], request)
    if isinstance(request, dict) and "operation" not in request:
        return {"operation": data.get("operation"), **request}
    return {"operation": data.get("operation"), "request": request}


def _text(name: Any) -> str | None:
    return name if isinstance(name, str) else None


def nearest(asked: Question, recorded: Iterable[Question], consumed: Container[int] = ()) -> Question | None:
    """Return the recorded question that is most like the one asked; None where none of its kind was recorded.

    `consumed` holds the seqs of those that were answered already. Of many, those are compared that are likely: of the
    same name and lane, and still to be asked. What is compared of each is bounded as well.
    """
    likely = _likely(asked, recorded, consumed)
    if not likely:
        return None
    mine, sketches = _sketch(asked.input), [_sketch(one.input) for one in likely]
    # What all of them say, such as a long history, tells none of them apart.
    common = mine.intersection(*sketches) if len(likely) > 1 else set()
    next_one = next((one for one in likely if one.lane == asked.lane and one.seq not in consumed), None)

    def score(at: int) -> tuple[float, int]:
        one = likely[at]
        found = _similarity(mine - common, sketches[at] - common)
        found += 0.3 * (one.name == asked.name) + 0.15 * (one.lane == asked.lane)
        found += 0.1 * (one.seq not in consumed) + 0.05 * (one is next_one)
        return found, -(one.seq or 0)

    best = max(range(len(likely)), key=score)
    alike = likely[best].name == asked.name or _similarity(mine, sketches[best]) >= _ALIKE_MIN
    return likely[best] if alike else None


def _likely(asked: Question, recorded: Iterable[Question], consumed: Container[int]) -> list[Question]:
    """Choose what is worth a closer look, in the order of the recording."""
    ranked: dict[tuple[bool, bool, bool], list[Question]] = {}
    for one in recorded:
        if one.kind == asked.kind:
            rank = (one.name != asked.name, one.lane != asked.lane, one.seq in consumed)
            ranked.setdefault(rank, []).append(one)
    found: list[Question] = []
    for rank in sorted(ranked):
        room = _limits.NEAREST_COMPARED_MAX - len(found)
        if room <= 0:
            break
        one_rank = ranked[rank]
        # Half of the room at most for one rank: what drifted to another lane must have a chance.
        room = max(1, room // 2) if rank != max(ranked) else room
        found += one_rank[-room:] if rank[2] else one_rank[:room]  # of those that were asked, the latest
    return found


def _sketch(value: Any) -> set[str]:
    """Return the words of a value: those at its beginning and those at its end, where conversations differ."""
    words: set[str] = set()
    half = _limits.NEAREST_CHARACTERS_MAX // 2
    for backwards in (False, True):
        room = half
        for number, leaf in enumerate(_leaves(value, backwards)):
            piece = leaf[-room:] if backwards else leaf[:room]
            words.update(_WORD.findall(piece))
            room -= len(piece) + 1
            if room <= 0 or number >= _LEAVES_MAX:
                break
    return words


def _leaves(value: Any, backwards: bool, depth: int = 0) -> Iterator[str]:
    if type(value) is str:
        yield value
    elif type(value) in (dict, list):
        if depth >= _limits.DEPTH_MAX:
            return
        items = list(value.values() if type(value) is dict else value)
        for item in reversed(items) if backwards else items:
            yield from _leaves(item, backwards, depth + 1)
    elif value is not None:
        yield str(value)


def similarity(left: Any, right: Any) -> float:
    """Return how many of the words of two values both have, from 0 to 1."""
    return _similarity(_sketch(left), _sketch(right))


def _similarity(left: set[str], right: set[str]) -> float:
    """Return how much two sets of words have in common, from 0 to 1."""
    if not left and not right:
        return 1.0
    return len(left & right) / len(left | right)
