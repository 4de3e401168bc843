from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.store.children import command, environment
from tests.store.registry.conftest import HandClock

from playhead import _limits
from playhead._ids import is_job_id
from playhead.errors import Conflict, NotFound, UsageError
from playhead.store.registry.database import Registry
from playhead.store.registry.jobs import Jobs

WORK = """
import os, sys, time
from pathlib import Path
from playhead.store.registry.database import Registry
from playhead.store.registry.jobs import Jobs
jobs, me = Jobs(Registry(Path(sys.argv[1]))), f"worker-{os.getpid()}"
sys.stdin.readline()
while (job := jobs.claim(me, 30)) is not None:
    with open(sys.argv[2], "a") as file:
        file.write(job.id + "\\n")
    assert jobs.complete(job.id, me, {"by": me})
"""
HANG = """
import sys, time
from pathlib import Path
from playhead.store.registry.database import Registry
from playhead.store.registry.jobs import Jobs
print(Jobs(Registry(Path(sys.argv[1]))).claim("hangs", 0.5).id, flush=True)
time.sleep(60)
"""


@pytest.fixture
def jobs(registry: Registry) -> Jobs:
    return Jobs(registry)


def test_a_job_is_queued_taken_worked_on_and_done(jobs: Jobs) -> None:
    job = jobs.add("default", "reingest", {"cassette": "cas_1"})
    assert is_job_id(job.id)
    assert (job.status, job.attempts, job.worker, job.result) == ("queued", 0, None, None)
    taken = jobs.claim("w", 10)
    assert taken is not None
    assert (taken.id, taken.status, taken.attempts, taken.worker) == (job.id, "running", 1, "w")
    assert taken.args == {"cassette": "cas_1"}
    assert jobs.claim("x", 10) is None
    assert jobs.progress(job.id, "w", 3, 7)
    assert (jobs.get("default", job.id).done, jobs.get("default", job.id).total) == (3, 7)
    assert jobs.renew(job.id, "w", 10)
    assert jobs.complete(job.id, "w", {"run": "run_1"})
    done = jobs.get("default", job.id)
    assert (done.status, done.result, done.error, done.lease_us) == ("completed", {"run": "run_1"}, None, None)
    assert done.created_us <= (done.started_us or 0) <= (done.finished_us or 0)


def test_the_oldest_comes_first_of_whichever_project(jobs: Jobs) -> None:
    ids = [jobs.add(project, "k", {}).id for project in ("mail", "default", "mail")]
    taken = [jobs.claim("w", 10) for _ in range(4)]
    assert [None if job is None else job.id for job in taken] == [*ids, None]


def test_jobs_are_listed_by_project_and_status_newest_first(jobs: Jobs) -> None:
    ids = [jobs.add("default", "k", {}).id for _ in range(5)]
    jobs.add("mail", "k", {})
    jobs.claim("w", 10)
    first, after = jobs.list("default", 3)
    second, end = jobs.list("default", 3, after)
    assert [job.id for job in (*first, *second)] == ids[::-1]
    assert end is None
    assert [job.id for job in jobs.list("default", status="running")[0]] == [ids[0]]
    assert len(jobs.list("mail")[0]) == 1
    with pytest.raises(UsageError, match="no job has the status"):
        jobs.list("default", status="lost")
    with pytest.raises(UsageError, match="page"):
        jobs.list("default", after="job_1")


def test_a_job_of_another_project_does_not_exist(jobs: Jobs) -> None:
    job = jobs.add("default", "k", {})
    for ask in (jobs.get, jobs.cancel):
        for project, id in (("mail", job.id), ("default", "job_1"), ("default", "\ud800")):
            with pytest.raises(NotFound):
                ask(project, id)
    assert jobs.get("default", job.id).status == "queued"


def test_only_the_worker_that_has_a_job_may_say_anything_of_it(jobs: Jobs) -> None:
    job = jobs.add("default", "k", {})
    assert not jobs.complete(job.id, "w", {}), "nobody has it"
    jobs.claim("w", 10)
    for act in (
        jobs.renew(job.id, "x", 10),
        jobs.progress(job.id, "x", 1, 2),
        jobs.complete(job.id, "x", {}),
        jobs.fail(job.id, "x", {}),
        jobs.renew("job_1", "w", 10),
    ):
        assert act is False
    assert jobs.fail(job.id, "w", {"message": "no"})
    assert not jobs.complete(job.id, "w", {}), "it has ended"
    assert jobs.get("default", job.id).error == {"message": "no"}


def test_a_lease_that_has_run_out_is_lost(jobs: Jobs, clock: HandClock) -> None:
    job = jobs.add("default", "k", {})
    jobs.claim("w", 10)
    clock.pass_s(6)
    assert jobs.renew(job.id, "w", 10)
    clock.pass_s(6)
    assert jobs.claim("x", 10) is None
    clock.pass_s(6)
    assert not jobs.renew(job.id, "w", 10)
    again = jobs.claim("x", 10)
    assert again is not None
    assert (again.id, again.worker, again.attempts) == (job.id, "x", 2)
    assert not jobs.complete(job.id, "w", {"by": "w"})
    assert jobs.complete(job.id, "x", {"by": "x"})
    assert jobs.get("default", job.id).result == {"by": "x"}


def test_a_job_that_is_given_back_waits_for_the_next_as_if_it_had_never_been_taken(jobs: Jobs) -> None:
    job = jobs.add("default", "k", {})
    for _ in range(_limits.JOB_ATTEMPTS_MAX + 1):
        taken = jobs.claim("w", 10)
        assert taken is not None
        assert taken.attempts == 1
        assert not jobs.release(job.id, "x"), "only its worker gives it back"
        assert jobs.release(job.id, "w")
        assert not jobs.complete(job.id, "w", {})
    assert jobs.get("default", job.id) == job


def test_a_job_that_takes_its_workers_along_is_given_up(jobs: Jobs, clock: HandClock) -> None:
    job = jobs.add("default", "k", {})
    for attempt in range(_limits.JOB_ATTEMPTS_MAX):
        taken = jobs.claim(f"w{attempt}", 10)
        assert taken is not None
        clock.pass_s(11)
    other = jobs.add("default", "k", {})
    taken = jobs.claim("w", 10)
    assert taken is not None
    assert taken.id == other.id
    given_up = jobs.get("default", job.id)
    assert (given_up.status, given_up.attempts) == ("failed", 3)
    assert given_up.error is not None
    assert given_up.error["code"] == "worker_lost"


def test_a_job_that_never_ends_is_failed(jobs: Jobs, clock: HandClock) -> None:
    job = jobs.add("default", "k", {})
    jobs.claim("w", 60)
    for _ in range(int(_limits.JOB_SECONDS_MAX / 50) - 1):
        clock.pass_s(50)
        assert jobs.renew(job.id, "w", 60)
    clock.pass_s(51)
    assert not jobs.renew(job.id, "w", 60)
    failed = jobs.get("default", job.id)
    assert failed.status == "failed"
    assert failed.error is not None
    assert failed.error["code"] == "timed_out"
    assert jobs.claim("x", 60) is None


def test_jobs_whose_worker_is_gone_are_failed_without_another_worker(jobs: Jobs, clock: HandClock) -> None:
    jobs.add("default", "k", {})
    jobs.claim("w", 10)
    clock.pass_s(_limits.JOB_SECONDS_MAX + 1)
    assert jobs.expire() == 1
    assert jobs.expire() == 0


def test_a_job_is_cancelled_at_once_and_its_worker_notices(jobs: Jobs) -> None:
    queued, running, done = (jobs.add("default", "k", {}) for _ in range(3))
    assert jobs.cancel("default", queued.id).status == "cancelled"
    jobs.claim("w", 10)
    assert jobs.cancel("default", running.id).status == "cancelled"
    assert not jobs.renew(running.id, "w", 10)
    assert not jobs.complete(running.id, "w", {})
    assert jobs.get("default", running.id).result is None
    jobs.claim("w", 10)
    jobs.complete(done.id, "w", {})
    with pytest.raises(Conflict, match="is completed already") as caught:
        jobs.cancel("default", done.id)
    assert caught.value.code == "conflict"
    with pytest.raises(Conflict, match="is cancelled already"):
        jobs.cancel("default", queued.id)
    assert jobs.claim("w", 10) is None


def test_two_jobs_cannot_make_the_same_run(jobs: Jobs) -> None:
    first = jobs.add("default", "k", {}, target_run="run_1")
    assert first.target_run == "run_1"
    with pytest.raises(Conflict, match="another job makes the run run_1"):
        jobs.add("default", "k", {}, target_run="run_1")
    jobs.add("mail", "k", {}, target_run="run_1")
    jobs.add("default", "k", {})
    jobs.add("default", "k", {})
    jobs.cancel("default", first.id)
    again = jobs.add("default", "k", {}, target_run="run_1")
    while (job := jobs.claim("w", 10)) is not None:
        jobs.complete(job.id, "w", {})
    assert jobs.get("default", again.id).status == "completed"
    with pytest.raises(Conflict):
        jobs.add("default", "k", {}, target_run="run_1")


def test_what_is_no_json_or_too_much_is_refused(jobs: Jobs) -> None:
    for args in ({"a": object()}, {"a": "x" * _limits.JOB_JSON_BYTES_MAX}, {1: 2}):
        with pytest.raises(UsageError):
            jobs.add("default", "k", args)  # type: ignore[arg-type]


def test_a_restart_forgets_nothing(jobs: Jobs, registry: Registry, root: Path, clock: HandClock) -> None:
    ids = [jobs.add("default", "k", {}).id for _ in range(3)]
    jobs.claim("w", 10)
    registry.close()
    again = Jobs(Registry(root, clock))
    assert [job.status for job in again.list("default")[0]] == ["queued", "queued", "running"]
    assert again.complete(ids[0], "w", {}), "a worker goes on over a restart of the server"
    assert again.list("default")[0][-1].status == "completed"


def start(program: str, *arguments: object) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command(program, *arguments), env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def test_of_many_workers_exactly_one_gets_each_job(root: Path, tmp_path: Path) -> None:
    jobs = Jobs(Registry(root))
    ids = {jobs.add("default", "k", {"number": number}).id for number in range(200)}
    workers = [start(WORK, root, tmp_path / "done") for _ in range(4)]
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write(b"\n")
        worker.stdin.flush()
    for worker in workers:
        worker.communicate(timeout=120)
        assert worker.returncode == 0
    done = Counter((tmp_path / "done").read_text().split())
    assert set(done) == ids
    assert set(done.values()) == {1}
    page, _ = jobs.list("default", 200)
    assert {(job.status, job.attempts) for job in page} == {("completed", 1)}


def test_the_job_of_a_worker_that_was_killed_is_done_by_another(root: Path) -> None:
    jobs = Jobs(Registry(root))
    job = jobs.add("default", "k", {})
    with start(HANG, root) as worker:
        assert worker.stdout is not None
        assert worker.stdout.readline().decode().strip() == job.id
        os.kill(worker.pid, signal.SIGKILL)
    taken = None
    for _ in range(200):
        if (taken := jobs.claim("next", 30)) is not None:
            break
        time.sleep(0.02)
    assert taken is not None
    assert (taken.id, taken.attempts) == (job.id, 2)
    assert not jobs.complete(job.id, "hangs", {})
    assert jobs.complete(job.id, "next", {"ok": True})
