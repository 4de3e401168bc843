"""Say what a model was asked and what it answered, in the form of a chat completion."""

from __future__ import annotations

from typing import Any

import orjson

from playhead.event.payload import as_fields
from playhead.ingest.otlp import bodies, contents, events, messages, offered
from playhead.ingest.otlp.conventions.base import EMBEDDINGS, PARAMETERS
from playhead.ingest.otlp.messages import Message
from playhead.ingest.otlp.told import Told

_TALK = ("messages", "input", "contents", "prompts", "prompt")
_OWN_WORDS = {"tool_call": "tool_calls", "tool-calls": "tool_calls"}  # by which some call how an answer ended
_GOOGLE = ("gcp.", "google", "gemini", "vertex")
_COUNTS = (("input", "input_tokens"), ("output", "output_tokens"), ("cached", "cached_tokens"),
           ("reasoning", "reasoning_tokens"))  # fmt: skip
_PARAMETERS = {f"parameter.{name}": name for name in PARAMETERS}


class Exchange:
    """What was asked and answered."""

    __slots__ = ("answered_model", "finish", "model", "operation", "provider", "request", "response", "response_id",
                 "richness", "usage")  # fmt: skip

    def __init__(self, told: Told, role: str) -> None:
        said = events.Conversation(told)
        self.provider = _provider(told)
        embeddings = role == EMBEDDINGS
        self.request = _embeddings_asked(told) if embeddings else _request(told, said)
        self.response = _embeddings_answered(told) if embeddings else _response(told, said)
        model = told.text("model")
        asked = self.request.get("model")
        if told.names.get("model") == "llm.model_name":  # OpenInference puts there who answered, once it is known
            model = None
            asked = asked or _field(told.of("parameters"), "model")
        if model is None and type(asked) is str:
            model = asked
        self.model = model or told.text("model")
        if self.model is not None:
            self.request = {"model": self.model} | self.request | {"model": self.model}
        answered = told.text("answered_model") or self.response.get("model")
        self.answered_model = answered if type(answered) is str else None
        id = told.text("response_id") or self.response.get("id")
        self.response_id = id if type(id) is str and id else None
        self.finish = _finish(told, self.response)
        _complete(self.response, self.response_id, self.answered_model, self.finish)
        operation = told.span.attributes.get("gen_ai.operation.name")
        self.operation = "embeddings" if embeddings else operation if type(operation) is str and operation else "chat"
        self.usage = _usage(told)
        self.richness = (
            8 * _has_answer(self.response)
            + 4 * bool(self.request.get("messages") or self.request.get("input"))
            + 2 * bool(self.request.get("tools"))
            + bool(self.usage)
        )


def _has_answer(response: dict[str, Any]) -> bool:
    choices = response.get("choices")
    if type(choices) is list:
        return any(type(one) is dict and one.get("message") for one in choices)
    return bool(response.get("data"))


def _provider(told: Told) -> str | None:
    said = told.text("provider")
    if said is None:
        return None
    said = said.lower()
    if told.names.get("provider") == "ai.model.provider":
        said = said.split(".")[0]  # Vercel adds which of its interfaces: openai.chat, anthropic.messages
    return "google" if said.startswith(_GOOGLE) else said


def _request(told: Told, said: events.Conversation) -> dict[str, Any]:
    base: dict[str, Any] = bodies.request(_body(told, "request")) if "request" in told.names else {}
    if "input" in told.names and "messages" not in base:
        given = told.of("input")
        if given is not None and (type(given) is not dict or any(given.get(name) is not None for name in _TALK)):
            base = {**bodies.request(given), **base}
    asked = told.of("asked_messages")
    talk: list[Message] | None = None
    if type(asked) is list:
        talk = messages.chat(asked)
    elif base.get("messages") and type(told.of("input")) is not str:
        talk = base["messages"]
    elif told.numbered_names:
        talk = messages.chat([_spelled_out(one) for one in told.numbered("asked_messages")])
    talk = talk or base.get("messages") or said.asked  # a bare text may be no more than the last thing that was said
    if instructions := told.of("instructions"):
        system = messages.chat([{"role": "system", "content": instructions}])
        talk = system + [one for one in talk if one not in system]
    tools = offered.definitions(_tools(told)) or base.get("tools")
    out = {}
    if "parameters" in told:
        more = told.of("parameters")
        out = bodies.parameters(more)
        tools = tools or offered.definitions(_field(more, "tools"))
    if base:
        out |= {key: base[key] for key in base if key not in ("messages", "tools")}
    if not _PARAMETERS.keys().isdisjoint(told.names):
        for meaning, name in _PARAMETERS.items():
            if meaning in told.names:
                out[name] = told.of(meaning)
    if out.get("stream") is False:
        del out["stream"]
    request: dict[str, Any] = {}
    if talk:
        request["messages"] = talk
    if tools:
        request["tools"] = tools
    return {**request, **out} if out else request


def _body(told: Told, meaning: str) -> Any:
    body = told.of(meaning)
    return body if type(body) is dict else None


def _field(value: Any, name: str) -> Any:
    return value.get(name) if type(value) is dict else None


def _tools(told: Told) -> Any:
    tools = told.of("tools")
    if type(tools) is list or not told.numbered_names:
        return tools
    spread = told.numbered("tools")
    return [
        contents.parsed_or(one["json_schema"]) if type(one) is dict and "json_schema" in one else _with_schema(one)
        for one in spread
    ]


def _with_schema(one: Any) -> Any:
    if type(one) is dict and type(one.get("parameters")) is str:
        return {**one, "parameters": contents.parsed_or(one["parameters"])}
    return one


def _spelled_out(one: Any) -> Any:
    """Return a message of older Traceloop, whose content may be a text of parts; and of OpenInference's function."""
    if type(one) is not dict:
        return one
    said = one.get("content")
    if type(said) is str and said[:1] == "[":
        read = contents.parsed(said)
        if type(read) is list and read and all(type(part) is dict and type(part.get("type")) is str for part in read):
            return {**one, "content": read}
    if type(name := one.get("function_call_name")) is str and not one.get("tool_calls"):
        return {**one, "tool_calls": [{"name": name, "arguments": one.get("function_call_arguments_json")}]}
    return one


def _response(told: Told, conversation: events.Conversation) -> dict[str, Any]:
    base: dict[str, Any] = bodies.response(_body(told, "response")) if "response" in told.names else {}
    if not base and "output" in told.names:
        base = bodies.response(told.of("output"))
    said = told.of("said_messages")
    choices: list[dict[str, Any]] = []
    if type(said) is list:
        choices = _choices(said)
    elif not base.get("choices") or type(told.of("output")) is str:
        if told.numbered_names:
            choices = _choices(told.numbered("said_messages"))
        choices = choices or base.get("choices") or _in_pieces(told) or conversation.choices
    return {**base, "choices": choices} if choices else base


def _choices(said: list[Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for one in said:
        made = messages.chat([{"role": "assistant", **one} if type(one) is dict and "role" not in one else one])
        if made:
            reason = one.get("finish_reason") if type(one) is dict else None
            reason = _OWN_WORDS.get(reason, reason) if type(reason) is str else None
            found.append(bodies.choice(made[-1], reason, len(found)))
    return found


def _in_pieces(told: Told) -> list[dict[str, Any]]:
    """Return the answer where its text, its calls and its thoughts are apart, as Vercel has them."""
    text, thing, thought = told.text("said_text"), told.text("said_object"), told.text("said_thoughts")
    asked = messages.calls(told.of("said_calls"))
    if text is None and thing is None and not asked:
        return []
    message: Message = {"role": "assistant", "content": text if text is not None else thing}
    if thought is not None:
        message["reasoning_content"] = thought
    if asked:
        message["tool_calls"] = asked
    return [bodies.choice(message, None)]


def _finish(told: Told, response: dict[str, Any]) -> str | None:
    said = told.of("finish")
    if type(said) is list:
        said = next((one for one in said if type(one) is str), None)
    if type(said) is not str or not said:
        choices = response.get("choices")
        first = choices[0] if type(choices) is list and choices else None
        said = first.get("finish_reason") if type(first) is dict else None
    if type(said) is not str:
        return None
    said = said.split(",")[0].strip()
    return _OWN_WORDS.get(said, said) or None


def _complete(response: dict[str, Any], id: str | None, model: str | None, finish: str | None) -> None:
    """Put into an answer what is said beside it."""
    if id is not None:
        response.setdefault("id", id)
    if model is not None:
        response.setdefault("model", model)
    choices = response.get("choices")
    if finish is None or "data" in response:
        return
    if not choices:
        response["choices"] = [bodies.choice(None, finish)]
    elif len(choices) == 1 and type(choices[0]) is dict and not choices[0].get("finish_reason"):
        response["choices"] = [{**choices[0], "finish_reason": finish}]


def _usage(told: Told) -> dict[str, Any]:
    counted = {name: number for name, meaning in _COUNTS if (number := bodies.count(told.of(meaning))) is not None}
    if "input" not in counted and "output" not in counted:
        for meaning in ("response", "output"):
            if meaning in told.names and (found := bodies.usage(told.of(meaning))) is not None:
                return {**as_fields(found), **counted}
    return counted


def _embeddings_asked(told: Told) -> dict[str, Any]:
    body = told.of("input")
    out = bodies.parameters(told.of("parameters"))
    if type(body) is dict and body.get("input") is not None:
        return {**out, **{name: value for name, value in body.items() if value is not None}}
    texts = told.of("embedded")
    if type(texts) is list:
        texts = [_unquoted(one) for one in texts]
    elif texts is not None:
        texts = [_unquoted(texts)]
    elif told.numbered_names:
        spread = told.numbered("embedded") or told.numbered("asked_messages")
        texts = [one.get("text", one.get("content")) for one in spread if type(one) is dict]
    if not texts and type(asked := told.of("asked_messages")) is list:
        texts = [one.get("content") for one in messages.chat(asked)]
    if not texts and body is not None:
        texts = body if type(body) is list else [body]
    return {"input": texts, **out} if texts else out


def _unquoted(one: Any) -> Any:
    """Return a text that was written as JSON, as Vercel does."""
    if type(one) is str and one[:1] in ('"', "["):
        try:
            return orjson.loads(one)
        except ValueError:
            return one
    return one


def _embeddings_answered(told: Told) -> dict[str, Any]:
    base = told.of("output")
    if type(base) is dict and type(base.get("data")) is list:
        return {name: value for name, value in base.items() if value is not None}
    vectors = told.of("vectors")
    found = [_unquoted(one) for one in vectors] if type(vectors) is list else []
    if vectors is not None and (not found or type(found[0]) is not list):
        found = [found or _unquoted(vectors)]
    if not found and told.numbered_names:
        found = [one["vector"] for one in told.numbered("embedded") if type(one) is dict and "vector" in one]
    return {"data": [{"index": number, "embedding": one} for number, one in enumerate(found)]} if found else {}
