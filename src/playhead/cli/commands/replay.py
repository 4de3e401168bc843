"""Play back what a run answered. Nothing is executed: no agent code, no model, no tool."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import orjson

from playhead import settings as settings_module
from playhead._api.reading import load
from playhead.cli.arguments import add_run
from playhead.cli.output import Output
from playhead.cli.silence import swallowed
from playhead.errors import UsageError
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

SHAPE = ("status", "from_replay", "original_run_id", "payload", "metadata", "error")
EXITS = {"faithful": 0, "deviated": 1, "not_compared": 3}
MODES = ("playback", "exact", "model", "step", "fork")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser)
    parser.add_argument(
        "--mode",
        choices=MODES,
        default="playback",
        help="playback (the default) hands back the recorded outcome; exact runs the program, answered from the tape",
    )
    parser.add_argument("--verify-envelope", metavar="FILE", help="refuse unless this is the recorded request")
    parser.add_argument("--force", action="store_true", help="play back a run that is not replayable, with a warning")
    parser.add_argument("--waive", action="append", default=[], metavar="REASON",
                        help="exact: let a reason against it not count; may be repeated")  # fmt: skip
    parser.add_argument("--on-deviation", choices=("raise", "nearest"), default="raise",
                        help="exact: what a question that is not on the tape leads to (%(default)s)")  # fmt: skip
    parser.add_argument("--speed", type=_speed, default=0.0, metavar="X",
                        help="exact: 1 takes the time that it took, 2 half of it; the default, 0, none")  # fmt: skip
    parser.add_argument(
        "--suggest", metavar="RUN", help="propose normalisers: what is volatile in the questions of this run and RUN"
    )
    parser.set_defaults(program=[])
    parser.usage = "playhead replay RUN [--mode MODE] [options] [-- PROGRAM [ARGUMENTS]]"
    parser.epilog = (
        "playback answers with a JSON document on stdout: status, from_replay, original_run_id, payload, metadata,\n"
        "error. exact passes the program's output through and reports to stderr; with --json stdout holds only the\n"
        "report. No model is asked, no tool runs, no process is started, nothing is written. What comes after --\n"
        "is run in place of the command that was recorded.\n"
        "Exit code: 0 played back (a recorded error too) or faithful, 1 refused or deviated, 3 could not tell.\n\n"
        "examples:\n"
        "  playhead replay @last | jq .payload\n"
        "  playhead replay @last --mode exact\n"
        "  playhead replay fix-login --mode exact --on-deviation nearest -- python agent.py --verbose\n"
        "  playhead replay fix-login --verify-envelope request.json\n"
        '  echo \'{"intent": "fix-login", "payload": {"issue": 1842}}\' | playhead replay @last --verify-envelope -'
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if args.suggest is not None:
        from playhead.cli.suggestion import tell

        return tell(load(args.suggest, args.store), load(args.run, args.store), out)
    if args.mode in ("playback", "exact"):
        _refuse_of_other_mode(args)
    if args.mode == "exact":
        return _exact(args, out)
    if args.mode != "playback":
        raise UsageError(
            f"replay in the mode {args.mode!r} is not available yet",
            hint="`--mode exact` runs the program, answered from the tape; `--mode playback` hands back the outcome.",
        )
    asked = None if args.verify_envelope is None else _envelope(args.verify_envelope)
    recorded = load(args.run, args.store)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        result = recorded.playback(asked, force=args.force, plain=True)
    for warning in told:
        out.warn(f"WARNING: {str(warning.message).removeprefix('playhead: ')}")
    if not out.json:
        matched = "Envelope hash matches. " if asked is not None else ""
        out.warn(f"{matched}Playing back {recorded.id}; nothing is executed.")
    found = result.as_dict()
    out.emit({**{name: found[name] for name in SHAPE}, **found})
    return 0


def _refuse_of_other_mode(args: argparse.Namespace) -> None:
    """Refuse what would be ignored."""
    exact = {
        "-- PROGRAM": args.program, "--waive": args.waive, "--speed": args.speed,
        "--on-deviation": args.on_deviation != "raise",
    }  # fmt: skip
    playback = {"--force": args.force, "--verify-envelope": args.verify_envelope}
    other, given = ("playback", playback) if args.mode == "exact" else ("exact", exact)
    for name, value in given.items():
        if value:
            hint = "Name the reasons that shall not count: `--waive REASON`." if name == "--force" else None
            raise UsageError(f"{name} is for `--mode {other}`, and this is `--mode {args.mode}`", hint=hint)


def _speed(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no speed: 0 takes no time, 1 the time that it took, 2 half of it"
        )
    return value


def _exact(args: argparse.Namespace, out: Output) -> int:
    """Run the program again; its output is its own, and ours goes to stderr."""
    if sys.platform == "win32":
        raise UsageError("a program is replayed on Linux and macOS, not on Windows", hint="Use WSL.")
    from playhead.cli.arguments import store_root
    from playhead.cli.replay_text import lines
    from playhead.replay.exact import replay_program

    recorded = load(args.run, args.store)
    with swallowed(out.json):
        found = replay_program(
            RunReader(recorded.store, recorded.id),
            FileStore(store_root(args.store)),
            settings_module.load(),
            argv=args.program or None,
            on_deviation=args.on_deviation,
            speed=args.speed,
            waive=[reason for named in args.waive for reason in named.split(",")],
        )
    if out.json:
        out.emit(found.as_dict())
    else:
        for line in lines(found.as_dict()):
            out.warn(line)
    return EXITS[found.fidelity["verdict"]]


def _envelope(name: str) -> Any:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as problem:
        raise UsageError(f"cannot read the envelope {name}: {problem.strerror}") from None
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as problem:
        raise UsageError(
            f"the envelope {name} is not JSON: {problem}",
            hint='For instance {"intent": "fix-login", "payload": {"issue": 1842}, "metadata": {}}.',
        ) from None
