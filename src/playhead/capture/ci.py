"""Find out which CI job this process belongs to, from the variables that the CI system documents.

Only the variables named here are read, one by one; the environment as a whole is never looked at. Every answer has the
same keys, and every value is text as the provider gave it, or None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from playhead import _limits
from playhead.capture.git import without_credentials

KEYS = (
    "provider", "run_id", "attempt", "job", "job_id", "workflow", "commit", "branch", "ref", "repository", "event",
    "actor", "url",
)  # fmt: skip

# For each key the variables that may hold it; the first that is set and not empty counts.
_VARIABLES: dict[str, dict[str, tuple[str, ...]]] = {
    "github-actions": {
        "run_id": ("GITHUB_RUN_ID",),
        "attempt": ("GITHUB_RUN_ATTEMPT",),
        "job": ("GITHUB_JOB",),
        "workflow": ("GITHUB_WORKFLOW",),
        "commit": ("GITHUB_SHA",),
        "branch": ("GITHUB_HEAD_REF",),
        "ref": ("GITHUB_REF",),
        "repository": ("GITHUB_REPOSITORY",),
        "event": ("GITHUB_EVENT_NAME",),
        "actor": ("GITHUB_TRIGGERING_ACTOR", "GITHUB_ACTOR"),
    },
    "gitlab": {
        "run_id": ("CI_PIPELINE_ID",),
        "job": ("CI_JOB_NAME",),
        "job_id": ("CI_JOB_ID",),
        "workflow": ("CI_PIPELINE_NAME",),
        "commit": ("CI_COMMIT_SHA",),
        "branch": ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_BRANCH"),
        "ref": ("CI_COMMIT_REF_NAME",),
        "repository": ("CI_PROJECT_PATH",),
        "event": ("CI_PIPELINE_SOURCE",),
        "actor": ("GITLAB_USER_LOGIN",),
        "url": ("CI_JOB_URL", "CI_PIPELINE_URL"),
    },
    "buildkite": {
        "run_id": ("BUILDKITE_BUILD_ID",),
        "attempt": ("BUILDKITE_RETRY_COUNT",),
        "job": ("BUILDKITE_LABEL", "BUILDKITE_STEP_KEY"),
        "job_id": ("BUILDKITE_JOB_ID",),
        "workflow": ("BUILDKITE_PIPELINE_SLUG",),
        "commit": ("BUILDKITE_COMMIT",),
        "branch": ("BUILDKITE_BRANCH",),
        "ref": ("BUILDKITE_TAG",),
        "repository": ("BUILDKITE_REPO",),
        "event": ("BUILDKITE_SOURCE",),
        "actor": ("BUILDKITE_BUILD_CREATOR",),
        "url": ("BUILDKITE_BUILD_URL",),
    },
    "circleci": {
        "run_id": ("CIRCLE_PIPELINE_ID", "CIRCLE_BUILD_NUM"),
        "job": ("CIRCLE_JOB",),
        "job_id": ("CIRCLE_WORKFLOW_JOB_ID", "CIRCLE_BUILD_NUM"),
        "workflow": ("CIRCLE_WORKFLOW_ID",),
        "commit": ("CIRCLE_SHA1",),
        "branch": ("CIRCLE_BRANCH",),
        "ref": ("CIRCLE_TAG",),
        "repository": ("CIRCLE_REPOSITORY_URL",),
        "actor": ("CIRCLE_USERNAME",),
        "url": ("CIRCLE_BUILD_URL",),
    },
    "travis": {
        "run_id": ("TRAVIS_BUILD_ID",),
        "job": ("TRAVIS_JOB_NAME",),
        "job_id": ("TRAVIS_JOB_ID",),
        "workflow": ("TRAVIS_BUILD_STAGE_NAME",),
        "commit": ("TRAVIS_COMMIT",),
        "branch": ("TRAVIS_PULL_REQUEST_BRANCH", "TRAVIS_BRANCH"),
        "ref": ("TRAVIS_TAG",),
        "repository": ("TRAVIS_REPO_SLUG",),
        "event": ("TRAVIS_EVENT_TYPE",),
        "url": ("TRAVIS_JOB_WEB_URL", "TRAVIS_BUILD_WEB_URL"),
    },
    "azure-pipelines": {
        "run_id": ("BUILD_BUILDID",),
        "attempt": ("SYSTEM_JOBATTEMPT",),
        "job": ("SYSTEM_JOBDISPLAYNAME", "AGENT_JOBNAME"),
        "job_id": ("SYSTEM_JOBID",),
        "workflow": ("BUILD_DEFINITIONNAME",),
        "commit": ("BUILD_SOURCEVERSION",),
        "branch": ("SYSTEM_PULLREQUEST_SOURCEBRANCH",),
        "ref": ("BUILD_SOURCEBRANCH",),
        "repository": ("BUILD_REPOSITORY_NAME",),
        "event": ("BUILD_REASON",),
        "actor": ("BUILD_REQUESTEDFOR",),
    },
    "bitbucket": {
        "run_id": ("BITBUCKET_PIPELINE_UUID", "BITBUCKET_BUILD_NUMBER"),  # the number is that of one repository
        "job_id": ("BITBUCKET_STEP_UUID",),
        "workflow": ("BITBUCKET_PIPELINE_UUID",),
        "commit": ("BITBUCKET_COMMIT",),
        "branch": ("BITBUCKET_BRANCH",),
        "ref": ("BITBUCKET_TAG",),
        "repository": ("BITBUCKET_REPO_FULL_NAME",),
        "actor": ("BITBUCKET_STEP_TRIGGERER_UUID",),
    },
    "jenkins": {
        "run_id": ("BUILD_TAG", "BUILD_NUMBER", "BUILD_ID"),  # the number is that of one job
        "job": ("JOB_NAME",),
        "workflow": ("JOB_BASE_NAME",),
        "commit": ("GIT_COMMIT",),
        "branch": ("CHANGE_BRANCH", "BRANCH_NAME", "GIT_BRANCH"),
        "ref": ("TAG_NAME",),
        "repository": ("GIT_URL",),
        "actor": ("BUILD_USER_ID",),
        "url": ("BUILD_URL",),
    },
    "generic": {
        "run_id": ("CI_RUN_ID", "CI_PIPELINE_ID", "BUILD_ID", "BUILD_NUMBER"),
        "job": ("CI_JOB_NAME", "JOB_NAME"),
        "commit": ("CI_COMMIT_SHA", "GIT_COMMIT"),
        "branch": ("CI_COMMIT_BRANCH", "GIT_BRANCH", "BRANCH_NAME"),
        "repository": ("CI_REPO",),
        "url": ("CI_PIPELINE_URL", "BUILD_URL"),
    },
}

_COMMIT_ID = re.compile("[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OF_PULL_REQUESTS = ("pull_request", "pull_request_review", "pull_request_review_comment")


def facts(environ: Mapping[str, str]) -> dict[str, str | None] | None:
    """Return the facts of the CI job this environment belongs to, or None outside of CI."""
    provider = _provider(environ)
    if provider is None:
        return None
    found = dict.fromkeys(KEYS) | {key: _first(environ, names) for key, names in _VARIABLES[provider].items()}
    found["provider"] = provider
    if provider == "github-actions":
        _complete_github(environ, found)
    elif provider == "azure-pipelines":
        _complete_azure(environ, found)
    elif provider == "bitbucket":
        _complete_bitbucket(environ, found)
    for key in ("repository", "url"):
        value = found[key]
        # Of a page's address the query is kept, since it may be what names the build; a clone address has none.
        if value is not None and (key == "repository" or "@" in value):
            found[key] = without_credentials(value)
    return found


def commit_of_pull_request(environ: Mapping[str, str]) -> str | None:
    """Return the commit that a job of GitHub Actions is about, where that is not the one it says.

    For a pull request that is a merge which GitHub made for the test alone, and which is in no branch.
    """
    if _provider(environ) != "github-actions" or environ.get("GITHUB_EVENT_NAME") not in _OF_PULL_REQUESTS:
        return None
    try:
        with open(environ.get("GITHUB_EVENT_PATH", ""), "rb") as file:
            told = orjson.loads(file.read(_limits.IMPORT_FILE_BYTES_MAX))["pull_request"]["head"]["sha"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return told if type(told) is str and _COMMIT_ID.fullmatch(told) else None


def _provider(environ: Mapping[str, str]) -> str | None:
    """Name the CI system. The specific ones come first: most of them set CI as well."""
    marks = (
        ("github-actions", "GITHUB_ACTIONS"),
        ("gitlab", "GITLAB_CI"),
        ("buildkite", "BUILDKITE"),
        ("circleci", "CIRCLECI"),
        ("travis", "TRAVIS"),
        ("azure-pipelines", "TF_BUILD"),
        ("bitbucket", "BITBUCKET_BUILD_NUMBER"),
        ("jenkins", "JENKINS_URL"),
    )
    for provider, variable in marks:
        if _is_on(environ, variable):
            return provider
    if _is_on(environ, "BUILD_URL") and _is_on(environ, "BUILD_NUMBER"):
        return "jenkins"
    return "generic" if _is_on(environ, "CI") or _is_on(environ, "CONTINUOUS_INTEGRATION") else None


def _is_on(environ: Mapping[str, str], variable: str) -> bool:
    return environ.get(variable, "").strip().lower() not in ("", "0", "false", "no", "off")


def _first(environ: Mapping[str, str], variables: tuple[str, ...]) -> str | None:
    for variable in variables:
        value = environ.get(variable)
        if value:
            return value
    return None


def _complete_github(environ: Mapping[str, str], found: dict[str, str | None]) -> None:
    if found["branch"] is None and environ.get("GITHUB_REF_TYPE", "branch") == "branch":
        # For a pull request the name is "12/merge", which is no branch; its source was taken from GITHUB_HEAD_REF.
        found["branch"] = environ.get("GITHUB_REF_NAME") or None
    server, repository, run_id = environ.get("GITHUB_SERVER_URL"), found["repository"], found["run_id"]
    if server and repository and run_id:
        url = f"{server}/{repository}/actions/runs/{run_id}"
        found["url"] = f"{url}/attempts/{found['attempt']}" if found["attempt"] else url


def _complete_azure(environ: Mapping[str, str], found: dict[str, str | None]) -> None:
    collection, project = environ.get("SYSTEM_COLLECTIONURI"), environ.get("SYSTEM_TEAMPROJECT")
    run_id = found["run_id"]
    if collection and project and run_id:
        found["url"] = f"{collection.rstrip('/')}/{project}/_build/results?buildId={run_id}"
    branch = found["branch"] or found["ref"]
    if branch is not None and branch.startswith("refs/heads/"):
        found["branch"] = branch.removeprefix("refs/heads/")


def _complete_bitbucket(environ: Mapping[str, str], found: dict[str, str | None]) -> None:
    repository, number = found["repository"], environ.get("BITBUCKET_BUILD_NUMBER")
    if repository and number:
        found["url"] = f"https://bitbucket.org/{repository}/pipelines/results/{number}"
