"""Go on with a run that was cut off: what was done is told by the tape, and from there on it is done."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import orjson

from playhead._api.reading import load
from playhead.cli import live_options, onward
from playhead.cli.arguments import add_run
from playhead.cli.output import Output, one_line
from playhead.cli.silence import swallowed
from playhead.errors import UsageError
from playhead.replay.aftermath import Flight, aftermath
from playhead.replay.course import IN_FLIGHT
from playhead.replay.onwards import Again, resume


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser)
    parser.add_argument("--in-flight", action="append", default=[], metavar="[SEQ=]" + "|".join(IN_FLIGHT),
                        help="what becomes of a call that was under way and may have changed something: do it again, "
                        "go on as if it had answered, or raise InFlight in its place; else you are asked")  # fmt: skip
    parser.add_argument("--answer", metavar="JSON", help="with --in-flight skip: what the call gave back (null)")
    parser.add_argument("--again", action="store_true", help="resume a run that was resumed before")
    live_options.add_waive(parser)
    parser.usage = "playhead resume RUN [--in-flight retry|skip|fail] [options] [-- PROGRAM [ARGUMENTS]]"
    parser.epilog = (
        "The program is started again. Up to the last recorded event everything is answered from the tape and nothing\n"
        "is done; after it the program is in the world: its models, tools, files and network are live. A question to\n"
        "a model that was under way is asked again. A call that may have changed something is not repeated without a\n"
        "word; one that is declared irreversible is never repeated.\n"
        "Exit code: that of the program; 1 where it was stopped by a deviation and ended with 0.\n\n"
        "examples:\n"
        "  playhead resume @last\n"
        "  playhead resume @last --in-flight skip"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Resume."""
    again = onward.again_of(args, load(args.run, args.store))
    rules, answer = _rules(args, again, out), _answer(args)
    with swallowed(out.json):
        found = resume(again, rules, answer=answer, twice=args.again)
    onward.tell(found, out)
    return found.exit_code or (1 if found.deviations else 0)


def _answer(args: argparse.Namespace) -> Any:
    """Return what a call gives back that is passed over."""
    if args.answer is None:
        return None
    rules = set(_given(args.in_flight).values())
    if rules and "skip" not in rules:
        raise UsageError(f"--answer is for `--in-flight skip`, and this is `--in-flight {', '.join(rules)}`")
    try:
        return orjson.loads(args.answer)
    except orjson.JSONDecodeError as problem:
        raise UsageError(
            f"the answer is not JSON: {problem}", hint="""For instance --answer '{"booked": 10}'."""
        ) from None


def _rules(args: argparse.Namespace, again: Again, out: Output) -> dict[int, str]:
    """Say of each call that was under way what becomes of it; asks whoever sits there, where it matters."""
    rules: dict[int, str] = {}
    given = _given(args.in_flight)
    flying = aftermath(again.reader).flying
    for seq in given.keys() - {None, *(flight.seq for flight in flying)}:
        known = ", ".join(str(flight.seq) for flight in flying) or "none"
        raise UsageError(f"event {seq} was not under way when the run was cut off", hint=f"Those that were: {known}.")
    for flight in flying:
        every = given.get(None) if flight.changes and not (flight.is_file and given.get(None) != "retry") else None
        if (rule := given.get(flight.seq, every)) is not None:
            rules[flight.seq] = rule
        elif flight.changes and sys.stdin.isatty() and sys.stderr.isatty() and not out.json:
            rules[flight.seq] = _ask(flight, out)
    return rules


def _given(options: list[str]) -> dict[int | None, str]:
    """Return the rules by event; None for all others."""
    found: dict[int | None, str] = {}
    for option in options:
        seq, equals, rule = option.rpartition("=")
        if rule not in IN_FLIGHT or (equals and not seq.isdecimal()):
            hint = "It is retry, skip or fail, for all, or for one call: 18=skip."
            raise UsageError(f"not what to do with a call that was under way: {option!r}", hint=hint)
        found[int(seq) if equals else None] = rule
    return found


def _ask(flight: Flight, out: Output) -> str:
    may = [rule for rule in IN_FLIGHT if rule in flight.rules]
    was = "failed" if flight.failed else "is the last that is known" if flight.is_file else "was under way at the end"
    out.warn(f"playhead: event {flight.seq}, {flight.name}, {was}: it may have been done")
    if flight.given:
        out.warn(f"  it was given: {one_line(flight.given)}")
    while True:
        sys.stderr.write(f"  {', '.join(may)}? ")
        sys.stderr.flush()
        answer = sys.stdin.readline()
        if not answer:
            raise UsageError("nobody said what becomes of it", hint="Say it: `--in-flight retry`, `skip` or `fail`.")
        found = [rule for rule in may if answer.strip() and rule.startswith(answer.strip().lower())]
        if len(found) == 1:
            return found[0]
