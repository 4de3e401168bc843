"""Say what results of CI come to, at the end of a run that an import made of them."""

from __future__ import annotations

from typing import Any

from playhead.capture.recording import Recording
from playhead.ingest.actions_log import UNKNOWN

_FAILURES = {"failure", "timed_out", "startup_failure", "action_required"}  # words of GitHub, but for the first


def finish(recording: Recording, reports: list[dict[str, Any]]) -> None:
    """End a run that was made of results, and say what they come to."""
    whole = {}
    for at, report in enumerate(reports):
        if report.get("step") is None and report.get("test") is None:
            # Of a job of which more became known later, the last counts; every file of tests is another.
            whole[at if report.get("source") == "junit" else report.get("job")] = report
    result = _overall({str(report.get("result")) for report in whole.values()})
    recording.output = {"result": result, "reports": len(reports)}
    error = None
    if result == "failure":
        failed = [report for report in whole.values() if report.get("result") in _FAILURES]
        said = [f"{report.get('job')}: {report.get('result')}" for report in failed]
        told = next((report["errors"][0] for report in failed if report.get("errors")), ", ".join(said))
        error = {"type": "CiFailed", "message": told}
    elif result == UNKNOWN:
        error = {"type": "CiUnknown", "message": "what was imported does not say how it ended"}
    recording.finish("error" if error else "cancelled" if result == "cancelled" else "ok", error)


def _overall(results: set[str]) -> str:
    """Say what several results come to: a word that nobody knows is no success."""
    if results & _FAILURES:
        return "failure"
    if "cancelled" in results:
        return "cancelled"
    if not results or results - {"success", "skipped", "neutral"}:
        return UNKNOWN
    return "success" if "success" in results else "skipped"
