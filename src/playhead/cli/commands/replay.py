"""Play back what a run answered, or run its code again: from the tape alone, with live models, or one step of it."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import orjson

from playhead import settings as settings_module
from playhead._api.fetching import load_here
from playhead._api.reading import load
from playhead.cli import live_options
from playhead.cli.arguments import add_run
from playhead.cli.output import Output
from playhead.cli.silence import swallowed
from playhead.errors import UsageError
from playhead.store.files import FileStore
from playhead.store.reader import RunReader

SHAPE = ("status", "from_replay", "original_run_id", "payload", "metadata", "error")
EXITS = {"faithful": 0, "deviated": 1, "not_compared": 3}
MODES = ("playback", "exact", "model", "step", "fork")
# Which modes an option is for, and whether it was given.
_FOR: dict[str, tuple[tuple[str, ...], str, object]] = {
    "--force": (("playback",), "force", False),
    "--verify-envelope": (("playback",), "verify_envelope", None),
    "-- PROGRAM": (("exact", "model", "step", "fork"), "program", []),
    "--waive": (("exact", "model", "step", "fork"), "waive", []),
    "--speed": (("exact",), "speed", 0.0),
    "--on-deviation": (("exact",), "on_deviation", "raise"),
    "--at": (("fork",), "at", None),
    "--unknown": (("model", "fork"), "unknown", "refuse"),
    "--times": (("model",), "times", 1),
    "--isolated": (("model",), "isolated", False),
    "--header": (("model",), "header", []),
    "--model": (("model", "fork"), "model", None),
    "--base-url": (("model", "fork"), "base_url", None),
    "--param": (("model", "fork"), "param", []),
    "--system": (("model", "fork"), "system", None),
    "--budget": (("model", "fork"), "budget", None),
    "--step": (("step",), "step", None),
    "--input": (("step",), "input", None),
    "--live": (("step",), "live", False),
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser)
    parser.add_argument(
        "--mode",
        choices=MODES,
        default="playback",
        help="playback (the default) hands back the recorded outcome; exact runs the program, answered from the tape; "
        "model has its models live; step runs one step of it; fork leaves the tape at an event",
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
    parser.add_argument("--at", metavar="SEQ", help="fork: the last event that the tape answers")
    parser.add_argument(
        "--step", metavar="NAME", help="step: which; NAME#2 is the second of that name, 17 that of event 17"
    )
    parser.add_argument("--input", metavar="FILE", help="step: other arguments, as JSON: an object by their names")
    parser.add_argument("--live", action="store_true", help="step: its models and tools are asked, and not the tape")
    live_options.add_unknown(parser)
    models = live_options.add_overrides(parser)
    models.add_argument("--times", type=int, default=1, metavar="N",
                        help="run it so often, and say how often and where the outcome changed")  # fmt: skip
    models.add_argument("--isolated", action="store_true",
                        help="ask each recorded question alone; no code of the agent runs")  # fmt: skip
    models.add_argument("--header", action="append", default=[], metavar="NAME=VALUE",
                        help="with --isolated: send this, as for a key; @FILE reads it; may be repeated")  # fmt: skip
    parser.set_defaults(program=[])
    parser.usage = "playhead replay RUN [--mode MODE] [options] [-- PROGRAM [ARGUMENTS]]"
    parser.epilog = (
        "playback answers with a JSON document on stdout: status, from_replay, original_run_id, payload, metadata,\n"
        "error. exact passes the program's output through and reports to stderr; with --json stdout holds only the\n"
        "report. No model is asked, no tool runs, no process is started, nothing is written. What comes after --\n"
        "is run in place of the recorded command. model and fork ask models, and nothing else unless told to.\n"
        "Exit code: 0 played back (a recorded error too), faithful, or the same outcome; 1 refused, deviated, or\n"
        "another outcome; 3 could not tell.\n\n"
        "examples:\n"
        "  playhead replay @last | jq .payload\n"
        "  playhead replay @last --mode exact\n"
        "  playhead replay fix-login --mode exact --on-deviation nearest -- python agent.py --verbose\n"
        "  playhead replay fix-login --mode model --model gpt-5-mini --times 5\n"
        "  playhead replay fix-login --mode model --isolated --base-url http://127.0.0.1:8080/v1\n"
        "  playhead replay fix-login --mode step --step plan\n"
        "  playhead replay fix-login --verify-envelope request.json\n"
        '  echo \'{"intent": "fix-login", "payload": {"issue": 1842}}\' | playhead replay @last --verify-envelope -'
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if args.suggest is not None:
        from playhead.cli.suggestion import tell

        return tell(load(args.suggest, args.store), load(args.run, args.store), out)
    _refuse_of_other_mode(args)
    if args.mode == "exact":
        return _exact(args, out)
    if args.mode == "model":
        from playhead.cli.modelling import run_models

        return run_models(args, out)
    if args.mode == "step":
        from playhead.cli.stepping import run_step

        return run_step(args, out)
    if args.mode == "fork":
        return _fork(args, out)
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
    for name, (modes, attribute, default) in _FOR.items():
        if args.mode not in modes and getattr(args, attribute) != default:
            hint = "Name the reasons that shall not count: `--waive REASON`." if name == "--force" else None
            meant = " and ".join(f"`--mode {mode}`" for mode in modes)
            raise UsageError(f"{name} is for {meant}, and this is `--mode {args.mode}`", hint=hint)


def _fork(args: argparse.Namespace, out: Output) -> int:
    """Do what `playhead fork` does, as far as this command has its options."""
    if args.at is None:
        raise UsageError(
            "a fork needs an event", hint="`--at SEQ`, or `playhead fork RUN --at SEQ`, which can do more."
        )
    from playhead.cli.commands import fork

    return fork.run(argparse.Namespace(**{**vars(args), "live": "model", "edit": None, "assignments": []}), out)


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
    from playhead.cli.arguments import recording_root
    from playhead.cli.replay_text import lines
    from playhead.replay.exact import replay_program

    recorded = load_here(args.run, args.store)
    with swallowed(out.json):
        found = replay_program(
            RunReader(recorded.store, recorded.id),
            FileStore(recording_root(args.store)),
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
