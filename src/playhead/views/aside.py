"""Tell what the traffic with a model says from what it says of itself: ids, times, bills.

A provider gives every answer and every call of a tool a new id, and the next request has them in it. Two runs that said
the same differ in all of them; so ids are taken for the first, the second, … that occurred, and what an answer tells of
itself is left out. What is given to a tool is not looked into: an `id` there is the agent's.
"""

from __future__ import annotations

from typing import Any

# What an answer says of itself, and not to the agent.
_OF_THE_ANSWER = frozenset(
    {"completed_at", "created", "created_at", "done_reason", "encrypted_content", "eval_count", "eval_duration"}
    | {"load_duration", "model", "modelVersion", "prompt_eval_count", "prompt_eval_duration", "responseId"}
    | {"service_tier", "signature", "system_fingerprint", "thoughtSignature", "total_duration", "usage"}
    | {"usageMetadata"}
)
# What a request tells its provider, and no model: no part of a key either. Each dialect has some of these.
UNASKED = frozenset({"client_metadata", "labels", "metadata", "prompt_cache_key"})
_IDS = frozenset({"call_id", "item_id", "previous_response_id", "tool_call_id", "tool_use_id"})
_HAS_ID = frozenset({"function", "object", "role", "type"})  # an `id` beside one of these is the provider's
_GIVEN = frozenset({"args", "arguments", "input"})  # to a tool; as `input` also what a conversation is


def said(data: dict[str, Any]) -> dict[str, Any]:
    """Return what the answer of a model says to the agent: without its ids, its times and its bill."""
    found: dict[str, Any] = {"response": _Ids().plain(data.get("response"), _OF_THE_ANSWER)}
    if isinstance(data.get("error"), dict):
        found["error"] = data["error"].get("message")
    return found


def asked(request: Any) -> Any:
    """Return what a request asks of a model, with every id of the provider's replaced by its number in the request."""
    return _Ids().plain(request, frozenset())


class _Ids:
    """Number the ids of one value in the order in which they occur."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def plain(self, value: Any, left_out: frozenset[str]) -> Any:
        if isinstance(value, list):
            return [self.plain(part, left_out) for part in value]
        if not isinstance(value, dict):
            return value
        has_id = not _HAS_ID.isdisjoint(value)
        found: dict[str, Any] = {}
        for name, part in value.items():
            if name in left_out:
                continue
            if isinstance(part, str) and (name in _IDS or (has_id and name == "id")):
                found[name] = self._numbers.setdefault(part, len(self._numbers) + 1)
            elif name in _GIVEN and isinstance(part, dict):
                found[name] = part
            else:
                found[name] = self.plain(part, left_out)
        return found
