"""Print runs, commits and results of CI of a repository as one stream, the newest first; link a commit to a run."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from playhead import _limits
from playhead._api.points_in_time import moment_us
from playhead._api.reading import load, open_store
from playhead._api.stream import stream
from playhead.cli.filters import tell_above
from playhead.cli.output import Output
from playhead.errors import UsageError
from playhead.views import log, text

STYLES = {
    "ok": "green", "success": "green", "error": "red", "failure": "bold red", "timed_out": "bold red",
    "crashed": "bold red", "cancelled": "yellow", "running": "cyan", "unknown": "yellow",
}  # fmt: skip
_ID_CHARACTERS = 16  # of a run: `run_`, the millisecond, and two more
_SHA_CHARACTERS = 10


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("--repo", metavar="DIR", help="a folder in the repository; else the current one")
    parser.add_argument("--since", metavar="WHEN", help="only what happened since: 30m, 2h, 3d, or a date and time")
    parser.add_argument("-n", "--limit", type=int, default=_limits.LOG_ENTRIES_DEFAULT, metavar="N",
                        help="at most so many (%(default)s)")  # fmt: skip
    parser.add_argument("--link", nargs=2, metavar=("RUN", "COMMIT"),
                        help="say in a note (refs/notes/playhead) that this run made this commit")  # fmt: skip
    parser.epilog = (
        "Commits come from git, runs and results of CI from the store. Outside of a repository everything in the\n"
        "store is listed. What CI reported is there once it was imported: `playhead import --help`.\n\n"
        "examples:\n"
        "  playhead log\n"
        "  playhead log --since 3d --limit 200\n"
        "  playhead log --link @last HEAD\n"
        "  playhead log --json | jq '.entries[] | select(.type == \"ci\")'"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if not 0 < args.limit <= _limits.IMPORT_COMMITS_MAX:
        raise UsageError(f"--limit is a number from 1 to {_limits.IMPORT_COMMITS_MAX:,}")
    repo = None if args.repo is None else Path(args.repo).expanduser()
    if args.link is not None:
        return _link(args, repo, out)
    since_us = 0 if args.since is None else moment_us(args.since)
    store = open_store(args.store)
    tell_above(args, store.root, out)
    found = stream(store, repo, since_us=since_us, limit=args.limit)
    if out.json:
        out.emit(found)
        return 0
    if found.problem is not None:
        out.warn(f"playhead: git did not answer, so commits are those that runs recorded: {found.problem}")
    if not found.entries:
        if since_us and stream(store, repo, limit=1).entries:
            out.print(f"Nothing happened since {args.since}. Without --since there is more.")
        else:
            out.print("Nothing is known here yet: no run, no commit, no result of CI.")
        return 0
    rows = [_row(entry) for entry in found.entries]
    columns = ("when (UTC)", "what", "which", "how", "belongs to")
    out.table(columns, rows, whole=("when (UTC)", "what", "which"), short="how", below="how")
    return 0


def _link(args: argparse.Namespace, repo: Path | None, out: Output) -> int:
    from playhead._api.linking import link

    named, commit = args.link
    found = link(load(named, args.store).id, commit, repo or Path.cwd())
    if out.json:
        out.emit(found)
    else:
        done = "is linked to" if found.added else "was linked to"
        out.print(f"{found.commit[:_SHA_CHARACTERS]} {done} {found.run}; `playhead import git` records it in the run")
    return 0


def _row(entry: dict[str, Any]) -> list[Any]:
    when = (entry["time"] or "").replace("T", " ")[:19]
    match entry["type"]:
        case "run":
            which, how, of = (_short(entry["run"]), "cyan"), _how_run(entry), _sha(entry["commit"])
        case "commit":
            made = [one["run"] for one in entry["runs"] if one["link"] not in log.NOT_MADE]
            which, how, of = (_sha(entry["commit"]), "yellow"), _how_commit(entry), ", ".join(map(_short, made))
        case _:
            result = str(entry["result"] or "unknown")
            which, how = (result, STYLES.get(result, "")), _how_ci(entry)
            of = _sha(entry["commit"]) or ", ".join(map(_short, entry["runs"]))
    return [when, entry["type"], which, text.cut(how, _limits.CELL_CHARACTERS_MAX), of]


def _how_run(entry: dict[str, Any]) -> str:
    took = "" if entry["duration_ms"] is None else text.duration(entry["duration_ms"] * 1000)
    told = f"{entry['name'] or '(no name)'} {entry['status']}"
    return ", ".join(filter(None, (told, took, (entry["error"] or "").partition("\n")[0])))


def _how_commit(entry: dict[str, Any]) -> str:
    lines = "" if entry["added"] is None else f" +{entry['added']} −{entry['removed']}"
    author = f" ({entry['author']})" if entry["author"] else ""
    return f"{entry['subject'] or ''}{author}{lines}"


def _how_ci(entry: dict[str, Any]) -> str:
    name = " / ".join(filter(None, (entry["job"], entry["step"], entry["test"]))) or "(no name)"
    told = ", ".join(f"{count} {status}" for status, count in (entry["counts"] or {}).items())
    return f"{name}: {'; '.join(filter(None, (told, entry['error'])))}".removesuffix(": ")


def _short(run_id: str) -> str:
    return run_id[:_ID_CHARACTERS]


def _sha(commit: str | None) -> str:
    return (commit or "")[:_SHA_CHARACTERS]
