"""Write an audit as one HTML file that asks nobody for anything: no script, no address, every text escaped."""

from __future__ import annotations

from html import escape

from playhead._version import __version__
from playhead.cli import audit_rows
from playhead.cli.output import clean
from playhead.views.audit.findings import RULES, SEVERITIES, Audit, AuditedRun

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --dim: #888; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
h2 small { font-weight: normal; color: var(--dim); }
table { border-collapse: collapse; width: 100%; } th, td { text-align: left; vertical-align: top; padding: .25rem .6rem;
  border-bottom: 1px solid var(--line); } th { font-weight: 600; } .n { text-align: right; }
td.what { font-family: ui-monospace, monospace; font-size: .85rem; overflow-wrap: anywhere; }
td.in { color: var(--dim); overflow-wrap: anywhere; } .id { font-family: ui-monospace, monospace; }
.high, .bad { color: #c62828; font-weight: 600; } .medium { color: #b26a00; } .low { color: #00758f; }
.info { color: var(--dim); }
.good { color: #2e7d32; } dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; margin: 0 0 1rem; }
dt { color: var(--dim); } dd { margin: 0; overflow-wrap: anywhere; } footer { color: var(--dim); margin-top: 3rem; }
@media (prefers-color-scheme: dark) {
  .high, .bad { color: #ff8a80; } .medium { color: #ffb74d; } .low { color: #4dd0e1; } .good { color: #81c784; } }
"""


def html(audit: Audit, limit: int, failed: dict[str, int]) -> str:
    """Return the whole page; of each rule at most so many rows, or all with 0."""
    shown, of_all = audit_rows.shown_runs(audit)
    body = ["<h1>Audit</h1>", *_runs(shown), *([f"<p>{_text(of_all)}</p>"] if of_all else [])]
    body.append(f"<h2>{_text(audit_rows.summary(audit))}</h2>")
    body += [f'<p class="bad">{_text(audit_rows.fails(failed))}</p>'] if failed else []
    if audit.findings:
        head = "<th>rule</th>" + "".join(f'<th class="n">{name}</th>' for name in ("findings", *SEVERITIES))
        body.append(f"<table><tr>{head}</tr>")
        for rule, *counts in audit_rows.overview(audit):
            numbers = "".join(f'<td class="n">{count}</td>' for count in counts)
            body.append(f'<tr><td><a href="#{rule}">{rule}</a></td>{numbers}</tr>')
        body.append("</table>")
    for name in RULES:
        body += _rule(audit, name, limit)
    body += _policy(audit)
    body += _runs([run for run in audit.runs if audit_rows.is_sound(run)]) if of_all else []
    return _PAGE.format(style=_STYLE, body="\n".join(body), version=_text(__version__))


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>Playhead audit</title>
<style>{style}</style>
</head>
<body>
{body}
<footer>Playhead {version}. Every event can be looked at: <code>playhead show RUN --event SEQ</code>.</footer>
</body>
</html>
"""


def _runs(runs: list[AuditedRun]) -> list[str]:
    out = []
    for run in runs:
        integrity, completeness = audit_rows.standing(run)
        good = "good" if audit_rows.is_sound(run) else "bad"
        comes = audit_rows.origin(run)
        out.append(f'<h2>{_text(audit_rows.title(run))} <small class="id">{_text(run.run)}</small></h2><dl>')
        facts = [("integrity", integrity, good), ("completeness", completeness, good), ("origin", comes, "")]
        facts.insert(0, ("ended", run.status or "not finished", ""))
        out += [f'<dt>{label}</dt><dd class="{style}">{_text(told)}</dd>' for label, told, style in facts if told]
        out.append("</dl>")
    return out


def _rule(audit: Audit, rule: str, limit: int) -> list[str]:
    rows = audit_rows.rows(audit, rule)
    if not rows:
        return []
    out = [f'<h2 id="{rule}">{rule} <small>{_text(RULES[rule])}</small></h2>', "<table>"]
    out.append("<tr><th>severity</th><th>where</th><th>what</th><th>in</th></tr>")
    for row in rows[: limit or None]:
        where = _text(f"{row.run} {row.events}".strip())
        out.append(
            f'<tr><td class="{row.severity}">{row.severity}</td><td>{where}</td>'
            f'<td class="what">{_text(row.detail)}</td><td class="in">{_text(row.path)}</td></tr>'
        )
    out.append("</table>")
    if limit and len(rows) > limit:
        out.append(f"<p>{len(rows) - limit} more.</p>")
    return out


def _policy(audit: Audit) -> list[str]:
    if not audit.policy:
        return []
    short = audit_rows.short_ids(audit)
    out = ["<h2>policy <small>what was decided, and by which rule</small></h2>", "<table>"]
    for one in audit.policy:
        where = f"{short[one.run]} {audit_rows.events(one.seqs)}".strip()
        about = _text(audit_rows.decision(one))
        out.append(f'<tr><td>{_text(one.decision)}</td><td>{_text(where)}</td><td class="what">{about}</td></tr>')
    return [*out, "</table>"]


def _text(text: str) -> str:
    return escape(clean(text), quote=True)
