"""Do jobs: claim one, feed its cassette in, say what came of it. A worker that is killed leaves its job to another."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from playhead import _limits
from playhead import settings as settings_module
from playhead._api.receiving.reingest import Stopped, reingest
from playhead.errors import PlayheadError, StoreError
from playhead.server.projects import Projects
from playhead.store.cassettes.reading import Cassette
from playhead.store.registry.jobs import Job, Jobs

logger = logging.getLogger("playhead.server")


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
            result = self._done(job)
        except Stopped:
            return  # whoever cancelled it, or claimed it since, has said what it is now
        except PlayheadError as problem:
            self._jobs.fail(job.id, self._name, problem.as_dict()["error"])
        except OSError as problem:
            self._jobs.fail(job.id, self._name, StoreError(f"the disk refused: {problem.strerror}").as_dict()["error"])
        except Exception as problem:
            logger.exception("job %s", job.id)
            told = {"code": "internal", "message": f"the server made a mistake: {type(problem).__name__}"}
            self._jobs.fail(job.id, self._name, {**told, "hint": "Its log says what happened.", "detail": None})
        else:
            self._jobs.complete(job.id, self._name, result)

    def _done(self, job: Job) -> dict[str, Any]:
        project = self._projects.get(job.project)
        renewed_s = time.monotonic()

        def going_on(done: int, total: int) -> bool:
            nonlocal renewed_s
            if self._stopping.is_set():
                return False  # the lease runs out, and another one does it
            if time.monotonic() - renewed_s > self._lease_s / 4 or done in (0, total):
                renewed_s = time.monotonic()
                self._jobs.progress(job.id, self._name, done, total)
                return self._jobs.renew(job.id, self._name, self._lease_s)
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
