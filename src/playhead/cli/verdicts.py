"""Say what is known of a record: three claims apart, and whether it can be played back."""

from __future__ import annotations

from typing import Any

from playhead.ledger.verify import Verification
from playhead.replay.readiness import REASONS, Readiness

MEANS = {
    "complete": "every event that was declared is there",
    "unattested": "nothing says how many events there should be",
}
_NOT_JUDGED = "not judged: "


def completeness(found: Verification) -> tuple[str, str]:
    """Return verdict and text. What a broken chain leaves open is `unfinished` for scripts, and says so to people."""
    verdict, detail = found.completeness.verdict, found.completeness.detail or MEANS[found.completeness.verdict]
    if detail.startswith(_NOT_JUDGED):
        return "not_judged", detail.removeprefix(_NOT_JUDGED)
    return verdict, detail


def facts(found: Verification, ready: Readiness, *, running: bool) -> list[tuple[str, str]]:
    """Return the lines of a header: label and text. What is behind a reason stands elsewhere in it."""
    whole = completeness(found)[0].replace("_", " ")
    record = f"integrity: {found.integrity.verdict}, completeness: {whole}, fidelity: not compared"
    refused = "; ".join(f"{REASONS[reason]} ({reason})" for reason in ready.reasons)
    playback = "not while it is running" if running else f"refused: {refused}" if refused else "possible"
    return [("record", record), ("playback", playback)]


def document(found: Verification, ready: Readiness) -> dict[str, Any]:
    """Return the same for scripts, with what was not captured."""
    return {
        "integrity": found.integrity.verdict,
        "completeness": found.completeness.verdict,
        "fidelity": "not_compared",
        "replayable": ready.replayable,
        "reasons": ready.reasons,
        "detail": ready.detail,
        "not_captured": ready.not_captured,
    }
