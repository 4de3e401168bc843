"""Write small timelines, damage them, and verify what is left."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from playhead._clock import FakeClock
from playhead.event import envelope
from playhead.ledger.verify import Verification, verify
from playhead.ledger.writer import Ledger
from playhead.store.memory import MemoryLog, MemoryStore

RUN = "run_01hf7yat00000g40r40m30e209"
OTHER = "run_01hf7yat00000g40r40m30e20a"


def ledger(
    run: str = RUN, log: MemoryLog | None = None, clock: Any = None
) -> tuple[Ledger, MemoryLog, dict[str, bytes]]:
    """Return a writer, the bytes it writes to, and what it sets aside."""
    log = log or MemoryLog()
    aside: dict[str, bytes] = {}

    def set_aside(data: bytes) -> str:
        digest = MemoryStore().put_blob(data)
        aside[digest] = data
        return digest

    return Ledger(log, run, clock or FakeClock(), set_aside), log, aside


def finish(writer: Ledger) -> None:
    """Append run.finished with its count and root."""
    writer.append(
        "run.finished", lambda seq, root: orjson.dumps({"status": "ok", "events": seq + 1, "root": root}), span="0"
    )


def timeline(events: int = 10, run: str = RUN) -> list[bytes]:
    """Return the lines, newlines included, of a finished run with this many events."""
    writer, log, _ = ledger(run)
    writer.append("run.started", b'{"name":"t"}', opens=True)
    for number in range(1, events - 1):
        writer.append("note.added", b'{"text":"n%d"}' % number, parent="0")
    finish(writer)
    return bytes(log.buffer).splitlines(keepends=True)


def lines_of(log: MemoryLog) -> list[bytes]:
    return bytes(log.buffer).splitlines(keepends=True)


def events_of(log: MemoryLog) -> list[envelope.Event]:
    return [envelope.parse(line) for line in lines_of(log)]


def judged(data: bytes | Iterable[bytes], run: str = RUN, **options: Any) -> Verification:
    """Verify bytes, cut into lines as a file cuts them."""
    raw = data if isinstance(data, bytes) else b"".join(data)
    *whole, torn = raw.split(b"\n")
    return verify(iter([line + b"\n" for line in whole] + ([torn] if torn else [])), run, **options)


def resealed(line: bytes, **changes: Any) -> bytes:
    """Change fields of a line and seal it anew, as somebody who knows the format can."""
    fields = orjson.loads(line) | changes
    fields.pop("hash")
    prev = fields.pop("prev").encode()
    head = orjson.dumps({name: value for name, value in fields.items() if name != "data"})[:-1] + b',"data":'
    return envelope.seal(head, orjson.dumps(fields["data"]), prev)[0]


def hash_of(line: bytes) -> str:
    return str(orjson.loads(line)["hash"])
