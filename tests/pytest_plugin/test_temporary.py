"""A question may hold `tmp_path`, which is another folder in every session."""

from __future__ import annotations

import pytest
from tests.pytest_plugin.conftest import Project, outcomes, sections

from playhead.event.normalise import Normalisers
from playhead.pytest_plugin import temporary

CODE = """
import subprocess, time, uuid

@pytest.mark.cassette
def test_prompt(tmp_path):
    assert ask(f"Look into {tmp_path}/a, not {tmp_path}.")

@pytest.mark.cassette
def test_argv(tmp_path):
    (tmp_path / "a").write_text("x")
    assert subprocess.run(["cat", str(tmp_path / "a")], capture_output=True, text=True).stdout == "x"

@pytest.mark.cassette
def test_cwd(tmp_path):
    (tmp_path / "a").write_text("x")
    assert subprocess.run(["ls"], cwd=tmp_path, capture_output=True, text=True).stdout == "a\\n"

@pytest.mark.cassette(ambient=True)
def test_ambient(tmpdir, monkeypatch):
    monkeypatch.chdir(tmpdir)
    assert ask(f"Look into {tmpdir}.")
    assert subprocess.run("pwd; echo x", shell=True, capture_output=True, text=True).stdout.endswith("x\\n")
"""


def _base(project: Project, number: int) -> str:
    path = project.pytester.path / "pytest-of-somebody" / f"pytest-{number}"
    path.parent.mkdir(exist_ok=True)
    return f"--basetemp={path}"


def test_a_question_with_a_temporary_folder_is_the_same_in_the_next_session(project: Project) -> None:
    project.test(CODE)
    project.record(_base(project, 1))
    done = project.run("--playhead=none", "--playhead-strict-unused", _base(project, 22))
    done.assert_outcomes(passed=4)
    project.test(CODE.replace("/a, not", "/b, not"))
    done = project.run("--playhead=none", _base(project, 23))
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.no_fnmatch_line("*ambient=True*")


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        ("/tmp/pytest-of-me/pytest-1/test_a0/x", "/tmp/pytest-of-me/pytest-22/test_a1/x", True),
        ("/tmp/pytest-of-me/pytest-1/test_a0", "/private/var/T/pytest-of-you/pytest-2/popen-gw1/test_a0", True),
        ("/t/pytest-of-me/pytest-1/a0/pytest-of-me/pytest-5/b0", "/t/pytest-of-me/pytest-2/b1", True),
        ("in /base/test_a0: x", "in /base/popen-gw3/test_a2: x", True),
        ("/tmp/pytest-of-me/pytest-1/test_a0/x", "/tmp/pytest-of-me/pytest-1/test_a0/y", False),
        ("/tmp/pytest-of-me/pytest-1/test_a0/x", "/tmp/pytest-of-me/pytest-1/test_b0/x", False),
        ("/tmp/pytest-of-me/pytest-1/test_a0/x1", "/tmp/pytest-of-me/pytest-1/test_a0/x2", False),
        ("/base2/test_a0", "/base/test_a0", False),
    ],
)
def test_what_is_the_same(then: str, now: str, same: bool) -> None:
    with temporary.same("/base/popen-gw0"):
        keys = [Normalisers().match_key("tool.called", "look", {one: [f"see {one}"]}) for one in (then, now)]
    assert (keys[0] == keys[1]) == same
    assert not Normalisers().concerned("tool.called", "look")


def test_it_is_advised_to_replay_clocks_only_where_that_helps(project: Project) -> None:
    project.test("""
import tempfile, uuid

@pytest.mark.cassette
def test_uuid():
    ask(f"Plan {uuid.uuid4()}.")

@pytest.mark.cassette
def test_path():
    ask(f"Look into {tempfile.mkdtemp()}.")
""")
    project.record()
    done = project.run("-v")
    assert outcomes(done) == {"test_uuid": "FAILED", "test_path": "FAILED"}
    told = {name: pytest.LineMatcher(text.splitlines()) for name, text in sections(done).items()}
    told["test_uuid"].fnmatch_lines(["E   Or have clocks, random numbers and ids replayed, too: *"])
    told["test_path"].no_fnmatch_line("*ambient=True*")
