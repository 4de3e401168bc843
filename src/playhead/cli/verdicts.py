"""Say what is known of a record: three claims apart, and whether it can be played back."""

from __future__ import annotations

from typing import Any

from playhead.cli.output import one_line
from playhead.ledger.verify import Verification
from playhead.replay.readiness import REASONS, Readiness
from playhead.views.text import several

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


def fidelity(compared: dict[str, Any] | None) -> tuple[str, str]:
    """Return verdict and text of a replay, as `fidelity_of` found it; of another run there is nothing to compare."""
    if compared is None:
        return "not_compared", "no replay of this run was asked for"
    verdict, of = compared["verdict"], f"{compared['of']} ({compared['mode']})"
    if verdict == "faithful":
        return verdict, f"{compared['claim']}, that of {of}"
    if verdict == "deviated":
        first = one_line(str(compared["first"]["text"]).partition("\n")[0])
        return verdict, f"from {of}, {several(compared['count'], 'difference')}; the first: {first}"
    return verdict, f"with {of}: {one_line(compared['why'])}"


def facts(
    found: Verification, ready: Readiness, *, running: bool, compared: dict[str, Any] | None = None
) -> list[tuple[str, str]]:
    """Return the lines of a header: label and text. What is behind a reason stands elsewhere in it."""
    whole = completeness(found)[0].replace("_", " ")
    verdict, told = fidelity(compared)
    record = f"integrity: {found.integrity.verdict}, completeness: {whole}, fidelity: {verdict.replace('_', ' ')}"
    refused = "; ".join(f"{REASONS[reason]} ({reason})" for reason in ready.reasons)
    playback = "not while it is running" if running else f"refused: {refused}" if refused else "possible"
    replayed = [] if compared is None else [("fidelity", told)]
    return [("record", record), *replayed, ("playback", playback)]


def document(found: Verification, ready: Readiness, compared: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the same for scripts, with what was not captured."""
    return {
        "integrity": found.integrity.verdict,
        "completeness": found.completeness.verdict,
        "fidelity": fidelity(compared)[0],
        "replayable": ready.replayable,
        "reasons": ready.reasons,
        "detail": ready.detail,
        "not_captured": ready.not_captured,
    }
