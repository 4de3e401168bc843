"""Gather what a span and the log records beside it say, by meaning: one look at each attribute, in a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playhead.ingest.otlp import contents
from playhead.ingest.otlp.contents import NOT_JSON
from playhead.ingest.otlp.conventions import KINDS, KINDS_FIRST, NUMBERED, NUMBERED_BEGIN, TABLE, genai
from playhead.ingest.otlp.conventions.base import MODEL, STEP, TOOL
from playhead.ingest.otlp.naming import naming_of
from playhead.ingest.otlp.spans import LogRecord, Span

_NONE = type(None)
_NUMBERED_PARTS_MAX = 16  # of a name such as `llm.input_messages.0.message.role`
_NO_CONTAINERS = (str, int, float, bool, bytes)
_WRAPPERS = ("message", "tool_call", "message_content", "tool", "embedding")  # OpenInference puts around each item
_NAMES_A_TOOL = ("gen_ai.tool.name", "ai.toolCall.name", "tool.name")


class Told:
    """What a span says, by meaning (conventions/base.py)."""

    __slots__ = ("beside", "logs", "named", "names", "naming", "numbered_names", "span")

    def __init__(self, span: Span, logs: Sequence[LogRecord]) -> None:
        self.span = span
        self.logs = sorted(logs, key=_in_order) if len(logs) > 1 else logs
        attributes, naming = span.attributes, span.naming()
        if _NONE in set(map(type, attributes.values())):  # what has no value says nothing
            naming = naming_of(tuple(name for name, value in attributes.items() if value is not None))
        self.naming = naming
        self.names = naming.meanings  # meaning → the attribute that says it
        self.numbered_names = naming.numbered
        self.beside: dict[str, Any] = {}  # meaning → value, of log records
        if span.events or self.logs:
            details = [event.get("attributes", {}) for event in span.events if event["name"] == genai.DETAILS]
            details += [log.attributes for log in self.logs if event_of(log) == genai.DETAILS]
            for attributes in details:
                for name, value in attributes.items():
                    for meaning, _ in TABLE.get(name, ()):
                        if value is not None:
                            self.beside.setdefault(meaning, value)
        self.named: str | None = None  # what the span says that it is: `chat`, `LLM`

    def __contains__(self, meaning: str) -> bool:
        return meaning in self.names or meaning in self.beside

    def of(self, meaning: str) -> Any:
        """Return what is said, of a text of JSON the object or array that it is; None where nothing is."""
        name = self.names.get(meaning)
        if name is not None:
            found = self.span.attributes[name]
            return self.span.value(name) if type(found) is str and found[:1] in ("{", "[") else found
        if not self.beside:
            return None
        found = self.beside.get(meaning)
        if type(found) is str:
            read = contents.parsed(found)
            return found if read is NOT_JSON else read
        return found

    def text(self, meaning: str) -> str | None:
        """Return what is said where it is a text, exactly as it is; None for an empty one."""
        name = self.names.get(meaning)
        found = self.beside.get(meaning) if name is None else self.span.attributes[name]
        return found if type(found) is str and found else None

    def role(self) -> str:
        """Say whether the span is the call of a model, of a tool, or a step."""
        attributes = self.span.attributes
        for name in KINDS_FIRST:
            said = attributes.get(name)
            if type(said) is str and said:
                if self.named is None:
                    self.named = said
                role = KINDS[name].get(said) or KINDS[name].get(said.upper()) or KINDS[name].get(said.lower())
                if role is not None:
                    self.named = said
                    return role
        if self.named is not None:
            return STEP
        if "model" in self.names and not self.names["model"].startswith("ai."):
            return MODEL
        if any(type(attributes.get(name)) is str for name in _NAMES_A_TOOL):
            return TOOL
        if any(event_of(log) in (genai.DETAILS, genai.CHOICE) for log in self.logs):
            return MODEL
        return STEP

    def numbered(self, meaning: str) -> list[Any]:
        """Return the items that are spread over numbered attributes, in order."""
        if meaning not in self.naming.listed:
            return []
        attributes = self.span.attributes
        if (bare := self.naming.bare.get(meaning)) is not None:
            begin, items = bare
            made = [{field: attributes[name] for field, name in item} for item in items]
            if self.naming is self.span.naming():  # else the list has something without a value, which is kept beside
                self.span.items = {**self.span.items, begin: made}
            return made
        root: dict[str, Any] = {}
        for name in self.numbered_names:
            for begin in NUMBERED_BEGIN:
                if NUMBERED[begin] == meaning and name.startswith(begin):
                    _put(root, name[len(begin) :].split("."), attributes[name])
                    break
        found = _listed(root)
        return found if type(found) is list else []


def _in_order(log: LogRecord) -> tuple[int, int, str]:
    return log.time_ns, log.observed_ns, log.digest()


def event_of(log: LogRecord) -> str:
    """Return the name of the event that a log record is."""
    if log.event_name:
        return log.event_name
    named = log.attributes.get("event.name")
    return named if type(named) is str else ""


def _put(root: dict[str, Any], path: list[str], value: Any) -> None:
    if len(path) > _NUMBERED_PARTS_MAX:
        return
    here = root
    for part in path[:-1]:
        inner = here.get(part)
        if type(inner) is not dict:
            inner = here[part] = {}
        here = inner
    if type(here.get(path[-1])) is not dict:
        here[path[-1]] = value


def _listed(value: Any) -> Any:
    """Make lists of objects whose keys are numbers, and take off what OpenInference puts around items."""
    if type(value) is not dict:
        return value
    made = {key: _listed(item) for key, item in value.items()}
    if made and all(key.isascii() and key.isdigit() and len(key) < 10 for key in made):
        return [_bare(made[key]) for key in sorted(made, key=int)]
    return made


def _bare(item: Any) -> Any:
    if type(item) is dict and len(item) == 1:
        for name in _WRAPPERS:
            if type(item.get(name)) is dict:
                return item[name]
    return item
