"""Say all that is known of one run, as scripts read it: what `show --json` prints, and a server answers."""

from __future__ import annotations

from typing import Any

from playhead._api.children import children_told
from playhead._api.reading import Run
from playhead._api.settling import Settled
from playhead.errors import BrokenLine
from playhead.replay.judged import fidelity_of
from playhead.replay.readiness import readiness
from playhead.store.price_list import price_list_of
from playhead.store.reader import RunReader
from playhead.views.timeline import Timeline

_RESOLVED = ("request", "agent", "git", "ci", "environment", "origin", "tags", "error", "output", "metadata")


def described(run: Run) -> dict[str, Any]:
    """Describe a run: how it ended, its timeline, whether it can be played back, what its program started."""
    reader = RunReader(run.store, run.id)
    timeline = Timeline(reader.readable, price_list_of(run.store))
    problem = None
    try:
        timeline.take_all(Settled(reader).events())
    except BrokenLine as broken:
        problem = broken
    summary = timeline.finish()
    verified = run.verify()
    ready = readiness(reader, verified)
    about = {name: getattr(summary, name) for name in summary.__dataclass_fields__}
    about |= {name: reader.readable(about[name]) for name in _RESOLVED}
    about |= {"id": run.id, "status": run.status}
    compared = None if summary.origin is None else fidelity_of(reader)
    return {
        "run": about,
        "timeline": [row.as_dict() for row in timeline.rows()],
        "problem": None if problem is None else problem.as_dict()["error"],
        "readiness": {
            "integrity": verified.integrity.verdict,
            "completeness": verified.completeness.verdict,
            "fidelity": "not_compared" if compared is None else compared["verdict"],
            "replayable": ready.replayable,
            "reasons": ready.reasons,
            "detail": ready.detail,
            "not_captured": ready.not_captured,
        },
        "children": children_told(run),
    }
