"""Write an audit in Markdown, fit for a comment on a pull request.

Whatever came from a run stands in a code span, in which nothing means anything: no link, no mention, no tag. A text
that could end the span, or the cell of a table, has all its signs written as numbers.
"""

from __future__ import annotations

import re

from playhead import _limits
from playhead.cli import audit_rows
from playhead.cli.output import one_line
from playhead.views.audit.findings import RULES, SEVERITIES, Audit

_NO_SIGN = re.compile(r"[^A-Za-z0-9 ]")


def code(text: str) -> str:
    """Return a text that means nothing but itself; nothing for one of spaces alone, of which no span can be made."""
    told = one_line(text).strip()
    if not told:
        return ""
    if "`" in told or "|" in told:
        return f"<code>{_NO_SIGN.sub(lambda sign: f'&#{ord(sign[0])};', told)}</code>"
    return f"`{told}`"


def markdown(audit: Audit, limit: int, failed: dict[str, int]) -> str:
    """Return the document: of each rule at most so many rows, and no more than fit a comment; all of it with 0."""
    told = _document(audit, limit, failed)
    while limit > 1 and len(told) > _limits.REPORT_COMMENT_CHARACTERS_MAX:
        limit //= 2
        told = _document(audit, limit, failed)
    return told


def _document(audit: Audit, limit: int, failed: dict[str, int]) -> str:
    out = ["## Playhead audit", ""]
    shown, of_all = audit_rows.shown_runs(audit)
    out += [f"- {of_all}"] if of_all else []
    left_out = len(shown) - audit_rows.RUNS_SHOWN_MAX if limit else 0
    shown = shown[: audit_rows.RUNS_SHOWN_MAX] if left_out > 0 else shown
    for run in shown:
        sign = "✅" if audit_rows.is_sound(run) else "❌"
        integrity, completeness = audit_rows.standing(run)
        name = " ".join(filter(None, (code(audit_rows.title(run)), code(run.run), code(audit_rows.origin(run)))))
        out.append(f"- {sign} {name}: integrity {code(integrity)}, completeness {code(completeness)}")
    out += [f"- {left_out:,} more of these"] if left_out > 0 else []
    out += ["", f"**{audit_rows.summary(audit)}**"]
    out += ["", f"❌ **{audit_rows.fails(failed)}**"] if failed else []
    if audit.findings:
        out += ["", *_table(["rule", "findings", *SEVERITIES], audit_rows.overview(audit))]
    for rule, meaning in RULES.items():
        rows = audit_rows.rows(audit, rule)
        if rows:
            out += ["", "<details>", f"<summary><b>{rule}</b> ({audit.counts[rule]}): {meaning}</summary>", ""]
            cells = [
                [row.severity, _where(row.run, row.events), code(row.detail),
                 code(row.path)]
                for row in rows[: limit or None]
            ]  # fmt: skip
            out += _table(["severity", "where", "what", "in"], cells)
            if limit and len(rows) > limit:
                out += ["", f"{len(rows) - limit} more."]
            out += ["", "</details>"]
    if audit.policy:
        out += ["", "<details>", f"<summary><b>policy</b> ({len(audit.policy)}): decisions</summary>", ""]
        short = audit_rows.short_ids(audit)
        decided = [
            [code(one.decision), _where(short[one.run], audit_rows.events(one.seqs)), code(audit_rows.decision(one))]
            for one in audit.policy[: limit or None]
        ]
        more = len(audit.policy) - len(decided)
        out += [*_table(["decision", "where", "about"], decided), *(["", f"{more:,} more."] if more else [])]
        out += ["", "</details>"]
    return "\n".join(out) + "\n"


def _where(run: str, events: str) -> str:
    return f"{code(run)} {events}".strip()


def _table(columns: list[str], rows: list[list[str]] | list[list[int | str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return [f"| {' | '.join(str(cell) for cell in row)} |" for row in lines]
