"""Feed what a cassette holds through the way that live traffic goes, under a new run id. Nothing is executed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import msgspec

from playhead._api.comparing import diff
from playhead._api.reading import Run
from playhead._api.receiving.retaking import is_received, take_again
from playhead._api.receiving.writing import RunWriter
from playhead._clock import parse_utc
from playhead._version import __version__
from playhead.capture.gate import Gate
from playhead.capture.opening import shared_redactor
from playhead.errors import BadCassette, Conflict, MissingContent, NotComparable, PlayheadError
from playhead.event.kinds import CALLS
from playhead.settings import Settings
from playhead.store import layout
from playhead.store.base import Store
from playhead.store.cassettes.reading import Cassette
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.views.diff.comparison import Comparison, Deviation

MODE = "reingest"
_EVERY = 200  # events, after which one is told how far it is


class Stopped(Exception):
    """Somebody took the work away, or called it off."""


def reingest(
    cassette: Cassette,
    store: FileStore,
    settings: Settings,
    *,
    target: str,
    run: str,
    named: dict[str, Any],
    going_on: Callable[[int, int], bool],
    forget: Callable[[str], object] = lambda run: None,
) -> dict[str, Any]:
    """Seal the payloads of a cassette anew, and say what came of it.

    `run` is the id of the new run, and `target` what it is called outside. `named` goes into the
    origin of the new run; `going_on` is told how far it is, and says whether to go on; `forget` is
    told of a run that was removed, so that no index takes what comes in its place for an altered one.
    """
    cassette.check()
    source = Run(cassette, cassette.header.run)
    reader = RunReader(cassette, source.id)
    total = cassette.header.runs[0].head.seq + 1
    if _remove_half(store, run, target, named):
        forget(run)
    written = _write(reader, store, settings, run, target, named, total, going_on)
    made = Run(store, run)
    verified = made.verify(deep=True)
    compared = diff(source, made)
    deviations = [_told(one) for one in compared.deviations]
    if compared.identical is None and not deviations:
        raise NotComparable("the two could not be compared")  # which is never told as no difference
    return {
        "run_id": target,
        "run": run,
        "mode": MODE,
        "executed": False,
        "span_count": written,
        "hash_valid": verified.integrity.verdict == "intact",
        "integrity": msgspec.to_builtins(verified.integrity),
        "completeness": msgspec.to_builtins(verified.completeness),
        "fidelity": _fidelity(compared, deviations),
        "diff": deviations,
        "source": {"run": source.id, "head": msgspec.to_builtins(cassette.header.runs[0].head)},
    }


def _remove_half(store: FileStore, run: str, target: str, named: dict[str, Any]) -> bool:
    """Remove what an earlier attempt at the same job left; anything else that has the id is somebody's run."""
    if not store.folder(run).exists():
        return False
    timeline = layout.timeline(store.folder(run))
    if not timeline.exists() or next(RunReader(store, run).lines(), None) is None:
        store.delete(run)  # half of a run is none
        return True
    try:
        origin = Run(store, run).event(0).data.get("origin") or {}
    except PlayheadError:
        origin = {}
    if origin.get("job") != named.get("job"):
        raise Conflict(f"there is a run {target} already")
    store.delete(run)
    return True


def _write(
    reader: RunReader,
    store: FileStore,
    settings: Settings,
    run: str,
    target: str,
    named: dict[str, Any],
    total: int,
    going_on: Callable[[int, int], bool],
) -> int:
    """Write every event anew, up to the head of the cassette, and return how many spans there were."""
    origin, gate = {"mode": MODE, "run": reader.id, **named}, Gate(shared_redactor(settings))
    if is_received(reader):
        taken = _taken_again(
            reader, store, gate, run, target, origin, lambda done, of: going_on(done * total // max(of, 1), total)
        )
        going_on(total, total)
        return taken
    ledger = store.ledger(run, create=True)
    writer = RunWriter(store, ledger, gate)
    spans = 0
    try:
        for number, event in enumerate(reader.resolved()):
            if number >= total:
                break
            if number % _EVERY == 0 and not going_on(number, total):
                raise Stopped
            data = dict(event.data)
            if event.kind == "run.started":
                data |= {"origin": origin, "external_id": None if target == run else target}
                data["sdk"] = {"name": "playhead", "version": __version__}
                writer.base_us = parse_utc(event.time) - event.elapsed_us
                _copy_packs(reader.store, reader.id, store, run)
            elif event.kind == "artifact.created":
                _copy_artifact(reader.store, reader.id, store, run, data)
            spans += event.kind in CALLS or event.kind == "step.started"
            ends = event.kind == "run.finished"
            if ends:
                data = {name: value for name, value in data.items() if name not in ("events", "root")}
            try:
                writer.seal_again(event, data, totals=ends)
            except RecursionError:
                raise BadCassette(f"event {event.seq} holds more within each other than can be sealed") from None
        ledger.sync()
    except BaseException:
        ledger.close()
        store.delete(run)
        raise
    ledger.close()
    going_on(total, total)
    return spans


def _taken_again(
    reader: RunReader,
    store: FileStore,
    gate: Gate,
    run: str,
    target: str,
    origin: dict[str, Any],
    going_on: Callable[[int, int], bool],
) -> int:
    """Take spans in as they came, like those of any exporter."""
    try:
        taken = take_again(reader, store, gate, run, origin=origin, external_id=target, going_on=going_on)
        if taken is None:
            raise Stopped
    except BaseException:
        if store.folder(run).exists():
            store.delete(run)
        raise
    return taken


def _copy_packs(source: Store, of: str, store: FileStore, run: str) -> None:
    """Take over the policy and the last context pack, whose digests the events name."""
    for name in (layout.POLICY_SNAPSHOT, layout.CONTEXT_PACK):
        with contextlib.suppress(MissingContent):  # it had none
            store.put_file(run, name, source.file(of, name))


def _copy_artifact(source: Store, of: str, store: FileStore, run: str, data: dict[str, Any]) -> None:
    name = str(data.get("name"))
    data["name"] = store.put_file(run, f"artifacts/{name}", source.file(of, f"artifacts/{name}")).removeprefix(
        "artifacts/"
    )


def _fidelity(compared: Comparison, deviations: list[dict[str, Any]]) -> dict[str, Any]:
    if not deviations and compared.identical:
        return {"verdict": "faithful", "claim": "faithful over the recorded surface", "first": None, "count": 0}
    if not deviations:
        return {"verdict": "not_compared", "first": None, "count": 0}
    return {"verdict": "deviated", "first": deviations[0], "count": len(deviations)}


def _told(one: Deviation) -> dict[str, Any]:
    """Return a deviation with the names that Span Chain has for parts of it, too."""
    found = one.as_dict()
    first = (found.get("changes") or [{}])[0]
    return {**found, "span_name": found.get("name"), "val_a": first.get("left"), "val_b": first.get("right")}
