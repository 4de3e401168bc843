"""Write what was said between an agent and a model, message by message."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playhead import _limits
from playhead._api.reading import Run
from playhead.cli.output import Output, one_line
from playhead.cli.run_text import meaning_of, print_value, shortened
from playhead.errors import PlayheadError
from playhead.views import answers, text
from playhead.views.points import mapping, words
from playhead.views.prompts import SYSTEM, TALK
from playhead.views.spoken import Said, spoken, tool_names

_WHOLE = _limits.SHOW_VALUE_CHARACTERS_MAX


def print_talk(messages: Sequence[dict[str, Any]], out: Output) -> None:
    """Write messages; what has none of the usual forms as it is."""
    called: dict[str, str] = {}  # tools, by the ids of their calls
    for message in messages:
        role = one_line(str(message.get("role") or message.get("type") or "?"))
        said = spoken(message, _WHOLE)
        if said is None:
            out.styled("  ", (f"{role}:", "cyan"))
            print_value({name: value for name, value in message.items() if name != "role"}, out, _WHOLE)
            continue
        print_said(role, said, called, out)


def print_said(role: str, said: Sequence[Said], called: dict[str, str], out: Output) -> None:
    """Write what one message says, each thing with who says it; `called` learns which tools were called."""
    if not said:
        out.styled("  ", (f"{role}:", "cyan"))
    for one in said:
        if one.what == "call":
            called.update({one.id: one.name} if one.id and one.name else {})
            out.wrapped(["  ", (f"{role} calls ", "cyan")], one.told)
            continue
        speaker = role
        if one.what == "result":
            speaker = f"tool {one_line(one.name or called.get(one.id or '') or one.id or '')}".rstrip()
        first, *others = shortened(one.told, _WHOLE).split("\n")
        out.styled("  ", (f"{speaker}: ", "cyan"), one_line(first))
        for line in others:
            out.print(f"    {line}")


def print_asked(request: Any, out: Output) -> None:
    """Write what a request says beside its conversation; of tools their names."""
    more = mapping(request)
    parts = []
    for name, value in more.items():
        if name not in (*TALK, *SYSTEM):
            names = tool_names(value) if name == "tools" else None
            told = text.short(value, _WHOLE) if names is None else f"[{', '.join(names)}]"
            parts.append(f"{name}={told}")
    if parts:
        out.wrapped(["  ", ("with ", "dim")], text.cut(", ".join(parts), _WHOLE))


def print_answer(found: Run, answer: dict[str, Any], out: Output) -> None:
    """Write what a model answered as text and calls; an answer in which there is neither as it is."""
    response = answer.get("response")
    told = answers.whole(response, _WHOLE, lambda response: _meaning(found, answer["seq"], response))
    said = [Said("text", told.text)] if told.text else []
    said += [Said("call", f"{call.name}({call.arguments})") for call in told.calls]
    if said:
        print_said("assistant", said, {}, out)
    else:
        print_value(response, out, _WHOLE)


def _meaning(found: Run, seq: int, response: Any) -> answers.Meaning | None:
    """Ask the dialect of the question that an event answers."""
    try:
        span = found.event(seq).span
        http = mapping(found.event(int(span)).data.get("http")) if span is not None and span.isdecimal() else {}
    except PlayheadError:
        return None
    return meaning_of(words(http.get("method")), words(http.get("url")), response) if http else None
