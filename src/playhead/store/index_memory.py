"""Remember the last line that was seen of each run, over the life of one index file.

The index can be built again from the runs at any time, but for one thing: that it has seen a line is evidence, which
must not vanish because the index is built again, or because a run is read again from its start. So what was seen is
carried over into the table `remembered`, and a row leaves it as soon as the run was read and holds that line.
A row that stays says that the run was cut, written anew or removed. A file that is deleted takes its memory with it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playhead import _limits
from playhead._ids import is_run_id
from playhead.store import layout
from playhead.store.index_rows import HASH_IN_TAIL

Heads = dict[str, tuple[int, str]]  # by run: seq and hash of a line

_SEEN = "SELECT r.id, r.head_seq, r.head_hash, r.events, p.tail FROM runs r JOIN progress p ON p.run = r.id"
_REMEMBERED = "SELECT run, seq, hash FROM remembered"
_AGREEING = (
    "SELECT r.id, r.head_seq, r.head_hash, r.events, r.bad_lines, p.tail"
    " FROM runs r LEFT JOIN progress p ON p.run = r.id"
)


def heads_in(connection: sqlite3.Connection) -> Heads:
    """Return the last line of each run that an index knows of, as far as it can be read.

    The file may be damaged, and nobody may be accused because of that: only what two places agree on counts.
    """
    found: Heads = {}
    for run, seq, digest, events, tail in _rows(connection, _SEEN):
        if _is_head(run, seq, digest) and events == seq + 1 and str(tail)[HASH_IN_TAIL] == digest:
            found[run] = seq, digest
    for run, seq, digest in _rows(connection, _REMEMBERED):
        if _is_head(run, seq, digest):
            found[run] = seq, digest
    return found


def heads_seen(connection: sqlite3.Connection, run: str | None = None) -> tuple[Heads, bool]:
    """Return the last line that was read of each run, or of one; and whether the file contradicts itself about any.

    Nobody may be accused because of a byte that changed in the index: what two places do not agree on is left out.
    Only a line that could not be read (`bad_lines`) makes them differ without damage.
    """
    found: Heads = {}
    damaged = False
    question = (_AGREEING, ()) if run is None else (_AGREEING + " WHERE r.id = ?", (run,))
    for id, seq, digest, events, bad_lines, tail in connection.execute(*question):
        if seq is None and events == 0:
            continue
        agree = type(seq) is int and str(tail)[HASH_IN_TAIL] == digest
        if agree and events != seq + 1:  # also where lines are missing: then the rows of the others say the same
            rows = connection.execute("SELECT max(seq), count(*) FROM events WHERE run = ?", (id,)).fetchone()
            agree = rows == (seq, events)
        if agree and _is_head(id, seq, digest):
            found[id] = seq, digest
        damaged = damaged or not (agree or bad_lines)
    return found, damaged


def heads_of_file(path: Path) -> Heads:
    """Return the same for a file that nobody has open; nothing where it cannot be read at all."""
    if not path.is_file():
        return {}
    # The second way reads a file whose folder cannot be written: its log, if there is one, is left out.
    for options in ("mode=ro", "mode=ro&immutable=1"):
        try:
            connection = sqlite3.connect(address(path, options), uri=True, timeout=_limits.INDEX_WAIT_S)
        except sqlite3.Error:
            continue
        try:
            if found := heads_in(connection):
                return found
        finally:
            connection.close()
    return {}


def address(path: Path, options: str = "mode=ro") -> str:
    """Return the URI that opens a file for reading."""
    from urllib.parse import quote

    name = path.absolute().as_posix()
    # Not `as_uri`, which makes a host of a network drive on Windows: SQLite refuses that.
    return f"file://{'' if name.startswith('/') else '/'}{quote(name)}?{options}"


def remember(connection: sqlite3.Connection, heads: Heads) -> None:
    """Keep what was seen. What is remembered of a run already was seen earlier, and stays."""
    rows = ((run, *head) for run, head in heads.items())
    connection.executemany("INSERT OR IGNORE INTO remembered VALUES (?, ?, ?)", rows)


def settle(connection: sqlite3.Connection, root: Path) -> None:
    """Drop what the runs, as they were read now, still hold."""
    if connection.execute("SELECT 1 FROM remembered LIMIT 1").fetchone() is None:
        return
    connection.execute(
        "DELETE FROM remembered WHERE EXISTS"
        " (SELECT 1 FROM runs r WHERE r.id = run AND r.head_seq = seq AND r.head_hash = hash)"
    )
    later = connection.execute(
        "SELECT m.run, m.hash, e.offset + e.length FROM remembered m JOIN events e ON e.run = m.run AND e.seq = m.seq"
    ).fetchall()
    for run, digest, end in later:
        if _digest_at(layout.timeline(layout.run_dir(root, run)), end) == digest:
            connection.execute("DELETE FROM remembered WHERE run = ?", (run,))


def remembered(connection: sqlite3.Connection) -> Heads:
    """Return the lines that were seen once and that the runs no longer hold."""
    return {run: (seq, digest) for run, seq, digest in connection.execute(_REMEMBERED + " ORDER BY run")}


def _rows(connection: sqlite3.Connection, sql: str) -> Iterator[tuple[Any, ...]]:
    """Yield rows up to the first that cannot be read."""
    try:
        yield from connection.execute(sql)
    except (sqlite3.Error, UnicodeDecodeError):
        return


def _is_head(run: object, seq: object, digest: object) -> bool:
    return (
        isinstance(run, str)
        and is_run_id(run)
        and type(seq) is int
        and seq >= 0
        and isinstance(digest, str)
        and layout.is_digest(digest)
    )


def _digest_at(timeline: Path, end: int) -> str | None:
    """Return the hash of the line that ends at a byte, without its newline: 64 digits before the last two bytes."""
    try:
        with timeline.open("rb") as file:
            file.seek(max(0, end - 66))
            return file.read(64).decode("latin-1")
    except OSError:
        return None
