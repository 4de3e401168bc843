"""Keep once what a span says twice: what its two events hold already is left out of what is kept of it.

Emitters repeat themselves: the answer of a model stands in `output.value`, in `llm.output_messages.0.message.content`,
and in the answer that these become. What is left out is named with the place where it stands, as a JSON pointer that
begins with `opened` or `closed`; lists of messages with what stands before the names of their fields, too.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from playhead.ingest.otlp.facts import Facts, facts
from playhead.ingest.otlp.spans import Span

_CHARACTERS_MIN = 48  # of a text; to name a place takes about as many
_LAST = 2  # messages of a question that are looked at: what came before is kept by other means
_NOTHING: dict[str, Any] = {}
_BEFORE = ("message.", "")  # what stands before the names of fields in lists of messages
_ASKED, _ANSWERED = "opened/request/messages", "closed/response/choices"


def rest_of(span: Span, written: Facts) -> dict[str, Any]:
    """Return what is kept of a span beside what its two events say."""
    lists = told_lists(span.items, written.asked, written.answered) if span.items else {}
    kept = span.kept(without=lists)
    if lists:
        kept["said_lists"] = lists
    take_out(kept, written.asked, written.answered)
    return kept


def prepare(spans: Sequence[Span]) -> None:
    """Do for many spans what depends on nothing but themselves.

    One thing for all of them, and then the next: the processor then has at hand what that takes.
    """
    for span in spans:
        span.digest()
    for span in spans:
        facts(span)
    for span in spans:
        span.rest = span.told, rest_of(span, span.told)


def prepared(span: Span, written: Facts) -> dict[str, Any]:
    """Return what is kept of a span beside its two events, prepared or not."""
    ready, span.rest = span.rest, None  # once: whoever gets it may change it
    if ready is not None and ready[0] is written:
        kept: dict[str, Any] = ready[1]
        return kept
    return rest_of(span, written)


def told_lists(
    items: dict[str, list[dict[str, Any]]], opened: dict[str, Any], closed: dict[str, Any]
) -> dict[str, Any]:
    """Return which lists of messages are those of the question or of the answer: they were made of them.

    By what their names begin with, as `said_lists` has it.
    """
    said: dict[str, Any] = {}
    messages, answers = _messages(opened), _answered(closed)
    for begin, made in items.items():
        for place, ours in ((_ASKED, messages), (_ANSWERED, answers)):
            if (
                ours is not None
                and len(ours) == len(made)
                and all(map(operator.is_, ours, made))
                and all(type(value) is str for one in made for value in one.values())
            ):
                said[begin] = [_BEFORE[0], place]
                break
    return said


def take_out(kept: dict[str, Any], opened: dict[str, Any], closed: dict[str, Any]) -> None:
    """Leave out what stands in the two events, and say in `said` where it stands."""
    if "listed" in kept:
        _take_out_lists(kept, opened, closed)
    attributes, formed = kept.get("attributes") or {}, kept.get("json") or {}
    long = [name for name, value in attributes.items() if type(value) is str and len(value) >= _CHARACTERS_MIN]
    if not long and not formed:
        return
    places = _places(opened, closed)
    said: dict[str, Any] = {}
    for name in long:
        if (place := places.get(attributes[name])) is not None:
            said[name] = place
    for name, (form, value) in formed.items():
        if value and (place := places.get(id(value))) is not None:
            said[name] = [form, place]
    if not said:
        return
    kept["attributes"] = {name: value for name, value in attributes.items() if name not in said}
    kept["json"] = {name: value for name, value in formed.items() if name not in said}
    for field in ("attributes", "json"):
        if not kept[field]:
            del kept[field]
    kept["said"] = said


def _take_out_lists(kept: dict[str, Any], opened: dict[str, Any], closed: dict[str, Any]) -> None:
    """Leave out lists of messages that are those of the question or of the answer."""
    messages, answers = _messages(opened), _answered(closed)
    listed = dict(kept["listed"])
    said: dict[str, Any] = kept.get("said_lists") or {}
    for begin, items in kept["listed"].items():
        for place, ours in ((_ASKED, messages), (_ANSWERED, answers)):
            before = next((before for before in _BEFORE if _is_same(items, ours, before)), None)
            if before is not None:
                said[begin] = [before, place]
                del listed[begin]
                break
    if said:
        kept["said_lists"] = said
        kept["listed"] = listed
        if not listed:
            del kept["listed"]


def _messages(opened: dict[str, Any]) -> list[Any] | None:
    request = opened.get("request")
    messages = request.get("messages") if type(request) is dict else None
    return messages if type(messages) is list else None


def _answered(closed: dict[str, Any]) -> list[Any] | None:
    response = closed.get("response")
    choices = response.get("choices") if type(response) is dict else None
    return [one.get("message") for one in choices if type(one) is dict] if type(choices) is list else None


def _is_same(items: list[dict[str, Any]], ours: Any, before: str) -> bool:
    if type(ours) is not list or len(items) != len(ours):
        return False
    return all(
        type(our) is dict
        and len(item) == len(our)
        and all(type(value) is str and item.get(before + name) == value for name, value in our.items())
        for item, our in zip(items, ours, strict=True)
    )


def put_back(kept: dict[str, Any], opened: dict[str, Any], closed: dict[str, Any]) -> dict[str, Any]:
    """Return what was kept, whole."""
    if lists := kept.get("said_lists"):
        listed = dict(kept.get("listed") or {})
        for begin, (before, place) in lists.items():
            ours = _at(_ASKED, opened, closed) if place == _ASKED else _answers(closed)
            listed[begin] = [{before + name: value for name, value in our.items()} for our in ours]
        kept = {name: value for name, value in kept.items() if name != "said_lists"} | {"listed": listed}
    said = kept.get("said")
    if said is None:
        return kept
    whole = {name: value for name, value in kept.items() if name != "said"}
    attributes, formed = dict(whole.get("attributes") or {}), dict(whole.get("json") or {})
    for name, place in said.items():
        if type(place) is str:
            attributes[name] = _at(place, opened, closed)
        else:
            formed[name] = [place[0], _at(place[1], opened, closed)]
    if attributes:
        whole["attributes"] = attributes
    if formed:
        whole["json"] = formed
    return whole


def _places(opened: dict[str, Any], closed: dict[str, Any]) -> dict[str | int, str]:
    """Return where a question and an answer have their texts, and by their identity their objects."""
    places: dict[str | int, str] = {}
    for name, value in opened.get("attributes", _NOTHING).items():
        _note(places, f"opened/attributes/{_escaped(name)}", value)
    _note(places, "opened/input", opened.get("input"))
    _note(places, "closed/output", closed.get("output"))
    request, response = opened.get("request"), closed.get("response")
    if type(request) is dict:
        _note(places, "opened/request", request)
        messages = request.get("messages")
        if type(messages) is list:
            for number in range(max(0, len(messages) - _LAST), len(messages)):
                if type(message := messages[number]) is dict:
                    _note(places, f"opened/request/messages/{number}/content", message.get("content"))
        for name in ("input", "tools"):
            _note(places, f"opened/request/{name}", request.get(name))
    if type(response) is dict:
        _note(places, "closed/response", response)
        choices = response.get("choices")
        for number, choice in enumerate(choices if type(choices) is list else ()):
            if type(choice) is dict and type(message := choice.get("message")) is dict:
                _note(places, f"closed/response/choices/{number}/message/content", message.get("content"))
    return places


def _note(places: dict[str | int, str], place: str, value: Any) -> None:
    kind = type(value)
    if kind is str:
        if len(value) >= _CHARACTERS_MIN:
            places.setdefault(value, place)
    elif kind is dict or kind is list:
        places.setdefault(id(value), place)


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def _answers(closed: dict[str, Any]) -> list[dict[str, Any]]:
    return [one["message"] for one in closed["response"]["choices"]]


def _at(place: str, opened: dict[str, Any], closed: dict[str, Any]) -> Any:
    first, *parts = place.split("/")
    found: Any = opened if first == "opened" else closed
    for part in parts:
        found = found[int(part)] if type(found) is list else found[part.replace("~1", "/").replace("~0", "~")]
    return found
