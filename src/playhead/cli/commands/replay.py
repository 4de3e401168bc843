"""Play back what a run answered. Nothing is executed: no agent code, no model, no tool."""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import orjson

from playhead._api.reading import load
from playhead.cli.arguments import add_run
from playhead.cli.output import Output
from playhead.errors import UsageError

SHAPE = ("status", "from_replay", "original_run_id", "payload", "metadata", "error")
MODES = ("playback", "exact", "model", "step", "fork")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser)
    parser.add_argument(
        "--mode", choices=MODES, default="playback", help="how to replay (%(default)s, the only one so far)"
    )
    parser.add_argument("--verify-envelope", metavar="FILE", help="refuse unless this is the recorded request")
    parser.add_argument("--force", action="store_true", help="play back a run that is not replayable, with a warning")
    parser.epilog = (
        "The answer is a JSON document on stdout: status, from_replay, original_run_id, payload, metadata, error.\n"
        "Exit code: 0 played back (a recorded error too), 1 refused.\n\n"
        "examples:\n"
        "  playhead replay @last | jq .payload\n"
        "  playhead replay fix-login --verify-envelope request.json\n"
        '  echo \'{"intent": "fix-login", "payload": {"issue": 1842}}\' | playhead replay @last --verify-envelope -'
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if args.mode != "playback":
        raise UsageError(
            f"replay in the mode {args.mode!r} is not available yet",
            hint="`--mode playback` hands back the recorded outcome.",
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
