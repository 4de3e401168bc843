"""Ask the index a question in SQL. It can only be read."""

from __future__ import annotations

import argparse
import difflib
import io
import shlex
from typing import Any

from playhead.cli.arguments import store_place
from playhead.cli.output import Output, one_line
from playhead.cli.quick_index import open_quick_index
from playhead.errors import UsageError
from playhead.store.index_database import TABLES
from playhead.store.index_questions import Questions
from playhead.store.questions import QUESTIONS


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("question", nargs="?", metavar="SQL", help="one SELECT, or the name of a question (--list)")
    parser.add_argument("more", nargs="*", help=argparse.SUPPRESS)  # to say how parameters are given
    parser.add_argument("-p", "--param", action="append", default=[], metavar="NAME=VALUE", help="fill in :NAME")
    parser.add_argument("--replays", action="store_true", help="count exact replays too, whose calls were never made")
    parser.add_argument("--csv", action="store_true", help="answer with CSV")
    parser.add_argument("--tables", action="store_true", help="list the tables and their columns")
    parser.add_argument("--list", action="store_true", help="list the questions that have a name")
    parser.epilog = (
        "Exact replays are left out of every table, unless --replays is given.\n"
        "docs/reference/index-tables.md explains every column. `reads` says who asked which clock, variable or file;\n"
        "what it said is in `playhead show RUN --reads`.\n\n"
        "examples:\n"
        '  playhead query "SELECT name, count(*) FROM runs GROUP BY name"\n'
        "  playhead query slowest-tools\n"
        "  playhead query runs-touching-a-file -p file=src/login.py\n"
        "  playhead query \"SELECT run, target FROM reads WHERE source = 'os.environ'\"\n"
        "  playhead query \"SELECT * FROM policy_checks WHERE decision = 'deny'\" --csv > denied.csv"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if args.more:
        raise UsageError(f"not a part of a question: {args.more[0]!r}", hint=_how(args.question, args.more[0]))
    if sum((args.question is not None, args.tables, args.list)) != 1:
        raise UsageError("ask one question", hint="A SELECT in quotes, a name of `--list`, or `--tables`.")
    if args.list:
        return _answer(["name", "asks", "parameters"], [
            (name, question.about, ", ".join(question.parameters)) for name, question in QUESTIONS.items()
        ], args, out)  # fmt: skip
    with open_quick_index(store_place(args.store)) as index:
        columns, rows = _tables(index) if args.tables else _ask(index, args)
    return _answer(columns, rows, args, out)


def _how(question: str, value: str) -> str:
    """Say how to ask what was meant by a value beside a question."""
    if (known := QUESTIONS.get(question)) is None:
        return "Write all of a SELECT in one pair of quotes; its parameters as `-p name=value`."
    if not known.parameters:
        return f"The question {question!r} has no parameters."
    return f"Parameters have names: `playhead query {question} -p {known.parameters[0]}={shlex.quote(value)}`."


def _ask(index: Questions, args: argparse.Namespace) -> tuple[list[str], list[tuple[Any, ...]]]:
    question, parameters = args.question, _parameters(args.param)
    known = QUESTIONS.get(question)
    if known is None:
        if " " not in question.strip():
            close = difflib.get_close_matches(question, QUESTIONS, n=1)
            told = f"Did you mean {close[0]}?" if close else "`playhead query --list` lists the questions with a name."
            raise UsageError(f"there is no question {question!r}", hint=told)
        return index.query(question, parameters, replays=args.replays)
    missing = [name for name in known.parameters if name not in parameters]
    if missing:
        raise UsageError(f"the question {question!r} needs {', '.join(missing)}", hint=f"Add `-p {missing[0]}=…`.")
    return index.query(known.sql, parameters, replays=args.replays)


def _tables(index: Questions) -> tuple[list[str], list[tuple[Any, ...]]]:
    rows: list[tuple[Any, ...]] = []
    for table in TABLES:
        columns, _ = index.query(f"SELECT * FROM {table} LIMIT 0")
        rows += [(table, column) for column in columns]
    return ["table", "column"], rows


def _parameters(given: list[str]) -> dict[str, str]:
    out: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"not a parameter: {text!r}", hint="Write `-p name=value`.")
        out[name.removeprefix(":")] = value
    return out


def _answer(columns: list[str], rows: list[tuple[Any, ...]], args: argparse.Namespace, out: Output) -> int:
    if args.csv and out.json:
        raise UsageError("--csv and --json are two answers", hint="Choose one.")
    if out.json:
        names = _distinct(columns)
        out.emit([dict(zip(names, row, strict=True)) for row in rows])
    elif args.csv:
        from playhead.cli.spreadsheet import write_rows

        table = io.StringIO(newline="")
        write_rows(table, [columns, *rows])
        out.write_exactly(table.getvalue())
    elif out.terminal and len(columns) * 8 > out.width:  # a table this wide would be unreadable: a record for each row
        wide = max(map(len, columns))
        for number, row in enumerate(rows, 1):
            out.styled((f"row {number}", "bold"))
            for name, value in zip(columns, row, strict=True):
                out.styled("  ", (f"{name:<{wide}}", "dim"), "  ", "" if value is None else one_line(str(value)))
    else:
        out.table(columns, rows, right=[name for at, name in enumerate(columns) if _is_numeric(rows, at)])
    return 0


def _is_numeric(rows: list[tuple[Any, ...]], at: int) -> bool:
    return bool(rows) and all(isinstance(row[at], (int, float, type(None))) for row in rows)


def _distinct(columns: list[str]) -> list[str]:
    """Number names that occur twice, since an object has each name once."""
    seen: dict[str, int] = {}
    out = []
    for name in columns:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return out
