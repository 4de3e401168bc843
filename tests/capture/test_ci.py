"""Which CI job a process belongs to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from playhead.capture import ci

GITHUB = {
    "CI": "true",
    "GITHUB_ACTIONS": "true",
    "GITHUB_RUN_ID": "1658821493",
    "GITHUB_RUN_ATTEMPT": "2",
    "GITHUB_JOB": "test",
    "GITHUB_WORKFLOW": "build",
    "GITHUB_SHA": "ffac537e6cbbf934b08745a378932722df287a53",
    "GITHUB_REF": "refs/heads/main",
    "GITHUB_REF_NAME": "main",
    "GITHUB_REF_TYPE": "branch",
    "GITHUB_REPOSITORY": "octo/hello",
    "GITHUB_EVENT_NAME": "push",
    "GITHUB_ACTOR": "octocat",
    "GITHUB_SERVER_URL": "https://github.example",
    "GITHUB_TOKEN": "ghs_secret",
}
GITLAB = {
    "CI": "true",
    "GITLAB_CI": "true",
    "CI_PIPELINE_ID": "123",
    "CI_JOB_NAME": "unit",
    "CI_JOB_ID": "456",
    "CI_COMMIT_SHA": "abc",
    "CI_COMMIT_BRANCH": "main",
    "CI_COMMIT_REF_NAME": "main",
    "CI_PROJECT_PATH": "group/project",
    "CI_PIPELINE_SOURCE": "push",
    "GITLAB_USER_LOGIN": "ada",
    "CI_JOB_URL": "https://gitlab.example/group/project/-/jobs/456",
    "CI_JOB_TOKEN": "secret",
}
OTHERS = {
    "jenkins": (
        {
            "BUILD_URL": "https://ci.example/job/x/7/", "BUILD_NUMBER": "7", "JOB_NAME": "x", "GIT_COMMIT": "abc",
            "GIT_BRANCH": "origin/main", "GIT_URL": "https://user:secret@host.example/o/r.git",
            "BUILD_TAG": "jenkins-x-7",
        },
        {"run_id": "jenkins-x-7", "job": "x", "commit": "abc", "branch": "origin/main",
         "repository": "https://host.example/o/r.git", "url": "https://ci.example/job/x/7/"},
    ),
    "circleci": (
        {"CI": "true", "CIRCLECI": "true", "CIRCLE_PIPELINE_ID": "p", "CIRCLE_BUILD_NUM": "9", "CIRCLE_JOB": "j",
         "CIRCLE_SHA1": "abc", "CIRCLE_BRANCH": "main", "CIRCLE_USERNAME": "ada", "CIRCLE_BUILD_URL": "https://c/9"},
        {"run_id": "p", "job": "j", "job_id": "9", "commit": "abc", "branch": "main", "actor": "ada",
         "url": "https://c/9"},
    ),
    "travis": (
        {"CI": "true", "TRAVIS": "true", "TRAVIS_BUILD_ID": "1", "TRAVIS_JOB_ID": "2", "TRAVIS_COMMIT": "abc",
         "TRAVIS_BRANCH": "main", "TRAVIS_PULL_REQUEST_BRANCH": "", "TRAVIS_REPO_SLUG": "o/r",
         "TRAVIS_EVENT_TYPE": "push"},
        {"run_id": "1", "job_id": "2", "commit": "abc", "branch": "main", "repository": "o/r", "event": "push"},
    ),
    "buildkite": (
        {"CI": "true", "BUILDKITE": "true", "BUILDKITE_BUILD_ID": "b", "BUILDKITE_JOB_ID": "j",
         "BUILDKITE_COMMIT": "abc", "BUILDKITE_BRANCH": "main", "BUILDKITE_PIPELINE_SLUG": "p",
         "BUILDKITE_REPO": "git@host.example:o/r.git", "BUILDKITE_BUILD_URL": "https://b/1"},
        {"run_id": "b", "job_id": "j", "commit": "abc", "branch": "main", "workflow": "p",
         "repository": "git@host.example:o/r.git", "url": "https://b/1"},
    ),
    "azure-pipelines": (
        {"TF_BUILD": "True", "BUILD_BUILDID": "55", "BUILD_SOURCEVERSION": "abc",
         "BUILD_SOURCEBRANCH": "refs/heads/main", "BUILD_REPOSITORY_NAME": "r", "BUILD_REASON": "Manual",
         "SYSTEM_COLLECTIONURI": "https://dev.example/org/", "SYSTEM_TEAMPROJECT": "team", "SYSTEM_JOBATTEMPT": "1"},
        {"run_id": "55", "attempt": "1", "commit": "abc", "branch": "main", "ref": "refs/heads/main",
         "repository": "r", "event": "Manual", "url": "https://dev.example/org/team/_build/results?buildId=55"},
    ),
    "bitbucket": (
        {"CI": "true", "BITBUCKET_BUILD_NUMBER": "12", "BITBUCKET_COMMIT": "abc", "BITBUCKET_BRANCH": "main",
         "BITBUCKET_REPO_FULL_NAME": "o/r", "BITBUCKET_PIPELINE_UUID": "{u}"},
        {"run_id": "{u}", "workflow": "{u}", "commit": "abc", "branch": "main", "repository": "o/r",
         "url": "https://bitbucket.org/o/r/pipelines/results/12"},
    ),
    "generic": ({"CI": "true", "BUILD_NUMBER": "3"}, {"run_id": "3"}),
}  # fmt: skip


class Watched(Mapping[str, str]):
    """An environment that notes which variables are read, and refuses to be read as a whole."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values_by_name = values
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> str:
        self.read.add(name)
        return self.values_by_name[name]

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("the whole environment was read")

    def __len__(self) -> int:
        raise AssertionError("the whole environment was read")


def facts(environ: Mapping[str, str]) -> dict[str, str | None]:
    found = ci.facts(environ)
    assert found is not None
    return found


@pytest.mark.parametrize("environ", [{}, {"CI": "false"}, {"CI": "0"}, {"CI": ""}, {"BUILD_NUMBER": "3"}])
def test_outside_of_ci_there_are_no_facts(environ: dict[str, str]) -> None:
    assert ci.facts(environ) is None


def test_a_github_push_is_described() -> None:
    assert facts(GITHUB) == {
        "provider": "github-actions",
        "run_id": "1658821493",
        "attempt": "2",
        "job": "test",
        "job_id": None,
        "workflow": "build",
        "commit": "ffac537e6cbbf934b08745a378932722df287a53",
        "branch": "main",
        "ref": "refs/heads/main",
        "repository": "octo/hello",
        "event": "push",
        "actor": "octocat",
        "url": "https://github.example/octo/hello/actions/runs/1658821493/attempts/2",
    }


def test_a_github_pull_request_names_its_source_branch() -> None:
    pull = {"GITHUB_REF": "refs/pull/12/merge", "GITHUB_REF_NAME": "12/merge", "GITHUB_HEAD_REF": "fix-login"}
    assert facts(GITHUB | pull)["branch"] == "fix-login"


def test_a_github_pull_request_is_about_its_head_and_not_about_the_merge_that_is_tested(tmp_path: Path) -> None:
    event = tmp_path / "event.json"
    environ = {**GITHUB, "GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": str(event)}
    assert ci.commit_of_pull_request(environ) is None
    for told in ("no JSON", "[]", "{}", '{"pull_request": {"head": {"sha": 5}}}', '{"pull_request": {"head": null}}'):
        event.write_text(told)
        assert ci.commit_of_pull_request(environ) is None
    event.write_text(f'{{"pull_request": {{"head": {{"sha": "{"a" * 40}"}}}}}}')
    assert ci.commit_of_pull_request(environ) == "a" * 40
    assert ci.commit_of_pull_request({**environ, "GITHUB_EVENT_NAME": "push"}) is None


def test_a_github_tag_is_a_ref_and_no_branch() -> None:
    tag = {"GITHUB_REF": "refs/tags/v1", "GITHUB_REF_NAME": "v1", "GITHUB_REF_TYPE": "tag", "GITHUB_HEAD_REF": ""}
    found = facts(GITHUB | tag)
    assert (found["branch"], found["ref"]) == (None, "refs/tags/v1")


def test_a_gitlab_job_is_described() -> None:
    assert facts(GITLAB) == {
        "provider": "gitlab",
        "run_id": "123",
        "attempt": None,
        "job": "unit",
        "job_id": "456",
        "workflow": None,
        "commit": "abc",
        "branch": "main",
        "ref": "main",
        "repository": "group/project",
        "event": "push",
        "actor": "ada",
        "url": "https://gitlab.example/group/project/-/jobs/456",
    }


def test_a_gitlab_merge_request_names_its_source_branch() -> None:
    merge = {name: value for name, value in GITLAB.items() if name != "CI_COMMIT_BRANCH"}
    assert facts(merge | {"CI_MERGE_REQUEST_SOURCE_BRANCH_NAME": "fix"})["branch"] == "fix"


@pytest.mark.parametrize("provider", list(OTHERS))
def test_other_systems_are_recognised(provider: str) -> None:
    environ, expected = OTHERS[provider]
    found = facts(environ)
    assert found["provider"] == provider
    assert {key: value for key, value in found.items() if value is not None} == expected | {"provider": provider}


def test_every_provider_answers_with_the_same_keys() -> None:
    environments = [GITHUB, GITLAB, *(environ for environ, _ in OTHERS.values())]
    assert {tuple(facts(environ)) for environ in environments} == {ci.KEYS}


@pytest.mark.parametrize("environ", [GITHUB, GITLAB, *(environ for environ, _ in OTHERS.values())])
def test_only_named_variables_are_read_and_never_a_secret(environ: dict[str, str]) -> None:
    watched = Watched(environ | {"AWS_SECRET_ACCESS_KEY": "secret"})
    found = facts(watched)
    assert not {name for name in watched.read if "TOKEN" in name or "SECRET" in name or "PASSWORD" in name}
    assert not any("secret" in (value or "") for value in found.values())
