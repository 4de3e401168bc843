"""Describe what an agent was asked: the request envelope and its hash."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from playhead.errors import UsageError
from playhead.event.keys import envelope_hash


@dataclass(frozen=True)
class Envelope:
    """A request: an intent, its whole payload, and metadata.

    `id`, `time` and `trace` are the envelope's own: two requests that differ only in them are the same request and have
    the same hash.
    """

    intent: str
    payload: Any = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    id: str | None = None
    time: str | None = None
    trace: Any = None

    def as_dict(self) -> dict[str, Any]:
        """Return the envelope as it is recorded."""
        out: dict[str, Any] = {"intent": self.intent, "payload": self.payload, "metadata": dict(self.metadata)}
        for name in ("id", "time", "trace"):
            if getattr(self, name) is not None:
                out[name] = getattr(self, name)
        return out

    @classmethod
    def of(cls, value: Any, intent: str) -> Envelope:
        """Return an envelope for whatever was given as the input of a run."""
        return value if isinstance(value, cls) else cls(intent, value)

    @classmethod
    def of_call(cls, agent: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Envelope:
        """Return the request that calling an agent with these arguments would be, to look it up before it is run."""
        if not hasattr(agent, "playhead_request"):
            agent = getattr(agent, "__call__", agent)  # noqa: B004 - an object whose class is the agent
        describe = getattr(agent, "playhead_request", None)
        if describe is None:
            raise UsageError(f"{agent!r} is not an agent", hint="Decorate it with @playhead.agent.")
        if (owner := getattr(agent, "__self__", None)) is not None:
            args = (owner, *args)
        inspect.signature(describe.function).bind(*args, **kwargs)  # TypeError, as the call itself would raise
        return cls.of(describe(args, kwargs), describe.intent)

    @classmethod
    def from_dict(cls, value: Any) -> Envelope:
        """Read an envelope from JSON, for instance from a file. `intent` may be a name or `{"name": …}`."""
        if not isinstance(value, Mapping) or "intent" not in value:
            raise UsageError(
                "an envelope is an object with an `intent`",
                hint='For instance {"intent": "fix-login", "payload": {"issue": 1842}, "metadata": {}}.',
            )
        intent = value["intent"]
        if isinstance(intent, Mapping):
            intent = intent.get("name")
        unknown = set(value) - {"intent", "payload", "metadata", "id", "time", "trace"}
        if not isinstance(intent, str) or unknown:
            wrong = f"unknown fields: {', '.join(sorted(unknown))}" if unknown else "the intent has no name"
            raise UsageError(f"this is not a request envelope: {wrong}")
        metadata = value.get("metadata") or {}
        if not isinstance(metadata, Mapping):
            raise UsageError("the metadata of an envelope is an object")
        return cls(intent, value.get("payload"), metadata, value.get("id"), value.get("time"), value.get("trace"))


def hash_of(recorded: Mapping[str, Any]) -> str:
    """Return the hash of an envelope as recorded: plain, redacted, resolved."""
    return envelope_hash(str(recorded.get("intent")), recorded.get("payload"), recorded.get("metadata") or {})
