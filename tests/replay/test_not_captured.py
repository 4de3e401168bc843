"""What no replay can answer is named when it is recorded, and such a run is refused before it is started."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.replay.again import playhead, record

NAMED = {
    "posix_spawn": ("import os\nos.waitpid(os.posix_spawn('/bin/true', ['true'], os.environ), 0)", "os.posix_spawn"),
    "exec": ("import os\nif os.fork() == 0: os.execv('/bin/true', ['true'])\nos.wait()", "true, by os.exec"),
    "becomes another": ("import os\nos.execv('/bin/true', ['true'])", "true, by os.exec"),
    "alarm": (
        """
import signal
def ring(*_):
    raise TimeoutError
signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.01)
try:
    while True:
        pass
except TimeoutError:
    print("too late")
finally:
    signal.setitimer(signal.ITIMER_REAL, 0)
""",
        "an alarm that went off at __main__:13",
    ),
}


@pytest.mark.parametrize("what", NAMED)
def test_it_is_named_and_refused(tmp_path: Path, what: str) -> None:
    program, named = NAMED[what]
    recorded = record(tmp_path, program)
    found = playhead(tmp_path, "replay", recorded.run, "--mode", "exact")
    assert found.returncode == 1
    assert "not_captured" in found.stderr
    assert named in found.stderr


def test_an_alarm_that_is_taken_back_in_time_changes_nothing(tmp_path: Path) -> None:
    program = """
    import signal
    signal.alarm(60)
    print("done")
    signal.alarm(0)
    signal.setitimer(signal.ITIMER_REAL, 60.0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    """
    record(tmp_path, program).faithful()


def test_alarms_of_other_kinds_and_of_other_processes_are_told_apart(tmp_path: Path) -> None:
    program = """
    import os, signal
    signal.setitimer(signal.ITIMER_VIRTUAL, 60)
    signal.alarm(60)
    if os.fork() == 0:
        signal.alarm(60)
        signal.alarm(0)
        os._exit(0)
    os.wait()
    print("left", signal.alarm(0) > 0)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    """
    record(tmp_path, program).faithful()
