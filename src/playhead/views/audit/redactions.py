"""Find in the record what was redacted, and by which rule."""

from __future__ import annotations

from playhead.event.envelope import Event
from playhead.views import text
from playhead.views.audit.findings import Finding
from playhead.views.points import mapping
from playhead.views.redactions import marks


class Redactions:
    """Follow the marks in the events of a run, and what the run says of them at its end."""

    def __init__(self) -> None:
        self._places: dict[str, list[int]] = {}  # by rule: the seq of the event, once for each mark in it
        self._declared: dict[str, int] = {}
        self._told_at: int | None = None

    def take(self, event: Event) -> None:
        """Look at the next event."""
        for rule in marks(event.data):
            self._places.setdefault(rule, []).append(event.seq)
        if event.kind in ("run.finished", "step.finished"):
            told = mapping(mapping(event.data).get("redacted"))
            counts = {rule: count for rule, count in told.items() if type(count) is int and count > 0}
            if counts and (self._told_at is None or event.kind == "run.finished"):
                self._declared, self._told_at = counts, event.seq

    def findings(self, run: str) -> list[Finding]:
        """Return a finding for each rule by which something was redacted."""
        out = []
        for rule in sorted({*self._declared, *self._places}):
            places = self._places.get(rule, [])
            seqs = sorted(set(places)) or [self._told_at or 0]
            declared = self._declared.get(rule)
            count = declared if declared is not None else len(places)
            least = "" if declared is not None else "at least "
            where = f", marked in {text.several(len(seqs), 'event')}" if places else ""
            out.append(
                Finding(
                    rule="redaction",
                    severity="info",
                    run=run,
                    seq=seqs[0],
                    detail=f"{least}{text.several(count, 'value')} redacted by the rule {rule}{where}",
                    what="redacted",
                    target=rule,
                    count=count,
                    seqs=seqs,
                )
            )
        return out
