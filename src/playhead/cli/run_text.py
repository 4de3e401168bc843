"""Write a run as text: its header, the rows of its timeline, and single events. `show` and `tail` share it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from playhead._clock import parse_utc
from playhead.cli.output import Output, Part, one_line
from playhead.views import denials, imported, prices, redactions, text
from playhead.views.answers import Call, Meaning
from playhead.views.summary import Summary
from playhead.views.text import Resolve
from playhead.views.timeline import Row

# status: (symbol, symbol where there is only ASCII, style)
STATUS = {
    "ok": ("✓", "+", "green"),
    "error": ("✗", "x", "bold red"),
    "cancelled": ("⊘", "-", "yellow"),
    "crashed": ("✗", "x", "bold red"),
    "running": ("…", ">", "cyan"),
    "unanswered": ("?", "?", "yellow"),
    "opens": ("▸", ">", "dim"),
    "open": ("…", ">", "bold yellow"),
    "point": ("·", ".", "dim"),
    "allow": ("✓", "+", "green"),
    "deny": ("⊘", "!", "bold red"),
    "ask": ("?", "?", "yellow"),
    "unseen": ("○", "o", "yellow"),
    "refused": ("!", "!", "yellow"),
}
_KIND_STYLE = {"step": "bold", "model": "magenta", "tool": "cyan", "mcp": "cyan", "http": "blue", "process": "blue"}
_LABELS = {
    "policy.checked": "policy", "artifact.created": "artifact", "note.added": "note", "gap.noted": "gap",
    "effect.observed": "effect", "output.written": "wrote", "ambient.read": "read", "git.committed": "commit",
    "ci.reported": "ci", "run.invalidated": "invalidated", "run.reopened": "reopened", "content.erased": "erased",
    "log.emitted": "log", "emitter.described": "emitter", "span.revised": "revised",
}  # fmt: skip
# What a model stops with when all is well; where its answer is shown, the room is better used for that.
_ORDINARY_FINISH = ("stop", "end_turn", "completed")
_CALLING_FINISH = ("tool_calls", "tool_use", "function_call", "completed")
_DEPTH_SHOWN_MAX = 12  # deeper rows keep this indent, so that they stay readable
_DURATION_WIDTH = 10
_LABEL_WIDTH = 11  # of the facts in the header
_IN_FLIGHT_MAX = 8  # spans, and tools without a result, that are named; the rows show all
_DENIED_MAX = 3  # that are named; the rows show all
_ERROR_LINES_MAX = 3  # of the header

KILLED = 128  # an exit code of more than this is a signal


def meaning_of(method: str, url: str, response: Any) -> Meaning | None:
    """Ask the dialect of a request what the answer to it means; None where no dialect is known."""
    from playhead.capture import dialects

    found = dialects.find(method, url)
    if found is None:
        return None
    answered = found[0].answered([response], False)  # of a stream it was recorded as if it had been none
    return Meaning(answered.said, answered.calls)


def not_captured_lines(summary: Summary) -> list[str]:
    """Say what went on and was never seen, a line for each; of many the first ones."""
    named = [one_line(told) for told in summary.not_captured[:_IN_FLIGHT_MAX]]
    more = len(summary.not_captured) - len(named)
    return [*named, f"and {more:,} more"] if more else named


def reads_text(summary: Summary) -> str:
    """Say how much was read, or that nobody watched; the order in which lanes ended is kept in any case."""
    if summary.ambient is False:
        told = "not watched: what clocks and files said is not on record (see `playhead.install()`)"
        return f"{told}; {summary.reads:,} of ended lanes, or later (--reads)" if summary.reads else told
    return f"{summary.reads:,}, of clocks, variables, files and the like (--reads)" if summary.reads else ""


def in_flight_text(summary: Summary) -> str:
    """Say which spans nothing closed."""
    named = summary.in_flight[:_IN_FLIGHT_MAX]
    flying = [f"{item['kind'].partition('.')[0]} {item['name']} (event {item['seq']})" for item in named]
    if len(summary.in_flight) > len(named):
        flying.append(f"and {len(summary.in_flight) - len(named):,} more")
    return one_line(", ".join(flying))


def no_result_text(summary: Summary, status: str) -> str:
    """Say of which tools that a model asked for nothing was seen: neither that they ran nor what came of it."""
    shown = summary.no_result[:_IN_FLIGHT_MAX]
    named = [f"{Call(item['name'], item['arguments'])} (event {item['seq']})" for item in shown]
    if len(summary.no_result) > len(named):
        named.append(f"and {len(summary.no_result) - len(named):,} more")
    told = f"{', '.join(named)}, no result recorded" if named else ""
    return one_line(f"{told} yet" if told and status == "running" else told)


def status_of(summary: Summary, held: bool) -> str:
    """Say what the run is now: as it ended, or `running` while a writer holds it, or `crashed`."""
    return summary.ended or ("running" if held else "crashed")


def symbol(status: str, out: Output) -> tuple[str, str]:
    """Return the sign of a status and its style."""
    sign, plain, style = STATUS.get(status, ("·", ".", "dim"))
    return (sign if out.unicode else plain), style


def running_us(summary: Summary, status: str, now_us: int) -> int:
    """Say how long the run took; of one that is running, how long it has been, whether or not it says something."""
    started_us = _micros(summary.started)
    since_us = 0 if started_us is None or status != "running" else now_us - started_us
    return max(summary.duration_us, since_us)


def print_header(
    summary: Summary,
    status: str,
    out: Output,
    resolve: Resolve,
    now_us: int,
    standing: Sequence[tuple[str, str]] = (),
) -> None:
    """Write what the run was; `standing` are more facts, as label and text: what is known of its record."""
    sign, style = symbol(status, out)
    room = out.width - len(f"{sign}   {summary.id}  {status}")
    name = text.cut(one_line(summary.name) or "(no name)", max(16, room))
    out.styled((f"{sign} ", style), (name, "bold"), "  ", (summary.id, "cyan"), "  ", (status, style))
    width = max(40, out.width - _LABEL_WIDTH - 3)
    for label, told in (*_facts(summary, status, resolve, width, now_us), *standing):
        out.wrapped(["  ", (f"{label:<{_LABEL_WIDTH}}", "dim")], told)
    for number, told in enumerate(not_captured_lines(summary)):
        out.wrapped(["  ", ("              " if number else "not captured: ", "yellow")], told)
    for label, told in _troubles(summary, resolve, width):
        out.wrapped(["  ", (f"{label:<{_LABEL_WIDTH}}", "dim")], told, "bold red")


def _troubles(summary: Summary, resolve: Resolve, width: int) -> list[tuple[str, str]]:
    line = text.error_whole(resolve(summary.error))
    invalid = summary.invalidated
    troubles = [
        ("error", line and text.cut(line, width * _ERROR_LINES_MAX)),
        ("stderr", f"… {summary.last_words}" if summary.last_words else ""),
        ("lost", ", ".join(f"{count} {reason}" for reason, count in summary.gaps.items())),
        ("invalid", f"{invalid['why']} (by {invalid['by']}, event {invalid['seq']})" if invalid else ""),
    ]
    return [(label, told) for label, told in troubles if told]


def _facts(summary: Summary, status: str, resolve: Resolve, width: int, now_us: int) -> list[tuple[str, str]]:
    started_us = _micros(summary.started)
    when = summary.started.replace("T", " ")[:19] + " UTC"
    relative = text.ago(started_us, now_us)
    took = "so far" if status == "running" else "took"
    environment, git, agent = _object(summary.environment), _object(summary.git), _object(summary.agent)
    models = f" ({', '.join(summary.models[:4])})" if summary.models else ""
    facts = [
        ("started", f"{when}, {relative}" if relative else when),
        (took, f"{text.duration(running_us(summary, status, now_us))}, {text.several(summary.events, 'event')}"),
        ("received", one_line(imported.told(summary.received, summary.external_id))),
        ("request", text.cut(one_line(_request(summary.request, resolve, width)), width)),
        ("agent", f"{agent.get('name')} {agent['version']}" if agent.get("version") else ""),
        ("code", _code(git)),
        ("python", _python(environment)),
        ("ci", text.arguments(summary.ci, width, resolve) if summary.ci else ""),
        ("replays" if _is_replay(summary) else "origin", _origin(summary, width, resolve)),
        ("tags", text.arguments(summary.tags, width, resolve) if summary.tags else ""),
        ("calls", f"{_calls(summary, models)}{_tokens(summary)}"),
        ("effects", _effects(summary)),
        ("asked for", no_result_text(summary, status)),
        ("cost", _cost(summary)),
        ("reads", reads_text(summary)),
        ("lanes", text.number(len(summary.lanes)) if len(summary.lanes) > 1 else ""),
        ("policy", one_line(denials.told(summary.denied, _DENIED_MAX))),
        ("redacted", one_line(redactions.told(summary.redacted, summary.redacted_at_least))),
    ]
    return [(label, told) for label, told in facts if told]


def _is_replay(summary: Summary) -> bool:
    return _object(summary.origin).get("mode") == "exact"


def _origin(summary: Summary, width: int, resolve: Resolve) -> str:
    """Say which run this one comes from; of a replay, which it replays, how, and up to which event."""
    origin = _object(summary.origin)
    if origin.get("mode") in ("fork", "resume", "model", "step"):
        after = {"fork": "at", "resume": "after"}.get(str(origin.get("mode")))
        told = f" {after} event {origin.get('at')}" if after else f" {origin['step']}" if origin.get("step") else ""
        return one_line(f"{origin.get('run')} ({origin.get('mode')}){told}")
    if not _is_replay(summary):
        return text.arguments(summary.origin, width, resolve) if summary.origin else ""
    return one_line(f"{origin.get('run')} ({origin.get('mode')}), up to event {origin.get('at')}")


def _cost(summary: Summary) -> str:
    if _is_replay(summary):
        return "nothing: it was answered from a recording"
    return prices.told(summary.cost, summary.cost_unpriced, summary.calls_without_usage)


def _effects(summary: Summary) -> str:
    told = ", ".join(f"{count:,} {one_line(what)}" for what, count in sorted(summary.effects.items()))
    changed = f"{text.several(summary.files_changed, 'file')} changed in the working tree"
    return "; ".join(filter(None, (told, changed if summary.files_changed else "")))


def _calls(summary: Summary, models: str) -> str:
    """Say how many calls there were, and of those to models how many failed."""
    told = [f"{summary.model_calls:,} to models{models}"]
    if summary.model_failures:
        told.append(f"{summary.model_failures:,} failed")
    told.append(f"{summary.tool_calls:,} to tools")
    if summary.http_requests:
        told.append(text.several(summary.http_requests, "http request"))
    return ", ".join(told)


def _tokens(summary: Summary) -> str:
    """Say how many tokens there were, and of how many calls that is not known: their tokens are not among them."""
    silent = summary.calls_without_usage
    if summary.tokens_in or summary.tokens_out:
        without = f" ({text.several(silent, 'call')} did not say)" if silent else ""
        return f"; tokens {summary.tokens_in:,} in → {summary.tokens_out:,} out{without}"
    return f"; {prices.silent_calls(silent)}" if silent else ""


def _request(request: Any, resolve: Resolve, width: int) -> str:
    request = resolve(request)
    if not isinstance(request, dict) or "intent" not in request:
        return "" if request is None else text.short(request, width, resolve)
    payload = request.get("payload")
    told = "" if payload is None else text.arguments(payload, width, resolve)
    return f"{request['intent']} {told}".strip()


def _python(environment: dict[str, Any]) -> str:
    python, platform = _object(environment.get("python")), _object(environment.get("platform"))
    machine = " ".join(str(platform[name]) for name in ("system", "machine") if platform.get(name))
    return ", ".join(filter(None, (str(python.get("version") or ""), machine)))


def _code(git: dict[str, Any]) -> str:
    if not git.get("commit"):
        return ""
    told = str(git["commit"])[:10]
    if git.get("branch"):
        told += f" on {git['branch']}"
    return told + (", with uncommitted changes" if git.get("dirty") else "")


def print_row(row: Row, status: str, out: Output, *, lanes: bool, seq_width: int, open_us: int | None = None) -> None:
    """Write one row of a timeline: seq, lane, sign, what it was, and how long it took at the right edge.

    `open_us` says how far the run is by now: what is open has been so since it began.
    """
    sign, style = symbol(_sign(row), out)
    left: list[tuple[str, str]] = [(f"{row.seq:>{seq_width}} ", "dim")]
    if lanes:
        left.append((f"{text.cut(row.lane, 7):<7} ", "dim"))
    left += [("  " * min(row.depth, _DEPTH_SHOWN_MAX), ""), (f"{sign} ", style)]
    left += _label(row)
    _print_fitted(out, left, _took(row, status, open_us))
    if row.error is None and not row.causes:
        return
    indent = " " * (seq_width + 1 + (8 if lanes else 0) + 2 * min(row.depth, _DEPTH_SHOWN_MAX) + 2)
    for told, style in ((row.error or "", "red"), (row.where or "", "dim"), *((cause, "red") for cause in row.causes)):
        if told:
            out.styled(indent, (text.cut(one_line(told), max(40, out.width - len(indent))), style))


def _sign(row: Row) -> str:
    """Choose the sign: an answer that refuses is one, so its call is ok, but nobody shall take it for a success."""
    if row.unanswered:
        return "unanswered"
    return "refused" if row.kind == "http" and row.status == "ok" and row.result[:1] in ("4", "5") else row.status


def _label(row: Row) -> list[tuple[str, str]]:
    if row.status == "unseen":
        return [("not captured:", "yellow"), (f" {one_line(row.detail)}", "")]
    label = _LABELS.get(row.kind, row.kind)
    parts = [(label, _KIND_STYLE.get(row.kind, "dim"))]
    if row.kind == "http" and row.result:
        parts.append((f" {row.result}", STATUS[_sign(row)][2] if row.status == "ok" else ""))  # before the long address
    if row.name:
        parts.append((f" {row.name}", "bold" if row.kind == "step" else ""))
    if row.detail:
        opens, closes = ("(", ")") if row.kind == "tool" else (" ", "")
        parts.append((f"{opens}{row.detail}{closes}", "dim" if row.kind == "step" else ""))
    if row.inferred and row.kind == "tool":
        parts.append((" · inferred", "dim"))
    if row.tokens_in is not None or row.tokens_out is not None:
        parts.append((f" · {row.tokens_in or 0:,} → {row.tokens_out or 0:,} tokens", ""))
    if row.kind == "policy.checked":
        parts.append((f" · {row.status}", STATUS.get(row.status, STATUS["error"])[2]))
    expected = _CALLING_FINISH if row.answer.startswith("calls ") else _ORDINARY_FINISH if row.answer else ()
    if row.result and row.result.lower() not in expected and row.kind != "http":
        parts.append((f" → {row.result}" if row.kind in ("tool", "mcp", "process") else f" · {row.result}", ""))
    if row.answer:
        parts.append((f" → {row.answer}", ""))
    if row.unanswered:
        parts.append((" · no answer recorded", "yellow"))
    if row.folded > 1:
        parts.append((f" (and {row.folded - 1:,} more, to event {row.end_seq})", "dim"))
    return [(one_line(told), style) for told, style in parts]


def _took(row: Row, status: str, open_us: int | None) -> tuple[str, str]:
    if row.duration_us is not None:
        return text.duration(row.duration_us), "dim"
    if row.status != "open":
        return "", ""
    if status != "running":
        return "in flight", "bold red"  # whatever became of the run, nothing closed this
    return ("open" if open_us is None else f"open for {text.duration(max(0, open_us - row.at_us))}"), "cyan"


def _print_fitted(out: Output, left: list[tuple[str, str]], right: tuple[str, str]) -> None:
    """Write parts from the left, cut where the line is full, and one part at the right edge."""
    edge = max(_DURATION_WIDTH, text.cells(right[0]))
    room = out.width - edge - 1
    parts: list[Part] = []
    for told, style in left:
        told = text.cut(told, room)
        room -= text.cells(told)
        parts.append((told, style))
        if room <= 0:
            break
    if right[0]:
        parts += [" " * max(1, room + 1 + edge - text.cells(right[0])), right]
    out.styled(*parts)


def print_value(value: Any, out: Output, limit: int | None = None, indent: str = "  ") -> None:
    """Write a plain value as indented JSON, cut at `limit` characters."""
    from playhead.cli.output import to_json

    for line in shortened(value if isinstance(value, str) else to_json(value), limit).split("\n"):
        out.print(indent + line)


def shortened(told: str, limit: int | None) -> str:
    """Return the beginning of a text, and how much there is of it."""
    if limit is None or len(told) <= limit:
        return told
    return f"{told[:limit]}… ({len(told) - limit:,} more characters)"


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _micros(time: str) -> int | None:
    try:
        return parse_utc(time)
    except (ValueError, OverflowError):
        return None
