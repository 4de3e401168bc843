"""Hold spans and log records as they came, whoever sent them and in whichever encoding.

What a line of a timeline says by itself (the ids of span and parent, when it began and ended) is not kept twice:
`kept()` is the rest, and `of_kept` makes the same span of both.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec

from playhead.ingest.otlp import contents
from playhead.ingest.otlp.contents import NOT_JSON
from playhead.ingest.otlp.naming import Naming, naming_of

Repeated = list[list[Any]]  # [name, value] of attributes whose name came again later: the last one counts


class Emitter(msgspec.Struct, eq=False):
    """Say who sent a span: the resource (a process, a service) and the instrumentation in it."""

    resource: dict[str, Any]
    scope: dict[str, Any]
    known: str = ""  # the digest, once somebody asked for it
    groups: Any = None  # the run that it names, once somebody asked

    def digest(self) -> str:
        """Return a digest of both, in hex."""
        if not self.known:
            self.known = contents.digest([self.resource, self.scope]).hex()
        return self.known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Emitter) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())

    def as_dict(self) -> dict[str, Any]:
        """Return what is to be stored."""
        return {"resource": self.resource, "scope": self.scope}

    @classmethod
    def of_dict(cls, stored: dict[str, Any]) -> Emitter:
        """Return the emitter that was stored."""
        return cls(stored.get("resource") or {}, stored.get("scope") or {})

    def attribute(self, name: str) -> Any:
        """Return an attribute of the resource."""
        return (self.resource.get("attributes") or {}).get(name)


NOBODY = Emitter({}, {})


class _Record(msgspec.Struct, eq=False, kw_only=True, gc=False):
    """What spans and log records have in common."""

    attributes: dict[str, Any] = {}
    repeated: Repeated = []
    flags: int = 0
    dropped_attributes: int = 0
    unknown: dict[str, Any] = {}  # fields of a JSON body that this Playhead does not know
    emitter: Emitter = msgspec.field(default_factory=lambda: NOBODY)
    texts: dict[str, Any] = {}  # attributes that are texts of JSON, read once
    items: dict[str, list[dict[str, Any]]] = {}  # by what they begin with, messages of numbered attributes, read once
    named: Naming | None = None  # what its names say, once somebody asked

    def naming(self) -> Naming:
        """Return what the names of its attributes say."""
        if self.named is None:
            self.named = naming_of(tuple(self.attributes))
        return self.named

    def value(self, name: str) -> Any:
        """Return an attribute, and of a text of JSON the object or array that it is."""
        found = self.attributes.get(name)
        if type(found) is not str:
            return found
        read = self.read(name, found)
        return found if read is NOT_JSON else read

    def read(self, name: str, text: str) -> Any:
        """Return what a text of JSON is, NOT_JSON for another."""
        read = self.texts.get(name)
        if read is None:
            read = self.texts[name] = contents.parsed(text)
        return read

    def _keep_common(self, out: dict[str, Any], without: Collection[str] = ()) -> None:
        """Keep what is not told elsewhere; `without` are lists that are."""
        plain: dict[str, Any] = {}
        formed: dict[str, Any] = {}
        attributes, texts, naming = self.attributes, self.texts, self.naming()
        for name in naming.others:
            value = attributes[name]
            if type(value) is str and value[:1] in ("{", "["):
                read = texts.get(name) or self.read(name, value)
                if read is not NOT_JSON:
                    form = contents.formed(value, read)
                    if form is not None:
                        formed[name] = form
                        continue
            plain[name] = value
        listed = {
            begin: [{rest: attributes[name] for rest, name in item} for item in items]
            for begin, items in naming.lists
            if begin not in without
        }
        for name in naming.loose:
            plain[name] = attributes[name]
        if listed:
            out["listed"] = listed
        if plain:
            out["attributes"] = plain
        if formed:
            out["json"] = formed
        if self.repeated:
            out["repeated"] = self.repeated
        if self.flags:
            out["flags"] = self.flags
        if self.dropped_attributes:
            out["dropped_attributes"] = self.dropped_attributes
        if self.unknown:
            out["unknown"] = self.unknown


def _common_of(kept: dict[str, Any]) -> dict[str, Any]:
    formed = kept.get("json") or {}
    attributes = {**(kept.get("attributes") or {}), **{name: contents.unformed(one) for name, one in formed.items()}}
    for begin, items in (kept.get("listed") or {}).items():
        for number, item in enumerate(items):
            attributes.update((f"{begin}{number}.{rest}", value) for rest, value in item.items())
    names = ("repeated", "flags", "dropped_attributes", "unknown")
    common: dict[str, Any] = {name: kept[name] for name in names if name in kept}
    return {"attributes": attributes, **common}


class Span(_Record, eq=False, kw_only=True, gc=False):
    """One span."""

    trace: str  # 32 letters, hex
    span: str  # 16
    parent: str | None = None
    name: str = ""
    kind: int = 0
    start_ns: int = 0
    end_ns: int = 0
    status_code: int = 0  # 0 unset, 1 ok, 2 error
    status_message: str = ""
    events: list[dict[str, Any]] = []  # name, time_unix_nano, attributes, repeated, dropped_attributes
    links: list[dict[str, Any]] = []  # trace, span, trace_state, attributes, repeated, flags, dropped_attributes
    trace_state: str = ""
    dropped_events: int = 0
    dropped_links: int = 0
    unfit_parent: str | None = None  # what it says of its parent, where nothing can be that: itself, a wrong length
    known: str = ""  # the digest, once somebody asked for it
    told: Any = None  # what it is by itself, once somebody asked (facts.py)
    rest: Any = None  # what is kept of it beside that, once that was prepared

    def kept(self, without: Collection[str] = ()) -> dict[str, Any]:
        """Return everything that span id, parent id, and start and end in microseconds do not say.

        `without` are lists that are spread over numbered names, by what these begin with, and are kept elsewhere.
        """
        out: dict[str, Any] = {"trace": self.trace}
        if self.name:
            out["name"] = self.name
        if self.kind:
            out["kind"] = self.kind
        start, end = self.start_ns % 1000, self.end_ns % 1000
        if start or end:
            out["ns"] = [start, end]
        self._keep_common(out, without)
        if self.status_code or self.status_message:
            out["status"] = {"code": self.status_code, "message": self.status_message}
        if self.events:
            out["events"] = self.events
        if self.links:
            out["links"] = self.links
        if self.trace_state:
            out["trace_state"] = self.trace_state
        if self.dropped_events:
            out["dropped_events"] = self.dropped_events
        if self.dropped_links:
            out["dropped_links"] = self.dropped_links
        if self.unfit_parent is not None:
            out["unfit_parent"] = self.unfit_parent
        return out

    @classmethod
    def of_kept(
        cls, kept: dict[str, Any], span: str, parent: str | None, start_us: int, end_us: int, emitter: Emitter
    ) -> Span:
        """Return the span of which this was kept; marks must have been undone (`event.plain.restore`)."""
        start, end = kept.get("ns") or (0, 0)
        status = kept.get("status") or {}
        same = ("trace", "name", "kind", "events", "links", "trace_state", "dropped_events", "dropped_links",
                "unfit_parent")  # fmt: skip
        return cls(
            span=span,
            parent=parent,
            start_ns=start_us * 1000 + start,
            end_ns=end_us * 1000 + end,
            status_code=status.get("code", 0),
            status_message=status.get("message", ""),
            emitter=emitter,
            **_common_of(kept),
            **{name: kept[name] for name in same if name in kept},
        )

    def digest(self) -> str:
        """Return 16 letters that are the same for the same span of the same emitter, in whichever encoding it came."""
        if not self.known:
            self.known = self._digest()
        return self.known

    def _digest(self) -> str:
        return contents.digest(
            [
                self.trace, self.span, self.parent or "", self.name, self.kind, self.start_ns, self.end_ns,
                self.attributes, self.repeated, self.status_code, self.status_message, self.events, self.links,
                self.trace_state, self.flags, self.dropped_attributes, self.dropped_events, self.dropped_links,
                self.unfit_parent or "", self.unknown, self.emitter.digest(),
            ],
            self.attributes, self.repeated, self.events, self.links, self.unknown,
        ).hex()[:16]  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Span) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())


class LogRecord(_Record, eq=False, kw_only=True, gc=False):
    """One log record; an event, where it has a name."""

    trace: str | None = None
    span: str | None = None
    time_ns: int = 0
    observed_ns: int = 0
    severity_number: int = 0
    severity_text: str = ""
    body: Any = None
    event_name: str = ""

    def kept(self) -> dict[str, Any]:
        """Return everything that it says; times as texts, which are beyond what a JSON number holds exactly."""
        out: dict[str, Any] = {}
        for name in ("trace", "span", "severity_number", "severity_text", "event_name"):
            if value := getattr(self, name):
                out[name] = value
        if self.time_ns:
            out["time_unix_nano"] = str(self.time_ns)
        if self.observed_ns:
            out["observed_time_unix_nano"] = str(self.observed_ns)
        read = contents.parsed(self.body)
        form = None if read is NOT_JSON else contents.formed(self.body, read)
        if form is not None:
            out["body_json"] = form
        elif self.body is not None:
            out["body"] = self.body
        self._keep_common(out)
        return out

    @classmethod
    def of_kept(cls, kept: dict[str, Any], emitter: Emitter) -> LogRecord:
        """Return the log record of which this was kept; marks must have been undone."""
        form = kept.get("body_json")
        same = ("trace", "span", "severity_number", "severity_text", "event_name")
        return cls(
            time_ns=int(kept.get("time_unix_nano", 0)),
            observed_ns=int(kept.get("observed_time_unix_nano", 0)),
            body=kept.get("body") if form is None else contents.unformed(form),
            emitter=emitter,
            **_common_of(kept),
            **{name: kept[name] for name in same if name in kept},
        )

    def digest(self) -> str:
        """Return 16 letters that are the same for the same record of the same emitter."""
        return contents.digest(
            [
                self.trace or "", self.span or "", self.time_ns, self.observed_ns, self.severity_number,
                self.severity_text, self.body, self.event_name, self.attributes, self.repeated, self.flags,
                self.dropped_attributes, self.unknown, self.emitter.digest(),
            ]
        ).hex()[:16]  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LogRecord) and self.digest() == other.digest()

    def __hash__(self) -> int:
        return hash(self.digest())
