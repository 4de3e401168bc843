"""Find the command, run it, and say in one way what went wrong.

Only the module of the command that was asked for is imported, so that looking something up stays quick.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING

from playhead._version import __version__

if TYPE_CHECKING:
    import argparse

    from playhead.cli.output import Output
    from playhead.errors import PlayheadError

# Every command, in the order in which people need them. The module is `commands/<name>.py`.
COMMANDS = {
    "record": "run a program and record what it does",
    "demo": "record a small real agent, and show what can be done with it",
    "ls": "list runs, newest first",
    "show": "show the timeline of a run, its state at an event, or one event",
    "diff": "compare two runs: what differs, what came first, what follows from it",
    "tail": "follow a run while it happens",
    "replay": "play back the recorded outcome of a run, or run its code again, answered from the tape",
    "fork": "run a program from its tape up to an event, and live from there",
    "debug": "stop a replay at an event, and look around in the agent's own frame",
    "resume": "go on with a run that was cut off, from where it ended",
    "rerun": "ask the models of many runs again, and compare",
    "bisect": "find which answers make the difference between a good and a bad run",
    "grade": "replay a recording against itself, and say what is reproduced",
    "test": "replay recorded runs against the code as it is now",
    "verify": "check that a run is intact and complete",
    "audit": "say what runs touched, and what they were allowed to touch",
    "policy": "check a policy, explain what it says, and test it against recorded runs",
    "invalidate": "declare that a run must not be played back",
    "log": "print runs, commits and results of CI as one stream",
    "import": "import commits, test results and logs of CI",
    "stats": "add up what runs took, cost and saved, by model, tool, step, agent or day",
    "query": "ask the index a question in SQL",
    "report": "write one page, or a comment, about a run or about two and how they differ",
    "pack": "put a run into one portable file, a cassette",
    "unpack": "put the run of a cassette into a store",
    "export": "write runs as JSON lines, JSON or CSV",
    "schema": "print the JSON Schema of a line",
    "keys": "make, list and revoke the API keys of the server",
    "reindex": "build the index again from the runs",
    "prune": "remove old runs and what nobody refers to",
    "serve": "take in spans from any agent, and answer over HTTP",
    "doctor": "check the store and this installation",
    "completion": "print the code that completes commands and runs in your shell",
}
GROUPS = {
    "Record": ("record", "demo"),
    "Look": ("ls", "show", "diff", "tail", "log", "stats", "query"),
    "Replay and prove": (
        "replay",
        "debug",
        "fork",
        "resume",
        "rerun",
        "bisect",
        "grade",
        "test",
        "verify",
        "audit",
        "invalidate",
        "policy",
    ),
    "Take elsewhere": ("report", "pack", "unpack", "export", "import", "schema"),
    "Serve": ("serve", "keys"),
    "Keep in order": ("reindex", "prune", "doctor", "completion"),
}

# What is done in a folder, or with the files of one: a server's runs are read from elsewhere, and not written yet.
_NEED_A_FOLDER = frozenset(
    ("record", "demo", "resume", "rerun", "test", "import", "unpack", "keys", "reindex", "prune", "serve", "doctor")
)
_ASK_THE_STORE = ("ls", "log", "stats", "query")  # the others name a run, and say so when it is not there

YES, NO, USAGE, UNKNOWN, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 3, 130, 141


def main(argv: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0 yes, 1 no, 2 usage, 3 could not tell."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    if sys.stdout is None or sys.stderr is None:
        _open_what_is_closed()
    if arguments in (["--version"], ["-V"]):
        sys.stdout.write(f"playhead {__version__}\n")
        return YES
    if "_ARGCOMPLETE" in os.environ:
        from playhead.cli.completing import complete

        complete()
    _never_fail_on_letters()
    try:
        code = _answer(arguments)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Whoever read has seen enough. Without this, Python complains when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except OSError as problem:  # the answer could not be written to its end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.stderr.write(f"playhead: cannot write the answer: {problem.strerror or problem}\n")
        return UNKNOWN
    except KeyboardInterrupt:
        return INTERRUPTED


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of one command; the reference pages are made from it too."""
    from playhead.cli.arguments import Parser, add_shared

    module = module_of(name)
    parser = Parser(prog=f"playhead {name}", description=_sentence(COMMANDS[name]))
    module.configure(parser)
    add_shared(parser)
    return parser


def _answer(arguments: list[str]) -> int:
    from playhead.cli.output import Output
    from playhead.errors import PlayheadError, StoreError, UsageError

    own = arguments[: arguments.index("--")] if "--" in arguments else arguments
    out = Output(json="--json" in own, color="--no-color" not in own)
    try:
        shared, rest = _leading(arguments)
        if not rest or rest[0] in ("--help", "-h", "help"):
            return _overview(out, rest)
        name = rest[0]
        if name in ("--version", "-V"):
            out.emit({"version": __version__}) if out.json else out.print(f"playhead {__version__}")
            return YES
        if name not in COMMANDS:
            raise UsageError(f"there is no command {name!r}", hint=_nearest(name))
        args = parser_of(name).parse_args([*shared, *rest[1:]])
        out = Output(json=args.json, color=not args.no_color)
        if name in _NEED_A_FOLDER:
            from playhead.cli.arguments import insist_on_a_folder

            insist_on_a_folder(name, args.store)
        if args.store is not None and name in _ASK_THE_STORE:
            from playhead.cli.arguments import insist_on_a_store

            insist_on_a_store(args.store)
        code: int = module_of(name).run(args, out)
        return code
    except PlayheadError as problem:
        return _tell(out, problem)
    except SystemExit as stop:  # argparse, after --help
        return stop.code if isinstance(stop.code, int) else YES
    except BrokenPipeError:
        raise
    except OSError as problem:
        if sys.platform == "win32" and problem.errno == errno.EINVAL and problem.filename is None:
            raise BrokenPipeError from problem  # so Windows tells of it
        where = f"{problem.filename}: " if problem.filename else ""
        return _tell(out, StoreError(f"{where}{problem.strerror or problem}"))
    except UnicodeEncodeError as problem:  # bytes on the command line that are no text
        return _tell(out, UsageError(f"not a text: {problem.object!r}"))
    except Exception as problem:
        return _tell_bug(out, problem)


def exit_code(problem: PlayheadError) -> int:
    """Return the exit code of an error: 1 where the answer is no, 2 where the question was wrong, else 3."""
    from playhead import errors

    no = (
        errors.Altered,
        errors.NotReplayable,
        errors.EnvelopeMismatch,
        errors.RecordedError,
        errors.PolicyDenied,
        errors.KeyRefused,
        errors.Conflict,
    )
    if isinstance(problem, no):
        return NO
    return USAGE if isinstance(problem, (errors.UsageError, errors.RunNotFound, errors.NotFound)) else UNKNOWN


def module_of(name: str) -> _Command:
    """Import the module of one command."""
    from importlib import import_module

    module: _Command = import_module(f"playhead.cli.commands.{name.replace('-', '_')}")  # type: ignore[assignment]
    return module


def _leading(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split off the shared options that stand before the command, as in `playhead --store DIR ls`."""
    shared: list[str] = []
    rest = list(arguments)
    while rest and (rest[0] in ("--json", "--no-color", "--store") or rest[0].startswith("--store=")):
        take = 2 if rest[0] == "--store" else 1
        shared, rest = [*shared, *rest[:take]], rest[take:]
    return shared, rest


def _overview(out: Output, rest: list[str]) -> int:
    if len(rest) > 1 and rest[1] in COMMANDS:
        parser_of(rest[1]).print_help()
        return YES
    if out.json:
        out.emit({"version": __version__, "commands": COMMANDS})
        return YES
    out.styled(("playhead", "bold"), f" {__version__}, the flight recorder for AI agents")
    out.print("\nUsage: playhead COMMAND [ARGUMENTS]")
    for title, names in GROUPS.items():
        out.styled("\n", (title, "bold"))
        for name in names:
            out.styled("  ", (f"{name:<12}", "cyan"), COMMANDS[name])
    out.print("\nA run is named by its id, the beginning of it, its name (the latest; NAME~1 the one before),")
    out.print("@last, @last~1, or a path.")
    out.print("Every command takes --json, --store DIR, --no-color and --help.")
    out.print("Exit codes: 0 yes, 1 no, 2 usage, 3 could not tell.")
    return YES


def _tell(out: Output, problem: PlayheadError) -> int:
    if out.json:
        out.emit(problem.as_dict())
    else:
        out.warn(f"playhead: {problem.message}" + (f"\n  {problem.hint}" if problem.hint else ""))
    return exit_code(problem)


def _tell_bug(out: Output, problem: Exception) -> int:
    message = f"this is a bug in playhead: {type(problem).__name__}: {problem}"
    hint = "Set PLAYHEAD_DEBUG=1 to see where, and please report it."
    if out.json:
        out.emit({"error": {"code": "bug", "message": message, "hint": hint, "detail": None}})
    else:
        out.warn(f"playhead: {message}\n  {hint}")
    if os.environ.get("PLAYHEAD_DEBUG", "") not in ("", "0"):
        import traceback

        traceback.print_exception(problem)
    return UNKNOWN


def _nearest(name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1)
    return f"Did you mean `playhead {near[0]}`?" if near else "`playhead --help` lists the commands."


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _open_what_is_closed() -> None:
    """Put nothing in the place of streams that were closed (`>&-`): else the next file opened would be our output."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _never_fail_on_letters() -> None:
    """Write a letter that the terminal's encoding does not have as an escape, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


if TYPE_CHECKING:

    class _Command:
        """What a module of a command has."""

        @staticmethod
        def configure(parser: argparse.ArgumentParser) -> None:
            """Add the arguments."""

        @staticmethod
        def run(args: argparse.Namespace, out: Output) -> int:
            """Answer, and return the exit code."""
            return 0
