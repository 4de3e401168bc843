"""Do jobs: claim one, feed its cassette in, say what came of it. A worker that is killed leaves its job to another."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson

from playhead import _limits
from playhead import settings as settings_module
from playhead._api.receiving.reingest import Stopped, reingest
from playhead.errors import PlayheadError, StoreError
from playhead.server.projects import Projects
from playhead.store.cassettes.reading import Cassette
from playhead.store.registry.jobs import Job, Jobs

logger = logging.getLogger("playhead.server")

_PROGRESS_S = 0.25  # between two times that it is said how far a job is


class Worker:
    """Do one job after the other, in a thread."""

    def __init__(self, projects: Projects, number: int, stopping: threading.Event, lease_s: float) -> None:
        self._projects = projects
        self._lease_s = lease_s
        self._stopping = stopping
        self._name = f"{os.getpid()}-{number}-{os.urandom(4).hex()}"

    def work(self) -> None:
        """Do what there is to do, until the server stops."""
        while not self._stopping.is_set():
            try:
                job = self._jobs.claim(self._name, self._lease_s)
                if job is not None:
                    self._do(job)
                    continue
            except (PlayheadError, OSError) as problem:
                logger.error("jobs: %s", problem)
            self._stopping.wait(_limits.JOB_POLL_S)

    @property
    def _jobs(self) -> Jobs:
        return Jobs(self._projects.registry)

    def _do(self, job: Job) -> None:
        try:
            with self._kept(job) as lost:
                result = self._done(job, lost)
                if not self._jobs.complete(job.id, self._name, _fitting(result)):
                    self._take_back(job, str(result["run"]))
        except Stopped:
            if self._stopping.is_set():
                self._jobs.release(job.id, self._name)
            # Else whoever cancelled it, or claimed it since, has said what it is now.
        except PlayheadError as problem:
            self._jobs.fail(job.id, self._name, problem.as_dict()["error"])
        except OSError as problem:
            self._jobs.fail(job.id, self._name, StoreError(f"the disk refused: {problem.strerror}").as_dict()["error"])
        except Exception as problem:
            logger.exception("job %s", job.id)
            told = {"code": "internal", "message": f"the server made a mistake: {type(problem).__name__}"}
            self._jobs.fail(job.id, self._name, {**told, "hint": "Its log says what happened.", "detail": None})

    @contextlib.contextmanager
    def _kept(self, job: Job) -> Iterator[threading.Event]:
        """Renew the lease all the while: to read, verify and compare a long run says nothing for long.

        What is yielded is set as soon as the job is no longer ours.
        """
        lost, ended = threading.Event(), threading.Event()

        def renew() -> None:
            while not ended.wait(self._lease_s / 4):
                try:
                    if not self._jobs.renew(job.id, self._name, self._lease_s):
                        lost.set()
                        return
                except (PlayheadError, OSError) as problem:  # the next time may do, before the lease has run out
                    logger.error("job %s: %s", job.id, problem)

        renewing = threading.Thread(target=renew, name=f"playhead-lease-{job.id}", daemon=True)
        renewing.start()
        try:
            yield lost
        finally:
            ended.set()
            renewing.join()

    def _take_back(self, job: Job, run: str) -> None:
        """Remove what was made for a job that was called off while its last part was done."""
        if self._jobs.get(job.project, job.id).status != "cancelled":
            return
        project = self._projects.get(job.project)
        project.store.delete(run)
        project.index.forget(run)

    def _done(self, job: Job, lost: threading.Event) -> dict[str, Any]:
        project = self._projects.get(job.project)
        told_s = time.monotonic()

        def going_on(done: int, total: int) -> bool:
            nonlocal told_s
            if self._stopping.is_set() or lost.is_set():
                return False
            if time.monotonic() - told_s > _PROGRESS_S or done in (0, total):
                told_s = time.monotonic()
                return self._jobs.progress(job.id, self._name, done, total)
            return True

        with tempfile.TemporaryDirectory(prefix="playhead-") as folder:
            kept = project.shelf.get(job.args["cassette"])
            path = Path(folder) / f"{kept.run}{kept.form}"
            project.shelf.extract(kept.id, path)
            named = {"cassette": kept.id, "job": job.id}
            found = reingest(
                Cassette(path), project.store, settings_module.load(), target=str(job.args["run"]),
                run=str(job.args["as"]), named=named, going_on=going_on,
                forget=project.index.forget,
            )  # fmt: skip
        project.note(str(found["run"]))
        return found


def _fitting(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result that can be kept with a job: where there are very many deviations, the first of them.

    How many there are is in `fidelity`, how many are left out in `diff_left_off`; `GET /api/diff` tells all.
    """
    deviations = result["diff"]
    kept, room = 0, _limits.JOB_DIFF_BYTES_MAX
    for one in deviations:
        room -= len(orjson.dumps(one, default=str)) + 1
        if room < 0:
            break
        kept += 1
    return result if kept == len(deviations) else {
        **result, "diff": deviations[:kept], "diff_left_off": len(deviations) - kept
    }  # fmt: skip
