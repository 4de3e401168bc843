"""The environments of the matrix: named, pinned, shared, and whole or not there."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.matrix import environments, harness
from tests.matrix.cases import CORE, CORE_ENVIRONMENTS, MATRIX
from tests.matrix.environments import Environment, Unavailable, Unresolvable
from tests.matrix.test_matrix_frameworks import FRAMEWORKS

# A package of one line, so that nothing is fetched.
WHEEL = """
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as wheel:
    wheel.writestr("twig.py", "LEAVES = 3\\n")
    wheel.writestr("twig-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: twig\\nVersion: 1.0\\n")
    wheel.writestr("twig-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr("twig-1.0.dist-info/RECORD", "")
"""


@pytest.fixture
def twig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Environment:
    """Describe an environment with one package that lies in a folder, in a cache of its own."""
    (tmp_path / "wheels").mkdir()
    wheel = tmp_path / "wheels" / "twig-1.0-py3-none-any.whl"
    subprocess.run([sys.executable, "-c", WHEEL, str(wheel)], check=True)
    monkeypatch.setattr(environments, "CACHE", tmp_path / "cache")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return Environment("twig", ("twig==1.0",))


def test_every_environment_pins_its_packages_and_is_used() -> None:
    known = environments.environments()
    for made in known.values():
        pins = [package for package in made.packages if re.search(r"==", package)]
        assert len(pins) >= len(made.packages) - 5, f"{made.name} leaves more open than what Playhead itself needs"
    assert {entry.environment for entry in MATRIX} | set(FRAMEWORKS) == set(known)


def test_the_core_names_scenarios_that_exist() -> None:
    for entry in MATRIX:
        if entry.environment in CORE_ENVIRONMENTS:
            assert CORE[entry.program] <= set(entry.scenarios())


def test_another_pin_is_another_folder() -> None:
    one = Environment("x", ("a==1",))
    assert one.folder == Environment("x", ("a==1",)).folder
    assert one.folder != dataclasses.replace(one, packages=("a==2",)).folder


def test_what_was_left_half_made_is_made_anew(twig: Environment) -> None:
    (twig.folder / "lib").mkdir(parents=True)
    twig.make()
    said = subprocess.run([twig.python, "-c", "import twig; print(twig.LEAVES)"], capture_output=True, text=True)
    assert said.stdout == "3\n", said.stderr


def test_it_is_made_once_when_two_want_it_at_the_same_time(twig: Environment, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from tests.matrix import environments\n"
        "environments.CACHE = Path(sys.argv[1])\n"
        "environments.Environment('twig', ('twig==1.0',)).make()"
    )
    command = [sys.executable, "-c", program, str(environments.CACHE)]
    both = [subprocess.Popen(command, cwd=environments.ROOT, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = "".join(one.communicate()[1] for one in both)
    assert [one.returncode for one in both] == [0, 0], said
    assert said.count("made twig") == 1
    assert twig.is_made


def test_packages_that_cannot_be_fetched_are_said_to_be_unavailable(twig: Environment) -> None:
    missing = dataclasses.replace(twig, packages=("twig==2.0",))
    with pytest.raises(Unavailable, match="No matching distribution"):
        missing.make()
    assert not missing.is_made


def test_pins_that_contradict_each_other_are_a_mistake_and_no_reason_to_skip(twig: Environment) -> None:
    with pytest.raises(Unresolvable, match="conflict"):
        dataclasses.replace(twig, packages=("twig==1.0", "twig!=1.0")).make()


def test_tests_skip_where_packages_cannot_be_fetched_but_fail_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    class Missing(Environment):
        def make(self) -> None:
            raise Unavailable("no registry here")

    monkeypatch.setattr(harness, "environment", lambda name: Missing(name, ()))
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no registry here"):
        harness.made("new")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(Unavailable):
        harness.made("new")


def test_no_setting_of_a_person_reaches_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "HTTPS_PROXY", "PLAYHEAD_DISABLED", "LANGSMITH_TRACING"):
        monkeypatch.setenv(name, "x")
    variables = Environment("x", ()).variables()
    assert not {"OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "HTTPS_PROXY", "PLAYHEAD_DISABLED"} & set(variables)
    assert variables["PYTHONPATH"].split(os.pathsep)[0].endswith("src")
