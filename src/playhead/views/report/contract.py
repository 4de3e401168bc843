"""Say what a report is made of. docs/reference/report.md documents every field; fields are only ever added."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from playhead.views import prices, text
from playhead.views.audit.findings import SEVERITIES
from playhead.views.diff.saying import outcome_of
from playhead.views.points import mapping

FORMAT = "playhead-report/1"
SIDES = ("left", "right")
_SEVERITIES = {name: place for place, name in enumerate(SEVERITIES)}


@dataclass
class ReportedRun:
    """One run: what it was, its rows as `show` has them, how it stands, and its exact lines."""

    id: str
    summary: dict[str, Any]  # as `run` of `playhead show --json`
    timeline: list[dict[str, Any]]  # as `timeline` of it
    rows_left_out: int
    verify: dict[str, Any]  # as `playhead verify --json`
    metrics: dict[str, Any]  # as `playhead stats RUN --json`
    lines: list[str]  # as sealed, without their newline
    lines_left_out: int  # after those
    lines_at_end: list[str]  # after those that are left out
    contents: list[dict[str, Any]] = field(default_factory=list)  # what large values of these lines say
    contents_left_out: dict[str, int] = field(default_factory=dict)  # how many of them are not there, and their bytes
    artifacts_left_out: int = 0  # whose content is not there
    children: list[dict[str, Any]] = field(default_factory=list)  # as `children` of `playhead show --json`


@dataclass
class Report:
    """All that a report shows."""

    playhead: str  # the version that made it
    runs: list[ReportedRun]  # one, or the left and the right one
    audit: dict[str, Any]  # as `playhead audit --json`
    diff: dict[str, Any] | None = None  # as `playhead diff --json`, of two
    format: str = field(default=FORMAT)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "format": self.format,
            "playhead": self.playhead,
            "runs": [vars(run) for run in self.runs],
            "diff": self.diff,
            "audit": self.audit,
        }


def is_replay(verified: dict[str, Any]) -> bool:
    """Say whether a run was compared with one that it replays."""
    return "of" in mapping(verified.get("fidelity"))


def verdict(verified: dict[str, Any], claim: str) -> str | None:
    """Return a verdict as people read it. What a broken chain leaves open is `unfinished` for scripts only."""
    found = mapping(verified.get(claim))
    told = found.get("verdict")
    if str(found.get("detail") or "").startswith("not judged: "):
        return "not judged"
    return None if told is None else str(told).replace("_", " ")


def silent(run: ReportedRun) -> int:
    """Return of how many calls nobody knows what they cost; of a replay that asked nobody, none."""
    return 0 if is_replay(run.verify) else int(run.summary.get("calls_without_usage") or 0)


def tokens(run: ReportedRun) -> str:
    """Say how many tokens a run used, in and out, as far as its calls said it."""
    counts = [run.summary.get(name) or 0 for name in ("tokens_in", "tokens_out")]
    unknown = ["unknown"] if run.summary.get("calls_without_usage") else []
    known = [] if unknown and not any(counts) else [" → ".join(f"{count:,}" for count in counts)]
    return " + ".join(known + unknown)


def started(run: ReportedRun) -> list[str]:
    """Say of each run of a Python that this one started what it came to: it is in none of the counts of this one."""
    found = []
    for child in run.children:
        counts = [text.several(child[f"{what}_calls"], f"{what} call") for what in ("model", "tool")]
        used = child["tokens_in"] or child["tokens_out"]
        told = [
            *(count for count in counts if not count.startswith("0 ")),
            f"{child['tokens_in']:,} → {child['tokens_out']:,} tokens" if used else "",
            prices.told(child["cost"], child["cost_unpriced"], child["calls_without_usage"]),
            f"{child['denied']:,} denied" if child["denied"] else "",
        ]
        found.append(", ".join([f"{child['name']} {child['status']}", *filter(None, told)]))
    return found


def left_out(report: Report) -> str:
    """Say what of the runs a page does not have; nothing where it has all."""
    runs = report.runs
    values, size = (sum(run.contents_left_out.get(name, 0) for run in runs) for name in ("count", "bytes"))
    counts = {
        "timeline row": sum(run.rows_left_out for run in runs),
        "exact line": sum(run.lines_left_out for run in runs),
        "large value": values,
        "artifact": sum(run.artifacts_left_out for run in runs),
    }
    told = {noun: text.several(count, noun) for noun, count in counts.items() if count}
    if values:
        told["large value"] += f" ({text.size(size)})"
    return ", ".join(told.values())


def outcome(diff: dict[str, Any]) -> str:
    """Say in a few words what a comparison found."""
    failed = mapping(diff.get("failures"))
    _, head, rest = outcome_of(diff.get("identical"), diff.get("output_differs"), failed, bool(diff.get("deviations")))
    return head + rest


def before(diff: dict[str, Any]) -> dict[str, Any] | None:
    """Return the first deviation of all, where the headline is a later one."""
    found = [one for one in diff.get("deviations") or () if isinstance(one, dict)]
    first, headline = next((one for one in found if one.get("cause") != "follows"), None), diff.get("headline")
    return first if isinstance(headline, dict) and first != headline else None


def counted(deviations: list[dict[str, Any]]) -> str:
    """Say how many deviations there are, and how many of them are only consequences."""
    follows = sum(one.get("cause") == "follows" for one in deviations)
    of_them = f", {follows:,} of them follow{'s' if follows == 1 else ''} from others" if follows else ""
    return f"{text.several(len(deviations), 'deviation')}{of_them}."


def said(deviation: dict[str, Any]) -> str:
    """Say what was asked and what came of it, of what only one of the runs has."""
    asked, answered = (str(deviation.get(name) or "") for name in ("asked", "answered"))
    return f"({asked})" * bool(asked) + f" → {answered}" * bool(answered)


def children_told(diff: dict[str, Any]) -> tuple[str, list[str]]:
    """Say of the runs of Pythons that the two started how many differ, and which: nothing where there are none."""
    found = [one for one in diff.get("children") or () if isinstance(one, dict)]
    differ = [one for one in found if one.get("identical") is False]
    unknown = [one for one in found if one.get("identical") is None]
    counts = [f"{len(differ):,} of {len(found):,} differ"] if found else []
    counts += [f"{len(unknown):,} could not be compared"] if unknown else []
    return ", ".join(counts), [_child_told(one) for one in (*differ, *unknown)]


def _child_told(child: dict[str, Any]) -> str:
    headline = mapping(child.get("headline"))
    parts = [f"{headline.get('type')} {headline.get('path')}{said(headline)}"] if headline else []
    return ": ".join([str(child.get("name")), *parts, *([str(child["why"])] if child.get("why") else [])])


def output_changes(diff: dict[str, Any]) -> list[dict[str, Any]]:
    """Return how the final outputs differ."""
    ends = [one for one in diff.get("deviations") or () if one.get("kind") == "run"]
    changed = [change for one in ends for change in one.get("changes") or ()]
    return [change for change in changed if f"{change.get('path') or ''}/".startswith("/output/")]


def by_severity(audit: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the findings of an audit, the worst first: where not all are shown, those are."""
    found = [one for one in audit.get("findings") or () if isinstance(one, dict)]
    return sorted(found, key=lambda one: _SEVERITIES.get(str(one.get("severity")), len(_SEVERITIES)))


def whose(report: Report) -> dict[str, tuple[str, str]]:
    """Say of each run that was audited to which of the reported ones it belongs, by its id, and how it is told.

    A Python that a run started belongs to that run, and is told by its name and id.
    """
    ids = [run.id for run in report.runs]
    audited = {str(one.get("run")): one for one in report.audit.get("runs") or ()}
    found: dict[str, tuple[str, str]] = {}
    for run, one in audited.items():
        line = [run]  # it, the run whose program started it, and so on
        while line[-1] not in ids and (above := str(mapping(audited[line[-1]].get("origin")).get("run"))) in audited:
            if above in line:
                break
            line.append(above)
        if line[-1] in ids:
            side = ("left", "right")[ids.index(line[-1])] if len(ids) > 1 else "this one"
            name = f"{one.get('name') or ''} {run}".strip()
            of = f"{side}, {name}" if len(ids) > 1 else name
            found[run] = line[-1], side if run in ids else of
    return found


def failures(diff: dict[str, Any]) -> list[tuple[str, str]]:
    """Say of each side why it failed, where, and what lies behind that, unless both did for the same reason."""
    found: dict[str, Any] = diff.get("failures") or {}
    if found.get("left") == found.get("right"):
        return []
    return [
        (side, "; ".join([", ".join(filter(None, (one.get("error"), one.get("where")))), *_causes(one)]))
        for side, one in found.items()
        if one
    ]


def error_of(row: dict[str, Any]) -> str:
    """Say why a row failed, and what lies behind that; nothing where it did not."""
    return "; ".join([str(row["error"]), *_causes(row)]) if row.get("error") else ""


def _causes(failed: dict[str, Any]) -> list[str]:
    return text.listed(map(str, failed.get("causes") or ()))
