"""Put together what was found in several runs."""

from __future__ import annotations

from collections.abc import Sequence

from playhead.ledger.verify import Verification
from playhead.views.audit.findings import RULES, Audit, AuditedRun
from playhead.views.audit.repeats import repeated
from playhead.views.audit.watching import Watched
from playhead.views.points import mapping, words

_ORDER = {rule: number for number, rule in enumerate(RULES)}


def report(runs: Sequence[tuple[Verification, Watched]], *, together: bool = True) -> Audit:
    """Return what was found in runs that were watched, each with what was found of its record.

    What several of them attempted was attempted more than once; without `together` only where they are of one family.
    """
    touched = {path for _, watched in runs for path in watched.touched}
    found = [finding for _, watched in runs for finding in watched.findings(touched)]
    families = None if together else _families([watched for _, watched in runs])
    found += repeated((attempt for _, watched in runs for attempt in watched.attempts()), families)
    place = {watched.run: number for number, (_, watched) in enumerate(runs)}
    found.sort(key=lambda one: (_ORDER[one.rule], place[one.run], one.seq))
    decisions = [decision for _, watched in runs for decision in watched.decisions()]
    return Audit([_about(*one) for one in runs], found, decisions)


def _families(runs: Sequence[Watched]) -> dict[str, str]:
    """Return for each run the first one that it comes from, by whichever way."""
    above = {watched.run: words(mapping(watched.origin).get("run")) for watched in runs}
    out = {}
    for run in above:
        first, passed = run, {run}
        while (before := above.get(first, "")) and before not in passed:
            passed.add(first := before)
        out[run] = first
    return out


def _about(verified: Verification, watched: Watched) -> AuditedRun:
    integrity = verified.integrity
    return AuditedRun(
        run=watched.run,
        name=watched.name,
        status=watched.ended,
        origin=watched.origin,
        events=verified.events,
        level=verified.level,
        integrity={name: getattr(integrity, name) for name in ("verdict", "at", "reason", "message")},
        completeness={"verdict": verified.completeness.verdict, "detail": verified.completeness.detail},
    )
