"""Write an audit for a terminal."""

from __future__ import annotations

from playhead.cli import audit_rows
from playhead.cli.output import Output, Part
from playhead.cli.run_text import symbol
from playhead.views.audit.findings import RULES, SEVERITIES, Audit, AuditedRun


def print_audit(audit: Audit, limit: int, out: Output) -> None:
    """Write it: the state of the records first, then a table of the rules, then the findings of each."""
    _print_runs(audit, out)
    out.print()
    out.styled((audit_rows.summary(audit), "bold"))
    if audit.findings:
        columns = ("rule", "findings", *SEVERITIES)
        out.table(columns, audit_rows.overview(audit), right=columns[1:], whole=columns)
    for rule, meaning in RULES.items():
        rows = audit_rows.rows(audit, rule)
        if not rows:
            continue
        out.print()
        out.styled((rule, "bold"), (f"  {meaning}", "dim"))
        _print_rows(rows[: limit or None], out)
        if limit and len(rows) > limit:
            out.styled((f"  {len(rows) - limit:,} more; --limit 0 shows all", "dim"))
    _print_policy(audit, limit, out)


def _print_runs(audit: Audit, out: Output) -> None:
    shown, of_all = audit_rows.shown_runs(audit)
    for one in shown:
        _print_run(one, out)
    if of_all:
        out.print(of_all)


def _print_run(run: AuditedRun, out: Output) -> None:
    sign, style = symbol("ok" if audit_rows.is_sound(run) else "error", out)
    comes = audit_rows.origin(run)
    parts: list[Part] = [(f"{sign} ", style), (audit_rows.title(run), "bold"), "  ", (run.run, "cyan")]
    out.styled(*parts, f"  {run.status or 'not finished'}", (f"  {comes}" if comes else "", "dim"))
    integrity, completeness = audit_rows.standing(run)
    broken = run.integrity["verdict"] != "intact"
    out.wrapped(["  ", ("integrity     ", "dim")], integrity, "bold red" if broken else "")
    out.wrapped(["  ", ("completeness  ", "dim")], completeness)


def _print_rows(rows: list[audit_rows.Row], out: Output) -> None:
    where = [f"{row.run} {row.events}".strip() for row in rows]
    width = max(map(len, where))
    for row, place in zip(rows, where, strict=True):
        inside = f"  in {row.path}" if row.path else ""
        grave = f"{row.severity:<8}", audit_rows.SIGNS[row.severity]
        out.wrapped(["  ", grave, f"{place:<{width}}  "], row.detail + inside)


def _print_policy(audit: Audit, limit: int, out: Output) -> None:
    if not audit.policy:
        return
    short = audit_rows.short_ids(audit)
    out.print()
    out.styled(("policy", "bold"), ("  what was decided, and by which rule", "dim"))
    for one in audit.policy[: limit or None]:
        sign, style = symbol(one.decision, out)
        where = f"{short[one.run]} {audit_rows.events(one.seqs)}".strip()
        out.wrapped(["  ", (f"{sign} {one.decision:<6}", style), f"{where}  "], audit_rows.decision(one))
    if limit and len(audit.policy) > limit:
        out.styled((f"  {len(audit.policy) - limit:,} more; --limit 0 shows all", "dim"))
