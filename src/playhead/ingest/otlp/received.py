"""Hold what a request brought: its spans or log records, and what of it was rejected and why."""

from __future__ import annotations

import msgspec

from playhead import _limits
from playhead.ingest.otlp import contents
from playhead.ingest.otlp.spans import Emitter, LogRecord, Span

NO_PARENT = ("", "0" * 16)
_HEX = frozenset("0123456789abcdef")


class Rejected(Exception):
    """This span or log record cannot be taken; its neighbours can."""


class Received(msgspec.Struct):
    """What a request brought."""

    spans: list[Span] = []
    logs: list[LogRecord] = []
    rejected: int = 0
    problems: list[str] = []  # the first ones, in a line each
    emitters: dict[Emitter, Emitter] = {}

    def reject(self, why: str, count: int = 1) -> None:
        """Count what is not taken, and say why."""
        self.rejected += count
        if count and len(self.problems) < _limits.OTLP_PROBLEMS_MAX:
            self.problems.append(why)

    def emitter(self, resource: dict[str, object], scope: dict[str, object]) -> Emitter:
        """Return the one emitter of this request with this resource and this scope."""
        emitter = Emitter(resource, scope)
        return self.emitters.setdefault(emitter, emitter)

    def full(self) -> bool:
        """Say whether the request has brought as many as one may."""
        return len(self.spans) + len(self.logs) >= _limits.OTLP_SPANS_MAX


TOO_MANY = f"the request has more than {_limits.OTLP_SPANS_MAX:,}: this one and those after it are not taken"


def hexadecimal(text: str, letters: int, what: str) -> str:
    """Return an id in lower case; one of another length, or of zeros alone, rejects what has it."""
    text = text.lower()
    if len(text) != letters or not _HEX.issuperset(text):
        raise Rejected(f"the {what} id {text[:40]!r} is not {letters} letters of hex")
    if not text.strip("0"):
        raise Rejected(f"the {what} id is all zeros")
    return text


def parent_of(said: str, own: str) -> tuple[str | None, str | None]:
    """Return the parent, and what was said instead where nothing can be that: the span itself, a wrong length."""
    said = said.lower()
    if said in NO_PARENT:
        return None, None
    if said == own or len(said) != 16 or not _HEX.issuperset(said):
        return None, said
    return said, None


def check(value: object) -> None:
    """Reject what has a value with too much within each other."""
    if contents.deeper(value, _limits.OTLP_DEPTH_MAX):
        raise Rejected(f"a value has more than {_limits.OTLP_DEPTH_MAX} lists and maps within each other")


def check_count(count: int, most: int, what: str) -> None:
    """Reject what has too many."""
    if count > most:
        raise Rejected(f"it has {count:,} {what}, and no more than {most:,} are taken")
