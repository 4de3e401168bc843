"""Write how two runs differ, for the page: the outcome first, then each deviation, then what stands beside them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from playhead import _limits
from playhead.views import prices, text
from playhead.views.diff.measures import costs_told, tokens_told
from playhead.views.difference import spelled
from playhead.views.points import mapping
from playhead.views.report.contract import before, children_told, counted, failures, outcome, output_changes, said
from playhead.views.report.markup import as_json, e, link
from playhead.views.words import is_patch, words
from playhead.views.words import lines as lines_of

_SETTINGS_OPEN_MAX = 10  # that are shown without being asked for
_TOOK = {
    "duration_us": ("time", text.duration),
    "cost": ("cost", prices.money),
    "model_calls": ("calls to models", text.number),
    "tool_calls": ("calls to tools", text.number),
    "tokens_input": ("tokens in", text.number),
    "tokens_output": ("tokens out", text.number),
}


def outcome_told(diff: dict[str, Any]) -> str:
    """Return what the page of two runs opens with: whether the final output differs, and where they first do."""
    headline = diff.get("headline")
    first = f" First: {_place(headline)}" if isinstance(headline, dict) else ""
    return f'<p><b><a href="#diff">{e(outcome(diff).capitalize())}</a>.</b>{first}</p>'


def diff_of(diff: dict[str, Any]) -> str:
    """Return the part of the page that says how the runs differ."""
    found = list(diff.get("deviations") or ())
    parts = [f'<h2 id="diff">Differences</h2><p><b>{e(outcome(diff).capitalize())}.</b></p>']
    parts += [f'<p>{side} failed: <code class="bad">{e(why)}</code></p>' for side, why in failures(diff)]
    parts += [_change(change) for change in output_changes(diff)[: _limits.REPORT_ROWS_SHORT]]
    if isinstance(headline := diff.get("headline"), dict):
        parts.append(f"<p>First: {_place(headline)}</p>")
    if (first := before(diff)) is not None:
        parts.append(f"<p>Before: {_place(first)}</p>")
    if found:
        parts.append(f'<p class="dim">{counted(found)} ◆: here a branch left the other</p>')
    parts += [_deviation(one) for one in found[: _limits.REPORT_FINDINGS_MAX]]
    if (more := len(found) - _limits.REPORT_FINDINGS_MAX) > 0:
        parts.append(f'<p class="dim">{more:,} more deviations are in the data of this page.</p>')
    return "".join([*parts, _not_compared(diff), _took(mapping(diff.get("metrics"))), _settings(diff)])


def _not_compared(diff: dict[str, Any]) -> str:
    found = [one for one in diff.get("not_compared") or () if isinstance(one, dict)]
    rows = "".join(
        f"<tr><td>{e(one.get('side'))}</td><td>{link(int(one.get('side') == 'right'), one.get('seq'))}</td>"
        f"<td>{e(one.get('why'))}</td></tr>"
        for one in found[: _limits.REPORT_FINDINGS_MAX]
    )
    told = f'<h3 class="warn">Not compared: {len(found):,}</h3><table>{rows}</table>' if found else ""
    return told + _children(diff)


def _children(diff: dict[str, Any]) -> str:
    counts, children = children_told(diff)
    if not counts:
        return ""
    rows = "".join(f"<li>{e(child)}</li>" for child in children[: _limits.REPORT_FINDINGS_MAX])
    return f"<h3>Runs of Pythons that these started</h3><p>{e(counts.capitalize())}.</p><ul>{rows}</ul>"


def _took(metrics: dict[str, Any]) -> str:
    rows = ""
    for name, (label, write) in _TOOK.items():
        both = mapping(metrics.get(name))
        sides = ["unknown" if both.get(side) is None else write(both[side]) for side in ("left", "right")]
        sides = list(costs_told(both)) if name == "cost" else sides
        sides = list(tokens_told(both)) if name.startswith("tokens_") else sides
        if any(both.get(side) for side in ("left", "right")):
            rows += f"<tr><th>{label}</th>" + "".join(f"<td>{e(side)}</td>" for side in sides) + "</tr>"
    return f"<h3>Took</h3><table><tr><th></th><th>left</th><th>right</th></tr>{rows}</table>" if rows else ""


def _settings(diff: dict[str, Any]) -> str:
    found = list(diff.get("config") or ())
    if not found:
        return ""
    opened = " open" if len(found) <= _SETTINGS_OPEN_MAX else ""
    shown = "".join(_change({**one, "path": spelled(one["path"])}) for one in found[: _limits.REPORT_FINDINGS_MAX])
    count = text.several(len(found), "difference")
    return f"<h3>Ran with, left → right</h3><details{opened}><summary>{count}</summary>{shown}</details>"


def _place(one: dict[str, Any]) -> str:
    seqs = " → ".join(link(number, one.get(side)) for number, side in enumerate(("left_seq", "right_seq")))
    point = " ◆" if one.get("deviation_point") else ""
    cause = f'<span class="dim">{e(str(one.get("cause") or "").replace("_", " "))}{point}</span>'
    return f"{seqs} <b>{e(one.get('type'))}</b> {e(one.get('path'))}{e(said(one))} {cause}"


def _deviation(one: dict[str, Any]) -> str:
    opened = "" if one.get("cause") == "follows" else " open"
    inside = "".join(_change(change) for change in one.get("changes") or ())
    return f"<details{opened}><summary>{_place(one)}</summary>{inside}</details>"


def _change(change: dict[str, Any]) -> str:
    path = f'<div class="dim"><code>{e(change.get("path") or "/")}</code></div>'
    sides = {side: change[side] for side in ("left", "right") if side in change}
    if len(sides) == 2 and all(isinstance(side, str) for side in sides.values()):
        return f'{path}<pre class="words">{_texts(sides["left"], sides["right"])}</pre>'
    # A text looks like one: "1" is not 1, and nothing is not "None".
    told = {side: as_json(value) for side, value in sides.items()}
    was = f"<del>{e(told['left'])}</del>" if "left" in told else ""
    now = f"<ins>{e(told['right'])}</ins>" if "right" in told else ""
    return f"{path}<pre>{' → '.join(filter(None, (was, now)))}</pre>"


def _texts(left: str, right: str) -> str:
    if is_patch(left) or is_patch(right):
        return _patch(lines_of(left, right))
    tags = {"added": "ins", "removed": "del"}
    return "".join(
        f"<{tags[piece.how]}>{e(piece.text)}</{tags[piece.how]}>" if piece.how in tags else e(_middle(piece.text))
        for piece in words(left, right)
    )


def _patch(found: Iterable[str]) -> str:
    out = []
    for line in found:
        tag = {"+": "ins", "-": "del"}.get(line[:1])
        out.append(f"<{tag}>{e(line)}</{tag}>" if tag else e(line))
    return "\n".join(out)


def _middle(same: str) -> str:
    """Return the ends of a long text that did not change."""
    most = _limits.REPORT_CONTEXT_CHARACTERS_MAX
    return same if len(same) <= most else f"{same[: most // 2]} … {same[-most // 2 :]}"
