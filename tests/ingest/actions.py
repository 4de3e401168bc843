"""Write logs as GitHub Actions does."""

from __future__ import annotations

import io
import zipfile
from typing import Any


def lines(minute: int, *texts: str) -> str:
    return "".join(f"2026-01-02T03:{minute:02}:0{n}.1234567Z {text}\n" for n, text in enumerate(texts))


SETUP = lines(0, "Current runner version: '2.3'")
TESTS = lines(1, "##[group]Run pytest", "\x1b[36;1mpytest\x1b[0m", "##[endgroup]", "1 failed",
              "##[error]Process completed with exit code 1.")  # fmt: skip
DONE = lines(2, "Cleaning up orphan processes")


def zipped(members: dict[str, str | bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return target.getvalue()


def logs_zip() -> bytes:
    """Return the zip of a run with two jobs, one of which failed."""
    return zipped({
        "1_lint.txt": lines(0, "all good"),
        "0_build  call.txt": f"\ufeff{SETUP}{TESTS}{DONE}",
        "-2147483648_build  call.txt": "of an older service",
        "build  call/10_Complete job.txt": DONE,
        "build  call/1_Set up job.txt": f"\ufeff{SETUP}",
        "build  call/2_Run pytest.txt": TESTS,
        "readme.md": "no log",
    })  # fmt: skip


def jobs_json(sha: str) -> dict[str, Any]:
    """Return what the API says of that run."""
    steps = [
        {"name": "Set up job", "number": 1, "conclusion": "success", "started_at": "2026-01-02T03:00:00Z"},
        {"name": "Run pytest", "number": 2, "conclusion": "failure"},
        {"name": "Upload", "number": 3, "conclusion": "skipped"},
        {"name": "Complete job", "number": 10, "conclusion": "success"},
    ]
    build = {
        "id": 1, "run_id": 99123, "run_attempt": 2, "head_sha": sha, "name": "build / call", "conclusion": "failure",
        "started_at": "2026-01-02T03:00:00Z", "completed_at": "2026-01-02T03:03:00Z", "workflow_name": "CI",
        "html_url": "https://github.com/o/r/actions/runs/99123/job/1", "steps": steps,
    }  # fmt: skip
    lint = {"name": "lint", "conclusion": "success", "started_at": "2026-01-02T03:00:30Z", "steps": []}
    return {"total_count": 3, "jobs": [build, lint, {"name": "deploy", "conclusion": "skipped"}]}
