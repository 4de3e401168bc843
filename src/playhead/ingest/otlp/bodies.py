"""Read requests and answers as providers and frameworks have them, and bring them into the form of chat completions."""

from __future__ import annotations

from typing import Any

from playhead.event.payload import Usage
from playhead.ingest.otlp import messages, offered
from playhead.ingest.otlp.messages import Message

_TALK = ("messages", "input", "contents", "prompts", "prompt")  # where a request has its messages
_SYSTEM = ("system", "instructions", "systemInstruction", "system_instruction")
_NOT_PARAMETERS = frozenset({*_TALK, *_SYSTEM, "model", "tools", "functions", "_type", "model_name", "stop"})
_ANSWERS = ("choices", "candidates", "output", "generations", "content", "message", "messages", "data", "text",
            "completion")  # fmt: skip


def request(body: Any) -> dict[str, Any]:
    """Return a request with its messages and tools in the form of chat completions, all else as it is; {} for none."""
    if type(body) is list:
        return {"messages": messages.chat(body)}
    if type(body) is not dict:
        return {"messages": [{"role": "user", "content": body}]} if type(body) is str and body else {}
    out = {name: value for name, value in body.items() if name not in _NOT_PARAMETERS and value is not None}
    if body.get("stop") is not None:
        out["stop"] = body["stop"]
    talk: list[Message] = []
    for name in _SYSTEM:
        if said := body.get(name):
            made = messages.chat([{"role": "system", **_as_content(said)}])
            talk += made
    for name in _TALK:
        if (told := body.get(name)) is not None:
            talk += messages.chat(told)
            break
    if type(body.get("model")) is str:
        out = {"model": body["model"], **out}
    if talk:
        out["messages"] = talk
    tools = offered.definitions(body.get("tools") or body.get("functions"))
    if tools:
        out["tools"] = tools
    return out


def _as_content(said: Any) -> dict[str, Any]:
    if type(said) is dict:
        return {"parts": said["parts"]} if "parts" in said else {"content": messages.text_of(said)}
    return {"content": said}


def parameters(body: Any) -> dict[str, Any]:
    """Return the parameters of a request, without its messages and tools."""
    if type(body) is not dict:
        return {}
    kept = {name: value for name, value in body.items() if name not in _NOT_PARAMETERS and value is not None}
    return kept | ({"stop": body["stop"]} if body.get("stop") is not None else {})


def response(body: Any) -> dict[str, Any]:
    """Return an answer in the form of a chat completion: id, model, choices; {} where it is none."""
    if type(body) is str:
        return {"choices": [choice({"role": "assistant", "content": body}, None)]} if body else {}
    if type(body) is list:
        told = messages.chat(body)
        return {"choices": [choice(told[-1], None)]} if told else {}
    if type(body) is not dict or not any(body.get(name) is not None for name in _ANSWERS):
        return {}
    choices = body.get("choices")
    if type(choices) is list:
        return {**body, "choices": [_as_chat(one) for one in choices]}
    out = {name: body[name] for name in ("id", "model") if type(body.get(name)) is str}
    if type(body.get("data")) is list and "output" not in body:  # embeddings
        return {**out, "data": body["data"]}
    if type(found := body.get("candidates")) is list:
        return {**out, **_gemini(body, found)}
    if type(found := body.get("generations")) is list:
        return {**_langchain(found), **out}
    reason = next((body[name] for name in ("stop_reason", "finish_reason", "done_reason", "finishReason")
                   if type(body.get(name)) is str), None)  # fmt: skip
    said = _said(body)
    return {**out, "choices": [choice(said, reason)]} if said else out


def _said(body: dict[str, Any]) -> Message | None:
    if type(message := body.get("message")) is dict:
        found = messages.chat([{"role": "assistant", **message}])
    elif type(message) is str:
        return {"role": "assistant", "content": message}
    elif type(body.get("output")) is list:
        found = [one for one in messages.chat(body["output"]) if one["role"] == "assistant"]
    elif body.get("content") is not None or body.get("tool_calls"):
        found = messages.chat([{"role": "assistant", **_without_kind(body)}])
    elif type(body.get("messages")) is list:
        found = messages.chat(body["messages"])
    else:
        output = body.get("output")
        if type(output) is dict:
            found = messages.chat([output])
        else:
            text = next((body[name] for name in ("output", "text", "completion") if type(body.get(name)) is str), None)
            return None if text is None else {"role": "assistant", "content": text}
    return found[-1] if found else None


def _without_kind(body: dict[str, Any]) -> dict[str, Any]:
    return {name: body[name] for name in ("role", "content", "tool_calls", "additional_kwargs") if body.get(name)}


def _as_chat(one: Any) -> Any:
    if type(one) is not dict or type(message := one.get("message")) is not dict:
        return one
    made = messages.chat([{"role": "assistant", **message}])
    return {**one, "message": made[-1]} if made else one


def _gemini(body: dict[str, Any], candidates: list[Any]) -> dict[str, Any]:
    choices: list[dict[str, Any]] = []
    for one in candidates:
        if type(one) is not dict:
            continue
        content = one.get("content")
        said = messages.chat([{"role": "model", **content}]) if type(content) is dict else []
        reason = one.get("finishReason", one.get("finish_reason"))
        choices.append(choice(said[-1] if said else None, reason, len(choices)))
    out: dict[str, Any] = {"choices": choices}
    for name, to in (("responseId", "id"), ("modelVersion", "model")):
        if type(body.get(name)) is str:
            out[to] = body[name]
    return out


def _langchain(generations: list[Any]) -> dict[str, Any]:
    """Read what LangChain says of an answer: of each prompt a list of generations, of which the first prompt counts."""
    first = generations[0] if generations and type(generations[0]) is list else generations
    out: dict[str, Any] = {}
    choices: list[dict[str, Any]] = []
    for one in first:
        if type(one) is not dict:
            continue
        message = one.get("message")
        inner = message.get("kwargs", message.get("data", message)) if type(message) is dict else None
        about = inner.get("response_metadata") if type(inner) is dict else None
        about = about if type(about) is dict else {}
        info = one.get("generation_info")
        reason = about.get("finish_reason") or about.get("stop_reason")
        if reason is None and type(info) is dict:
            reason = info.get("finish_reason")
        said = messages.chat([message]) if type(message) is dict else []
        text = one.get("text")
        told = said[-1] if said else {"role": "assistant", "content": text} if type(text) is str else None
        choices.append(choice(told, reason, len(choices)))
        for name, to in (("id", "id"), ("model_name", "model")):
            if to not in out and type(about.get(name)) is str:
                out[to] = about[name]
    return {**out, "choices": choices}


def choice(message: Message | None, reason: Any, index: int = 0) -> dict[str, Any]:
    """Return one choice of a chat completion."""
    out: dict[str, Any] = {"index": index}
    if message is not None:
        out["message"] = message
    if type(reason) is str and reason:
        out["finish_reason"] = reason
    return out


def count(value: Any) -> int | None:
    """Return a number of tokens."""
    if type(value) is int and value >= 0:
        return value
    if type(value) is float and value.is_integer() and 0 <= value < 2**53:
        return int(value)
    return int(value) if type(value) is str and value.isascii() and value.isdigit() and len(value) < 16 else None


def usage(body: Any) -> Usage | None:
    """Count the tokens that an answer tells of."""
    if type(body) is not dict:
        return None
    said = next((body[name] for name in ("usage", "usage_metadata", "usageMetadata", "token_usage")
                 if type(body.get(name)) is dict), None)  # fmt: skip
    if said is None:
        return _langchain_usage(body)
    into, out = said.get("prompt_tokens_details"), said.get("completion_tokens_details")
    into = next((one for one in (into, said.get("input_tokens_details"), said.get("input_token_details"))
                 if type(one) is dict), {})  # fmt: skip
    out = next((one for one in (out, said.get("output_tokens_details"), said.get("output_token_details"))
                if type(one) is dict), {})  # fmt: skip
    read, written = count(said.get("cache_read_input_tokens")), count(said.get("cache_creation_input_tokens"))
    came = _first(said, "prompt_tokens", "input_tokens", "promptTokenCount", "prompt_token_count")
    if came is not None and "prompt_tokens" not in said:
        came += (read or 0) + (written or 0)  # Anthropic counts what a cache gave or took beside the input
    return _counted(
        came,
        _first(said, "completion_tokens", "output_tokens", "candidatesTokenCount", "candidates_token_count"),
        read if read is not None else _first(into, "cached_tokens", "cache_read"),
        _first(out, "reasoning_tokens", "reasoning"),
    )


def _langchain_usage(body: dict[str, Any]) -> Usage | None:
    more = body.get("llm_output")
    if type(more) is dict and (found := usage(more)) is not None:
        return found
    generations = body.get("generations")
    while type(generations) is list and generations:
        generations = generations[0]
    message = generations.get("message") if type(generations) is dict else body.get("message")
    inner = message.get("kwargs", message.get("data")) if type(message) is dict else None
    return usage({"usage": inner.get("usage_metadata")}) if type(inner) is dict else None


def _first(said: dict[str, Any], *names: str) -> int | None:
    return next((number for name in names if (number := count(said.get(name))) is not None), None)


def _counted(came: int | None, went: int | None, cached: int | None, thought: int | None) -> Usage | None:
    if came is None and went is None and cached is None and thought is None:
        return None
    return Usage(input=came, output=went, cached=cached, reasoning=thought)
