"""Let nothing into the store unredacted: every byte of an event, a blob or an artifact passes here."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from typing import Any

from orjson import dumps

from playhead import _limits
from playhead.capture.redact import Redactor
from playhead.event import speed
from playhead.event.plainer import Keys, Plainer, inline_blobs
from playhead.event.references import Held, News
from playhead.event.secret_names import is_secret_name
from playhead.event.survey import SURVEYED_MAX
from playhead.store.layout import cleaned

_PLACEHOLDER = re.compile(r"\[redacted:([^\]]+)\]")
_MIN, _EXACT = _limits.REFERENCE_BYTES_MIN, _limits.INTEGER_EXACT_MAX
_SHALLOW = 8  # levels that are still recorded of a value that exhausts the interpreter's stack


# An event's data, ready to be sealed: its JSON; the value, plain and redacted, with nothing replaced by references; the
# blobs; what to remember; the floats; whether there are unusual keys; what was redacted; whether something was cut off.
# A bare tuple, because one is made for every event.
Shaped = tuple[bytes, Any, list[tuple[str, bytes]], News | None, list[float], bool, dict[str, int], bool]


class Gate:
    """Turn what an agent hands over into bytes that may be stored."""

    def __init__(self, redactor: Redactor, *, watches: bool = True) -> None:
        self.redactor = redactor
        self._watches = watches  # the variables at each event; else whoever uses this looks at them when it is time
        self._keys = Keys(redactor.is_secret_field)
        self._note_variables()

    def shape(self, fields: dict[str, Any], held: Held) -> Shaped:
        """Make an event's data plain, redact it, and replace what this run already holds."""
        redactor = self.redactor
        if self._watches:
            self.look_at_variables()
        if held.generation != redactor.generation:
            held.forget()  # what was written before a new secret became known must not be referred to
            held.generation = redactor.generation
        # What spills to a blob is not encoded twice to find that out.
        body = fields.get("body")
        large = type(body) is str and len(body) > _limits.INLINE_BYTES_MAX
        if not large and speed.survey is not None and (quick := self._quick(fields, held, speed.survey)) is not None:
            return quick
        counts: dict[str, int] = {}
        plainer = Plainer(functools.partial(redactor.redact_bytes, counts=counts), self._keys)
        try:
            value = plainer.value(fields)
            binaries = len(plainer.blobs)
            encoded, news = held.encode(value, plainer, large)
        except (TypeError, UnicodeEncodeError, RecursionError) as problem:  # lone surrogates; deeper than the stack
            counts.clear()
            plainer = Plainer(plainer.gate, self._keys, careful=True)
            if isinstance(problem, RecursionError):
                plainer.depth_max = _SHALLOW
            value = plainer.value(fields)
            binaries = len(plainer.blobs)
            encoded, news = held.encode(value, plainer)
        cut = plainer.cut
        if (
            plainer.secret_fields
            or redactor.suspicious_text(encoded)
            or (
                plainer.blobs
                and any(redactor.suspicious_text(data, json=False) for _, data in plainer.blobs[binaries:])
            )
        ):
            clean = redactor.redact(value, counts)
            if clean is not value:
                kept = dumps(clean)  # a binary whose mark was redacted must not be stored either
                put_aside = [blob for blob in plainer.blobs[:binaries] if blob[0].encode() in kept]
                plainer = Plainer(marked=True)
                plainer.blobs = put_aside
                value = plainer.value(clean)
                encoded, news = held.encode(value, plainer)
        return encoded, value, plainer.blobs, news, plainer.floats, plainer.unusual_keys, counts, cut

    def _quick(self, fields: dict[str, Any], held: Held, survey: Callable[..., speed.Surveyed | None]) -> Shaped | None:
        """Shape an event that is plain, of a usual size and without suspicion, as most are; None where it is not."""
        seen = survey(fields, self._keys.usual, _MIN, _EXACT, SURVEYED_MAX, _limits.DEPTH_MAX)
        if seen is None or seen[4]:
            return None
        try:
            new = held.encode_new(fields, seen[0], seen[1], seen[2])
            if new is None:
                plainer = Plainer.surveyed_as(seen)
                new = held.encode_again(fields, plainer)
                if plainer.blobs:
                    return None
        except (TypeError, UnicodeEncodeError):  # lone surrogates
            return None
        if self.redactor.suspicious_text(new[0]):
            return None
        return new[0], fields, [], new[1], seen[3], False, {}, False

    def look_at_variables(self) -> None:
        """Learn the secrets among variables, where one was set or changed since we looked last."""
        variables = getattr(os.environ, "_data", os.environ)  # as they are kept: os.environ itself decodes each one
        if len(variables) != self._variables or (self._watched and [*map(variables.get, self._watched)] != self._seen):
            self._learn()

    def _learn(self) -> None:
        """Take in variables that an agent has set or changed since: it may load its keys first thing, or renew them."""
        self._note_variables()
        self.redactor.learn(os.environ)

    def _note_variables(self) -> None:
        variables = getattr(os.environ, "_data", os.environ)
        self._variables = len(variables)
        self._watched = [name for name in variables if is_secret_name(os.fsdecode(name))]
        self._seen = [*map(variables.get, self._watched)]

    def settle(self, value: Any) -> tuple[Any, dict[str, int]]:
        """Return a value as it will be read back, plain, redacted, with nothing put aside; and what was redacted."""
        _, settled, blobs, _, _, _, redacted, _ = self.shape({"value": value}, Held(_nothing))
        return inline_blobs(settled["value"], dict(blobs)), redacted

    def file_name(self, name: str, counts: dict[str, int]) -> str:
        """Redact the name of an artifact, in a form that is still the name of a file."""
        self._learn()
        clean = self.redactor.redact_text(name, counts)
        return name if clean == name else cleaned(_PLACEHOLDER.sub(r"redacted-\1", clean))

    def file(self, data: bytes) -> tuple[bytes, dict[str, int]]:
        """Redact the bytes of an artifact, and count what was removed."""
        self._learn()
        counts: dict[str, int] = {}
        return self.redactor.redact_bytes(data, counts), counts


def _nothing(offset: int) -> Any:
    raise LookupError(f"nothing was written, so there is no line at {offset}")
