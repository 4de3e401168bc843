"""Keep cassettes in the database: immutable, which the database itself sees to (its triggers refuse every change).

Who owns the file can of course remove the triggers first. What comes out is therefore compared with its digest before
anybody uses it, and a cassette carries the chain of its lines, which its reader verifies.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import sqlite3
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from playhead import _limits
from playhead._ids import is_cassette_id, new_cassette_id
from playhead.errors import Altered, BadCassette, NotFound
from playhead.store import layout
from playhead.store.cassettes import form
from playhead.store.cassettes.reading import Cassette
from playhead.store.cassettes.zips import ZippedContents
from playhead.store.disk import Disk
from playhead.store.reader import RunReader
from playhead.store.registry import pages
from playhead.store.registry.database import Registry

_disk = Disk()


@dataclass(frozen=True)
class StoredCassette:
    """A cassette in the database, but for its bytes. `run`, head and names are those of the first of its `runs`."""

    id: str
    project: str
    name: str | None
    run: str
    external_id: str | None
    run_name: str | None
    head_seq: int
    head_hash: str
    runs: int
    events: int
    form: str  # `.cassette` or `.cassette.jsonl`
    bytes: int
    digest: str  # SHA-256 of the file
    parts: int
    created_us: int
    by: str | None  # id of a key


_COLUMNS = ", ".join(field.name for field in fields(StoredCassette))
_MARKS = ", ".join("?" for _ in fields(StoredCassette))


class Shelf:
    """Keep the cassettes of one project. What another project keeps does not exist here."""

    def __init__(self, registry: Registry, project: str) -> None:
        self._registry = registry
        self.project = layout.project_name(project)

    def add(self, file: Path, *, name: str | None, by: str | None) -> StoredCassette:
        """Keep a copy of a cassette, which the caller has checked; whole, or not at all."""
        cassette = Cassette(file)
        header = cassette.header
        started = RunReader(cassette, header.run).first().data
        size = file.stat().st_size
        if size > _limits.CASSETTE_STORED_BYTES_MAX:
            raise BadCassette(
                f"{file.name} has {size:,} bytes; {_limits.CASSETTE_STORED_BYTES_MAX:,} are kept in the database",
                hint="Leave it a file.",
            )
        id, digest, count, total = new_cassette_id(self._registry.clock), hashlib.sha256(), 0, 0
        with self._registry.writing() as connection:
            for content in _parts(file):
                connection.execute("INSERT INTO cassette_parts VALUES (?, ?, ?)", (id, count, content))
                digest.update(content)
                count, total = count + 1, total + len(content)
            kept = StoredCassette(
                id=id,
                project=self.project,
                name=name,
                run=header.run,
                external_id=_text(started.get("external_id")),
                run_name=_text(started.get("name")),
                head_seq=header.runs[0].head.seq,
                head_hash=header.runs[0].head.hash,
                runs=len(header.runs),
                events=sum(taped.head.seq + 1 for taped in header.runs),
                form=form.ZIP if isinstance(cassette.contents, ZippedContents) else form.LINES,
                bytes=total,
                digest=digest.hexdigest(),
                parts=count,
                created_us=self._registry.clock.wall_us(),
                by=by,
            )
            values = [getattr(kept, field.name) for field in fields(kept)]
            connection.execute(f"INSERT INTO cassettes ({_COLUMNS}) VALUES ({_MARKS})", values)
        return kept

    def list(
        self, limit: int = _limits.PAGE_ROWS_DEFAULT, after: str | None = None
    ) -> tuple[list[StoredCassette], str | None]:
        """Return cassettes, the newest first, and what `after` is for the next page: None where there is none."""
        pages.check(limit, after, is_cassette_id)
        before = after or "cas_~"  # which comes after every id
        with self._registry.reading() as connection:
            if connection is None:
                return [], None
            sql = f"SELECT {_COLUMNS} FROM cassettes WHERE project = ? AND id < ? ORDER BY id DESC LIMIT ?"
            rows = connection.execute(sql, (self.project, before, limit + 1)).fetchall()
        return pages.page([StoredCassette(*row) for row in rows], limit, lambda kept: kept.id)

    def get(self, id: str) -> StoredCassette:
        """Return one cassette; NotFound where this project has none of that id."""
        with self._registry.reading() as connection:
            return self._get(connection, id)

    def extract(self, id: str, target: Path) -> StoredCassette:
        """Write the bytes of a cassette to a file, which is there only when they are what was kept: else Altered."""
        aside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
        try:
            with self._registry.reading() as connection:
                kept = self._get(connection, id)
                assert connection is not None
                told = _write(connection, id, aside)
            if told != (kept.bytes, kept.digest):
                raise Altered(
                    f"cassette {id} is not what was kept: {told[0]:,} bytes with the digest {told[1][:12]}, for"
                    f" {kept.bytes:,} with {kept.digest[:12]}",
                    hint="Somebody changed the database behind Playhead's back: put a copy of it back.",
                )
            _disk.replace(aside, target)
        finally:
            aside.unlink(missing_ok=True)
        if sys.platform != "win32":
            _disk.sync_folder(target.absolute().parent)
        return kept

    def _get(self, connection: sqlite3.Connection | None, id: str) -> StoredCassette:
        row = None
        if connection is not None and is_cassette_id(id):
            sql = f"SELECT {_COLUMNS} FROM cassettes WHERE id = ? AND project = ?"
            row = connection.execute(sql, (id, self.project)).fetchone()
        if row is None:
            raise NotFound(f"there is no cassette {id[:80]!r} in project {self.project}")
        return StoredCassette(*row)


def _parts(file: Path) -> Iterator[bytes]:
    with file.open("rb") as opened:
        while content := opened.read(_limits.CASSETTE_PART_BYTES):
            yield content


def _write(connection: sqlite3.Connection, id: str, target: Path) -> tuple[int, str]:
    """Write the parts to a new file, and return how many bytes with which digest they are."""
    digest, size = hashlib.sha256(), 0
    with os.fdopen(_disk.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as opened:
        sql = "SELECT content FROM cassette_parts WHERE cassette = ? ORDER BY number"
        for (content,) in connection.execute(sql, (id,)):
            data = content if isinstance(content, bytes) else b""
            digest.update(data)
            size += len(data)
            opened.write(data)
        opened.flush()
        _disk.sync(opened.fileno())
    return size, digest.hexdigest()


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
