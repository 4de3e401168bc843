from __future__ import annotations

import random
from pathlib import Path

import pytest

import playhead
from playhead._api.comparing import _Onward
from playhead.errors import EventNotFound
from playhead.store.reader import RunReader


def test_events_are_looked_up_in_any_order(tmp_path: Path) -> None:
    with playhead.record("many", store=tmp_path, capture=False) as recording:
        for number in range(60):
            playhead.note(f"note {number}")
    run = playhead.load(recording.id, store=tmp_path)
    events = list(run.events())
    onward = _Onward(RunReader(run.store, run.id))
    chance = random.Random(7)
    asked = [*range(len(events)), *reversed(range(len(events))), *chance.choices(range(len(events)), k=300)]
    assert [onward.event(seq) for seq in asked] == [events[seq] for seq in asked]
    for missing in (len(events), -1):
        with pytest.raises(EventNotFound):
            onward.event(missing)
    assert onward.event(3) == events[3]
