"""Look questions up by what the normalisers leave of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead.event.normalise import Normalisers
from playhead.replay.question import question_of
from playhead.replay.tape import Tape
from playhead.store.reader import RunReader

if TYPE_CHECKING:
    from playhead.capture.recording import Recording


class Matching:
    """Say under which key a question is on the tape. Without a rule that is the key it was recorded with."""

    def __init__(self, tape: Tape, normalisers: Normalisers) -> None:
        self._tape = tape
        self._normalisers = normalisers
        self._generation: int | None = None  # of the rules that the tape is keyed by

    @property
    def is_plain(self) -> bool:
        """Say whether there are no rules."""
        return not self._normalisers

    def key(self, recording: Recording, kind: str, span: str, key: str) -> str:
        """Return the key to look a question up by, which was recorded a moment ago."""
        if not self._normalisers:
            return key
        if self._generation != self._normalisers.generation:  # a rule was registered while the program ran
            self._generation = self._normalisers.generation
            self._rekey()
        if not self._normalisers.concerns_some(kind):
            return key
        asked = question_of(RunReader(recording.store, recording.id).event(int(span)))
        return self._normalisers.match_key(asked.kind, asked.name, asked.input) or key

    def _rekey(self) -> None:
        for call in self._tape.calls:
            if self._normalisers.concerns_some(call.kind):
                event = call.question
                asked = question_of(event)
                call.key = self._normalisers.match_key(asked.kind, asked.name, asked.input) or str(event.key)
        self._tape.sort_again()
