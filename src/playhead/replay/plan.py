"""Tell a process that is replayed what to answer with: one small file of JSON, written by the launcher."""

from __future__ import annotations

from pathlib import Path

import msgspec

from playhead.replay.course import Course


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a replay is to do."""

    root: str  # of the store that has the run
    run: str
    head: int  # the last event that counts
    scratch: str  # where everything goes that the program writes
    store: str  # of the replay's own run, which is not to be answered
    folder: str = ""  # that the program is started in
    zone: str = ""  # the time zone of the recorded program, where no variable of its own said so
    on_deviation: str = "raise"
    speed: float = 0.0
    course: Course = Course()

    @classmethod
    def read(cls, path: str | Path) -> Plan:
        """Read what `write` wrote."""
        return msgspec.json.decode(Path(path).read_bytes(), type=cls)

    def write(self, path: str | Path) -> None:
        """Write it."""
        Path(path).write_bytes(msgspec.json.encode(self))
