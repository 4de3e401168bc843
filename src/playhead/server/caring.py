"""Do in the background what nobody waits for: end runs that are over, keep the indexes current, do the jobs."""

from __future__ import annotations

import logging
import threading

from playhead import _limits
from playhead.errors import PlayheadError
from playhead.server.projects import Projects
from playhead.server.working import Worker

logger = logging.getLogger("playhead.server")


class Caretaker:
    """One thread that looks after the projects, and the workers of jobs."""

    def __init__(self, projects: Projects, *, workers: int = 1, lease_s: float = _limits.JOB_LEASE_S) -> None:
        self._projects = projects
        self._stopping = threading.Event()
        self._threads: list[threading.Thread] = []
        self.workers = [Worker(projects, number, self._stopping, lease_s) for number in range(workers)]

    def start(self) -> None:
        """Begin."""
        works = [self._look_after, *(worker.work for worker in self.workers)]
        self._threads = [
            threading.Thread(target=work, name=f"playhead-care-{number}", daemon=True)
            for number, work in enumerate(works)
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, when what is in hand is done."""
        self._stopping.set()
        self._projects.stirred.set()
        for thread in self._threads:
            thread.join(_limits.SHUTDOWN_S)

    def _look_after(self) -> None:
        self._projects.resume()
        while not self._stopping.is_set():
            self._projects.stirred.wait(min(_limits.CARE_INTERVAL_S, self._projects.quiet_s))
            self._projects.stirred.clear()
            self._stopping.wait(_limits.CARE_PAUSE_S)  # what comes together is read together
            for project in self._projects.known():
                try:
                    project.look_after()
                except (PlayheadError, OSError) as problem:
                    logger.error("project %s: %s", project.name, problem)
                except Exception:  # one project must not end the care of all others
                    logger.exception("project %s", project.name)
