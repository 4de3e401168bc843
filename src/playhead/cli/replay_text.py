"""Say how a replay went: the claim first, in one line; then the first difference, and what was not seen."""

from __future__ import annotations

import os
from typing import Any

from playhead.cli.output import clean, one_line
from playhead.views import prices, text

_SHOWN = 5
_DRIFT_SHOWN = 2
_DRIFT_CHARACTERS = 120
_OTHER_CHARACTERS = 200


def lines(found: dict[str, Any]) -> list[str]:
    """Return the report of a replay, as it goes to stderr."""
    surface, fidelity = found["surface"], found["fidelity"]
    verdict = fidelity["verdict"]
    out = [f"playhead: {found['run']} replays {found['origin']['run']} ({found['mode']})"]
    taped = f"{surface['taped']} of {text.several(surface['calls'], 'call')} answered from the tape"
    counts = f"{taped}, {text.several(found['live_calls'], 'live call')}, {len(found['blocked'])} blocked"
    if verdict == "faithful":
        out.append(f"  {fidelity['claim']}: {counts}")
    elif verdict == "deviated":
        out.append(f"  deviated, {text.several(fidelity['count'], 'difference')}: {counts}")
    else:
        out.append(f"  could not tell, the program did not come to its end: {counts}")
    claims = ("integrity", "completeness", "fidelity")
    out.append("  " + ", ".join(f"{claim}: {found[claim]['verdict'].replace('_', ' ')}" for claim in claims))
    saved = (
        "" if found["cost_saved"] is None else f"; what the models cost then: {prices.told(found['cost_saved'], [])}"
    )
    out.append(f"  isolation: {found['isolation']}{saved}")
    if found["folder"] and found["folder"] != os.getcwd():
        out.append(f"  ran in: {one_line(found['folder'])}")
    out += _first(fidelity)
    out += _others(found["deviations"][1:])
    if surface["normalised"]:
        told = f"{text.several(surface['normalised'], 'question')} matched only after normalising"
        out.append(f"  normalised: {told}, and were not compared word by word")
    out += listed("not compared", [str(one) for one in surface["not_compared"]])
    out += listed("waived", [str(reason) for reason in found["waived"]])
    out += listed("not captured", [f"{gap['source']} {gap['where']}" for gap in surface["not_captured"]])
    out += listed("blocked", [f"{one['what']} {one['detail']}" for one in found["blocked"]])
    out += listed("written to the scratch folder alone", [str(one) for one in surface["written"]])
    out += listed("code that has changed since", [str(one) for one in surface["code_changed"]])
    out += listed("out of turn", [_stalled(one) for one in surface["stalls"]])
    out += drifted(surface["drift"])
    return out


def drifted(found: list[dict[str, Any]]) -> list[str]:
    """Say how many reads were answered from elsewhere, and name the first; `--json` has all of them."""
    if not found:
        return []
    count = sum(one["count"] for one in found)
    named = [text.cut(one_line(f"{one['source']} {one['where']}"), _DRIFT_CHARACTERS) for one in found[:_DRIFT_SHOWN]]
    more = f"; and {len(found) - len(named)} more (--json)" if len(found) > len(named) else ""
    return [f"  answered from elsewhere: {text.several(count, 'question')}: {'; '.join(named)}{more}"]


def _stalled(one: dict[str, Any]) -> str:
    left, gone = one["waited_for"], one["let_go"]
    return f"lane {gone['lane']} went on before event {left['seq']} (lane {left['lane']}) was asked: nobody else could"


def _first(fidelity: dict[str, Any]) -> list[str]:
    first = fidelity["first"]
    if first is None:
        return []
    head, *rest = clean(str(first["text"])).splitlines() or [""]
    return [f"  first difference: {head}", *(f"    {line}" for line in rest)]


def _others(found: list[dict[str, Any]]) -> list[str]:
    """Say the differences after the first, each in one line; `--json` has all of each."""
    said = [text.cut(one_line(str(one["text"]).partition("\n")[0]), _OTHER_CHARACTERS) for one in found[:_SHOWN]]
    more = [f"  and {len(found) - _SHOWN} more (--json)"] if len(found) > _SHOWN else []
    return [f"  then: {one}" for one in said] + more


def listed(label: str, items: list[str]) -> list[str]:
    """Return one line with the first few of something, and how many more there are; none for nothing."""
    if not items:
        return []
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return [f"  {label}: {'; '.join(one_line(item) for item in items[:_SHOWN])}{more}"]
