"""Write a report as Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

import re
from collections import Counter
from html import escape
from typing import Any

from playhead import _limits
from playhead.views import prices, text
from playhead.views.diff.setting import brief
from playhead.views.difference import SHOWN_WIDTH, spelled
from playhead.views.report.contract import (
    SIDES,
    Report,
    ReportedRun,
    before,
    by_severity,
    children_told,
    counted,
    error_of,
    failures,
    is_replay,
    outcome,
    output_changes,
    said,
    silent,
    started,
    tokens,
    verdict,
    whose,
)

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~&-])")
# GitHub looks for people, issues, addresses and emoji in what Markdown has become, where no escape is left of them.
# What it looks for is parted by a space without width.
_LOOKED_FOR = re.compile(r"[@#](?=\w)|:(?=//|[\w+-]+:)|\b(?:www(?=\.)|GH(?=-\d))", re.IGNORECASE)
_PARTED = "\\g<0>\u200b"
_DOLLAR = "<span>$</span>"  # between two others is a formula; GitHub's own way to write one that is none
_FIELDS_MAX = 3  # that are shown of what differs at one place
_SEVERE = ("high", "medium")  # what is listed of an audit
_CHANGED_LINES = 6  # of a patch
_SIGNS = {"ok": "✅", "error": "❌", "crashed": "❌", "cancelled": "⚠️", "running": "⏳"}


def markdown_of(report: Report) -> str:
    """Return the report, with the summary first and long parts folded; a part that a comment cannot hold is named."""
    parts = {"runs": _runs(report.runs), "differences": [] if report.diff is None else _diff(report.diff)}
    parts["settings"] = [] if report.diff is None else _settings(report.diff)
    parts["audit"] = _audit(report)
    sides = SIDES if len(report.runs) > 1 else ("",)
    parts |= {f"timeline of {run.id}": _timeline(run, side) for run, side in zip(report.runs, sides, strict=True)}
    told, room = ["## Playhead", ""], _limits.REPORT_COMMENT_CHARACTERS_MAX
    for name, lines in parts.items():
        size = sum(len(line) + 1 for line in lines)
        told += lines if size <= room else ["", f"The {name} would not fit into a comment; the page has it."]
        room -= size if size <= room else 0
    return "\n".join([*told, "", f"<sub>Made by Playhead {_m(report.playhead)}</sub>", ""])


def _runs(runs: list[ReportedRun]) -> list[str]:
    claims = ["integrity", "completeness"]
    claims += ["fidelity"] if any(is_replay(run.verify) for run in runs) else []
    columns = ["run", "status", "took", "models", "tools", "tokens", "cost", *claims]
    found = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
    errors: list[str] = []  # below the table: a line between its rows would end it
    for run, side in zip(runs, SIDES if len(runs) > 1 else ("",), strict=True):
        about, whose = run.summary, f"{side}: " if side else ""
        status = str(about.get("status"))
        known = about.get("cost")
        unknown = about.get("cost_unpriced") or silent(run) or (known is None and about.get("model_calls"))
        costs = [escape(prices.money(known))] if known is not None else []
        costs += ["unknown"] if unknown else []
        found.append(
            "| " + " | ".join([
                f"{whose}{_m(about.get('name') or '')} `{run.id}`", f"{_SIGNS.get(status, '')} {_m(status)}".strip(),
                _m(text.duration(about.get("duration_us"))), _m(about.get("model_calls")), _m(about.get("tool_calls")),
                tokens(run),
                " + ".join(costs),
                *(_m(verdict(run.verify, claim)) for claim in claims),
            ]) + " |"
        )  # fmt: skip
        if error := "; ".join(filter(None, (text.error_whole(about.get("error")), about.get("last_words")))):
            whose = f"`{run.id}`: " if len(runs) > 1 else ""
            errors += ["", f"> {whose}{_m(text.cut(error, _limits.REPORT_ERROR_CHARACTERS_MAX))}"]
    return found + errors + _started(runs)


def _started(runs: list[ReportedRun]) -> list[str]:
    found: list[str] = []
    for run in runs:
        if children := started(run):
            whose = f"`{run.id}`" if len(runs) > 1 else "It"
            found += ["", f"{whose} started {text.several(len(children), 'run')} of Pythons, not counted above:", ""]
            found += [f"- {_m(_cut(child))}" for child in children[: _limits.REPORT_ROWS_SHORT]]
            found += _more(len(children))
    return found


def _diff(diff: dict[str, Any]) -> list[str]:
    deviations = diff.get("deviations") or []
    found = ["", f"### Differences: {outcome(diff)}", ""]
    most = _limits.REPORT_ERROR_CHARACTERS_MAX
    found += [f"- {side} failed: {_code(text.cut(why, most))}" for side, why in failures(diff)]
    if output := output_changes(diff):
        found += [f"- {_change(change)}" for change in output[:_FIELDS_MAX]]
        if (more := len(output) - _FIELDS_MAX) > 0:
            found.append(f"- and {text.several(more, 'more field')}")
    headline = diff.get("headline")
    if isinstance(headline, dict):
        found += ["", f"First: {_place(headline)}"] if found[-1] else [f"First: {_place(headline)}"]
    if (first := before(diff)) is not None:
        found += ["", f"Before: {_place(first)}"]
    found += _deviations(deviations)
    if missed := diff.get("not_compared") or []:
        found += ["", f"Not compared: {text.several(len(missed), 'event')}.", ""]
        for one in missed[: _limits.REPORT_ROWS_SHORT]:
            why = _m(_cut(one.get("why")))
            found.append(f"- {_m(one.get('side'))}, event {_m(one.get('seq'))}: {why}")
        found += _more(len(missed))
    counts, children = children_told(diff)
    if counts:
        found += ["", f"Runs of Pythons that these started: {counts}.", ""]
        found += [f"- {_m(_cut(child))}" for child in children[: _limits.REPORT_ROWS_SHORT]]
        found += _more(len(children))
    return found


def _settings(diff: dict[str, Any]) -> list[str]:
    found: list[str] = []
    config = diff.get("config") or []
    if config:
        found += ["", f"<details><summary>Ran with: {text.several(len(config), 'difference')}</summary>", ""]
        found += [f"- {_change(_setting(one))}" for one in config[: _limits.REPORT_ROWS_SHORT]]
        found += _more(len(config))
        found += ["", "</details>"]
    return found


def _deviations(deviations: list[dict[str, Any]]) -> list[str]:
    """Write what differs, in its order: what follows from others without its fields, and as far as there is room."""
    origins = [one for one in deviations if one.get("cause") != "follows"]
    follows = [one for one in deviations if one.get("cause") == "follows"]
    if not deviations:
        return []
    found = ["", counted(deviations), ""]
    room = _limits.REPORT_ROWS_SHORT
    shown = {id(one) for one in (origins + follows)[:room]}
    for one in deviations:
        if id(one) in shown:
            found.append(f"- {_place(one)}")
            changes = [] if one.get("cause") == "follows" else one.get("changes") or []
            found += [f"  - {_change(change)}" for change in changes[:_FIELDS_MAX]]
            if (more := len(changes) - _FIELDS_MAX) > 0:
                found.append(f"  - and {text.several(more, 'more field')}")
    return found + _more(len(deviations))


def _change(change: dict[str, Any]) -> str:
    """Return a field and both its sides; of texts that are too long for that, the words or lines that differ."""
    path = _code(_cut(change.get("path") or "/"))
    both = [change.get(side) for side in ("left", "right")]
    if any(not isinstance(side, str) or len(side) > SHOWN_WIDTH for side in both):
        differ = [line for line in change.get("lines") or () if line[:1] in "+-"][:_CHANGED_LINES]
        if differ or change.get("words"):
            return f"{path}: {' '.join(_code(_cut(line)) for line in differ or [change['words']])}"
    was, now = (
        _code(text.short(change[side], SHOWN_WIDTH)) if side in change else "nothing" for side in ("left", "right")
    )
    return f"{path}: {was} → {now}"


def _setting(change: dict[str, Any]) -> dict[str, Any]:
    told = {name: brief(value) for name, value in change.items()}
    return {**told, "path": spelled(str(change.get("path") or ""))}


def _more(count: int) -> list[str]:
    """Say how many there are beyond those that are shown."""
    return [f"- and {count - _limits.REPORT_ROWS_SHORT:,} more"] if count > _limits.REPORT_ROWS_SHORT else []


def _cut(value: Any) -> str:
    return text.cut(str(value or ""), _limits.REPORT_CELL_CHARACTERS_MAX)


def _place(one: dict[str, Any]) -> str:
    seqs = " → ".join("–" if one.get(side) is None else str(one[side]) for side in ("left_seq", "right_seq"))
    cause = f", {_m(str(one['cause']).replace('_', ' '))}" if one.get("cause") else ""
    path = _m(_cut(one.get("path")))
    return f"event {seqs}: **{_m(one.get('type'))}** {path}{_m(_cut(said(one)))}{cause}"


def _audit(report: Report) -> list[str]:
    audit, runs = report.audit, [run.id for run in report.runs]
    counts = {name: count for name, count in (audit.get("counts") or {}).items() if count}
    told = ", ".join(f"{count:,} {_m(name)}" for name, count in counts.items()) or "nothing was found"
    findings = by_severity(audit)
    high = sum(one.get("severity") == _SEVERE[0] for one in findings)
    found = ["", f"### Audit: {told}{f'; {high:,} of {_SEVERE[0]} severity' if high else ''}", ""]
    worth = [one for one in findings if one.get("severity") in _SEVERE]
    if worth:
        belongs = whose(report)
        several = len(runs) > 1 or any(one.get("run") not in runs for one in worth)
        columns = ["rule", "severity", *(["run"] if several else []), "event", "what"]
        found += [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        for one in worth[: _limits.REPORT_ROWS_SHORT]:
            run = str(one.get("run"))
            cells = {**one, "run": belongs.get(run, ("", run))[1], "event": one.get("seq")}
            cells["what"] = _cut(one.get("detail"))
            found.append(f"| {' | '.join(_m(cells.get(name)) for name in columns)} |")
        if len(worth) > _limits.REPORT_ROWS_SHORT:
            found.append(f"\nand {len(worth) - _limits.REPORT_ROWS_SHORT:,} more")
    rest = Counter(str(one.get("severity")) for one in findings if one.get("severity") not in _SEVERE)
    if rest:
        told = ", ".join(f"{count:,} of {_m(severity)}" for severity, count in rest.items())
        found += [*([""] if worth else []), f"{told} severity: these are in the page."]
    return found


def _timeline(run: ReportedRun, side: str) -> list[str]:
    rows = [row for row in run.timeline if not row.get("quiet")]
    name = escape(_plain(run.summary.get("name") or run.id)).replace("$", _DOLLAR)
    whose = f"{side}, {name}" if side else name
    found = ["", f"<details><summary>Timeline of {whose}: {text.several(len(rows), 'row')}</summary>", ""]
    found += ["| event | what | status | took |", "|---|---|---|---|"]
    for row in rows[: _limits.REPORT_ROWS_SHORT]:
        told = " ".join(str(row[part]) for part in ("name", "detail", "answer", "result") if row.get(part))
        told = " ".join(filter(None, (told, error_of(row))))
        indent = "&nbsp;" * 2 * min(8, int(row.get("depth") or 0))
        noun, told = str(row.get("kind")).partition(".")[0], text.cut(told, _limits.REPORT_CELL_CHARACTERS_MAX)
        what, took = f"{indent}**{_m(noun)}** {_m(told)}", _m(text.duration(row.get("duration_us")))
        found.append(f"| {_m(row.get('seq'))} | {what} | {_m(row.get('status'))} | {took} |")
    if len(rows) > _limits.REPORT_ROWS_SHORT:
        found += ["", f"and {len(rows) - _limits.REPORT_ROWS_SHORT:,} more"]
    return [*found, "", "</details>"]


def _plain(value: Any) -> str:
    """Return a text in one line; nobody is mentioned by it, and nothing linked."""
    told = "" if value is None else str(value)
    return _LOOKED_FOR.sub(_PARTED, "".join(letter if letter.isprintable() else " " for letter in told))


def _m(value: Any) -> str:
    """Return a text in which Markdown and HTML see nothing special, in one line."""
    told = _SPECIAL.sub(r"\\\1", _plain(value))
    return told.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;").replace("$", _DOLLAR)


def _code(value: Any) -> str:
    """Return a text as code, in one line; a backtick in it is another letter."""
    plain = "".join(letter if letter.isprintable() else " " for letter in str(value or ""))
    return f"`{plain.replace('`', 'ˋ').replace('|', '¦')}`" if plain.strip() else "nothing"
