"""Say how far jobs are, and cancel them."""

from __future__ import annotations

from typing import Any, Literal

from playhead import _limits
from playhead._clock import utc_text
from playhead.server import paging
from playhead.server.asking import Ask
from playhead.server.routes.runs import Limit, Text
from playhead.server.routing import Query, route
from playhead.store.registry.jobs import Job


class JobsQuery(Query):
    """Which jobs, and how many at once."""

    status: Literal["queued", "running", "completed", "failed", "cancelled"] | None = None  # only jobs that stand so
    limit: Limit = _limits.LIST_RUNS_DEFAULT  # jobs in one page
    cursor: Text | None = None  # the `next` of the page before


@route("GET", "/api/jobs", group="Jobs", query=JobsQuery)
def list_jobs(ask: Ask) -> dict[str, Any]:
    """List jobs, newest first: `{jobs, next}`, each as GET /api/jobs/{id} has it."""
    question = [ask.project.name, "jobs", ask.query.status]
    after = paging.after(ask.query.cursor, question)
    found, last = ask.project.jobs.list(ask.project.name, ask.query.limit, after, ask.query.status)
    return {"jobs": [told(one) for one in found], "next": None if last is None else paging.cursor(last, question)}


@route("GET", "/api/jobs/{id}", group="Jobs")
def one_job(ask: Ask) -> dict[str, Any]:
    """Say how far a job is, and what came of it.

    `{id, kind, status, progress, result, error, args, attempts, created, started, finished}`: `status` is `queued`,
    `running`, `completed`, `failed` or `cancelled`; `progress` is `{done, total}`, in events.

    `result` of a re-ingest holds `run_id`, `mode` (`reingest`), `executed` (false), `span_count`, `hash_valid`, and the
    three verdicts it must not be read without: `integrity`, `completeness`, `fidelity`; and `diff`.
    """
    return told(ask.project.jobs.get(ask.project.name, ask.path["id"]))


@route("DELETE", "/api/jobs/{id}", scope="ingest", group="Jobs")
def cancel_job(ask: Ask) -> dict[str, Any]:
    """Cancel a job; 409 where it has ended already. What it had written is removed."""
    return told(ask.project.jobs.cancel(ask.project.name, ask.path["id"]))


def told(job: Job) -> dict[str, Any]:
    """Return what is told of a job."""
    return {
        "id": job.id, "kind": job.kind, "status": job.status, "progress": {"done": job.done, "total": job.total},
        "result": job.result, "error": job.error, "args": job.args, "attempts": job.attempts,
        "created": _moment(job.created_us), "started": _moment(job.started_us), "finished": _moment(job.finished_us),
    }  # fmt: skip


def _moment(at_us: int | None) -> str | None:
    return None if at_us is None else utc_text(at_us)
