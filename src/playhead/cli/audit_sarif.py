"""Write an audit as SARIF 2.1.0, for what shows findings in code review."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playhead._version import __version__
from playhead.cli import audit_rows
from playhead.cli.output import one_line
from playhead.views.audit.findings import RULES, Audit, AuditedRun, Finding

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {"high": "error", "medium": "warning", "low": "note", "info": "note"}
_FINGERPRINT = "playheadAudit/v1"


def sarif(audit: Audit) -> dict[str, Any]:
    """Return the document: one result for each finding, at its line of the timeline."""
    numbers = {rule: number for number, rule in enumerate(RULES)}
    runs = {one.run: one for one in audit.runs}
    rules = [{"id": rule, "shortDescription": {"text": meaning}} for rule, meaning in RULES.items()]
    driver = {"name": "Playhead", "version": __version__, "rules": rules}
    results = [_result(one, runs[one.run], numbers[one.rule]) for one in audit.findings]
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "invocations": [_invocation(audit)], "results": results}],
    }


def _invocation(audit: Audit) -> dict[str, Any]:
    """Say which records can not be relied on, beside the results."""
    problems = []
    for run in audit.runs:
        if not audit_rows.is_sound(run):
            integrity, completeness = audit_rows.standing(run)
            told = f"{run.run}: integrity {integrity}, completeness {completeness}"
            level = "error" if run.integrity["verdict"] == "broken" else "warning"
            problems.append({"level": level, "message": _message(told)})
    return {"executionSuccessful": True, **({"toolExecutionNotifications": problems} if problems else {})}


def _result(one: Finding, run: AuditedRun, number: int) -> dict[str, Any]:
    same = "\0".join((one.rule, one.what, one.target, one.path))
    digest = hashlib.sha256(same.encode("utf-8", "backslashreplace")).hexdigest()[:32]
    inside = f" in {one_line(one.path)}" if one.path else ""
    return {
        "ruleId": one.rule,
        "ruleIndex": number,
        "level": _LEVELS[one.severity],
        "message": _message(f"{one_line(one.detail)} ({one.run}, event {one.seq}{inside})"),
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(run)},
                    "region": {"startLine": max(1, one.seq + 1)},
                },
                "logicalLocations": [
                    {"fullyQualifiedName": f"playhead://{one.run}/{one.seq}", "kind": "member", "name": one.what}
                ],
            }
        ],
        "partialFingerprints": {_FINGERPRINT: digest},
        "properties": {"severity": one.severity, "target": one.target, "count": one.count, "seqs": one.seqs},
    }


def _message(told: str) -> dict[str, str]:
    """Return a text in which nothing is a link or a placeholder, as `[…](…)` and `{0}` are in SARIF."""
    return {"text": told.replace("](", "] (").replace("{", "{{").replace("}", "}}")}


def _uri(run: AuditedRun) -> str:
    """Return where the lines are: relative to the working directory, as services want it, where they lie in it."""
    if run.timeline is None:
        return run.run
    path = Path(run.timeline)
    if not path.is_relative_to(os.getcwd()):
        return path.as_uri()
    return quote(os.fsencode(path.relative_to(os.getcwd()).as_posix()))
