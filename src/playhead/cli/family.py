"""Draw the family of a run: what it was made from, and what was made from it."""

from __future__ import annotations

from typing import Any

from playhead._api.reading import Run
from playhead._api.stores import is_indexed, open_index
from playhead.cli.output import Output, one_line
from playhead.cli.run_text import symbol
from playhead.errors import PlayheadError

_MADE = ("fork", "resume", "model", "step")  # modes of runs that went their own way; exact replays only repeat
_SQL = (
    "SELECT id, name, status, json_extract(origin, '$.run'), json_extract(origin, '$.mode'),"
    " json_extract(origin, '$.at'), json_extract(origin, '$.step') FROM runs"
)
_SHOWN = 30
_HOW = {"fork": "forked at event {at}", "resume": "resumed after event {at}", "model": "its models asked again"}


def family(found: Run) -> list[dict[str, Any]]:
    """Return the runs of a family, the oldest first and each after what it was made from; empty for a run alone."""
    if not is_indexed(found.store):
        return []
    try:
        with open_index(found.store) as index:
            placed = ", ".join("?" * len(_MADE))
            made = index.query(f"{_SQL} WHERE json_extract(origin, '$.mode') IN ({placed}) ORDER BY id", list(_MADE))[1]
            parents = {row[0]: row[3] for row in made}
            root = found.id
            while (above := parents.get(root)) is not None and above != root:
                root = above
            if root == found.id and root not in parents.values():
                return []
            first = index.query(f"{_SQL} WHERE id = ?", [root])[1]
    except PlayheadError:
        return []  # the index says what is wrong with it elsewhere
    children: dict[str, list[Any]] = {}
    for row in made:
        children.setdefault(row[3], []).append(row)
    out: list[dict[str, Any]] = []
    _add(first[0] if first else (root, "", "gone", None, None, None, None), 0, children, out)
    return out


def _add(row: Any, depth: int, children: dict[str, list[Any]], out: list[dict[str, Any]]) -> None:
    id, name, status, parent, mode, at, step = row
    out.append(
        {"id": id, "name": name, "status": status, "from": parent, "mode": mode, "at": at, "step": step, "depth": depth}
    )
    for child in children.get(id, ()):
        _add(child, depth + 1, children, out)


def print_family(members: list[dict[str, Any]], this: str, out: Output) -> None:
    """Draw it."""
    if not members:
        return
    out.print()
    out.styled(("family", "bold"))
    shown = _shown(members, this)
    for at, one in enumerate(shown):
        sign, style = symbol(str(one["status"]), out)
        how = _HOW.get(str(one["mode"]), "its step {step} run again" if one["mode"] == "step" else "").format(**one)
        here = "  ← this run" if one["id"] == this else ""
        told = f", {how}" if one["depth"] and how else ""
        out.styled(f"  {_branches(shown, at)}", (sign, style), f" {one['id']} {one_line(str(one['name']))}{told}{here}")
    if len(members) > len(shown):
        out.print(f"  and {len(members) - len(shown)} more (--json)")


def _shown(members: list[dict[str, Any]], this: str) -> list[dict[str, Any]]:
    """Return those that are drawn of a large family: this run, the newest ones, and what they were made from."""
    if len(members) <= _SHOWN:
        return members
    parents = {one["id"]: one["from"] for one in members}
    kept: set[str] = set()
    for id in [this, *sorted(parents, reverse=True)]:
        line: set[str] = set()
        above = id
        while above in parents and above not in kept:
            line.add(above)
            above = parents[above]
        if not kept or len(kept) + len(line) <= _SHOWN:
            kept |= line
    return [one for one in members if one["id"] in kept]


def _branches(members: list[dict[str, Any]], at: int) -> str:
    """Return the lines before a run: from whom it comes."""
    depth = members[at]["depth"]
    if not depth:
        return ""
    drawn = []
    for level in range(1, depth + 1):
        later = next((one["depth"] for one in members[at + 1 :] if one["depth"] <= level), 0)
        goes_on = later == level
        if level == depth:
            drawn.append("├─ " if goes_on else "└─ ")
        else:
            drawn.append("│  " if goes_on else "   ")
    return "".join(drawn)
