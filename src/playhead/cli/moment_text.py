"""Write how a run stood at one event: the prompt in force, what was open, answered, allowed, made, read and spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from playhead import _limits
from playhead._api.reading import Run
from playhead.cli.output import Output, one_line
from playhead.cli.run_text import print_value, symbol
from playhead.cli.talk_text import print_answer, print_asked, print_talk
from playhead.errors import Altered, PlayheadError
from playhead.store import layout
from playhead.views import prices, reads, text
from playhead.views.moments import Moment
from playhead.views.reads import LaneRead

_LISTED_MAX = 10  # of policy checks, artifacts and variables; `--json` has all
_OPEN_MAX = 50


def show_moment(found: Run, seq: int, altered: Altered | None, out: Output, named: str) -> int:
    """Say how things stood right after an event; `named` is how the next command names the run."""
    moment = found.at(seq)
    pack, policy = _with_pack(found, moment), _with_policy(found, moment)
    if out.json:
        document = {**moment.as_dict(), "context_pack": pack, "policy": policy}
        out.emit({**document, "problem": None if altered is None else altered.as_dict()["error"]})
        return 0
    _print_head(found, moment, out)
    _print_prompt(moment, out)
    if moment.last_answer is not None:
        answer = moment.last_answer
        _heading("last answer", f"event {answer['seq']}{_spent(answer)}", out)
        if answer.get("response") is not None or answer.get("error") is None:
            print_answer(found, answer, out)
        print_error(answer.get("error"), out)
    else:
        _heading("last answer", "none", out)
    if pack is not None and pack["name"]:
        _heading("context pack", f"{pack['name']}, event {pack['seq']}", out)
        print_value(pack.get("content"), out, _limits.SHOW_VALUE_CHARACTERS_MAX)
    else:
        _heading("context pack", "empty", out)
    if policy is not None:
        _heading("policy", _policy_told(policy), out)
    _print_list("policy checks", moment.policy_checks, ("decision", "capability", "resource"), out)
    _print_list("artifacts", moment.artifacts, ("name", "role"), out)
    _print_ambient(moment, named, out)
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
    into = f"{one_line(moment.kind)}, {text.duration(moment.elapsed_us)} into the run"
    order = ", in the order of the times" if moment.is_settled else ""  # it came from outside
    out.wrapped([(f"after event {moment.seq}", "bold"), " "], f"of {found.id}{order}: {into}")
    if moment.ended is not None:
        sign, style = symbol(moment.ended, out)
        out.styled((f"{sign} the run had ended: {one_line(moment.ended)}", style))
        print_error(moment.error, out)
    counts = f"{text.several(moment.model_calls, 'call')} to models, {moment.tool_calls:,} to tools"
    gaps = f"; {text.several(moment.gaps, 'gap')}" if moment.gaps else ""
    out.wrapped(["  "], f"{counts}{one_line(_spent_by_then(moment))}{gaps}")
    spans = moment.open_spans
    cut = f"the last {_OPEN_MAX} of {len(spans):,}" if len(spans) > _OPEN_MAX else ""
    _heading("open", cut if spans else "nothing", out)
    for item in spans[-_OPEN_MAX:]:
        kind = item["kind"].partition(".")[0]
        since = text.duration(max(0, moment.elapsed_us - item["since_us"]))
        _print_cut(f"  {item['seq']:>5}  {kind} {one_line(item['name'])}", f"  for {since}  lane {item['lane']}", out)


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
    print_talk(moment.messages, out)
    print_asked(asked.get("request"), out)


def _spent_by_then(moment: Moment) -> str:
    """Say the tokens and what they cost; where no call had said any, that nothing is known of them."""
    silent, known = moment.calls_without_usage, moment.tokens_in or moment.tokens_out
    tokens = "" if silent and not known else f"; tokens {moment.tokens_in:,} in → {moment.tokens_out:,} out"
    cost = prices.told(moment.cost, moment.cost_unpriced) or ("unknown" if silent else "")
    unsaid = f"; {text.several(silent, 'call')} had not said {'its' if silent == 1 else 'their'} tokens"
    return f"{tokens}{f'; cost {cost}' if cost else ''}{unsaid if silent else ''}"


def _spent(answer: dict[str, Any]) -> str:
    usage = answer.get("usage")
    counts = [usage.get(name) for name in ("input", "output")] if isinstance(usage, dict) else []
    return f", {counts[0]:,} → {counts[1]:,} tokens" if counts and all(type(one) is int for one in counts) else ""


def _policy_told(policy: dict[str, Any]) -> str:
    """Say the mode, and which file it is."""
    content = (policy.get("content") or {}).get("policy")
    source = content.get("source") if isinstance(content, dict) else None
    where = f", {source}" if isinstance(source, str) else "" if content is None else f", {text.short(content, 60)}"
    return f"{policy.get('mode')}{where}" + ("" if content is None else " (--json has all of it)")


def _print_ambient(moment: Moment, named: str, out: Output) -> None:
    ambient = moment.ambient
    if not ambient["reads"]:
        return
    lines = [
        f"  ${name} = {text.short(value, _limits.CELL_CHARACTERS_MAX)}"
        for name, value in list(ambient["variables"].items())[-_LISTED_MAX:]
    ]
    for fields in ambient["last"]:
        read = LaneRead(**fields)
        if read.of != "os.environ":
            lines.append(f"  {read.of}  {reads.said(read, _limits.SHOW_VALUE_CHARACTERS_MAX)}")
    left_out = ambient["reads"] - len(lines)
    more = f"; {left_out:,} are not listed here: playhead show {named} --reads --at {moment.seq}" if left_out else ""
    _heading("read", f"{ambient['reads']:,} so far{more}", out)
    for line in lines:
        _print_cut(one_line(line), "", out)


def _print_list(title: str, items: Sequence[dict[str, Any]], names: tuple[str, ...], out: Output) -> None:
    cut = f"the last {_LISTED_MAX} of {len(items)}" if len(items) > _LISTED_MAX else ""
    _heading(title, cut if items else "none", out)
    for item in items[-_LISTED_MAX:]:
        _print_cut(
            f"  {item['seq']:>5}  {one_line('  '.join(str(item[name]) for name in names if item[name]))}", "", out
        )


def _print_cut(told: str, end: str, out: Output) -> None:
    """Write a line, on a terminal so that it fits."""
    out.print((text.cut(told, out.width - text.cells(end)) if out.terminal else told) + end)


def _heading(title: str, told: str, out: Output) -> None:
    out.wrapped([(title, "bold"), ": "], told) if told else out.styled((title, "bold"), ":")
