"""What a program does to others by way of the system is not done in a replay, and is counted."""

from __future__ import annotations

import os
import resource
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.replay.again import playhead, record


@pytest.fixture
def other() -> Iterator[int]:
    """Start a process that has nothing to do with us, and return its number."""
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.kill()
    process.wait()


ACTS = {
    "setpriority": "os.setpriority(os.PRIO_PROCESS, pid, 7)",
    "sched_setaffinity": "os.sched_setaffinity(pid, [min(os.sched_getaffinity(0))])",
    "sched_setscheduler": "os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0))",
    "prlimit": "print(type(resource.prlimit(pid, resource.RLIMIT_NOFILE, (100, 100))))",
    "signal": "os.kill(pid, signal.SIGKILL)",
}


@pytest.mark.skipif(sys.platform != "linux", reason="needs sched_* and prlimit")
@pytest.mark.parametrize("what", ACTS)
def test_another_process_is_left_as_it_is(tmp_path: Path, other: int, what: str) -> None:
    program = f"import os, resource, signal, sys\npid = int(sys.argv[1])\n{ACTS[what]}\nprint('done')\n"
    victim = subprocess.Popen(["sleep", "60"])
    recorded = record(tmp_path, program, str(victim.pid))
    victim.kill()
    victim.wait()
    before = _facts(other)
    found = recorded.replay(program=[sys.executable, "program.py", str(other)])
    assert _facts(other) == before
    assert found.output == recorded.output
    assert [(one["what"], str(other) in one["detail"]) for one in found.report["blocked"]] == [(what, True)]


def _facts(pid: int) -> tuple[object, ...]:
    limits = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    return os.getpriority(os.PRIO_PROCESS, pid), os.sched_getaffinity(pid), os.sched_getscheduler(pid), limits


def test_a_program_may_do_the_same_to_itself(tmp_path: Path) -> None:
    program = """
    import os, resource
    os.setpriority(which=os.PRIO_PROCESS, who=0, priority=5)
    os.setpriority(os.PRIO_PROCESS, os.getpid(), 6)
    resource.prlimit(os.getpid(), resource.RLIMIT_NOFILE, (900, 900))
    print(os.getpriority(os.PRIO_PROCESS, 0), resource.getrlimit(resource.RLIMIT_NOFILE))
    """
    assert record(tmp_path, program).faithful().report["blocked"] == []


def test_keys_of_tls_are_not_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert hasattr(ssl.SSLContext, "keylog_filename")
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    recorded = record(tmp_path, "import ssl\nprint(ssl.create_default_context().keylog_filename)")
    (tmp_path / "keys").unlink()
    found = recorded.faithful()
    assert not (tmp_path / "keys").exists()
    assert "ssl keylog" in {one["what"] for one in found.report["blocked"]}


def test_lines_that_were_typed_are_not_saved(tmp_path: Path) -> None:
    pytest.importorskip("readline")
    program = """
    import readline
    readline.add_history("one")
    readline.write_history_file("history")
    readline.append_history_file(1, "history")
    """
    recorded = record(tmp_path, program)
    (tmp_path / "history").unlink()
    found = recorded.faithful()
    assert not (tmp_path / "history").exists()
    blocked = [one["what"] for one in found.report["blocked"]]
    assert blocked == ["readline.write_history_file", "readline.append_history_file"]


def _script(path: Path, text: str) -> str:
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def test_a_script_by_the_name_of_python_is_not_started(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    named = _script(tmp_path / "bin" / "python", f'#!/bin/sh\ntouch touched\nexec {sys.executable} -X utf8 "$@"\n')
    (tmp_path / "program.py").write_text("print('done')")
    assert playhead(tmp_path, "record", "--quiet", "--", named, "program.py").returncode == 0
    (tmp_path / "touched").unlink()
    found = playhead(tmp_path, "replay", "@last", "--mode", "exact")
    assert found.returncode == 2
    assert f"{named} is a script of sh" in found.stderr
    assert not (tmp_path / "touched").exists()


def test_of_one_that_only_becomes_python_that_python_is_started(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    named = _script(tmp_path / "bin" / "python", f'#!/bin/sh\ntouch touched\nexec {sys.executable} "$@"\n')
    (tmp_path / "program.py").write_text("import sys\nprint('done', sys.argv)")
    done = playhead(tmp_path, "record", "--quiet", "--", named, "program.py", "-v")
    (tmp_path / "touched").unlink()
    found = playhead(tmp_path, "replay", "@last", "--mode", "exact")
    assert (found.returncode, found.stdout) == (0, done.stdout), found.stderr
    assert not (tmp_path / "touched").exists()
