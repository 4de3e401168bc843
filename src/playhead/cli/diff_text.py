"""Write how two runs differ: the outcome first, then where they part, then everything else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead import _limits
from playhead.cli.beside import beside
from playhead.cli.output import Output, Part, one_line
from playhead.views import text
from playhead.views.diff.children import Child
from playhead.views.diff.comparison import Comparison, Deviation
from playhead.views.diff.measures import costs_told, tokens_told
from playhead.views.diff.saying import outcome_of
from playhead.views.diff.setting import brief
from playhead.views.difference import ABSENT, SHOWN_WIDTH, Change, spelled
from playhead.views.words import hunks, is_patch, lines, shown, words

_SIDE_BY_SIDE_MIN = 140  # columns of a terminal that has room for two texts
_INDENT = "      "
_SIGNS = {"added": ("+", "green"), "removed": ("-", "red"), "changed": ("~", "yellow"), "moved": (">", "cyan")}
_CAUSES = {
    "input_changed": "asked something else",
    "output_changed": "same question, another answer",
    "status_changed": "same question, another status",
    "follows": "follows",
}
_MADE = {"output_changed": "came out otherwise", "status_changed": "ended otherwise"}
_OWN = ("run", "step", "artifact.created", "output.written")
_MOVES = {
    "order": "in another order",
    "parent": "in another place",
    "wrapper": "inside of another span",
    "name": "under another name",
}
_TONES = {"ok": "green", "bad": "red", "warn": "yellow"}
_CONFIG_SHOWN = _CHILDREN_SHOWN = 20
_ASKED_WIDTH = 80  # of tools that nobody answered
_SAID_WIDTH = 40  # of what was asked, and of what came of it, where only one of the runs has it


def print_outcome(found: Comparison, out: Output) -> None:
    """Say whether the final output differs, and what that is."""
    tone, head, rest = outcome_of(found.identical, found.output_differs, found.failures, bool(found.deviations))
    out.styled((head, f"bold {_TONES[tone]}"), rest)
    if found.output_differs:
        for one in found.deviations:
            for change in one.changes if one.kind == "run" else ():
                if _is_outcome(change):
                    print_change(change, out)
    if not found.identical:
        _print_failures(found.failures, out)


def _print_failures(failures: dict[str, dict[str, Any] | None], out: Output) -> None:
    """Say why each run failed, once where both did for the same reason."""
    sides = {"both": failures["left"]} if failures["left"] == failures["right"] else failures
    for side, failure in sides.items():
        if failure is not None and failure["error"]:
            where = (f"  {one_line(failure['where'])}", "dim") if failure["where"] else ""
            out.styled(_INDENT, (f"{side} failed", "dim"), "  ", (one_line(failure["error"]), "red"), where)
            for cause in failure["causes"]:
                out.styled(_INDENT, "  ", one_line(cause))
            if failure["asked"]:
                asked = text.cut(", ".join(failure["asked"]), _ASKED_WIDTH)
                out.styled(_INDENT, (f"{side} asked for", "dim"), f"  {one_line(asked)}, and no result is on record")


def print_deviations(found: Comparison, total: int, limit: int, all_of_them: bool, out: Output) -> None:
    """Write the headline, then each deviation; what follows from another has no fields unless all are asked for.

    `total` is how many there were before some were chosen.
    """
    chosen = found.deviations
    if found.headline is not None:
        out.styled(("first  ", "dim"), (one_line(_place(found.headline)), "bold"), "  ", _told(found.headline))
        first = found.first
        if first is not None and first is not found.headline:
            out.styled(("before ", "dim"), one_line(_place(first)), "  ", _told(first))
    follows = sum(one.cause == "follows" for one in chosen)
    if total:
        count = f"{len(chosen):,} of {text.several(total, 'deviation')}"
        count = text.several(total, "deviation") if len(chosen) == total else count
        out.styled(("\n" + count, "bold"), f", {follows:,} of them follow from others" if follows else "")
    for one in chosen[:limit] if limit else chosen:
        sign, style = _SIGNS[one.type]
        mark = "◆ " if one.deviation_point and out.unicode else "* " if one.deviation_point else "  "
        out.styled((mark, "bold"), (sign, style), " ", one_line(_place(one)), "  ", (_told(one), "dim"))
        if one.cause != "follows" or all_of_them or one.kind == "run":
            for change in one.changes:
                if one.kind != "run" or not _is_outcome(change):  # which is shown on top
                    print_change(change, out)
    if limit and len(chosen) > limit:
        out.styled((f"  … {text.several(len(chosen) - limit, 'more deviation')}; --limit 0 shows all", "dim"))


def _is_outcome(change: Change) -> bool:
    return change.path.split("/")[1:2] in (["status"], ["output"], ["metadata"], ["error"])


def print_change(change: Change, out: Output) -> None:
    """Write one field: texts word by word, patches line by line, on a wide terminal side by side."""
    path = (f"{_INDENT}{one_line(change.path or '/')}", "dim")
    sides = (change.left, change.right)
    short = all(type(side) is str and len(side) <= SHOWN_WIDTH and "\n" not in side for side in sides)
    if (texts := change.texts) is not None and not short:
        left, right = texts
        out.styled(path)
        if is_patch(left) or is_patch(right):
            for said in lines(left, right)[: _limits.DEVIATION_LINES_MAX]:
                style = {"+": "green", "-": "red", "@": "cyan"}.get(said[:1], "")
                out.styled(_INDENT, "  ", (one_line(said), style))
        elif out.terminal and out.width >= _SIDE_BY_SIDE_MIN:
            for line in beside(left, right, out.width - len(_INDENT), unicode=out.unicode):
                out.styled(_INDENT, *line)
        else:
            for line in hunks(words(left, right), min(_limits.DEVIATION_WIDTH_MAX, out.width - len(_INDENT) - 2)):
                out.styled(_INDENT, "  ", *line)
        return
    was, now = (_value(side) for side in sides)
    parts: list[Part] = [path, "  "]
    if change.left is not ABSENT:
        parts.append((f"- {was}", "red") if change.right is ABSENT else (was, "red"))
    if change.right is not ABSENT:
        parts += [" → ", (now, "green")] if change.left is not ABSENT else [(f"+ {now}", "green")]
    out.styled(*parts)


def print_beside(found: Comparison, out: Output) -> None:
    """Write what is no deviation: the setting, what the runs took, and what could not be compared."""
    if found.config:
        out.styled("\n", ("ran with", "bold"), ", left → right")
        for change in found.config[:_CONFIG_SHOWN]:
            print_change(_setting(change), out)
        if len(found.config) > _CONFIG_SHOWN:
            out.styled((f"{_INDENT}… {len(found.config) - _CONFIG_SHOWN} more (--json)", "dim"))
    out.styled("\n", ("took", "bold"))
    for line in _metrics(found.metrics):
        out.print(f"{_INDENT}{line}")
    for entry in found.durations or ():
        was, now = (text.duration(entry[name]) or "unknown" for name in ("left_us", "right_us"))
        out.styled(_INDENT, ("duration", "dim"), f" {one_line(entry['path'])}  {was} → {now}")
    if found.not_compared:
        out.styled("\n", ("not compared", "bold yellow"))
        for one in found.not_compared[:_CONFIG_SHOWN]:
            out.print(f"{_INDENT}{one['side']}, event {one['seq']}: {one_line(one['why'])}")
        if len(found.not_compared) > _CONFIG_SHOWN:
            out.print(f"{_INDENT}… {len(found.not_compared) - _CONFIG_SHOWN} more (--json)")


def print_children(found: Comparison, command: Callable[[Child], str | None], out: Output) -> None:
    """Say of each run of a Python that the two started whether it differs, and how to see where."""
    if not found.children:
        return
    out.styled("\n", ("runs of Pythons that these started", "bold"))
    ones = sorted(found.children, key=lambda child: child.identical is True)  # first what there is to look at
    for child in ones[:_CHILDREN_SHOWN]:
        parts: list[Part] = [_INDENT, one_line(child.name), "  "]
        if child.headline is not None:
            parts += [("differs", "red"), f": {one_line(_place(child.headline))}  ", _told(child.headline)]
        elif child.identical is None:
            why = child.why or "nothing differs of what could be compared"
            parts += [("could not tell", "yellow"), f": {one_line(why)}"]
        else:
            parts += ["identical" if child.identical else (one_line(child.why), "red")]
        out.styled(*parts)
        if child.identical is not True and (line := command(child)) is not None:
            out.print(f"{_INDENT}  {line}")
    if len(ones) > _CHILDREN_SHOWN:
        rest = ones[_CHILDREN_SHOWN:]
        differ = sum(child.identical is not True for child in rest)
        out.print(f"{_INDENT}… {len(rest):,} more, {differ:,} of them not identical (--json)")


def _place(one: Deviation) -> str:
    seqs = ["–" if seq is None else str(seq) for seq in (one.left_seq, one.right_seq)]
    seq = seqs[0] if seqs[0] == seqs[1] else " → ".join(seqs)
    noun = one.kind.partition(".")[0]
    where = one.path.rpartition(" / ")[0]
    asked, answered = (text.cut(said, _SAID_WIDTH) for said in one.said)
    said = f"({asked})" * bool(asked) + f" → {answered}" * bool(answered)
    return f"{seq}  {noun} {shown(one.name, 80)}{said}" + (f"  in {shown(where, 80)}" if where else "")


def _told(one: Deviation) -> str:
    if one.type == "moved":
        why = _MOVES.get(one.why, "moved")
        return why if one.cause is None else f"{why}; {_CAUSES[one.cause]}"
    if one.cause is None:
        return one.type
    said = (_MADE if one.kind in _OWN else _CAUSES).get(one.cause, _CAUSES[one.cause])
    return said if one.type == "changed" else f"{one.type}, {said}"


def _value(value: Any) -> str:
    return "" if value is ABSENT else text.short(value, SHOWN_WIDTH)


def _setting(change: Change) -> Change:
    """Return what a run ran with as it is read."""
    return Change(spelled(change.path), brief(change.left), brief(change.right))


def _metrics(found: dict[str, dict[str, Any]]) -> list[str]:
    told = []
    for name, label in (("model_calls", "calls to models"), ("tool_calls", "calls to tools")):
        told.append(f"{label}: {_both(found[name], text.number)}")
    told.append(f"tokens in: {_sides(*tokens_told(found['tokens_input']))}")
    told.append(f"tokens out: {_sides(*tokens_told(found['tokens_output']))}")
    told.append(f"time: {_both(found['duration_us'], text.duration)}")
    told.append(f"cost: {_sides(*costs_told(found['cost']))}")
    return [line for line in told if not line.endswith((": 0", ": unknown", ": $0.00"))]


def _both(one: dict[str, Any], write: Any) -> str:
    return _sides(*("unknown" if one[side] is None else write(one[side]) for side in ("left", "right")))


def _sides(left: str, right: str) -> str:
    return left if left == right else f"{left} → {right}"
