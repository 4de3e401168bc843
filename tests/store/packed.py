"""Record runs that hold a bit of everything, pack them, and change the files as somebody with bad intentions would."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import playhead
from playhead._api.packing import pack_run
from playhead._api.reading import Run
from playhead.capture.record import Record
from playhead.store.files import FileStore

FORMS = (".cassette", ".cassette.jsonl")


def record_rich(store: FileStore, **options: Any) -> Run:
    """Record one run with large values of every kind, artifacts and context packs."""
    with Record("rich", store=store, input={"issue": 1842}, capture=False, **options) as run:
        playhead.note("large", {"text": "Größe und Maß. " * 4000})
        playhead.note("binary", {"bytes": bytes(range(256)) * 200})
        playhead.note("nested", {"list": [{"number": n, "more": "x" * 100} for n in range(500)]})
        playhead.note("controls", {"text": "\x00\x1b[31m" * 9000})
        playhead.artifact("patch.diff", "--- a\n+++ b\n", role="patch")
        playhead.artifact("logs/[x].bin", bytes(range(256)))
        playhead.artifact("üñï \"x'.txt".replace('"', ""), "")
        for number in range(3):
            playhead.context_pack({"files": ["src/login.py"], "number": number})
        run.output = {"fixed": True}
    assert run.id is not None
    return Run(store, run.id)


def record_family(store: FileStore) -> tuple[Run, list[str]]:
    """Record a run, a child, a child of that, and a replay; return the run and the ids of its children."""
    parent = record_rich(store)
    child = record_rich(store, origin={"run": parent.id, "mode": "child", "pid": 7})
    grandchild = record_rich(store, origin={"run": child.id, "mode": "child", "pid": 8})
    record_rich(store, origin={"run": parent.id, "mode": "exact"})
    record_rich(store)
    return parent, [child.id, grandchild.id]


def packed(run: Run, folder: Path, form: str) -> Path:
    """Pack a run into a file of its own."""
    return pack_run(run, folder / f"packed{form}").file


def rezipped(path: Path, change: Callable[[list[tuple[ZipInfo, bytes]]], Any]) -> None:
    """Write a zip anew after its members were changed, by the same rules as `pack`."""
    with ZipFile(path) as archive:
        members = [(info, archive.read(info)) for info in archive.infolist()]
    change(members)
    with ZipFile(path, "w", ZIP_DEFLATED) as archive:
        for info, data in members:
            archive.writestr(info, data)


def member(name: str) -> ZipInfo:
    """Return a member such as `pack` writes."""
    info = ZipInfo(name)
    info.create_system, info.external_attr, info.compress_type = 3, 0o100644 << 16, ZIP_DEFLATED
    return info


def relined(path: Path, change: Callable[[list[bytes]], Any]) -> None:
    """Write a file of lines anew after its lines were changed, and count them anew."""
    lines = path.read_bytes().splitlines(keepends=True)
    change(lines)
    lines[-1] = re.sub(rb'"lines":\d+', b'"lines":%d' % (len(lines) - 1), lines[-1])
    path.write_bytes(b"".join(lines))
