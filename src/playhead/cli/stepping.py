"""Run one step of a recorded program again, and say whether it came to the same."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import orjson

from playhead._api.fetching import load_here
from playhead.cli import onward
from playhead.cli.output import Output, clean
from playhead.cli.silence import swallowed
from playhead.errors import UsageError
from playhead.replay import stepping
from playhead.views import text

EXITS = {"faithful": 0, "deviated": 1, "not_compared": 3}
_WIDTH = 120


def run_step(args: argparse.Namespace, out: Output) -> int:
    """Answer `playhead replay --mode step`."""
    if args.step is None:
        raise UsageError("which step?", hint="`--step NAME`; `playhead show RUN` lists them.")
    if sys.platform == "win32":
        raise UsageError("a program is replayed on Linux and macOS, not on Windows", hint="Use WSL.")
    again = onward.again_of(args, load_here(args.run, args.store))
    given = None if args.input is None else _given(args.input)
    with swallowed(out.json):
        found = stepping.run_step(again, args.step, given=given, live=args.live)
    if out.json:
        out.emit(found.as_dict())
    else:
        for line in lines(found.as_dict()):
            out.warn(line)
    return EXITS[found.fidelity["verdict"]]


def lines(found: dict[str, Any]) -> list[str]:
    """Return what came of a step, as it goes to stderr."""
    step, fidelity = found["step"], found["fidelity"]
    named = step["name"] if step["number"] == 1 else f"{step['name']}#{step['number']}"
    how = "alone" if found["how"] == "alone" else "with all that comes before it"
    out = [f"playhead: {found['run']} runs the step {named} of {found['origin']['run']} (event {step['seq']}), {how}"]
    if found["why"]:
        out.append(f"  not alone: {found['why']}")
    counts = f"{text.several(found['taped'], 'call')} answered from the tape"
    told = {
        "faithful": "it came to the same",
        "deviated": "it came to something else",
        "not_compared": "it did not come to its end",
    }
    out.append(f"  {told[fidelity['verdict']]}: {counts}, {text.several(found['live_calls'], 'live call')}")
    for label, side in (("then", found["recorded"]), ("now", found["replayed"])):
        if side is not None:
            out.append(f"  {label + ':':<6}{side['status']}{_result(side)}")
    if fidelity["first"] is not None:
        head, *rest = clean(str(fidelity["first"]["text"])).splitlines() or [""]
        out += [f"  first difference: {head}", *(f"    {line}" for line in rest)]
    return out


def _result(side: dict[str, Any]) -> str:
    if isinstance(side.get("error"), dict):
        return f", {side['error'].get('type')}: {text.cut(str(side['error'].get('message')), _WIDTH)}"
    for name in ("output", "attributes"):
        if side.get(name):
            return f", {text.short(side[name], _WIDTH)}"
    return ""


def _given(name: str) -> Any:
    try:
        return orjson.loads(sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes())
    except OSError as problem:
        raise UsageError(f"cannot read the arguments {name}: {problem.strerror}") from None
    except orjson.JSONDecodeError as problem:
        raise UsageError(
            f"the arguments {name} are not JSON: {problem}", hint='For instance {"goal": "tea"}.'
        ) from None
