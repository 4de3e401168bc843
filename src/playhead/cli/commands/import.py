"""Import what git and CI say into the runs that it belongs to, and the runs of other systems."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from playhead import _limits, settings
from playhead._api.importing import (
    About,
    Imported,
    Placed,
    about,
    import_actions_log,
    import_junit,
    read_file,
    read_jobs,
)
from playhead._api.stores import open_folder
from playhead.cli.arguments import add_shared
from playhead.cli.filters import tell_above
from playhead.cli.output import Output
from playhead.errors import UsageError
from playhead.store.files import FileStore
from playhead.views import text
from playhead.views.points import LINKS

HOOK = ("install", "remove", "status", "print")

_SHOWN = 5  # of what failed
_WHY = {
    "named": "as you said",
    "property": "a test names it",
    "ci_run": "it was recorded in this run of CI",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.epilog = (
        "What is imported is added to the runs that it belongs to, redacted like everything else; what a run has\n"
        "already is not added again. `playhead import git --help` and so on tell more.\n\n"
        "examples:\n"
        "  playhead import git HEAD~20..HEAD\n"
        "  playhead import junit report.xml\n"
        "  playhead import actions-log logs.zip --jobs jobs.json\n"
        "  playhead import git --hook install\n"
        "  playhead import langsmith runs.jsonl"
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    _configure_git(_sub(what, "git", "commits of a repository"))
    _configure_junit(_sub(what, "junit", "test results, as pytest and others write them"))
    _configure_actions(_sub(what, "actions-log", "logs of a run of GitHub Actions, by job and step"))
    _configure_langsmith(_sub(what, "langsmith", "runs that LangSmith exports"))


def _sub(what: Any, name: str, told: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = what.add_parser(name, help=told, description=f"Import {told}.")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_shared(parser, inner=True)
    return parser


def _configure_git(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("revisions", nargs="?", default="HEAD", metavar="RANGE",
                        help="what `git log` takes: main, HEAD~20..HEAD (%(default)s)")  # fmt: skip
    parser.add_argument("--repo", metavar="DIR", help="a folder in the repository; else the current one")
    parser.add_argument("-n", "--limit", type=int, default=_limits.IMPORT_COMMITS_DEFAULT, metavar="N",
                        help="at most so many commits, the newest (%(default)s)")  # fmt: skip
    parser.add_argument("--make-run", action="store_true", help="make one run of the commits that belong to none")
    parser.add_argument("--hook", choices=HOOK,
                        help="install or remove the hook that names a recorded run in its commits")  # fmt: skip
    parser.epilog = (
        "A commit belongs to the runs that it names in a line `Playhead-Run: run_…` of its message or of a note\n"
        "(refs/notes/playhead), and to those that were started from it.\n\n"
        "examples:\n"
        "  playhead import git HEAD~20..HEAD\n"
        "  playhead import git main --make-run\n"
        "  playhead import git --hook install"
    )


def _configure_junit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE", help="JUnit XML; - reads stdin")
    _add_target(parser)
    parser.epilog = (
        "Results go to the run that is named, else to those that were recorded in the same run of CI, else to those\n"
        "that made the commit or are named by it, else to those that were started from it. Commit and run of CI are\n"
        "those of this environment, outside of CI the commit is HEAD. Where no run is found, one is made.\n\n"
        "examples:\n"
        "  playhead import junit report.xml\n"
        "  playhead import junit build/*.xml --commit v1.2 --attach-only"
    )


def _configure_actions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="the zip of all logs, the log of one job, or `gh run view --log`")
    parser.add_argument("--jobs", metavar="FILE", help="what GitHub says of the jobs: JSON of its API, or of gh")
    _add_target(parser)
    parser.epilog = (
        "A log does not say how its job ended: without --jobs the result is `failure` where an error is marked, and\n"
        "else `unknown`. Results are attached as with `import junit`; nothing is taken from this environment.\n\n"
        "examples:\n"
        "  gh api repos/OWNER/REPO/actions/runs/ID/logs > logs.zip\n"
        "  gh api repos/OWNER/REPO/actions/runs/ID/jobs > jobs.json\n"
        "  playhead import actions-log logs.zip --jobs jobs.json\n"
        "  gh run view ID --log | playhead import actions-log - --ci-run ID"
    )


def _configure_langsmith(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", metavar="FILE",
                        help="runs as JSON: one on each line, or all in a list; - reads stdin")  # fmt: skip
    parser.epilog = (
        "A file is what `Client().list_runs(...)` of LangSmith gives, one `run.json()` on each line. The runs of one\n"
        "session or trace become one run of Playhead. What the store has already is not added again.\n\n"
        "examples:\n"
        "  playhead import langsmith runs.jsonl\n"
        "  playhead import langsmith runs.json --json | jq '.runs[].run'"
    )


def _add_target(parser: argparse.ArgumentParser) -> None:
    """Add what says which runs results belong to."""
    parser.add_argument("--run", metavar="RUN", help="add them to this run")
    parser.add_argument("--commit", metavar="SHA", help="the commit that was tested")
    parser.add_argument("--ci-run", metavar="ID", help="the run of CI, by the id that CI gave it")
    parser.add_argument("--repo", metavar="DIR", help="a folder in the repository; else the current one")
    parser.add_argument("--job", metavar="NAME", help="the name of the job, where the file does not say")
    parser.add_argument("--attach-only", action="store_true", help="make no run where none is found (exit code 1)")


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if args.what == "git" and args.hook:
        return _hook(args, out)
    if settings.load().disabled:
        raise UsageError("PLAYHEAD_DISABLED is set, so nothing is recorded", hint="Unset it and try again.")
    store = open_folder(args.store)
    tell_above(args, store.root, out)
    if args.what == "git":
        return _git(args, store, out)
    if args.what == "langsmith":
        return _langsmith(args, store, out)
    return _junit(args, store, out) if args.what == "junit" else _actions(args, store, out)


def _repo(args: argparse.Namespace) -> Path | None:
    return None if args.repo is None else Path(args.repo).expanduser()


def _git(args: argparse.Namespace, store: FileStore, out: Output) -> int:
    from playhead._api.importing_git import import_git

    if not 0 < args.limit <= _limits.IMPORT_COMMITS_MAX:
        raise UsageError(f"--limit is a number from 1 to {_limits.IMPORT_COMMITS_MAX:,}")
    with out.progress(None, "importing commits") as progress:
        found = import_git(
            args.revisions, _repo(args) or Path.cwd(), store, limit=args.limit, make_run=args.make_run,
            progress=progress,
        )  # fmt: skip
    if out.json:
        out.emit(found)
        return 3 if found.problems else 0
    more = f"; older ones were not looked at (--limit {args.limit})" if found.older else ""
    out.print(f"{text.several(found.commits, 'commit')} of {found.revisions}{more}")
    if found.shallow:
        out.print(
            f"the clone is shallow: what changed in {_listed(found.shallow)} is not known, and older ones are not here"
        )
    if found.partial:
        out.print("the clone is partial: how many lines changed, and what was renamed, is not known")
    for one in found.attached:
        out.styled("  ", (one.commit[:10], "yellow"), f" → {one.run} ", (f"({one.link})", "dim"))
    if found.known:
        out.print(f"{text.several(found.known, 'link')} recorded before")
    if found.unlinked and found.made is None:
        if found.new:
            out.print(f"{text.several(found.new, 'commit')} of no run (`--make-run` makes a run)")
        if before := found.unlinked - found.new:
            out.print(f"{text.several(before, 'commit')} of no run, recorded before")
    for told, runs in (("named, but not in this store", found.not_here), ("still running", found.running)):
        if runs:
            out.print(f"{told}: {', '.join(runs[:_SHOWN])}{', …' if runs[_SHOWN:] else ''}")
    for run_id, problem in found.problems.items():
        out.warn(f"playhead: nothing was added to {run_id}: {problem}")
    return 3 if found.problems else 0


def _listed(shas: list[str]) -> str:
    return ", ".join(sha[:10] for sha in shas[:_SHOWN]) + (", …" if shas[_SHOWN:] else "")


def _hook(args: argparse.Namespace, out: Output) -> int:
    from playhead._api import linking

    if args.hook == "print":
        out.emit({"hook": linking.LINES}) if out.json else out.print(linking.LINES.rstrip("\n"))
        return 0
    do = {"install": linking.install_hook, "remove": linking.remove_hook, "status": linking.hook}[args.hook]
    found = do(_repo(args) or Path.cwd())
    if out.json:
        out.emit(found)
        return 0
    told = {
        "installed": "names recorded runs in commits",
        "none": "is not there: commits name no runs",
        "other": "is not ours: commits name no runs",
        "added": "has our lines beside others: it names recorded runs in commits",
    }
    there = found.state in ("installed", "added")
    shared = ", for all of your repositories (core.hooksPath)" if found.shared and there else ""
    out.print(f"{found.file} {told[found.state]}{shared}")
    return 0


def _junit(args: argparse.Namespace, store: FileStore, out: Output) -> int:
    from playhead.ingest.junit import counts, result

    files = [("junit.xml" if path == "-" else path, read_file(path)) for path in args.files]
    found = about(run=args.run, commit=args.commit, ci_run=args.ci_run, repo=_repo(args), store=store,
                  environ=os.environ)  # fmt: skip
    with out.progress(None, "importing tests"):
        imported, reports = import_junit(files, found, store, job=args.job, attach_only=args.attach_only)
    tests = [test for report in reports for test in report.tests]
    suites = [suite for report in reports for suite in report.suites]
    told, failed = counts(tests), [told for report in reports for told in report.failed]
    if out.json:
        out.emit({"tests": len(tests), "counts": told, "result": result(suites), "failed": failed,
                  **_target(found, imported)})  # fmt: skip
    else:
        amounts = ", ".join(f"{count:,} {status}" for status, count in told.items())
        out.print(f"{text.several(len(tests), 'test')}{': ' if amounts else ''}{amounts}")
        _print_failed(failed, out)
        _print_runs(found, imported, out)
    return _code(imported)


def _actions(args: argparse.Namespace, store: FileStore, out: Output) -> int:
    data = read_file(args.file)
    told = None if args.jobs is None else read_jobs(args.jobs)
    found = about(run=args.run, commit=args.commit, ci_run=args.ci_run, repo=_repo(args), store=store, told=told)
    with out.progress(None, "importing logs"):
        imported, logs = import_actions_log(
            "job" if args.file == "-" else args.file,
            data,
            found,
            store,
            told=told,
            job=args.job,
            attach_only=args.attach_only,
        )
    if out.json:
        jobs = [{"job": job.name, "result": job.result, "result_from": job.result_from, "steps": len(job.steps)}
                for job in logs.jobs]  # fmt: skip
        out.emit({"jobs": jobs, "ignored": logs.ignored, **_target(found, imported)})
    else:
        for job in logs.jobs:
            guessed = " (read off the log)" if job.result_from == "log" else ""
            out.print(f"{job.name}: {job.result}{guessed}, {text.several(len(job.steps), 'step')}")
        if logs.ignored:
            out.print(f"no logs: {', '.join(logs.ignored[:_SHOWN])}{', …' if logs.ignored[_SHOWN:] else ''}")
        _print_runs(found, imported, out)
    return _code(imported)


def _langsmith(args: argparse.Namespace, store: FileStore, out: Output) -> int:
    from playhead._api.importing_spans import import_langsmith

    found = []
    with out.progress(None, "importing runs"):
        for path in args.files:
            found.append(import_langsmith(read_file(path), store))
    runs = {one.run: one for imported in found for one in imported.runs}
    added = {one.run for imported in found for one in imported.runs if one.added}
    spans = sum(imported.spans for imported in found)
    if out.json:
        told = [{"run": one.run, "name": one.name, "status": one.status, "added": one.run in added}
                for one in runs.values()]  # fmt: skip
        out.emit({"spans": spans, "runs": told})
        return 0
    out.print(f"{text.several(spans, 'run')} of LangSmith")
    for one in runs.values():
        did = "recorded in " if one.run in added else "recorded before in "
        out.styled(did, (one.run, "cyan"), f"  {one.name or ''}  {one.status}")
    return 0


def _code(imported: Imported) -> int:
    """Return 0 where all is recorded, 1 where there was no run for it, 3 where something could not be added."""
    return 3 if any(placed.problem for placed in imported.runs) else 0 if imported.runs else 1


def _target(found: Any, imported: Imported) -> dict[str, Any]:
    return {
        "commit": found.commit,
        "ci_run": found.ci.get("run_id"),
        "runs": imported.runs,
        "left_out": imported.left_out,
    }


def _print_failed(failed: list[str], out: Output) -> None:
    for told in failed[:_SHOWN]:
        out.wrapped(["  ", ("failed  ", "red")], text.cut(told, _limits.CELL_CHARACTERS_MAX))
    if failed[_SHOWN:]:
        out.print(f"  and {len(failed) - _SHOWN:,} more")


def _print_runs(found: About, imported: Imported, out: Output) -> None:
    for placed in imported.runs:
        if placed.problem is not None:
            out.warn(f"playhead: nothing was added to {placed.run}: {placed.problem}")
            continue
        out.styled(_done(placed), (placed.run, "cyan"), _why(found, placed))
    if imported.left_out:
        out.print(f"{text.several(imported.left_out, 'older run')} left out; `--run RUN` names one")
    if not imported.runs:
        out.print("no run belongs to it, so nothing was recorded")


def _done(placed: Placed) -> str:
    if placed.made:
        return "recorded in a new run "
    return "recorded in " if placed.added else "recorded before in "


def _why(found: About, placed: Placed) -> str:
    if placed.link in LINKS:
        return f", for commit {str(found.commit)[:10]} ({LINKS[placed.link]})"
    return f": {_WHY[placed.link]}" if placed.link in _WHY else ""
