"""Say what a comparison found, and in one line what something asked and what came of it, in words of the timeline."""

from __future__ import annotations

import re
from typing import Any

from playhead import _limits
from playhead.event.envelope import Event
from playhead.views import prompts, text
from playhead.views.points import mapping
from playhead.views.text import Resolve
from playhead.views.timeline import Timeline

_PLACE = re.compile(r" \([^()\s]+:[0-9]+(?: in \S+)?\)$")  # as `error_causes` writes it


def said_of(opening: Event, closing: Event | None, resolve: Resolve) -> tuple[str, str]:
    """Return what was asked and what came of it; either is empty where there is nothing to say."""
    timeline = Timeline(resolve)
    row = timeline.take(opening)
    if row is None:
        return "", ""
    if closing is not None:
        row = timeline.take(closing) or row
    asked = row.detail
    if opening.kind == "model.invoked":
        told = prompts.last_of(resolve(mapping(opening.data).get("request")))
        asked = text.short(told, _limits.CELL_CHARACTERS_MAX) if told else asked
    decision = row.status if opening.kind == "policy.checked" else ""
    return asked, row.answer or row.error or ", ".join(filter(None, (decision, row.result)))


def outcome_of(
    identical: bool | None, output_differs: bool | None, failures: dict[str, dict[str, Any] | None], deviates: bool
) -> tuple[str, str, str]:
    """Say in a few words what a comparison found: `ok`, `bad` or `warn`, in short, and what there is to add.

    What could not be compared is never said to be the same. `deviates` where the two runs themselves differ, and not
    only those of Pythons that they started.
    """
    if identical is None:
        return "warn", "could not tell", ": nothing differs of what could be compared"
    if identical:
        return "ok", "no difference", " in what the two runs did and were answered"
    if not deviates:
        return "bad", "no difference in the two runs themselves", ", but in those of Pythons that they started"
    if output_differs is None:
        return "warn", "the final output cannot be compared", ": that of one of the runs is not there"
    left, right = (_failure(mapping(failures.get(side))) for side in ("left", "right"))
    if left and right and left != right:
        return "bad", "both runs failed, each in its own way", ""
    if output_differs:
        return "bad", "the final output differs", ""
    return (
        "ok",
        "both runs failed alike" if left and right else "the final output is the same",
        ", the way there is not",
    )


def _failure(failed: dict[str, Any]) -> list[str]:
    """Return an error and what lies behind it, without where that was raised: no difference; nothing without one."""
    causes = (_PLACE.sub("", str(cause)) for cause in failed.get("causes") or ())
    return [failed["error"], *causes] if failed.get("error") else []
