from __future__ import annotations

import pytest

from playhead.views.audit.places import Places

OF_A_RUN = Places("/home/ada/repo", "/home/ada/repo/src")


@pytest.mark.parametrize(
    ("path", "sort"),
    [
        ("/home/ada/repo/a.py", "repo"),
        ("/home/ada/repository/a.py", "elsewhere"),
        ("/home/ada/repo/../other/a.py", "elsewhere"),
        ("//home/ada/repo/a.py", "repo"),
        ("/home/ada/repo/.git/hooks/pre-commit", "git"),
        ("/home/ada/repo/.git", "git"),
        ("/home/ada/repo/vendor/lib/.git/config", "git"),
        ("/home/ada/repo/.github/x", "repo"),
        ("/home/ada/repo/module.pyc", "repo"),
        ("/usr/lib/python3/module.pyc", "elsewhere"),
        ("/home/ada/repo/.playhead/runs/run_1/timeline.jsonl", "record"),
        ("/home/ada/repo/__pycache__/a.cpython-311.pyc", "cache"),
        ("/dev/null", "device"),
        ("/dev/sda", "elsewhere"),
        ("/tmp/x", "temporary"),
        ("/tmpfiles", "elsewhere"),
        ("relative", "elsewhere"),
        ("", "elsewhere"),
    ],
)
def test_a_path_is_told_by_where_it_lies(path: str, sort: str) -> None:
    assert OF_A_RUN.sort(path) == sort


def test_a_working_directory_among_temporary_files_is_the_run_s_own() -> None:
    assert Places("", "/var/tmp/project").sort("/var/tmp/project/a") == "here"
    assert Places("/var/tmp/project", "/var/tmp/project").sort("/var/tmp/project/a") == "repo"


def test_no_folder_that_holds_everything_is_taken_for_the_run_s_own() -> None:
    assert Places("/", "/").sort("/etc/passwd") == "elsewhere"


def test_a_path_inside_is_shown_as_people_of_the_project_write_it() -> None:
    assert OF_A_RUN.shown("/home/ada/repo/src/a.py") == "src/a.py"
    assert OF_A_RUN.shown("/etc/passwd") == "/etc/passwd"
