"""Say what runs took, cost and saved, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead import _limits
from playhead.cli.output import Output
from playhead.views import prices, text
from playhead.views.sums import Group, Metrics, ModelSums, RunSums, Saved, StepSums, Timed, ToolSums

_NAMELESS = {"step": "(in no step)", "agent": "(no agent)"}
_UNKNOWN = "unknown"

CHARTS = ("cost", "tokens", "calls", "time", "latency", "errors")


def name_of(group: Group, by: str) -> str:
    """Name a group, also one of what has no name."""
    return _NAMELESS.get(by, "(unnamed)") if group.name is None else group.name


def summary(found: Metrics, *, replayable: bool) -> list[tuple[str, str]]:
    """Return what is true of all of them: lines with a label. One that is not `replayable` has nothing to save."""
    runs, models, tools, steps = _sections(found.total)
    facts = [("runs", "" if found.run is not None else _runs(runs))]
    facts += [("models", _models(models)), ("cost", _spent(models))]
    facts += [("tools", _tools(tools)), ("steps", _steps(steps)), ("saved", _saved(runs, models, tools))]
    if replayable and found.run is not None and models.cost and not models.saved.calls:
        about = prices.told(models.cost, []).removesuffix(", estimated")
        about += f" + {_UNKNOWN}" if models.unpriced or models.without_usage else ""
        facts.append(("saves", f"{about} each time it is played back or replayed exactly"))
    return [(label, told) for label, told in facts if told]


def table(found: Metrics, names: dict[str, str], out: Output) -> None:
    """Print a row for each group; `names` are those of runs, by their ids."""
    columns, drop = _COLUMNS[found.by]
    rows = []
    for group in found.groups:
        first = (text.cut(name_of(group, found.by), _limits.CELL_CHARACTERS_MAX), "cyan")
        named = [names.get(group.name or "", "")] if found.by == "run" else []
        rows.append([first, *named, *(tell(group) for tell in columns.values())])
    titles = [found.by, *(["name"] if found.by == "run" else []), *columns]
    shown = [at for at, title in enumerate(titles) if title == found.by or any(row[at] for row in rows)]
    titles, rows = [titles[at] for at in shown], [[row[at] for at in shown] for row in rows]
    right = [title for title in titles if title in columns and title != "provider"]
    short = "name" if "name" in titles else found.by
    out.table(titles, rows, right=right, whole=right, drop=drop, short=short)


def charts(by: str) -> list[str]:
    """Return what there is to draw by something: tools have no tokens."""
    return [what for what in CHARTS if not (by == "tool" and what in ("cost", "tokens"))]


def bars(found: Metrics, what: str | None) -> tuple[str, list[tuple[str, float | None, str]]]:
    """Return the heading of a chart, and its bars; the default is what matters most of what is known."""
    what = what or next(name for name in _FIRST[found.by] if name == "calls" or _any(found, name))
    out = []
    for group in found.groups:
        value = _value(group, found.by, what)
        out.append((name_of(group, found.by), value, _told(group, what, value)))
    if what == "latency":  # of runs it is that of their tools
        what = f"latency{'' if found.by in _OWN else ' of tools'} (p95)"
    return what, out


def _sections(group: Group) -> tuple[RunSums, ModelSums, ToolSums, StepSums]:
    return group.runs or RunSums(), group.models or ModelSums(), group.tools or ToolSums(), group.steps or StepSums()


def _runs(runs: RunSums) -> str:
    others = runs.count - runs.ok - runs.failed
    ended = [f"{runs.ok:,} ok"] if runs.ok else []
    ended += [f"{runs.failed:,} failed"] if runs.failed else []
    ended += [f"{others:,} cancelled or running"] if others else []
    told = f"{runs.count:,}" + (f" ({', '.join(ended)}), {_time(runs.ms)} in all" if runs.count else "")
    return told + (f"; and {text.several(runs.replays, 'exact replay')}" if runs.replays else "")


def _models(models: ModelSums) -> str:
    if not models.calls:
        return ""
    told = f"{text.several(models.calls, 'call')}{_troubles(models.errors, models.retries, models.open)}"
    cached = f" ({models.tokens_cached:,} cached)" if models.tokens_cached else ""
    thought = f" ({models.tokens_reasoning:,} reasoning)" if models.tokens_reasoning else ""
    tokens = f"; tokens {models.tokens_in:,} in{cached} → {models.tokens_out:,} out{thought}"
    if _is_silent(models):
        tokens = f"; {prices.silent_calls(models.without_usage)}"
    return f"{told}{_took(models)}{tokens}"


def _spent(models: ModelSums) -> str:
    told = prices.told(models.cost, models.unpriced, models.without_usage)
    if models.cost is None and models.without_usage:
        return f"{told or _UNKNOWN}; {prices.silent_calls(models.without_usage)}"
    return told


def _is_silent(models: ModelSums) -> bool:
    """Say whether no call said its tokens, so that nothing is known of them; none at all would be known."""
    return bool(models.without_usage) and not (models.tokens_in or models.tokens_out)


def _tools(tools: ToolSums) -> str:
    if not tools.calls:
        return ""
    told = f"{text.several(tools.calls, 'call')}{_troubles(tools.errors, 0, tools.open)}{_took(tools)}"
    return told + (f"; {tools.untimed:,} inferred, whose time nobody saw" if tools.untimed else "")


def _steps(steps: StepSums) -> str:
    if not steps.count:
        return ""
    rate = "" if steps.success_rate is None else f", {_percent(steps.success_rate)} ok"
    return f"{steps.count:,}{rate}{_troubles(0, steps.retries, steps.open)}{_took(steps)}"


def _saved(runs: RunSums, models: ModelSums, tools: ToolSums) -> str:
    saved = models.saved
    if not (saved.calls or tools.saved_calls or runs.replays):
        return ""
    told = [text.several(saved.calls, "call") + " of models"] if saved.calls else []
    told += [text.several(tools.saved_calls, "call") + " of tools"] if tools.saved_calls else []
    if saved.tokens_in or saved.tokens_out:
        told.append(f"tokens {saved.tokens_in:,} in → {saved.tokens_out:,} out")
    if cost := prices.told(saved.cost, saved.unpriced, saved.without_usage):
        told.append(cost.replace(", estimated", ""))
    if runs.replays_ms is not None and runs.saved_ms is not None:
        told.append(f"replayed in {_time(runs.replays_ms)}, recorded in {_time(runs.replays_ms + runs.saved_ms)}")
    return "answered from tapes: " + ("; ".join(told) or "nothing")


def _troubles(errors: int, retries: int, unended: int) -> str:
    told = [f"{errors:,} failed"] if errors else []
    told += [f"{retries:,} {'retry' if retries == 1 else 'retries'}"] if retries else []
    told += [f"{unended:,} without an end"] if unended else []
    return "".join(f", {one}" for one in told)


def _took(timed: Timed) -> str:
    if timed.p50_ms is None:
        return ""
    return f"; p50 {_time(timed.p50_ms)}, p95 {_time(timed.p95_ms)}, p99 {_time(timed.p99_ms)}"


def _in_all(timed: Timed) -> float | None:
    """Return how long all of them took; None where nobody saw one running."""
    return None if timed.p50_ms is None else timed.ms


def _time(ms: float | None) -> str:
    return "" if ms is None else text.duration(ms * 1000)


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    return ">99.9 %" if 0.9995 <= share < 1 else f"{100 * share:.3g} %"  # what is not all is not told as all


def _cost(sums: ModelSums | Saved) -> str:
    known = "" if sums.cost is None else prices.money(sums.cost)
    unknown = _UNKNOWN if sums.unpriced or sums.without_usage else ""
    return " + ".join(filter(None, (known, unknown)))


Column = Callable[[Group], Any]


def _of(section: str, tell: Callable[[Any], Any]) -> Column:
    return lambda group: tell(getattr(group, section))


def _count(section: str, field: str) -> Column:
    return _of(section, lambda sums: text.number(getattr(sums, field)))


def _counts(section: str, **fields: str) -> dict[str, Column]:
    return {title.replace("_", " "): _count(section, field) for title, field in fields.items()}


def _percentile(section: str, percent: int) -> Column:
    return _of(section, lambda sums: _time(getattr(sums, f"p{percent}_ms")))


def _times(section: str) -> dict[str, Column]:
    return {f"p{percent}": _percentile(section, percent) for percent in (50, 95, 99)}


def _tokens(field: str) -> Column:
    return _of("models", lambda models: _UNKNOWN if _is_silent(models) else text.number(getattr(models, field)))


_TOKENS = {
    "tokens in": _tokens("tokens_in"),
    **_counts("models", cached="tokens_cached"),
    "out": _tokens("tokens_out"),
}
_PAID = {**_TOKENS, **_counts("models", reasoning="tokens_reasoning"), "cost": _of("models", _cost)}
_WHOLE = {
    **_counts("models", models="calls", retries="retries"),
    **_TOKENS,
    "cost": _of("models", _cost),
    "saved": _of("models", lambda models: _cost(models.saved)),
    **_counts("tools", tools="calls"),
    **{f"tool {title}": tell for title, tell in _times("tools").items()},
    "steps ok": _of("steps", lambda steps: _percent(steps.success_rate)),
    **_counts("steps", step_retries="retries"),
}
_WHOLE_DROP = (
    *("cached", "tool p99", "saved", "step retries", "retries", "tool p50", "steps ok", "tools", "models", "tool p95"),
)

# By what the groups are of: the columns, and which of them a narrow terminal does without, in this order.
_COLUMNS: dict[str, tuple[dict[str, Column], tuple[str, ...]]] = {
    "model": (
        {
            "provider": _of("models", lambda models: ", ".join(models.providers)),
            **_counts("models", calls="calls", failed="errors", retries="retries"),
            **_PAID,
            **_times("models"),
        },
        ("p99", "reasoning", "cached", "retries", "provider", "p50", "failed", "p95"),
    ),
    "tool": (
        {
            **_counts("tools", calls="calls", failed="errors", open="open", untimed="untimed"),
            **_times("tools"),
            "in all": _of("tools", lambda tools: _time(_in_all(tools))),
        },
        ("untimed", "open", "in all", "p99", "failed"),
    ),
    "step": (
        {
            **_counts("steps", times="count", failed="failed", open="open"),
            "ok": _of("steps", lambda steps: _percent(steps.success_rate)),
            **_counts("steps", retries="retries"),
            **_times("steps"),
            **_TOKENS,
            "cost": _of("models", _cost),
            **_counts("tools", tools="calls"),
        },
        ("cached", "p99", "tools", "open", "p50", "failed", "retries"),
    ),
    "run": ({"took": _of("runs", lambda runs: _time(runs.ms) if runs.count else ""), **_WHOLE}, (*_WHOLE_DROP, "took")),
    "agent": (
        {**_counts("runs", runs="count", failed="failed", replays="replays"), **_WHOLE},
        ("replays", *_WHOLE_DROP, "failed"),
    ),
}
_COLUMNS["day"] = _COLUMNS["agent"]

_FIRST = dict.fromkeys(_COLUMNS, ("cost", "tokens", "calls")) | {"tool": ("time", "calls")}
_OWN = {"model": "models", "tool": "tools", "step": "steps"}  # whose time and latency a chart shows


def _any(found: Metrics, what: str) -> bool:
    return any(_value(group, found.by, what) for group in found.groups)


def _value(group: Group, by: str, what: str) -> float | None:
    runs, models, tools, steps = _sections(group)
    timed: Timed = getattr(group, _OWN.get(by, "tools"))
    match what:
        case "cost":
            return models.cost
        case "tokens":
            return None if _is_silent(models) else models.tokens_in + models.tokens_out
        case "calls":
            return models.calls + tools.calls
        case "time":
            return _in_all(timed) if by in _OWN else runs.ms
        case "latency":
            return timed.p95_ms
        case _:
            return models.errors + tools.errors + (steps.failed if by == "step" else runs.failed)


def _told(group: Group, what: str, value: float | None) -> str:
    if what == "cost":
        return _cost(group.models or ModelSums()) or "–"
    if value is None:
        return _UNKNOWN if what == "tokens" else "–"
    return _time(value) if what in ("time", "latency") else text.number(int(value))
