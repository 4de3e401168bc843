"""Write how a run stood at one event: the prompt in force, what was open, answered, allowed, made, read and spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from playhead import _limits
from playhead._api.reading import Run
from playhead.cli.output import Output, one_line
from playhead.cli.run_text import print_value, shortened, symbol
from playhead.errors import Altered, PlayheadError
from playhead.store import layout
from playhead.store.reader import RunReader
from playhead.views import prices, reads, text
from playhead.views.moments import Moment
from playhead.views.prompts import SYSTEM, TALK
from playhead.views.reads import LaneRead

_LISTED_MAX = 10  # of policy checks, artifacts and variables; `--json` has all
_OPEN_MAX = 50
_SAID = ("role", "content", "parts")


def event_at(found: Run, at: str | None, step: str | None) -> int | None:
    """Return the event that is meant: by its number or name, or the end of a step."""
    if at is None and step is None:
        return None
    if at is not None and at.isdecimal():
        return int(at)
    reader = RunReader(found.store, found.id)
    if at is not None:
        from playhead.replay.events_by_name import event_of

        return event_of(reader, at)
    from playhead.replay.steps import find_step

    meant = find_step(reader, str(step), reader.readable)
    if meant.closing is not None:
        return meant.closing
    # It never ended: the last that was heard of the lane that it is in.
    events = enumerate(reader.events())
    return max(at for at, event in events if event.lane == meant.lane and event.kind != "run.finished")


def show_moment(found: Run, seq: int, altered: Altered | None, out: Output) -> int:
    """Say how things stood right after an event."""
    moment = found.at(seq)
    pack, policy = _with_pack(found, moment), _with_policy(found, moment)
    if out.json:
        document = {**moment.as_dict(), "context_pack": pack, "policy": policy}
        out.emit({**document, "problem": None if altered is None else altered.as_dict()["error"]})
        return 0
    _print_head(found, moment, out)
    _print_prompt(moment, out)
    if moment.last_answer is not None:
        _heading("last answer", f"event {moment.last_answer['seq']}", out)
        answer = moment.last_answer
        print_value(answer.get("response", answer.get("error")), out, _limits.SHOW_VALUE_CHARACTERS_MAX)
    else:
        _heading("last answer", "none", out)
    if pack is not None and pack["name"]:
        _heading("context pack", f"{pack['name']}, event {pack['seq']}", out)
        print_value(pack.get("content"), out, _limits.SHOW_VALUE_CHARACTERS_MAX)
    else:
        _heading("context pack", "empty", out)
    if policy is not None:
        _heading("policy", str(policy.get("mode")), out)
        if (content := (policy.get("content") or {}).get("policy")) is not None:
            print_value(content, out, _limits.SHOW_VALUE_CHARACTERS_MAX)
    _print_list("policy checks", moment.policy_checks, ("decision", "capability", "resource"), out)
    _print_list("artifacts", moment.artifacts, ("name", "role"), out)
    _print_ambient(moment.ambient, out)
    return 0


def print_error(failed: Any, out: Output) -> None:
    """Write an error, where it was raised and what lies behind it; nothing for none."""
    causes = [(cause, "red") for cause in text.error_causes(failed)]
    for told, style in ((text.error_line(failed), "red"), (text.error_place(failed), "dim"), *causes):
        if told:
            out.wrapped(["  "], told, style)


def _with_pack(found: Run, moment: Moment) -> dict[str, Any] | None:
    """Add what the context pack said; the first one is empty and no artifact."""
    pack = moment.context_pack
    if pack is None or not isinstance(pack["name"], str):
        return pack
    try:
        return {**pack, "content": orjson.loads(found.artifact(pack["name"]))}
    except (PlayheadError, orjson.JSONDecodeError):
        return pack  # gone or altered, which `verify` says


def _with_policy(found: Run, moment: Moment) -> dict[str, Any] | None:
    """Add what the policy said that was in force from the start."""
    if moment.policy is None:
        return None
    try:
        return {**moment.policy, "content": orjson.loads(found.store.file(found.id, layout.POLICY_SNAPSHOT))}
    except (PlayheadError, OSError, orjson.JSONDecodeError):
        return dict(moment.policy)


def _print_head(found: Run, moment: Moment, out: Output) -> None:
    out.styled((f"after event {moment.seq}", "bold"), f" of {found.id}: ", (one_line(moment.kind), "magenta"),
               f", {text.duration(moment.elapsed_us)} into the run")  # fmt: skip
    if moment.ended is not None:
        sign, style = symbol(moment.ended, out)
        out.styled((f"{sign} the run had ended: {one_line(moment.ended)}", style))
        print_error(moment.error, out)
    counts = f"{text.several(moment.model_calls, 'call')} to models, {moment.tool_calls:,} to tools"
    gaps = f"; {text.several(moment.gaps, 'gap')}" if moment.gaps else ""
    cost = prices.told(moment.cost, moment.cost_unpriced)
    spent = f"; cost {cost}" if cost else ""
    out.print(f"  {counts}; tokens {moment.tokens_in:,} in → {moment.tokens_out:,} out{one_line(spent)}{gaps}")
    spans = moment.open_spans
    cut = f"the last {_OPEN_MAX} of {len(spans):,}" if len(spans) > _OPEN_MAX else ""
    _heading("open", cut if spans else "nothing", out)
    for item in spans[-_OPEN_MAX:]:
        kind = item["kind"].partition(".")[0]
        since = text.duration(moment.elapsed_us - item["since_us"])
        out.print(f"  {item['seq']:>5}  {kind} {one_line(item['name'])}  for {since}" + f"  lane {item['lane']}")


def _print_prompt(moment: Moment, out: Output) -> None:
    """Write the conversation of the last request, message by message, and then what else was asked for."""
    asked = moment.last_request
    if asked is None:
        _heading("prompt", "none", out)
        return
    model = " ".join(str(asked[name]) for name in ("provider", "model") if asked.get(name))
    _heading("prompt", f"event {asked['seq']}{', ' if model else ''}{model}", out)
    if not moment.messages:
        print_value(asked.get("request"), out, _limits.SHOW_VALUE_CHARACTERS_MAX)
        return
    for message in moment.messages:
        role = one_line(str(message.get("role") or message.get("type") or "?"))
        content = message.get("content", message.get("parts"))
        if isinstance(content, str) and set(message) <= set(_SAID):
            first, *others = shortened(content, _limits.SHOW_VALUE_CHARACTERS_MAX).split("\n")
            out.styled("  ", (f"{role}: ", "cyan"), one_line(first))
            for line in others:
                out.print(f"    {line}")
        else:
            out.styled("  ", (f"{role}:", "cyan"))
            rest = {name: value for name, value in message.items() if name != "role"}
            print_value(rest, out, _limits.SHOW_VALUE_CHARACTERS_MAX)
    request = asked.get("request")
    more = (
        {name: value for name, value in request.items() if name not in (*TALK, *SYSTEM)}
        if isinstance(request, dict)
        else {}
    )
    if more:
        out.styled("  ", ("with ", "dim"), one_line(text.arguments(more, _limits.SHOW_VALUE_CHARACTERS_MAX)))


def _print_ambient(ambient: dict[str, Any], out: Output) -> None:
    if not ambient["reads"]:
        return
    _heading("read", f"{ambient['reads']:,} so far", out)
    variables = list(ambient["variables"].items())
    for name, value in variables[-_LISTED_MAX:]:
        out.print(one_line(f"  ${name} = {text.short(value, _limits.CELL_CHARACTERS_MAX)}"))
    for fields in ambient["last"]:
        read = LaneRead(**fields)
        if read.of != "os.environ":
            out.print(one_line(f"  {read.of}  {reads.said(read, _limits.SHOW_VALUE_CHARACTERS_MAX)}"))


def _print_list(title: str, items: Sequence[dict[str, Any]], names: tuple[str, ...], out: Output) -> None:
    cut = f"the last {_LISTED_MAX} of {len(items)}" if len(items) > _LISTED_MAX else ""
    _heading(title, cut if items else "none", out)
    for item in items[-_LISTED_MAX:]:
        out.print(f"  {item['seq']:>5}  " + one_line("  ".join(str(item[name]) for name in names if item[name])))


def _heading(title: str, told: str, out: Output) -> None:
    out.styled((title, "bold"), f": {one_line(told)}" if told else ":")
