"""Run a program from its tape up to an event, and live from there, with another answer at that point if asked."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import orjson

from playhead._api.fetching import load_here
from playhead.cli import live_options, onward
from playhead.cli.arguments import add_run
from playhead.cli.output import Output
from playhead.cli.silence import swallowed
from playhead.errors import UsageError
from playhead.replay.editing import edited
from playhead.replay.events_by_name import event_of
from playhead.replay.onwards import cut_at, fork
from playhead.store.reader import RunReader


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser)
    parser.add_argument("--at", required=True, metavar="SEQ",
                        help="the last event that the tape answers: a number, or a name, as book#2 for the answer of "
                        "the second call of the tool book")  # fmt: skip
    given = parser.add_mutually_exclusive_group()
    given.add_argument("--edit", metavar="FILE", help="have this JSON for the answer at that point; - reads stdin")
    given.add_argument("--set", action="append", default=[], metavar="PATH=VALUE", dest="assignments",
                       help="change a part of that answer: output.status=failed, text=No; may be repeated")  # fmt: skip
    parser.add_argument("--live", choices=("model", "tool", "all"), default="model",
                        help="what is asked of the world from there on; with tool and all, what the program does is "
                        "done (%(default)s)")  # fmt: skip
    live_options.add_unknown(parser)
    live_options.add_waive(parser)
    live_options.add_overrides(parser)
    parser.usage = "playhead fork RUN --at SEQ [--edit FILE | --set PATH=VALUE] [options] [-- PROGRAM [ARGUMENTS]]"
    parser.epilog = (
        "SEQ is the number of an event, as `playhead show RUN` has it. At a question the answer is asked live; at an\n"
        "answer, or at a question with --edit or --set, the program is given it and goes on from there. With --live\n"
        "model, tools and everything else come from the tape as long as it has them, and nothing is written. The new\n"
        "run says where it came from; `playhead show` draws the family.\n"
        "Exit code: 0 the same outcome, 1 another one.\n\n"
        "examples:\n"
        "  playhead fork @last --at 17\n"
        "  playhead fork @last --at 17 --set output.status=failed --unknown nearest\n"
        "  playhead fork @last --at 17 --edit answer.json --live all"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Fork."""
    recorded = load_here(args.run, args.store)
    again = onward.again_of(args, recorded)
    changes = bool(args.edit is not None or args.assignments)
    cut = cut_at(again.reader, event_of(again.reader, str(args.at)), edited=changes)
    edits = {cut: _edited(args, again.reader, cut)} if changes else None
    asker = onward.asker_of(args)
    if args.live != "model" and asker.overrides.as_dict():
        raise UsageError("with `--live tool` and `--live all` the program asks its models by itself",
                         hint="`--live model` asks them in its place, and may ask something else.")  # fmt: skip
    with swallowed(out.json):
        found = fork(again, cut, edits=edits, live=args.live, unknown=args.unknown, asker=asker)
    onward.tell(found, out)
    return 0 if found.same else 1


def _edited(args: argparse.Namespace, reader: RunReader, seq: int) -> dict[str, Any]:
    if args.edit is None:
        return edited(reader, seq, args.assignments)
    try:
        import sys

        data = sys.stdin.buffer.read() if args.edit == "-" else Path(args.edit).read_bytes()
        given = orjson.loads(data)
    except OSError as problem:
        raise UsageError(f"cannot read the answer {args.edit}: {problem.strerror}") from None
    except orjson.JSONDecodeError as problem:
        raise UsageError(f"the answer {args.edit} is not JSON: {problem}") from None
    return edited(reader, seq, given=given)
