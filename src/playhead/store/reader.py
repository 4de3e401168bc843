"""Read a run: its events in order, any one of them by seq, every value as it was."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import msgspec
import orjson

from playhead import _limits
from playhead.errors import BrokenLine, EventNotFound, PlayheadError
from playhead.event import envelope
from playhead.event.envelope import Event
from playhead.event.resolve import Resolver, has_references
from playhead.event.upcast import upcast
from playhead.store.base import Store


class RunReader:
    """Read one run of a store. Knows how far it has read; a run that grows is followed."""

    def __init__(self, store: Store, run: str) -> None:
        self.store = store
        self.id = run
        self._offsets = array("Q", [0])  # byte offset of each line, and of the next one
        self._adding = threading.Lock()  # never waited for: whoever does not get it learns of the line later
        self._fetch = lru_cache(maxsize=_limits.RESOLVED_LINES_CACHED_MAX)(self._read_data)
        self._local = threading.local()  # a resolver knows what it is in the middle of, and so is for one thread

    @property
    def _resolver(self) -> Resolver:
        found: Resolver | None = getattr(self._local, "resolver", None)
        if found is None:
            private, run = getattr(self.store, "private", None), self.id
            answer = None if private is None else lambda commitment: private(run, commitment)
            found = self._local.resolver = Resolver(self._fetch, self.store.blob, answer)
        return found

    def lines(self) -> Iterator[bytes]:
        """Yield every whole line without its newline; a torn last one is left out."""
        offset = 0
        for number, line in enumerate(self.store.lines(self.id)):
            if line[-1:] != b"\n":
                return
            offset += len(line)
            if number + 1 == len(self._offsets):
                self._add(number + 1, offset)
            yield line[:-1]

    def events(self) -> Iterator[Event]:
        """Yield every event, unresolved."""
        for line in self.lines():
            yield envelope.parse(line)

    def events_from(self, seq: int) -> Iterator[Event]:
        """Yield the events from one on, unresolved."""
        return map(envelope.parse, self.lines_from(seq))

    def lines_from(self, seq: int) -> Iterator[bytes]:
        """Yield the whole lines from one on, without their newlines."""
        while seq >= len(self._offsets):
            before = len(self._offsets)
            self._extend()
            if len(self._offsets) == before:
                return
        for line in self.store.lines(self.id, self._offsets[seq]):
            if line[-1:] != b"\n":
                return
            yield line[:-1]

    def resolved(self) -> Iterator[Event]:
        """Yield every event with its references resolved."""
        for line in self.lines():
            event = envelope.parse(line)
            yield self.resolve(event) if has_references(line) else event

    def line(self, seq: int) -> bytes:
        """Return one line without its newline."""
        while seq >= len(self._offsets) - 1:
            before = len(self._offsets)
            self._extend()
            if len(self._offsets) == before:
                last = len(self._offsets) - 2
                hint = f"Its events are 0 to {last}." if last >= 0 else "It has no events."
                raise EventNotFound(f"{self.id} has no event {seq}", hint=hint)
        if seq < 0:
            raise EventNotFound(f"{self.id} has no event {seq}", hint="Events are numbered from 0.")
        return next(self.store.lines(self.id, self._offsets[seq])).removesuffix(b"\n")

    def event(self, seq: int) -> Event:
        """Return one event with its references resolved."""
        return self.parsed(self.line(seq))

    def parsed(self, line: bytes) -> Event:
        """Return the event of a line with its references resolved."""
        event = envelope.parse(line)
        return self.resolve(event) if has_references(line) else event

    def data(self, seq: int) -> dict[str, Any]:
        """Return what one event says, every value as it was."""
        line = self.line(seq)
        data = _data_of(line)
        if has_references(line):
            data = self._resolver.resolve(data)
        return data

    def resolve(self, event: Event) -> Event:
        """Return the same event with every value as it was."""
        data = self._resolver.resolve(event.data)
        return event if data is event.data else msgspec.structs.replace(event, data=data)

    def value(self, value: Any) -> Any:
        """Resolve one value of this run."""
        return self._resolver.resolve(value)

    def readable(self, value: Any) -> Any:
        """Do the same, and leave a reference that leads nowhere as it is: `verify` says so."""
        try:
            return self._resolver.resolve(value)
        except (PlayheadError, orjson.JSONDecodeError, UnicodeDecodeError, RecursionError):
            return value

    def artifacts(self) -> dict[str, tuple[int, str]]:
        """Return every artifact that an event recorded: by its name, the seq of the event and the digest."""
        found: dict[str, tuple[int, str]] = {}
        for line in self.lines():
            if b'"kind":"artifact.created"' in line and (event := envelope.parse(line)).kind == "artifact.created":
                data = self.resolve(event).data
                if isinstance(data.get("name"), str) and isinstance(data.get("digest"), str):
                    found[data["name"]] = event.seq, data["digest"]
        return found

    def first(self) -> Event:
        """Return run.started."""
        for event in self.resolved():
            return event
        raise BrokenLine(f"{self.id} has no events", hint="The process was killed before the first one was written.")

    def _extend(self) -> None:
        found = self._offsets[:]
        for line in self.store.lines(self.id, found[-1]):
            if line[-1:] != b"\n":
                break
            found.append(found[-1] + len(line))
        self._offsets = found  # at once, since other threads may be reading too

    def _add(self, number: int, offset: int) -> None:
        """Keep where a line ends, unless another thread is about to."""
        if self._adding.acquire(blocking=False):
            offsets = self._offsets
            if number == len(offsets):
                offsets.append(offset)
            self._adding.release()

    def _read_data(self, seq: int) -> Any:
        return _data_of(self.line(seq))


def _data_of(line: bytes) -> dict[str, Any]:
    """Read the data of a line and nothing else."""
    try:
        data = upcast(orjson.loads(line)).get("data")
    except (ValueError, AttributeError):
        data = None
    return data if type(data) is dict else envelope.parse(line).data  # which says what is wrong
