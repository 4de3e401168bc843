"""Name the usual cause of a question that changed, in one sentence, and say what to do about it.

These are guesses from what the question holds: a sentence here never decides anything, it only helps to look.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from playhead.replay import volatile
from playhead.replay.question import Question
from playhead.replay.volatile import Volatile
from playhead.views.difference import ABSENT, Change, encoded
from playhead.views.words import shown, words

_WORD = re.compile(r"\w+")
_CONVERSATION = frozenset({"messages", "input", "contents"})
_PROMPT = _CONVERSATION | {"system", "instructions", "prompt", "systemInstruction", "system_instruction"}
_TOOLS = frozenset({"tools", "functions", "tool_choice", "function_call", "toolConfig", "tool_config", "text",
                    "response_format", "output_format", "output_config"})  # fmt: skip
_SCHEMAS = frozenset({"responseSchema", "response_schema", "responseJsonSchema", "response_json_schema"})
_RESULTS = {"function_call_output": "call_id", "custom_tool_call_output": "call_id", "tool_result": "tool_use_id"}
_SDK = re.compile(r"user.?agent|sdk|stainless|client.?(?:version|name|info)|library|package", re.IGNORECASE)
_PARAMETERS = frozenset({"temperature", "top_p", "top_k", "max_tokens", "max_output_tokens", "max_completion_tokens",
                         "seed", "stop", "stop_sequences", "reasoning", "reasoning_effort", "thinking", "stream", "n",
                         "generationConfig", "presence_penalty", "frequency_penalty", "logprobs"})  # fmt: skip
_SAID_MAX = 40  # characters of a value in a sentence
_SUGGEST = "Keep it out of the question, or declare it volatile: `playhead replay --suggest A B` writes the rule."


@dataclass(frozen=True, slots=True)
class Cause:
    """Why one change may have come about: its sort, what is said of it, and what to do."""

    code: str
    said: str
    advice: str
    volatile: tuple[Volatile, ...] = ()


# What is told where several causes meet: the first of these, since those behind it may follow from it.
_ORDER = ("model", "tools", "tool_result", "tool_results_order", "order", "conversation", "template", "argument",
          "parameter", "sdk", "volatile", "float", "whitespace")  # fmt: skip
_ALSO = {
    "model": "another model", "tools": "other tools", "tool_result": "another tool result", "order": "another order",
    "tool_results_order": "another order of tool results", "conversation": "other messages", "template": "other text",
    "argument": "other arguments", "parameter": "other parameters", "sdk": "other fields of the SDK",
    "volatile": "something volatile", "float": "digits of floats", "whitespace": "white space",
}  # fmt: skip


def cause(found: Sequence[Change], recorded: Question, asked: Question) -> str | None:
    """Say why a question is not the recorded one, as far as can be told, and what to do; None where nothing changed."""
    told = explained(found, recorded, asked)
    return None if told is None else f"{told[0]}. {told[1]}"


def explained(found: Sequence[Change], recorded: Question, asked: Question) -> tuple[str, str] | None:
    """Return the likely cause and the advice; of several causes the first that others may follow from."""
    by_code: dict[str, Cause] = {}
    for one in causes(found, recorded, asked):
        by_code.setdefault(one.code, one)
    if not by_code:
        return None
    first, *others = sorted(by_code.values(), key=lambda one: _ORDER.index(one.code))
    also = f"; besides, {', '.join(_ALSO[one.code] for one in others)}" if others else ""
    return f"{first.said}{also}", first.advice


def causes(found: Sequence[Change], recorded: Question, asked: Question) -> list[Cause]:
    """Return the likely cause of every change, of the name too."""
    out: list[Cause] = []
    if recorded.name != asked.name and recorded.kind == "model.invoked":
        out.append(_model(recorded.name, asked.name))
    reordered: dict[str, bool] = {}
    for change in found:
        if change.path == "/model" and out and out[0].code == "model":
            continue
        out.append(_cause_of(change, recorded, asked, reordered))
    return out


def _cause_of(change: Change, recorded: Question, asked: Question, reordered: dict[str, bool]) -> Cause:
    segments = change.path.split("/")[1:]
    top = segments[0] if segments else ""
    is_model = recorded.kind == "model.invoked"
    if is_model and change.path == "/model":
        return _model(change.left, change.right)
    if is_model and (top in _TOOLS or _SCHEMAS.intersection(segments)):
        return Cause(
            "tools",
            f"what the model may call, or must answer with, changed ({change.path})",
            "If you changed a tool or a schema, record anew; a list of tools should have a fixed order.",
        )
    if (order := _order(change, recorded.input, asked.input, reordered)) is not None:
        return order
    if (looks := _looks(change)) is not None:
        return looks
    if is_model and (result := _tool_result(change, recorded.input, asked.input)) is not None:
        return result
    one_sided = change.left is ABSENT or change.right is ABSENT
    if is_model and top in _CONVERSATION and one_sided:
        return _message(change)
    if is_model and top in _PROMPT:
        return Cause(
            "template",
            f"the text of the prompt changed ({change.path})",
            "A template, or the code that fills it in, is another one: if that is meant, record anew.",
        )
    if (is_model and one_sided and top not in _PARAMETERS) or any(_SDK.search(segment) for segment in segments):
        verb = "added" if change.left is ABSENT else "left out" if change.right is ABSENT else "changed"
        return Cause(
            "sdk",
            f"a field beside the conversation was {verb} ({change.path}), as an upgrade of an SDK does",
            "Compare the versions of your packages with those in `run.started`; then pin them, or record anew.",
        )
    if is_model:
        return Cause(
            "parameter",
            f"{change.path} changed from {_said(change.left)} to {_said(change.right)}",
            "If that is meant, record anew.",
        )
    return Cause(
        "argument",
        f"{change.path or 'the input'} is another value",
        "Look at where it is computed: nothing about it looks random or volatile.",
    )


def _model(left: Any, right: Any) -> Cause:
    return Cause(
        "model",
        f"another model is asked: {_said(right)}, recorded was {_said(left)}",
        "Ask the recorded one, or record anew.",
    )


def _looks(change: Change) -> Cause | None:
    """Recognise what two values say of themselves: volatile parts, another order of words, white space, float noise."""
    left, right = change.left, change.right
    if volatile.is_float_noise(left, right):
        return Cause(
            "float",
            f"floats differ in their last digits ({change.path})",
            "Round them before they go into a question: sums depend on their order and on the machine.",
        )
    if type(left) is not str or type(right) is not str:
        found = volatile.of_values(left, right)
        return None if found is None else _volatile(change, (found,))
    if left.split() == right.split():
        return Cause(
            "whitespace",
            f"only white space differs ({change.path})",
            "Strip it, or take the text from where it was before: editors and templates add line breaks.",
        )
    pieces = words(left, right)
    parts = volatile.of_texts(pieces)
    if parts and all(part is not None for part in parts):
        return _volatile(change, tuple(part for part in parts if part is not None))
    if sum(len(piece.text) for piece in pieces) < 100_000:
        one, other = _WORD.findall(left), _WORD.findall(right)
        if one != other and sorted(one) == sorted(other):
            return _unordered(change.path)
    return None


def _volatile(change: Change, parts: tuple[Volatile, ...]) -> Cause:
    first = parts[0]
    names = list(dict.fromkeys(part.what.said for part in parts))
    said = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    example = f"{shown(first.left, _SAID_MAX)} was recorded, {shown(first.right, _SAID_MAX)} is asked"
    return Cause("volatile", f"{said} in {change.path or 'the question'}: {example}", _SUGGEST, parts)


def _unordered(path: str) -> Cause:
    return Cause(
        "order",
        f"the same items stand in another order ({path or '/'}), as those of a set or a listing do",
        "Sort them before they go into the question.",
    )


def _message(change: Change) -> Cause:
    item = change.right if change.left is ABSENT else change.left
    role = item.get("role") or item.get("type") if isinstance(item, dict) else None
    more = "more" if change.left is ABSENT else "less"
    who = f" of the role {role}" if isinstance(role, str) else ""
    return Cause(
        "conversation",
        f"the conversation has a message {more}{who} ({change.path})",
        "The agent took another way before this: look at the step that adds its messages.",
    )


# What only the whole question shows.


def _order(change: Change, left: Any, right: Any, known: dict[str, bool]) -> Cause | None:
    """Say whether the change lies in an array that has the same items in another order."""
    for path, one, other in _along(change.path, left, right):
        if type(one) is not list or type(other) is not list or len(one) != len(other):
            continue
        if path not in known:
            known[path] = Counter(map(encoded, one)) == Counter(map(encoded, other))
        if known[path]:
            moved = [item for item, instead in zip(one, other, strict=True) if encoded(item) != encoded(instead)]
            if moved and all(_result_id(item) is not None for item in moved):
                return Cause(
                    "tool_results_order",
                    f"the results of parallel tools stand in another order ({path})",
                    "Collect them in the order in which they were asked for, not in that of completion.",
                )
            return _unordered(path)
    return None


def _tool_result(change: Change, left: Any, right: Any) -> Cause | None:
    for side in (left, right):
        for _, value, _ in _along(change.path, side, side):
            if (id := _result_id(value)) is not None:
                return Cause(
                    "tool_result",
                    f"the result of the tool call {id} in the conversation is another ({change.path})",
                    "The tool's answer came from the tape: look at the code between the tool and the prompt, or "
                    "whether the tool is recorded at all.",
                )
    return None


def _result_id(item: Any) -> str | None:
    """Return the id of the call that an item of a conversation is the result of; None where it is no result."""
    if type(item) is not dict:
        return None
    if item.get("role") == "tool":
        return str(item.get("tool_call_id") or item.get("name") or "?")
    if (field := _RESULTS.get(str(item.get("type")))) is not None:
        return str(item.get(field) or "?")
    for name in ("functionResponse", "function_response"):
        if type(inner := item.get(name)) is dict:
            return str(inner.get("id") or inner.get("name") or "?")
    return None


def _along(path: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield both values at every place on the way to a path, the whole first; ends where one side has nothing."""
    at = ""
    yield at, left, right
    for segment in path.split("/")[1:]:
        name = segment.replace("~1", "/").replace("~0", "~")
        left, right = _inside(left, name), _inside(right, name)
        if left is ABSENT or right is ABSENT:
            return
        at = f"{at}/{segment}"
        yield at, left, right


def _inside(value: Any, name: str) -> Any:
    if type(value) is dict:
        return value.get(name, ABSENT)
    if type(value) is list and name.isdigit() and int(name) < len(value):
        return value[int(name)]
    return ABSENT


def _said(value: Any) -> str:
    if value is ABSENT:
        return "nothing"
    return shown(value if type(value) is str else encoded(value).decode("utf-8", "replace"), _SAID_MAX)
