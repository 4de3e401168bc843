"""Say in one line what something asked and what came of it, in the words of the timeline."""

from __future__ import annotations

from playhead import _limits
from playhead.event.envelope import Event
from playhead.views import prompts, text
from playhead.views.points import mapping
from playhead.views.text import Resolve
from playhead.views.timeline import Timeline


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
