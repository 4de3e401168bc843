"""Write a report: one page, Markdown for a pull request, or the data behind them."""

from __future__ import annotations

import argparse
from pathlib import Path

from playhead import _limits
from playhead._api.reading import load
from playhead.cli.altered import warn_if_altered
from playhead.cli.arguments import add_ignore, add_run
from playhead.cli.output import Output, one_line, to_json
from playhead.cli.whole_file import form_of, whole_file
from playhead.errors import UsageError
from playhead.views import text

FORMATS = ("html", "md", "json")
_ENDINGS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".json": "json"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser, "runs", nargs="+", help="the run; or two, the first to compare with")
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write it; - for stdout")
    parser.add_argument("--format", choices=FORMATS, help="else by the name of the file; html")
    add_ignore(parser)
    parser.add_argument("--events", type=int, metavar="N", default=_limits.REPORT_EVENTS_MAX,
                        help="at most so many exact lines of each run, 0 for all (%(default)s)")  # fmt: skip
    parser.epilog = (
        "The page is one file: it loads nothing, sends nothing, and checks every line in the browser.\n\n"
        "examples:\n"
        "  playhead report @last -o report.html\n"
        "  playhead report baseline @last -o report.html\n"
        '  playhead report baseline @last --format md >> "$GITHUB_STEP_SUMMARY"'
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if len(args.runs) > 2:
        raise UsageError("a report is of one run, or of two", hint="`playhead report LEFT RIGHT -o report.html`.")
    if args.ignore and len(args.runs) == 1:
        raise UsageError("--ignore is about what two runs differ in", hint="Name the run to compare with first.")
    from playhead._api.reporting import Report, report  # here: for --help it is not needed

    form = _form(args, out)
    found = [load(name, args.store) for name in args.runs]
    altered = [warn_if_altered(one, name, out) for one, name in zip(found, args.runs, strict=True)]
    with out.progress(None, "reporting"):
        made = report(*found, events=args.events, ignore=args.ignore)
        told = (
            {"html": Report.html, "md": Report.markdown}[form](made)
            if form != "json"
            else to_json(made.as_dict()) + "\n"
        )
    if args.output in (None, "-"):
        out.emit(made.as_dict()) if form == "json" else out.write_bytes(told.encode("utf-8", "replace"))
    else:
        written = told.encode("utf-8", "replace")
        with whole_file(Path(args.output)) as file:
            file.write(written)
        if out.json:
            out.emit({"file": args.output, "format": form, "bytes": len(written)})
        else:
            out.print(f"{one_line(args.output)}  {text.size(len(written))}")
    return 3 if any(altered) else 0


def _form(args: argparse.Namespace, out: Output) -> str:
    """Return what is to be written: as it is said, else as the file is called."""
    if out.json and args.output in (None, "-"):
        if args.format not in (None, "json"):
            told = f"--json and --format {args.format} both want stdout"
            raise UsageError(told, hint="Write one to a file: `-o FILE`.")
        return "json"
    form = form_of(args.output, _ENDINGS, "a report", said=args.format) or "html"
    if form == "html" and args.output is None and out.terminal:
        raise UsageError("a page is not for a terminal", hint="Write it to a file: `-o report.html`, or --format md.")
    return form
