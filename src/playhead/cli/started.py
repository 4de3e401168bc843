"""Tell of the runs of Pythons that the program of a run started: each is a run of its own."""

from __future__ import annotations

from typing import Any

from playhead._api.children import children_told
from playhead._api.reading import Run
from playhead.cli.altered import member_named
from playhead.cli.arguments import store_option
from playhead.cli.output import Output, one_line
from playhead.errors import PlayheadError
from playhead.views import text

_SHOWN = 5


def started_by(found: Run) -> list[dict[str, Any]]:
    """Return them; none where they cannot be looked up, which `doctor` tells of."""
    try:
        return children_told(found)
    except PlayheadError:
        return []


def print_started(found: Run, children: list[dict[str, Any]], command: str, store: str | None, out: Output) -> None:
    """Name a few of them, and the command that says more of each: `show`, or another one that takes a run."""
    for child in children[:_SHOWN]:
        calls = (("model_calls", "model call"), ("tool_calls", "tool call"))
        counts = [text.several(child[name], noun) for name, noun in calls if child[name]]
        counts += [f"{child['denied']:,} denied"] if child["denied"] else []
        told = ", ".join([str(child["status"]), *counts])
        named = member_named(found, child["run"], store)
        how = child["run"] if named is None else f"playhead {command} {named}{store_option(store)}"
        out.styled(f"  {one_line(str(child['name']))}  {told}  ", (how, "dim"))
    if len(children) > _SHOWN:
        out.print(f"  and {len(children) - _SHOWN:,} more; --json has them all")
