"""The options of commands that let a program leave its tape. Apart, since they are asked for on every system."""

from __future__ import annotations

import argparse
from typing import Any

from playhead import _limits
from playhead.replay.course import UNKNOWN


def add_overrides(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add what may be different in questions to models."""
    group = parser.add_argument_group("models")
    group.add_argument("--model", metavar="NAME", help="ask this model in place of the recorded one")
    group.add_argument("--base-url", metavar="URL", help="ask there: http://127.0.0.1:8080/v1")
    group.add_argument("--param", action="append", default=[], metavar="PATH=VALUE",
                       help="set something in every request, such as temperature=0; may be repeated")  # fmt: skip
    group.add_argument("--system", metavar="TEXT", help="have this for the system prompt; @FILE reads it from a file")
    group.add_argument("--budget", type=float, metavar="DOLLARS", help="ask no more once the answers cost this much")
    group.add_argument("--at-once", type=int, metavar="N", default=_limits.MODELS_AT_ONCE,
                       help="how many questions to models may be under way (%(default)s)")  # fmt: skip
    return group


def add_unknown(parser: Any) -> None:
    """Add what becomes of calls that are not on the tape."""
    parser.add_argument("--unknown", choices=UNKNOWN, default="refuse",
                        help="a tool call that the tape does not have: refuse it, give the answer to the nearest one "
                        "that it has, or run it live; what is irreversible is never run (%(default)s)")  # fmt: skip


def add_waive(parser: argparse.ArgumentParser) -> None:
    """Add which reasons against a replay shall not count, and the program."""
    parser.add_argument("--waive", action="append", default=[], metavar="REASON",
                        help="let a reason against a replay not count; may be repeated")  # fmt: skip
    parser.set_defaults(program=[])
