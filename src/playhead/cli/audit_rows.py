"""Lay out what an audit found, as all its texts tell it: how a record stands, and which findings are one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from playhead.cli.output import one_line
from playhead.cli.verdicts import MEANS
from playhead.views.audit.findings import RULES, SEVERITIES, Audit, AuditedRun, Decision, Finding
from playhead.views.text import cut, several, unique_prefix

SIGNS = {"high": "red", "medium": "yellow", "low": "cyan", "info": "dim"}  # style of a severity on a terminal

RUNS_SHOWN_MAX = 10  # of several; all those that are not intact and complete are shown, in a comment as many
_SEQS_SHOWN_MAX = 3
_DETAIL_CHARACTERS_MAX = 300  # of a command, of a long list; the JSON has all of it
_SHORT_ID_CHARACTERS = 16
_NOT_JUDGED = "not judged: "
_FOLDED = (
    "attribute.changed",
    "file.written",
    "mode.changed",
    "owner.changed",
    "times.changed",
    "network.contacted",
    "network.bound",
)


@dataclass(slots=True)
class Row:
    """One or more findings that read the same."""

    severity: str
    run: str  # the beginning of its id that no other run of the audit has; empty where there is one run
    events: str
    detail: str
    path: str


def rows(audit: Audit, rule: str) -> list[Row]:
    """Return the findings of a rule, the gravest first; those that read the same in one run are one row."""
    short = short_ids(audit)
    same: dict[tuple[str, str, str, str], list[Finding]] = {}
    for one in audit.findings:
        if one.rule == rule:
            same.setdefault((one.severity, one.run, one.detail, one.path), []).append(one)
    out = []
    for (severity, run, detail, path), findings in same.items():
        seqs = sorted({seq for one in findings for seq in one.seqs})
        count = sum(one.count for one in findings)
        often = f" ({count:,}×)" if count > len(seqs) and findings[0].what in _FOLDED else ""
        told = cut(one_line(detail), _DETAIL_CHARACTERS_MAX) + often
        out.append(Row(severity, short[run], events(seqs), told, one_line(path)))
    return sorted(out, key=lambda row: SEVERITIES.index(row.severity))


def fails(failed: dict[str, int]) -> str:
    """Say which of what it must not have an audit has; empty where there is none."""
    return f"fails on {', '.join(f'{name} ({count:,})' for name, count in failed.items())}" if failed else ""


def short_ids(audit: Audit) -> dict[str, str]:
    """Return the beginning of each run's id that no other one has; nothing where there is one run."""
    ids = sorted(one.run for one in audit.runs)
    if len(ids) < 2:
        return dict.fromkeys(ids, "")
    around = [None, *ids, None]
    return {id: unique_prefix(id, (around[at], around[at + 2]), _SHORT_ID_CHARACTERS) for at, id in enumerate(ids)}


def events(seqs: Sequence[int]) -> str:
    """Name events: `event 7`, `events 7, 9`, `event 7 and 12 more`."""
    if len(seqs) > _SEQS_SHOWN_MAX:
        return f"event {seqs[0]} and {len(seqs) - 1:,} more"
    return f"event{'s' if len(seqs) > 1 else ''} {', '.join(map(str, seqs))}"


def standing(run: AuditedRun) -> tuple[str, str]:
    """Say what is known of the record of a run: its integrity, and its completeness."""
    integrity, completeness = run.integrity, run.completeness
    told = str(integrity["verdict"])
    if integrity["message"]:
        told += f": {one_line(str(integrity['message']))}"
    if integrity["verdict"] == "broken" and integrity["at"] is not None:
        told += f"; nothing vouches for what stands from event {integrity['at']} on"
    detail = one_line(str(completeness["detail"] or MEANS.get(str(completeness["verdict"]), "")))
    if detail.startswith(_NOT_JUDGED):
        return told, detail
    return told, ": ".join(filter(None, (str(completeness["verdict"]), detail)))


def shown_runs(audit: Audit) -> tuple[list[AuditedRun], str]:
    """Return the runs whose record is told of: of many only those that are not sound, and a word about all."""
    if len(audit.runs) <= RUNS_SHOWN_MAX:
        return audit.runs, ""
    bad = [one for one in audit.runs if not is_sound(one)]
    sound = len(audit.runs) - len(bad)
    return bad, f"{several(len(audit.runs), 'run')}: {sound:,} intact and complete, {len(bad):,} not"


def is_sound(run: AuditedRun) -> bool:
    """Say whether a record is intact and complete."""
    return (run.integrity["verdict"], run.completeness["verdict"]) == ("intact", "complete")


def summary(audit: Audit) -> str:
    """Say how much was found."""
    graded = ", ".join(f"{count:,} {severity}" for severity, count in audit.severities.items() if count)
    return several(len(audit.findings), "finding") + (f": {graded}" if graded else "")


def overview(audit: Audit) -> list[list[int | str]]:
    """Return rule, number of findings, and how many of each severity, for each rule that has any."""
    out: list[list[int | str]] = []
    for rule in RULES:
        severities = [one.severity for one in audit.findings if one.rule == rule]
        if severities:
            out.append([rule, len(severities), *(severities.count(severity) or "" for severity in SEVERITIES)])
    return out


def decision(one: Decision) -> str:
    """Say what was decided about what, by which rule."""
    about = f"{one.capability} on {one.resource}" if one.resource else one.capability
    rule = "no rule" if one.rule == "none" else f"the rule {one.rule}"
    return one_line(f"{about}, by {rule} ({one.mode})")


def title(run: AuditedRun) -> str:
    """Name a run."""
    return cut(one_line(run.name), _DETAIL_CHARACTERS_MAX) or "(no name)"


def origin(run: AuditedRun) -> str:
    """Say what a run comes from, where it comes from another."""
    told = run.origin
    if not isinstance(told, dict) or not told.get("run"):
        return ""
    return one_line(f"{told.get('mode')} of {told['run']}")
