"""Say of a call of a model whether it leaves open what was used."""

from __future__ import annotations

import re
from typing import Any

_NO_TALK = re.compile("embed|count", re.IGNORECASE)  # operations that say nothing, and of which few count tokens
_NEVER_SENT = ("Connect", "Pool")  # in the names of timeouts before a question was on its way
_ANSWERED = range(100, 400)  # status of HTTP


def is_talk(operation: Any) -> bool:
    """Say whether an operation is one whose answers say their tokens."""
    return not isinstance(operation, str) or _NO_TALK.search(operation) is None


def is_silent(data: dict[str, Any], counted: bool) -> bool:
    """Say whether nobody knows what a call used; `counted` says that tokens were told.

    A question that was refused used nothing. One that was answered without a word of tokens, cancelled, cut off
    part-way or not answered in time may have been billed.
    """
    if counted or data.get("status") != "error":
        return not counted
    http, error = data.get("http"), data.get("error")
    if isinstance(http, dict) and http.get("status") is not None:
        return type(http["status"]) is int and http["status"] in _ANSWERED
    kind = error.get("type") if isinstance(error, dict) else None
    name = kind.rpartition(".")[2] if isinstance(kind, str) else ""
    return "Timeout" in name and not any(word in name for word in _NEVER_SENT)
