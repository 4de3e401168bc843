"""What a run was executed with."""

from __future__ import annotations

import functools
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from playhead.capture import environment

SOURCE = Path(environment.__file__).parents[2]
PROGRAM = """
import functools, json, os
from playhead.capture.environment import entrypoint

def decorate(function):
    @functools.wraps(function)
    def around(*args):
        return function(*args)
    return around

@decorate
def agent(issue):
    return issue

if __name__ == "__main__":
    os.chdir("/")
    print(json.dumps(entrypoint(agent)))
"""


def run_program(folder: Path, *arguments: str) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        check=True,
    )
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def install(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).mkdir(parents=True)


def test_the_interpreter_and_the_platform_are_named() -> None:
    found = environment.facts()
    assert found["python"]["version"] == sys.version.split()[0]
    assert found["python"]["implementation"] == "cpython"
    assert found["python"]["executable"] == sys.executable
    assert found["platform"] == {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
    }


@pytest.mark.parametrize("seed", ["0", None])
def test_the_hash_seed_is_told(monkeypatch: pytest.MonkeyPatch, seed: str | None) -> None:
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)
    if seed is not None:
        monkeypatch.setenv("PYTHONHASHSEED", seed)
    assert environment.facts()["hash_seed"] == seed


def test_packages_agree_with_importlib_metadata() -> None:
    found = environment.packages()
    assert "pytest" in found
    for name, version in found.items():
        assert importlib.metadata.version(name) == version


def test_every_form_of_metadata_folder_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path, "Typing_Extensions-4.12.0.dist-info", "zope.interface-6.0.dist-info", "old-1.5-py3.11.egg-info",
        "developed.egg-info", "silent.egg-info", "not-a-package", "x.data",
    )  # fmt: skip
    (tmp_path / "developed.egg-info" / "PKG-INFO").write_text("Metadata-Version: 2.1\nVersion: 0.3\n\nVersion: no\n")
    (tmp_path / "single-2.0-py3.11.egg-info").write_text("Version: 2.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert environment.packages() == {
        "developed": "0.3",
        "old": "1.5",
        "silent": "",
        "single": "2.0",
        "typing-extensions": "4.12.0",
        "zope-interface": "6.0",
    }


def test_the_package_that_would_be_imported_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "first", "thing-2.0.dist-info")
    install(tmp_path / "second", "thing-1.0.dist-info")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "none"), str(tmp_path / "first"), str(tmp_path / "second")])
    assert environment.packages() == {"thing": "2.0"}


def test_a_relative_path_follows_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path / "one", "thing-1.0.dist-info")
    install(tmp_path / "two", "thing-2.0.dist-info")
    monkeypatch.setattr(sys, "path", [""])
    for folder, version in (("one", "1.0"), ("two", "2.0")):
        monkeypatch.chdir(tmp_path / folder)
        assert environment.packages() == {"thing": version}


def test_what_the_caller_does_with_the_answer_does_not_change_the_next() -> None:
    environment.packages().clear()
    assert "pytest" in environment.packages()


def test_a_deleted_current_folder_is_survived(tmp_path: Path) -> None:
    program = (
        "import json, os, sys; from playhead.capture import environment as e\n"
        "sys.path.insert(0, ''); os.mkdir('gone'); os.chdir('gone'); os.rmdir('../gone')\n"
        "print(json.dumps({'cwd': e.entrypoint()['cwd'], 'packages': 'pytest' in e.packages()}))"
    )
    assert run_program(tmp_path, "-c", program) == {"cwd": None, "packages": True}


def test_a_process_is_described_by_what_started_it() -> None:
    found = environment.entrypoint()
    assert found == {"argv": sys.orig_argv, "cwd": os.getcwd(), "executable": sys.executable}


def test_a_function_of_a_script_is_found_by_its_file_even_after_chdir(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    found = run_program(tmp_path, "program.py")
    assert found["argv"] == [sys.executable, "program.py"]
    assert found["cwd"] == "/"
    assert (found["module"], found["qualname"]) == ("__main__", "agent")
    assert found["file"] == str(tmp_path / "program.py")
    assert "spec" not in found


def test_a_function_of_python_m_also_has_the_name_that_imports_it(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "program.py").write_text(PROGRAM)
    found = run_program(tmp_path, "-m", "package.program")
    assert found["argv"] == [sys.executable, "-m", "package.program"]
    assert (found["module"], found["spec"]) == ("__main__", "package.program")
    assert found["file"] == str(package / "program.py")


class Holder:
    def method(self) -> None: ...

    def __call__(self) -> None: ...


def test_partials_methods_and_callable_objects_lead_to_their_definition() -> None:
    for function, qualname in (
        (functools.partial(Holder().method), "Holder.method"),
        (Holder().method, "Holder.method"),
        (Holder(), "Holder"),
    ):
        found = environment.entrypoint(function)
        assert (found["module"], found["qualname"], found["file"]) == (__name__, qualname, __file__)


def test_a_function_without_a_file_says_so() -> None:
    space: dict[str, object] = {"__name__": "nowhere"}
    exec("def made(): ...", space)
    found = environment.entrypoint(space["made"])  # type: ignore[arg-type]
    assert (found["module"], found["qualname"], found["file"]) == ("nowhere", "made", None)
