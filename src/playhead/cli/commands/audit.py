"""Audit runs: what they touched, what they were allowed to touch, and whether the record can be relied on."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

from playhead import _limits
from playhead._api.auditing import audit_all
from playhead.cli import audit_rows, filters
from playhead.cli.arguments import add_run, store_place
from playhead.cli.audit_text import print_audit
from playhead.cli.output import Output
from playhead.cli.quick_index import open_quick_index
from playhead.cli.whole_file import form_of, whole_file
from playhead.errors import UsageError
from playhead.views.audit.findings import RULES, SEVERITIES, Audit
from playhead.views.text import several

FORMATS = ("terminal", "json", "md", "html", "sarif")
_ENDINGS = {
    ".json": "json", ".md": "md", ".markdown": "md", ".html": "html", ".htm": "html", ".sarif": "sarif",
    ".txt": "terminal",
}  # fmt: skip
_CODES = {"broken": 1, "missing": 1, "unfinished": 3, "unattested": 3}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser, "runs", nargs="*")
    parser.add_argument("--all", action="store_true", help="every run of the store")
    filters.add_filters(parser)
    parser.add_argument("--no-children", action="store_true", help="not the runs of programs that a run started")
    parser.add_argument("--rule", metavar="RULES", help=f"tell only of these, with commas: {', '.join(RULES)}")
    parser.add_argument("--fail-on", metavar="RULES", help="exit code 1 where there is a finding of these rules, or"
                        f" of these severities or worse: {', '.join(SEVERITIES)}")  # fmt: skip
    parser.add_argument(
        "--format", choices=FORMATS, help="terminal, json, md, html, sarif; else by the name of the file, else terminal"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="write there instead of stdout")
    parser.add_argument("--limit", type=int, metavar="N", help="at most so many rows of a rule, 0 for all"
                        f" ({_limits.AUDIT_ROWS_DEFAULT}; html, json and sarif have all)")  # fmt: skip
    parser.epilog = (
        "Exit code: 1 with a finding that --fail-on names, or where a record is broken or something of it is missing;\n"
        "3 where a run is unfinished, so that nobody can tell; else 0.\n\n"
        "examples:\n"
        "  playhead audit @last\n"
        "  playhead audit @last --rule write,network\n"
        "  playhead audit @last --fail-on deny,undeclared --format md -o audit.md\n"
        "  playhead audit --since 7d --name fix-login --format sarif -o audit.sarif\n"
        "  playhead audit crashed-run resumed-run --rule repeated       what was done twice"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    form = _form(args, out)
    limit = _limit(args.limit, form)
    rules, fail_on = _names(args.rule, "--rule", RULES), _names(args.fail_on, "--fail-on", (*RULES, *SEVERITIES))
    references = _references(args)
    with out.progress(len(references), "auditing") as advance:
        named = bool(args.runs)  # else they are many that have little to do with each other
        found = audit_all(references, args.store, children=not args.no_children, together=named, progress=advance)
    failed = found.failing(fail_on)
    shown = found.only(rules) if rules else found
    if args.output is None or args.output == "-":
        _write(shown, form, limit, failed, out)
    else:
        with whole_file(Path(args.output)) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", errors="backslashreplace", newline="\n")
            _write(shown, form, limit, failed, Output(stdout=text, color=False, terminal=False))
            text.flush()
            text.detach()
        told = {"file": args.output, "format": form, "findings": len(shown.findings), "failed": failed}
        out.emit(told) if out.json else out.warn(f"wrote {several(len(shown.findings), 'finding')} to {args.output}")
        if failed and not out.json:
            out.warn(audit_rows.fails(failed))
    return _exit_code(found, failed)


def _exit_code(audit: Audit, failed: dict[str, int]) -> int:
    codes = {_CODES.get(str(told["verdict"]), 0) for one in audit.runs for told in (one.integrity, one.completeness)}
    return 1 if failed or 1 in codes else max(codes)


def _form(args: argparse.Namespace, out: Output) -> str:
    if out.json and args.output in (None, "-") and args.format not in (None, "json"):
        raise UsageError(f"--json and --format {args.format} both want stdout", hint="Write one to a file: `-o FILE`.")
    named = form_of(args.output, _ENDINGS, "an audit", said=args.format)
    return named or ("json" if out.json else "terminal")


def _limit(given: int | None, form: str) -> int:
    if given is None:
        return 0 if form == "html" else _limits.AUDIT_ROWS_DEFAULT
    if given < 0:
        raise UsageError("--limit is a number of rows, 0 for all")
    return given


def _names(given: str | None, option: str, known: tuple[str, ...] | dict[str, str]) -> list[str]:
    """Read names that are separated by commas."""
    names = [] if given is None else [name.strip() for name in given.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(f"{option} does not know {name!r}", hint=f"There are: {', '.join(known)}.")
    return names


def _references(args: argparse.Namespace) -> list[str]:
    """Return which runs are to be audited: those that are named, or those that filters choose, the oldest first."""
    chosen = args.all or filters.given(args)
    if args.runs and chosen:
        named = "--all" if args.all else filters.words(args)[0]
        raise UsageError(f"runs that are named, and {named}, are two questions", hint="Ask one after the other.")
    if args.runs:
        return list(args.runs)
    if not chosen:
        raise UsageError(
            "name one or more runs, or choose them by a filter",
            hint="For instance `playhead audit @last`, `playhead audit --since 7d`, `playhead audit --all`.",
        )
    root = store_place(args.store)
    if isinstance(root, Path) and not root.is_dir():
        raise UsageError(f"there is no store at {root}", hint="`--store DIR` names another one.")
    with open_quick_index(root) as index:
        runs = index.list_runs(limit=-1, **filters.chosen(args))
    if not runs:
        raise UsageError("no run matches", hint="`playhead ls` without filters lists all of them.")
    return [str(one["id"]) for one in reversed(runs)]


def _write(audit: Audit, form: str, limit: int, failed: dict[str, int], out: Output) -> None:
    match form:
        case "json":
            out.emit({**audit.as_dict(), "failed": failed})
        case "sarif":
            from playhead.cli.audit_sarif import sarif

            out.emit(sarif(audit))
        case "md":
            from playhead.cli.audit_markdown import markdown

            out.stdout.write(markdown(audit, limit, failed))
        case "html":
            from playhead.cli.audit_html import html

            out.stdout.write(html(audit, limit, failed))
        case _:
            print_audit(audit, limit, out)
            if failed:
                out.print()
                out.styled((audit_rows.fails(failed), "bold red"))
