"""Write a report as one page: no request goes anywhere, and nothing of a run is acted on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson

from playhead import _limits
from playhead.views import imported, prices, text
from playhead.views.points import mapping
from playhead.views.report.contract import (
    SIDES,
    Report,
    ReportedRun,
    by_severity,
    error_of,
    is_replay,
    left_out,
    silent,
    started,
    tokens,
    verdict,
    whose,
)
from playhead.views.report.markup import as_json, badge, e, link, tone
from playhead.views.report.page_diff import diff_of, outcome_told

_INDENT_MAX = 12
# Of what a browser would load, run or send, nothing is allowed but what stands in the page.
_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page_of(report: Report, style: str, script: str) -> str:
    """Return the whole page, with a style and a script in it."""
    title = " and ".join(_name(run) for run in report.runs)
    parts = [f"<h1>{e(title)}</h1>", "" if report.diff is None else outcome_told(report.diff), _nav(report)]
    parts += [f'<div class="runs">{"".join(_heads(report))}</div>']
    if report.diff is not None:
        parts.append(diff_of(report.diff))
    for number, run in enumerate(report.runs):
        parts.append(_timeline(number, run, len(report.runs) > 1))
    parts += [_metrics(report), _audit(report)]
    parts += [_events(number, run, len(report.runs) > 1) for number, run in enumerate(report.runs)]
    # `<` in data is written as an escape: nothing in it can end the script.
    data = orjson.dumps(report.as_dict(), default=str).decode().replace("<", "\\u003c").replace("\u2028", "\\u2028")
    missing = left_out(report)
    held = (
        f"This page loads nothing. Not in it: {missing}."
        if missing
        else "This page holds everything, and loads nothing."
    )
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{e(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_ALLOWED}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<style>{style}</style></head><body>\n" + "\n".join(parts) + "\n"
        f'<p class="dim">Made by Playhead {e(report.playhead)}. {held}</p>'
        f'<script type="application/json" id="data">{data}</script><script>{script}</script></body></html>\n'
    )


def _heads(report: Report) -> list[str]:
    sides = SIDES if len(report.runs) > 1 else ("",)
    return [
        _head(number, run, side, _touched(report, run))
        for number, (run, side) in enumerate(zip(report.runs, sides, strict=True))
    ]


def _touched(report: Report, run: ReportedRun) -> str:
    """Count what an audit found of a run, and of the Pythons that it started."""
    belongs = whose(report)
    found = [one for one in by_severity(report.audit) if belongs.get(str(one.get("run")), ("",))[0] == run.id]
    counts = Counter(str(one.get("rule")) for one in found)
    told = ", ".join(f"{counts[rule]:,} {e(rule)}" for rule in mapping(report.audit.get("counts")) if counts[rule])
    high = sum(one.get("severity") == "high" for one in found)
    worst = f'; <b class="bad">{high:,} of high severity</b>' if high else ""
    return f'<a href="#audit">{told or "nothing that an audit finds"}</a>{worst}'


def _head(number: int, run: ReportedRun, side: str, touched: str) -> str:
    about, verified = run.summary, run.verify
    took = text.duration(about.get("duration_us"))
    models = text.several(_count(about, "model_calls"), "call")
    events = text.several(_count(about, "events"), "event")
    counts = f"{events}, {models} to models, {_count(about, 'tool_calls'):,} to tools"
    cost = prices.told(about.get("cost"), about.get("cost_unpriced") or [], silent(run))
    badges = [
        badge("status", about.get("status")),
        badge("integrity", verdict(verified, "integrity"), f"integrity-{number}"),
        badge("completeness", verdict(verified, "completeness")),
        badge("fidelity", verdict(verified, "fidelity") if is_replay(verified) else None),
        badge("level", verified.get("level")),
    ]
    error = "; ".join(filter(None, (text.error_whole(about.get("error")), about.get("last_words"))))
    git, gone = mapping(about.get("git")), about.get("invalidated")
    commit = " ".join(str(git[name]) for name in ("commit", "branch") if git.get(name))
    commit += ", with uncommitted changes" if git.get("dirty") else ""
    begun = ", took ".join(filter(None, (str(about.get("started") or ""), took)))
    facts = [
        ("run", run.id), ("started", begun), ("did", f"{counts}; tokens in → out: {tokens(run)}"),
        ("received", imported.told(about.get("received"), about.get("external_id"))),
        ("cost", cost), ("commit", commit),
        ("invalidated", text.short(gone, _limits.REPORT_CELL_CHARACTERS_MAX) if gone is not None else ""),
        ("error", error), ("verified", (verified.get("integrity") or {}).get("message") or ""),
        ("replay", _compared(mapping(verified.get("fidelity"))) if is_replay(verified) else ""),
    ]  # fmt: skip
    rows = "".join(f"<tr><th>{e(name)}</th><td>{e(value)}</td></tr>" for name, value in facts if value)
    rows += f"<tr><th>touched</th><td>{touched}</td></tr>"
    rows += "".join(
        f"<tr><th>{name}</th><td>{_value(value)}</td></tr>"
        for name, value in (("input", mapping(about.get("request")).get("payload")), ("output", about.get("output")))
        if value is not None
    )
    if children := started(run):
        more = len(children) - _limits.REPORT_ROWS_SHORT
        told = [*children[: _limits.REPORT_ROWS_SHORT], *([f"and {more:,} more"] if more > 0 else [])]
        rows += f"<tr><th>started, not counted here</th><td>{'<br>'.join(map(e, told))}</td></tr>"
    title = f"<h2>{side}: {e(_name(run))}</h2>" if side else ""
    return (
        f"<section>{title}{''.join(badges)}<table>{rows}<tr><th>checked here</th>"
        f'<td id="checked-{number}" class="dim">a browser with scripts checks every line</td></tr></table></section>'
    )


def _compared(fidelity: dict[str, Any]) -> str:
    """Say of what it is a replay, and how it stands to that."""
    found = mapping(fidelity.get("first")).get("text") or fidelity.get("claim") or fidelity.get("why")
    return f"of {fidelity['of']}: {found}"


def _value(value: Any) -> str:
    """Return a value in one line, and all of it where it is asked for."""
    line = text.short(value, _limits.REPORT_CELL_CHARACTERS_MAX)
    if not line.endswith("…"):
        return e(line)
    told = value if isinstance(value, str) else as_json(value)
    most = _limits.REPORT_LINE_CHARACTERS_MAX
    shown = told if len(told) <= most else f"{told[:most]}…"
    return f"<details><summary>{e(line)}</summary><pre>{e(shown)}</pre></details>"


def _nav(report: Report) -> str:
    names = [("diff", "Differences")] if report.diff is not None else []
    names += [("timeline-0", "Timeline"), ("metrics", "Metrics"), ("audit", "Audit"), ("events-0", "Events")]
    return "<nav>" + "".join(f'<a href="#{place}">{name}</a>' for place, name in names) + "</nav>"


def _timeline(number: int, run: ReportedRun, several: bool) -> str:
    shown = [row for row in run.timeline if not row.get("quiet")]
    # What came after the end, such as an import days later, is listed and has no bar: it is no part of the time taken.
    end = _count(run.summary, "events") - _count(run.summary, "after")
    body = [row for row in shown if _count(row, "seq") < end]
    whole = max((_time(row, "at_us") + _time(row, "duration_us") for row in body), default=0) or 1
    rows = "".join(_row(number, row, whole if _count(row, "seq") < end else None) for row in shown)
    more = f'<p class="dim">{run.rows_left_out:,} rows are left out.</p>' if run.rows_left_out else ""
    head = f'<h2 id="timeline-{number}">Timeline{_of(number, run, several)}</h2>'
    return f'{head}<table class="timeline">{rows}</table>{more}'


def _row(number: int, row: dict[str, Any], whole: int | None) -> str:
    """Write a row, with a bar for its time where it is a part of `whole`."""
    told = " ".join(str(row[name]) for name in ("detail", "answer", "result") if row.get(name))
    error = f'<div class="bad">{e(error_of(row))}</div>' if row.get("error") else ""
    noun = e(str(row.get("kind")).partition(".")[0])
    what = f'<b>{noun}</b> {e(row.get("name"))} <span class="dim">{e(told)}</span>{error}'
    status = None if row.get("status") == "point" else row.get("status")  # which says only that it has no length
    depth = min(_INDENT_MAX, int(row.get("depth") or 0))
    begins, took = (100 * _time(row, name) / (whole or 1) for name in ("at_us", "duration_us"))
    bar = f'<i class="{tone(status)}" style="margin-left:{begins:.1f}%;width:{took:.1f}%"></i>' if whole else ""
    return (
        f'<tr><td class="number">{link(number, row.get("seq"))}</td><td style="--depth:{depth}">{what}</td>'
        f'<td class="{tone(status)} word">{e(status)}</td>'
        f'<td class="number dim">{e(text.duration(row.get("duration_us")))}</td>'
        f'<td class="when">{bar}</td></tr>'
    )


def _time(row: dict[str, Any], name: str) -> int:
    value = row.get(name)
    return max(0, value) if type(value) is int else 0


def _metrics(report: Report) -> str:
    parts = []
    for number, run in enumerate(report.runs):
        groups = run.metrics.get("groups")
        tables = [_latencies(mapping(run.metrics.get("total")))]
        tables += [_flat_table(groups)] if isinstance(groups, list) and groups else []
        if any(tables):
            side = f"{SIDES[number]}: " if len(report.runs) > 1 else ""
            parts.append(f"<h3>{side}{e(_name(run))}</h3>{''.join(tables)}")
    none = '<p class="dim">No model was asked, no tool called, and there are no steps.</p>'
    return f'<h2 id="metrics">Metrics</h2>{"".join(parts) or none}'


def _latencies(total: dict[str, Any]) -> str:
    """Write what calls to models, calls to tools, and steps took, and how many failed."""
    rows = ""
    for what in ("models", "tools", "steps"):
        found = mapping(total.get(what))
        count = _count(found, "calls") or _count(found, "count")
        if count:
            failed, retries = _count(found, "errors") or _count(found, "failed"), _count(found, "retries")
            times = (_milliseconds(found.get(name)) for name in ("p50_ms", "p95_ms", "p99_ms", "ms"))
            cells = (f"{count:,}", f"{failed:,}", f"{retries:,}" if "retries" in found else "", *times)
            rows += f"<tr><th>{what}</th>{''.join(f'<td>{e(cell)}</td>' for cell in cells)}</tr>"
    columns = ("", "count", "failed", "retries", "p50", "p95", "p99", "in all")
    head = "".join(f"<th>{name}</th>" for name in columns)
    return f'<div class="wide"><table><tr>{head}</tr>{rows}</table></div>' if rows else ""


def _milliseconds(value: Any) -> str:
    return text.duration(value * 1000) if type(value) in (int, float) else ""


def _flat_table(groups: Sequence[Any]) -> str:
    """Write groups of numbers as a table, whichever they have."""
    flat = [_flat(group) for group in groups if isinstance(group, dict)]
    columns = [
        name for name in dict.fromkeys(name for row in flat for name in row) if any(row.get(name) for row in flat)
    ]
    head = "".join(f"<th>{e(_title(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{e(_cell(name, row.get(name)))}</td>" for name in columns) + "</tr>" for row in flat
    )
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'


def _flat(group: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    if group.get("without_usage") and not (group.get("tokens_in") or group.get("tokens_out")):
        group = {**group, "tokens_in": "unknown", "tokens_out": "unknown"}  # no call said its tokens
    for name, value in group.items():
        if isinstance(value, dict):
            found.update(_flat(value, f"{before}{name} "))
        elif not isinstance(value, list):
            found[f"{before}{name}"] = value
    return found


def _title(name: str) -> str:
    """Return what stands over a column of a table of models."""
    plain = name.removeprefix("models ")
    return "in all" if plain == "ms" else plain.removesuffix("_ms").replace("_", " ")


def _cell(name: str, value: Any) -> str:
    if name.endswith("ms"):
        return _milliseconds(value)
    if name.endswith("cost") and type(value) in (int, float):
        return prices.money(value)
    return _number(value)


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if type(value) is int else "" if value is None else str(value)


def _audit(report: Report) -> str:
    audit, ids = report.audit, [run.id for run in report.runs]
    findings = by_severity(audit)
    counts = mapping(audit.get("counts"))
    badges = "".join(badge(name, count) for name, count in counts.items() if count)
    belongs = whose(report) if len(ids) > 1 or any(one.get("run") not in ids for one in findings) else {}
    rows = "".join(_finding(one, ids, belongs) for one in findings[: _limits.REPORT_FINDINGS_MAX])
    more = len(findings) - _limits.REPORT_FINDINGS_MAX
    told = f'<p class="dim">{more:,} more findings are in the data of this page.</p>' if more > 0 else ""
    run = "<th>run</th>" if belongs else ""
    head = f"<tr><th>rule</th><th>severity</th>{run}<th>event</th><th>what</th></tr>"
    body = f"<table>{head}{rows}</table>{told}" if findings else '<p class="ok">Nothing was found.</p>'
    return f'<h2 id="audit">Audit</h2>{badges}{body}'


def _finding(one: dict[str, Any], ids: list[str], belongs: dict[str, tuple[str, str]]) -> str:
    """Write a finding: with a link where its run is in the page, and not of a Python that this one started."""
    whole, severity = str(one.get("run")), one.get("severity")
    run = f"<td>{e(belongs.get(whole, ('', whole))[1])}</td>" if belongs else ""
    seq = link(ids.index(whole), one.get("seq")) if whole in ids else e(one.get("seq"))
    return (
        f'<tr><td class="word">{e(one.get("rule"))}</td><td class="{tone(severity)} word">{e(severity)}</td>{run}'
        f'<td class="number">{seq}</td><td>{e(one.get("detail"))}</td></tr>'
    )


def _events(number: int, run: ReportedRun, several: bool) -> str:
    """Write where the script lists the lines, some at a time: as elements of a page twenty thousand open slowly."""
    values = run.contents_left_out.get("count", 0)
    left = [text.several(run.lines_left_out, "line")] if run.lines_left_out else []
    left += [text.several(values, "large value")] if values else []
    more = f'<p class="dim">Left out: {", ".join(left)}.</p>' if left else ""
    without = "Without scripts they are not listed; the data at the end of this page has them."
    return (
        f'<h2 id="events-{number}">Events{_of(number, run, several)}</h2>'
        f'<noscript><p class="dim">{without}</p></noscript>'
        f'<p><input id="filter-{number}" placeholder="only events with this text" aria-label="filter"> '
        f'<button id="earlier-{number}">earlier</button> <button id="later-{number}">later</button> '
        f'<span id="range-{number}" class="dim"></span></p><div id="list-{number}"></div>{more}'
    )


def _of(number: int, run: ReportedRun, several: bool) -> str:
    return f' <span class="dim">{SIDES[number]}: {e(_name(run))}, {e(run.id)}</span>' if several else ""


def _name(run: ReportedRun) -> str:
    return str(run.summary.get("name") or run.id)


def _count(about: dict[str, Any], name: str) -> int:
    value = about.get(name)
    return value if type(value) is int else 0
