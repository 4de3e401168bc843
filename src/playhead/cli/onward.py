"""What commands share that let a program leave its tape: their arguments, and how they tell what came of it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from playhead.cli.arguments import recording_root, store_place
from playhead.cli.output import Output, clean, one_line
from playhead.cli.replay_text import drifted, listed
from playhead.cli.run_text import KILLED
from playhead.errors import UsageError
from playhead.replay.models.asker import Asker
from playhead.replay.models.overrides import Overrides
from playhead.replay.onwards import Again, Rerun
from playhead.replay.pointing import assignment
from playhead.settings import load
from playhead.store.files import FileStore
from playhead.store.price_list import INSTALL, price_list_at
from playhead.store.reader import RunReader
from playhead.views import prices, text

_SHOWN = 5
_WIDTH = 160
_NAMES = {"exit_code": "exit code", "stdout": "what it printed", "raised": "last line of stderr"}


def overrides_of(args: argparse.Namespace) -> Overrides:
    """Return what is to be different."""
    system = None if args.system is None else _read(args.system, "system prompt")
    parameters = dict(assignment(one) for one in args.param)
    return Overrides(model=args.model, base_url=args.base_url, system=system, parameters=parameters)


def headers_of(args: argparse.Namespace) -> dict[str, str]:
    """Return what is sent besides, by its names in requests."""
    headers = {}
    for one in args.header:
        name, equals, value = one.partition("=")
        if not equals or not name:
            raise UsageError(f"not a header: {one!r}", hint="Write NAME=VALUE, for instance authorization=@key.txt")
        headers[name] = _read(value, f"header {name}").strip()
    return headers


def _read(given: str, what: str) -> str:
    """Return what was given, or what a file says, given as `@FILE`."""
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text()
    except UnicodeDecodeError:
        raise UsageError(f"the {what} {given[1:]} is not text") from None
    except OSError as problem:
        raise UsageError(f"cannot read the {what} {given[1:]}: {problem.strerror}") from None


def asker_of(args: argparse.Namespace) -> Asker:
    """Return what asks models."""
    if args.budget is not None and not 0 < args.budget < float("inf"):
        raise UsageError(f"not a budget: {args.budget:g}", hint="It is in dollars, and more than 0.")
    if args.at_once < 1:
        raise UsageError(f"not how many may be asked at once: {args.at_once}", hint="At least 1.")
    sold = price_list_at(store_place(args.store))
    if args.budget is not None and sold.is_empty:
        raise UsageError("--budget needs to know what models cost", hint=f"`{INSTALL}`, or say it under [prices].")
    return Asker(overrides_of(args), budget=args.budget, at_once=args.at_once, prices=sold)


def again_of(args: argparse.Namespace, recorded: Any) -> Again:
    """Return what a run is to be made from."""
    waive = [reason for named in args.waive for reason in named.split(",")]
    reader = RunReader(recorded.store, recorded.id)
    return Again(reader, FileStore(recording_root(args.store)), load(), args.program or None, waive)


def tell(found: Rerun, out: Output) -> None:
    """Say how a run that left its tape came out."""
    if out.json:
        out.emit(found.as_dict())
        return
    for line in lines(found.as_dict()):
        out.warn(line)


def lines(found: dict[str, Any]) -> list[str]:
    """Return how a run that left its tape came out, as it goes to stderr."""
    surface, outcome, answers = found["surface"], found["outcome"], found["answers"]
    origin = found["origin"]
    verb = {"model": "asks the models of {run} again", "fork": "forks {run} at event {at}"}
    verb |= {"resume": "resumes {run} after event {at}"}
    out = [f"playhead: {found['run']} {verb[found['mode']].format(**origin)}"]
    counts = f"{text.several(surface['taped'], 'call')} answered from the tape"
    out.append(f"  {counts}, {text.several(found['live_calls'], 'live call')}, {len(found['blocked'])} blocked")
    if found["mode"] == "resume":
        out.append(f"  {_ended(found)}")
    elif outcome["same"]:
        out.append("  the outcome is the same")
    else:
        out.append(f"  the outcome is another: {', '.join(_difference(one) for one in outcome['differences'])}")
    if found["mode"] != "resume" and (answers["same"] or answers["changed"]):
        told = f"{text.several(answers['same'], 'answer')} of models the same, {len(answers['changed'])} changed"
        out.append(f"  {told}")
        out += [f"    {one_line(text.cut(changed_answer(one), _WIDTH))}" for one in answers["changed"][:_SHOWN]]
        if len(answers["changed"]) > _SHOWN:
            out.append(f"    and {len(answers['changed']) - _SHOWN} more (--json)")
    if found["live_calls"] and (cost := prices.told(found["cost"], found["unpriced"])):
        out.append(f"  what the live models cost: {cost}")
    out.append(f"  isolation: {found['isolation']}; integrity: {found['integrity']['verdict']}")
    for one in surface["unknown"]:
        out.append(f"  {_ruled(one)}")
    if any(one["rule"] == "refuse" for one in surface["unknown"]):
        out.append(
            "  `--unknown nearest` answers such a call with the nearest one on the tape, `--unknown live` makes it"
        )
    for one in found["deviations"][:_SHOWN]:
        head, *rest = clean(str(one["text"])).splitlines() or [""]
        out += [f"  {head}", *(f"    {line}" for line in rest)]
    out += listed("note", [str(note) for note in surface["notes"]])
    out += listed("waived", [str(reason) for reason in found["waived"]])
    out += listed("blocked", [f"{one['what']} {one['detail']}" for one in found["blocked"]])
    return out + drifted(surface["drift"])


def _ended(found: dict[str, Any]) -> str:
    if found["deviations"]:
        return f"it was stopped by a deviation: exit code {found['exit_code']}"
    if found["exit_code"] > KILLED and not found["surface"]["left_tape"]:
        again = f"`playhead resume {found['origin']['run']}`"
        return f"it was cut off on its tape (exit code {found['exit_code']}), and nothing was done: {again}"
    if found["exit_code"] > KILLED:
        return f"it was cut off again (exit code {found['exit_code']}): `playhead resume {found['run']}`"
    return f"it ended by itself: exit code {found['exit_code']}"


def _difference(one: dict[str, Any]) -> str:
    name = _NAMES.get(one["what"], one["what"])
    if one["what"] == "stopped":
        return "it was stopped (below)"
    if one["what"] in ("status", "exit_code", "error", "raised"):
        return f"{name} {one['now']} (was {one['then']})"
    return str(name)


def changed_answer(one: dict[str, Any]) -> str:
    """Say in one line how an answer of a model changed."""
    if one["type"] == "added":
        return f"event {one['at']}: asked once more than then"
    if one["type"] == "gone":
        return f"event {one['seq']} of then: not asked any more"
    first = one["changes"][0]
    told = first.get("words") or f"{text.short(first.get('left'), 60)} → {text.short(first.get('right'), 60)}"
    more = f" and {len(one['changes']) - 1} more" if len(one["changes"]) > 1 else ""
    return f"event {one['seq']} → {one['at']}, {first['path']}: {told}{more}"


def _ruled(one: dict[str, Any]) -> str:
    done = {
        "refuse": "is not on the tape: refused",
        "nearest": "is not on the tape: given the answer to the nearest call",
        "live": "is not on the tape: live",
        "retry": "was under way when the run ended: done again",
        "skip": "was under way when the run ended: passed over",
        "fail": "was under way when the run ended: raised InFlight",
    }
    where = f"event {one['at']}" if one["seq"] is None else f"event {one['seq']} of then"
    return f"{where}: {one_line(str(one['name']))} {done[one['rule']]}"
