"""Write a report as one page that holds everything: no request goes anywhere, and nothing of a run is acted on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import orjson

from playhead import _limits
from playhead.views import prices, text
from playhead.views.points import mapping
from playhead.views.report.contract import Report, ReportedRun
from playhead.views.words import is_patch, words
from playhead.views.words import lines as lines_of

_GOOD = frozenset({"ok", "intact", "complete", "allow", "self-consistent", "signed", "witnessed"})
_BAD = frozenset({"error", "crashed", "broken", "missing", "deny", "high"})
_INDENT_MAX = 12
_NAMES = ("name", "model", "capability", "what", "text")  # by what an event is known in a list
# Of what a browser would load, run or send, nothing is allowed but what stands in the page.
_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


def page_of(report: Report, style: str, script: str) -> str:
    """Return the whole page, with a style and a script in it."""
    title = " and ".join(_name(run) for run in report.runs)
    parts = [f"<h1>{_e(title)}</h1>", *(_head(number, run) for number, run in enumerate(report.runs)), _nav(report)]
    if report.diff is not None:
        parts.append(_diff(report.diff))
    for number, run in enumerate(report.runs):
        parts.append(_timeline(number, run, len(report.runs) > 1))
    parts += [_metrics(report), _audit(report.audit)]
    parts += [_events(number, run, len(report.runs) > 1) for number, run in enumerate(report.runs)]
    # `<` in data is written as an escape: nothing in it can end the script.
    data = orjson.dumps(report.as_dict(), default=str).decode().replace("<", "\\u003c").replace("\u2028", "\\u2028")
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{_e(title)}</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{_ALLOWED}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer">'
        f"<style>{style}</style></head><body>\n" + "\n".join(parts) + "\n"
        f'<p class="dim">Made by Playhead {_e(report.playhead)}. This page holds everything, and loads nothing.</p>'
        f'<script type="application/json" id="data">{data}</script><script>{script}</script></body></html>\n'
    )


def _head(number: int, run: ReportedRun) -> str:
    about, verified = run.summary, run.verify
    took = text.duration(about.get("duration_us"))
    models = text.several(_count(about, "model_calls"), "call")
    tokens = f"tokens {_count(about, 'tokens_in'):,} in → {_count(about, 'tokens_out'):,} out"
    events = text.several(_count(about, "events"), "event")
    counts = f"{events}, {models} to models, {_count(about, 'tool_calls'):,} to tools"
    cost = prices.told(about.get("cost"), about.get("cost_unpriced") or [])
    badges = [
        _badge("status", about.get("status")),
        _badge("integrity", _verdict(verified, "integrity")),
        _badge("completeness", _verdict(verified, "completeness")),
        _badge("level", verified.get("level")),
    ]
    error = text.error_line(about.get("error"))
    git = mapping(about.get("git"))
    started = ", took ".join(filter(None, (str(about.get("started") or ""), took)))
    facts = [
        ("run", run.id), ("started", started), ("did", f"{counts}; {tokens}"),
        ("cost", cost), ("commit", " ".join(str(git[name]) for name in ("commit", "branch") if git.get(name))),
        ("error", error or ""), ("verified", (verified.get("integrity") or {}).get("message") or ""),
    ]  # fmt: skip
    rows = "".join(f"<tr><th>{_e(name)}</th><td>{_e(value)}</td></tr>" for name, value in facts if value)
    return (
        f"<section>{''.join(badges)}<table>{rows}<tr><th>checked here</th>"
        f'<td id="checked-{number}" class="dim">a browser with scripts checks every line</td></tr></table></section>'
    )


def _nav(report: Report) -> str:
    names = [("diff", "Differences")] if report.diff is not None else []
    names += [("timeline-0", "Timeline"), ("metrics", "Metrics"), ("audit", "Audit"), ("events-0", "Events")]
    return "<nav>" + "".join(f'<a href="#{place}">{name}</a>' for place, name in names) + "</nav>"


def _timeline(number: int, run: ReportedRun, several: bool) -> str:
    rows = []
    for row in run.timeline:
        if row.get("quiet"):
            continue
        indent = 16 * min(_INDENT_MAX, int(row.get("depth") or 0))
        told = " ".join(str(row[name]) for name in ("detail", "answer", "result") if row.get(name))
        error = f'<div class="bad">{_e(row["error"])}</div>' if row.get("error") else ""
        noun = _e(str(row.get("kind")).partition(".")[0])
        what = f'<b>{noun}</b> {_e(row.get("name"))} <span class="dim">{_e(told)}</span>{error}'
        tone = _tone(row.get("status"))
        rows.append(
            f'<tr><td class="number"><a href="#e{number}-{_e(row.get("seq"))}">{_e(row.get("seq"))}</a></td>'
            f'<td style="padding-left:{indent + 8}px">{what}</td><td class="{tone}">{_e(row.get("status"))}</td>'
            f'<td class="number dim">{_e(text.duration(row.get("duration_us")))}</td></tr>'
        )
    more = f'<p class="dim">{run.rows_left_out:,} rows are left out.</p>' if run.rows_left_out else ""
    return f'<h2 id="timeline-{number}">Timeline{_of(run, several)}</h2><table>{"".join(rows)}</table>{more}'


def _metrics(report: Report) -> str:
    parts = []
    for run in report.runs:
        groups = run.metrics.get("groups")
        if isinstance(groups, list) and groups:
            parts.append(f"<h3>{_e(_name(run))}</h3>{_flat_table(groups)}")
    return f'<h2 id="metrics">Metrics</h2>{"".join(parts) or "<p class=dim>No model was asked.</p>"}'


def _flat_table(groups: Sequence[Any]) -> str:
    """Write groups of numbers as a table, whichever they have."""
    flat = [_flat(group) for group in groups if isinstance(group, dict)]
    columns = [
        name for name in dict.fromkeys(name for row in flat for name in row) if any(row.get(name) for row in flat)
    ]
    head = "".join(f"<th>{_e(name.replace('_', ' '))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_e(_number(row.get(name)))}</td>" for name in columns) + "</tr>" for row in flat
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _flat(group: dict[str, Any], before: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in group.items():
        if isinstance(value, dict):
            found.update(_flat(value, f"{before}{name} "))
        elif not isinstance(value, list):
            found[f"{before}{name}"] = value
    return found


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.4g}"
    return f"{value:,}" if type(value) is int else "" if value is None else str(value)


def _audit(audit: dict[str, Any]) -> str:
    findings = [one for one in audit.get("findings") or () if isinstance(one, dict)]
    counts = mapping(audit.get("counts"))
    badges = "".join(_badge(name, count) for name, count in counts.items() if count)
    rows = "".join(
        f'<tr><td>{_e(one.get("rule"))}</td><td class="{_tone(one.get("severity"))}">{_e(one.get("severity"))}</td>'
        f'<td class="number">{_e(one.get("seq"))}</td><td>{_e(one.get("detail"))}</td></tr>'
        for one in findings[: _limits.REPORT_FINDINGS_MAX]
    )
    more = len(findings) - _limits.REPORT_FINDINGS_MAX
    told = f'<p class="dim">{more:,} more findings are in the data of this page.</p>' if more > 0 else ""
    head = "<tr><th>rule</th><th>severity</th><th>event</th><th>what</th></tr>"
    body = f"<table>{head}{rows}</table>{told}" if findings else '<p class="ok">Nothing was found.</p>'
    return f'<h2 id="audit">Audit</h2>{badges}{body}'


def _diff(diff: dict[str, Any]) -> str:
    said = {True: "No difference in what the two runs did and were answered.", None: "Could not tell."}.get(
        diff.get("identical"), "The final output differs." if diff.get("output_differs") else "The runs differ."
    )
    rows = "".join(_deviation(one) for one in diff.get("deviations") or ())
    config = "".join(_change(one) for one in diff.get("config") or ())
    with_ = f"<h3>Ran with, left → right</h3>{config}" if config else ""
    return f'<h2 id="diff">Differences</h2><p><b>{_e(said)}</b></p>{rows}{with_}'


def _deviation(one: dict[str, Any]) -> str:
    seqs = [
        "–" if one.get(side) is None else f'<a href="#e{number}-{_e(one[side])}">{_e(one[side])}</a>'
        for number, side in enumerate(("left_seq", "right_seq"))
    ]
    point = " ◆" if one.get("deviation_point") else ""
    cause = f'<span class="dim">{_e(one.get("cause") or "")}{point}</span>'
    head = f"{' → '.join(seqs)} <b>{_e(one.get('type'))}</b> {_e(one.get('path'))} {cause}"
    opened = "" if one.get("cause") == "follows" else " open"
    inside = "".join(_change(change) for change in one.get("changes") or ())
    return f"<details{opened}><summary>{head}</summary>{inside}</details>"


def _change(change: dict[str, Any]) -> str:
    left, right = change.get("left"), change.get("right")
    path = f'<div class="dim"><code>{_e(change.get("path") or "/")}</code></div>'
    if isinstance(left, str) and isinstance(right, str):
        if is_patch(left) or is_patch(right):
            return f"{path}<pre>{_patch(lines_of(left, right))}</pre>"
        tags = {"added": "ins", "removed": "del"}
        pieces = "".join(
            f"<{tags[piece.how]}>{_e(piece.text)}</{tags[piece.how]}>" if piece.how in tags else _e(_middle(piece.text))
            for piece in words(left, right)
        )
        return f"{path}<pre>{pieces}</pre>"
    was = f"<del>{_e(_json(left))}</del>" if "left" in change else ""
    now = f"<ins>{_e(_json(right))}</ins>" if "right" in change else ""
    return f"{path}<pre>{' → '.join(filter(None, (was, now)))}</pre>"


def _patch(found: Iterable[str]) -> str:
    out = []
    for line in found:
        tag = {"+": "ins", "-": "del"}.get(line[:1])
        out.append(f"<{tag}>{_e(line)}</{tag}>" if tag else _e(line))
    return "\n".join(out)


def _events(number: int, run: ReportedRun, several: bool) -> str:
    out = []
    for seq, line in enumerate(run.lines):
        try:
            fields = orjson.loads(line)
            kind, data = str(fields.get("kind")), fields.get("data")
            name = (
                data.get("name") or data.get("model") or data.get("capability") or data.get("what") or ""
                if isinstance(data, dict)
                else ""
            )
        except orjson.JSONDecodeError:
            kind, name = "unreadable", ""
        most = _limits.REPORT_LINE_CHARACTERS_MAX
        shown = line if len(line) <= most else f"{line[:most]}…"
        out.append(
            f'<details class="event" id="e{number}-{seq}"><summary><span class="dim">{seq}</span> {_e(kind)}'
            f' <span class="dim">{_e(text.cut(str(name), 80))}</span></summary><pre>{_e(shown)}</pre></details>'
        )
    more = f'<p class="dim">{run.lines_left_out:,} lines are left out.</p>' if run.lines_left_out else ""
    search = (
        '<p><input id="filter" placeholder="only events with this text" aria-label="filter"></p>' if not number else ""
    )
    return f'<h2 id="events-{number}">Events{_of(run, several)}</h2>{search}{"".join(out)}{more}'


def _of(run: ReportedRun, several: bool) -> str:
    return f' <span class="dim">of {_e(_name(run))}, {_e(run.id)}</span>' if several else ""


def _name(run: ReportedRun) -> str:
    return str(run.summary.get("name") or run.id)


def _verdict(verified: dict[str, Any], claim: str) -> Any:
    found = verified.get(claim)
    return found.get("verdict") if isinstance(found, dict) else None


def _badge(name: str, value: Any) -> str:
    return "" if value is None else f'<span class="badge">{_e(name)}: <b class="{_tone(value)}">{_e(value)}</b></span>'


def _count(about: dict[str, Any], name: str) -> int:
    value = about.get(name)
    return value if type(value) is int else 0


def _tone(value: Any) -> str:
    return "ok" if value in _GOOD else "bad" if value in _BAD else "dim"


def _middle(same: str) -> str:
    """Return the ends of a long text that did not change."""
    most = _limits.REPORT_CONTEXT_CHARACTERS_MAX
    return same if len(same) <= most else f"{same[: most // 2]} … {same[-most // 2 :]}"


def _json(value: Any) -> str:
    return (
        orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode()
        if isinstance(value, (dict, list))
        else str(value)
    )


def _e(value: Any) -> str:
    """Return a text as it is shown: markup in it is none, and what cannot be seen is written out."""
    return "" if value is None else escape(str(value).translate(_UNSEEN), quote=True)


_UNSEEN = {
    code: f"\\u{code:04x}"
    for code in (*range(9), *range(11, 32), *range(127, 160), 0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F),
                 *range(0x2066, 0x206A), 0xFEFF, *range(0xD800, 0xE000))
}  # fmt: skip
