"""Say what became of a tape, for the event `replay.reported`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead import _limits

if TYPE_CHECKING:
    from playhead.replay.player import Player


def summary_of(player: Player) -> dict[str, Any]:
    """Return what was answered, asked, written and kept from being done."""
    unasked, changes = player.tape.unasked(), [] if player.overlay is None else player.overlay.changes()
    return {
        "answered": player.answered,
        "calls": len(player.tape.calls),
        "unasked": [call.seq for call in unasked[: _limits.DEVIATIONS_KEPT_MAX]],
        "unasked_count": len(unasked),
        "deviations": len(player.deviations),
        "drift": [{"source": source, "where": where, "count": n} for (source, where), n in player.drift.items()],
        "blocked": player.blocked_attempts,
        "stalls": player.stalls.found,
        "reads": player.served.counts,
        "code_changed": player.lookup.changed_code(),
        "written": [f"{one.what} {one.path}" for one in changes[: _limits.BLOCKED_KEPT_MAX]],
        "wrote": player.own.lines(),
        "normalised": player.normalised,
        **player.told_besides(),
    }
