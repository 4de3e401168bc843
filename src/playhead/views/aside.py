"""Tell what the traffic with a model says from what it says of itself: ids, times, bills.

A provider gives every answer and every call of a tool a new id, and the next request has them in it. Two runs that said
the same differ in all of them; so ids are taken for the first, the second, … that occurred, and what an answer tells of
itself is left out. That is so where a provider says such things, and nowhere else: what an agent made up, what
is given to a tool, and what a user says of a request are not looked into. An `id` there is the agent's.
"""

from __future__ import annotations

from typing import Any

# What an answer says of itself, and not to the agent.
_OF_THE_ANSWER = frozenset(
    {"completed_at", "created", "created_at", "done_reason", "eval_count", "eval_duration", "load_duration", "model"}
    | {"modelVersion", "prompt_eval_count", "prompt_eval_duration", "responseId", "service_tier"}
    | {"system_fingerprint", "total_duration", "usage", "usageMetadata"}
)
# What a request tells its provider, and no model: no part of a key either. Each dialect has some of these.
UNASKED = frozenset({"client_metadata", "labels", "metadata", "prompt_cache_key"})
# An answer of a provider has one of these, with more in it. Events of a stream have one in one of `_ANSWERS`.
_SHELL = frozenset(
    {"candidates", "choices", "content", "content_block", "data", "delta", "embedding", "embeddings", "item"}
    | {"message", "output", "part", "response", "results", "usage", "usageMetadata"}
)
_ANSWERS = frozenset({"message", "response"})
_SEALED = frozenset({"encrypted_content", "signature"})  # beside what was said: for the provider's eyes
_SEALED_ANYWHERE = "thoughtSignature"
_IDS = frozenset({"call_id", "id", "item_id", "tool_call_id", "tool_use_id"})
_BESIDE = frozenset({"function", "object", "role", "type"})  # whose id is the provider's, where it speaks
_BEFORE = "previous_response_id"
# Where a provider speaks: the way from a request or an answer down to what was said.
_SPEAKS = frozenset(
    {"candidates", "choices", "content", "content_block", "contents", "delta", "functionCall", "functionResponse"}
    | {"input", "item", "message", "messages", "output", "part", "parts", "response", "tool_calls"}
)
_GIVEN = frozenset({"args", "arguments", "input"})  # to a tool; as a list `input` is what a conversation is
_CALLED = frozenset({"functionCall", "functionResponse"})  # that have ids without a type


def said(data: dict[str, Any]) -> dict[str, Any]:
    """Return what the answer of a model says to the agent: without its ids, its times and its bill."""
    found: dict[str, Any] = {"response": _Ids().answered(data.get("response"))}
    if isinstance(data.get("error"), dict):
        found["error"] = data["error"].get("message")
    return found


def asked(request: Any) -> Any:
    """Return what a request asks of a model, with every id of the provider's replaced by its number in the request."""
    return _Ids().asked(request)


class _Ids:
    """Number the ids of one value in the order in which they occur."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def answered(self, response: Any) -> Any:
        if isinstance(response, list):  # a stream, event by event
            return [self.answered(part) for part in response]
        if not isinstance(response, dict):
            return response
        if not _is_of_provider(response):
            return response
        found = self._plain(response)
        for name in _ANSWERS & found.keys():
            if isinstance(part := found[name], dict) and not _BESIDE.isdisjoint(part):
                found[name] = _without_itself(part)
        return _without_itself(found)

    def asked(self, request: Any) -> Any:
        if not isinstance(request, dict):
            return self._inside(request)
        found = {
            name: self._inside(value) if name in _SPEAKS and isinstance(value, list) else value
            for name, value in request.items()
        }
        if isinstance(before := found.get(_BEFORE), str):
            found[_BEFORE] = self._number(before)
        return found

    def _inside(self, value: Any, called: bool = False) -> Any:
        if isinstance(value, list):
            return [self._inside(part) for part in value]
        return self._plain(value, called) if isinstance(value, dict) else value

    def _plain(self, value: dict[str, Any], called: bool = False) -> dict[str, Any]:
        has_id = called or not _BESIDE.isdisjoint(value)
        found: dict[str, Any] = {}
        for name, part in value.items():
            if name == _SEALED_ANYWHERE or (has_id and name in _SEALED):
                continue
            if isinstance(part, str) and (name == _BEFORE or (has_id and name in _IDS)):
                found[name] = self._number(part)
            elif name not in _SPEAKS or (name in _GIVEN and isinstance(part, dict)) or (called and name == "response"):
                found[name] = part
            else:
                found[name] = self._inside(part, name in _CALLED)
        return found

    def _number(self, id: str) -> int:
        return self._numbers.setdefault(id, len(self._numbers) + 1)


def _is_of_provider(response: dict[str, Any]) -> bool:
    """Say whether an answer has the form in which providers answer, and not one that an agent made up."""
    return (
        any(isinstance(response[name], (dict, list)) for name in _SHELL & response.keys())
        or "done" in response
        or ("delta" in response and isinstance(response.get("type"), str))
    )


def _without_itself(answer: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in answer.items() if name not in _OF_THE_ANSWER}
