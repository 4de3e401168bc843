"""The project that the demo agent repairs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from playhead.testing.demo_project import (
    CHECK_PATH,
    FILES,
    LOGIN_PATH,
    PATCH,
    ChecksFailed,
    DemoProject,
    PatchRejected,
    paths_of,
)


@pytest.fixture
def project() -> Iterator[DemoProject]:
    with DemoProject() as made:
        yield made


def test_the_check_fails_until_the_patch_is_applied(project: DemoProject) -> None:
    with pytest.raises(ChecksFailed, match=r"FAIL an address in capitals\n(.*\n)*3 passed, 1 failed"):
        project.check()
    assert project.apply(PATCH) == [LOGIN_PATH]
    assert project.check().endswith("4 passed, 0 failed\n")


def test_the_difference_is_the_patch_that_was_applied(project: DemoProject) -> None:
    assert project.diff() == ""
    project.apply(PATCH)
    assert project.diff() == PATCH


def test_a_patch_that_does_not_fit_changes_nothing(project: DemoProject) -> None:
    project.apply(PATCH)
    with pytest.raises(PatchRejected, match=r"line 7 of src/login\.py"):
        project.apply(PATCH)
    assert project.diff() == PATCH


@pytest.mark.parametrize("diff", ["", "hello\n", "@@ -1 +1 @@\n-a\n+b\n"])
def test_what_is_no_patch_is_rejected(project: DemoProject, diff: str) -> None:
    with pytest.raises(PatchRejected):
        project.apply(diff)


def test_nothing_outside_of_the_project_can_be_read_or_changed(project: DemoProject) -> None:
    with pytest.raises(PatchRejected, match="not a file of the project"):
        project.read("../../etc/hostname")
    with pytest.raises(PatchRejected, match="not a file of the project"):
        project.apply("--- a/x\n+++ /etc/hostname\n@@ -1 +1 @@\n-a\n+b\n")


def test_a_patch_names_its_files() -> None:
    assert paths_of(PATCH) == [LOGIN_PATH]
    assert paths_of(PATCH + PATCH.replace(LOGIN_PATH, CHECK_PATH)) == [LOGIN_PATH, CHECK_PATH]


def test_two_projects_do_not_share_files(project: DemoProject) -> None:
    with DemoProject() as other:
        other.apply(PATCH)
        assert project.read(LOGIN_PATH) == FILES[LOGIN_PATH] != other.read(LOGIN_PATH)
