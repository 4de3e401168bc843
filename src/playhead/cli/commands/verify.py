"""Check runs: is each line what was sealed, and is all of it there?"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from playhead._api.reading import Run, open_index, open_store
from playhead._api.verifying import verify_all
from playhead._ids import is_run_id
from playhead.cli.altered import explained
from playhead.cli.arguments import add_run
from playhead.cli.output import Output
from playhead.cli.verdicts import completeness, fidelity
from playhead.errors import BadCassette, RunNotFound, UsageError
from playhead.ledger.verify import Completeness, Integrity, Verification
from playhead.replay.readiness import verify_run
from playhead.store import layout
from playhead.store.cassettes.reading import Cassette
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.store.remote.reading import RemoteStore
from playhead.views.text import several

Judged = tuple[Verification, Run | None]  # what was found, and the run, where there is one to read

_BAD = {"deviated": 3, "broken": 1, "missing": 1, "unfinished": 3, "unattested": 3, "not_judged": 3}
_OF_THE_INDEX = ("cut_tail", "rewritten")  # reasons that nothing but its memory shows
_FORGET = "If you know why, such as a backup that was put back: `playhead reindex --forget` takes the runs as they are."


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser, "runs", nargs="*")
    parser.add_argument("--all", action="store_true", help="every run of the store")
    parser.add_argument("--deep", action="store_true", help="also recompute the root that run.finished declares")
    parser.epilog = (
        "Exit code: 0 intact and complete, 1 broken or missing, 3 unfinished or unattested.\n\n"
        "examples:\n"
        "  playhead verify @last\n"
        "  playhead verify downloads/run_01jqk3…/      a run directory anywhere, also a damaged one\n"
        "  playhead verify runs.jsonl                  each run of a file that `export` wrote\n"
        "  playhead verify fix-login.cassette          each run of a cassette, and what else it holds\n"
        "  playhead verify --all --json | jq .store"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if bool(args.runs) == args.all:
        raise UsageError("name one or more runs, or --all", hint="For instance `playhead verify @last`.")
    store = open_store(args.store)
    if args.all and isinstance(store, FileStore) and not store.root.is_dir():
        raise UsageError(f"there is no store at {store.root}", hint="`--store DIR` names another one.")
    judged = (
        _verify_all(store, args.deep, out) if args.all else [one for name in args.runs for one in _named(name, args)]
    )
    found = [one for one, _ in judged]
    compared = [None if args.all or recorded is None else _compared(recorded) for _, recorded in judged]
    documents = [
        {**msgspec.to_builtins(one), "fidelity": replayed or {"verdict": "not_compared"}}
        for one, replayed in zip(found, compared, strict=True)
    ]
    if out.json:
        several_runs = {"runs": documents, "store": _store(store, found)} if args.all else {"runs": documents}
        out.emit(documents[0] if len(documents) == len(args.runs) == 1 else several_runs)
    elif args.all:
        _print_all(store, judged, out)
    else:
        for (one, recorded), replayed in zip(judged, compared, strict=True):
            _print(one, recorded, replayed, out)
    return exit_code(found)


def _compared(recorded: Run) -> dict[str, Any] | None:
    from playhead.replay.judged import fidelity_of  # here: most runs are no replays

    return fidelity_of(RunReader(recorded.store, recorded.id))


def exit_code(found: list[Verification]) -> int:
    """Return 1 where any run is broken or missing, 3 where any cannot be judged, else 0."""
    codes = {_BAD.get(verdict, 0) for one in found for verdict in (one.integrity.verdict, one.completeness.verdict)}
    return 1 if 1 in codes else max(codes, default=0)


def _named(reference: str, args: argparse.Namespace) -> list[Judged]:
    """Verify the run that a reference names, or each of the runs of a file."""
    try:
        judged: list[Judged] = [*verify_all(reference, args.store, deep=args.deep)]
    except RunNotFound:
        left = _left_of(reference, open_store(args.store))
        if left is None:
            raise
        return [(_without_timeline(left), None)]
    except BadCassette as problem:
        if problem.detail is None:  # something else, or of a newer format: that cannot be judged
            raise
        return [(_unreadable(reference, problem.message, "bad_cassette"), None)]
    for found, one in judged:
        if exit_code([found]) and one is not None and one.path is not None and not one.path.exists():
            raise RunNotFound(f"{one.id} was removed while it was verified")
    return judged


def _verify_all(store: FileStore | RemoteStore, deep: bool, out: Output) -> list[Judged]:
    found: list[Judged] = []
    with open_index(store) as index:
        heads = index.heads()
        ids = list(store.runs())
        with out.progress(len(ids), "verifying") as advance:
            for id in ids:
                found += _verify_one(store, id, heads.get(id), deep)
                advance(1)
        # What the index remembers and the disk does not have was removed behind Playhead's back. The index is asked
        # once more, since a run may have been pruned meanwhile.
        if any(not _is_there(store, id) for id in heads):
            now = index.heads()
            gone = [id for id in heads if id in now and not _is_there(store, id)]
            found += [(_gone(id, heads[id][0]), None) for id in gone]
    return found


def _verify_one(store: FileStore | RemoteStore, id: str, head: tuple[int, str] | None, deep: bool) -> list[Judged]:
    """Verify one run; nothing where its directory is not there, or no longer: what was read of it is no run then."""
    try:
        judged: Judged = verify_run(RunReader(store, id), known_head=head, deep=deep), Run(store, id)
    except RunNotFound:
        judged = _without_timeline(id, known=head is not None), None
    return [judged] if exit_code([judged[0]]) == 0 or _is_there(store, id) else []


def _is_there(store: FileStore | RemoteStore, id: str) -> bool:
    """Say whether a run has a directory, with or without a timeline."""
    if isinstance(store, FileStore):
        return store.folder(id).exists()
    try:
        return bool(store.standing(id))
    except RunNotFound:
        return False


def _left_of(reference: str, store: FileStore | RemoteStore) -> str | None:
    """Return the id of a run of which only a directory without a timeline is left."""
    folders = [Path(reference)]
    if isinstance(store, FileStore):
        folders.append(store.folder(reference))
    elif is_run_id(reference) and _is_there(store, reference):
        return reference
    return next((folder.absolute().name for folder in folders if layout.looks_like_a_run(folder)), None)


def _without_timeline(id: str, known: bool = True) -> Verification:
    """Judge a run directory without a timeline: it was removed, or its process died before the first event."""
    if known:
        return _unreadable(id, "the run directory has no timeline")
    why = "the process ended before the first event was written"
    completeness = Completeness(verdict="unfinished", detail=why)
    return Verification(run=id, level="open tail", integrity=Integrity(), completeness=completeness)


def _gone(id: str, head_seq: int) -> Verification:
    events = several(head_seq + 1, "event")
    told = f"the run directory is gone; the index remembers {events} (`playhead reindex --forget` forgets them)"
    return _unreadable(id, told)


def _unreadable(id: str, message: str, reason: str = "removed") -> Verification:
    return Verification(
        run=id,
        level="broken",
        integrity=Integrity(verdict="broken", at=0, reason=reason, message=message),
        completeness=Completeness(verdict="missing", detail=message),
    )


def _store(store: FileStore | RemoteStore, found: list[Verification]) -> dict[str, Any]:
    return {
        "path": str(store.root),
        "format": store.version(),
        "runs": len(found),
        "integrity": dict(Counter(one.integrity.verdict for one in found)),
        "completeness": dict(Counter(one.completeness.verdict for one in found)),
        "levels": dict(Counter(one.level for one in found)),
    }


def _print(one: Verification, recorded: Run | None, replayed: dict[str, Any] | None, out: Output) -> None:
    good = exit_code([one]) == 0
    out.styled(one.run, "  ", (one.level, "green" if good else "red" if exit_code([one]) == 1 else "yellow"))
    integrity = one.integrity
    what = (
        explained(integrity, recorded) or f"{several(one.events, 'event')}, each sealed and chained to the one before"
    )
    if integrity.verdict == "broken":
        what = f"{integrity.reason}: {what}"
    if one.root_checked and integrity.verdict == "intact":
        what += "; the declared root was recomputed"
    _claim(out, "integrity", integrity.verdict, what)
    _claim(out, "completeness", *completeness(one))
    _claim(out, "fidelity", *fidelity(replayed))
    if 0 < one.open_tail < one.events:
        out.print(f"  {several(one.open_tail, 'event')} came after run.finished")
    in_store = recorded is None or not isinstance(recorded.store, Cassette)
    if integrity.reason in _OF_THE_INDEX and in_store:
        out.wrapped(["  "], _FORGET)


def _claim(out: Output, name: str, verdict: str, told: str) -> None:
    style = {0: "green", 1: "bold red", 3: "yellow"}[_BAD.get(verdict, 0)] if verdict != "not_compared" else "dim"
    out.wrapped([f"  {name:<13}", (f"{verdict.replace('_', ' '):<13}", style)], told)


def _print_all(store: FileStore | RemoteStore, judged: list[Judged], out: Output) -> None:
    found = [one for one, _ in judged]
    if not found:
        out.print(f"No runs in {store.root}.")
        return
    styles = {0: "green", 1: "bold red", 3: "yellow"}
    rows = []
    for one, recorded in judged:
        what = explained(one.integrity, recorded) if one.integrity.verdict == "broken" else one.completeness.detail
        style, complete = styles[exit_code([one])], completeness(one)[0].replace("_", " ")
        rows.append((one.run, one.events, (one.integrity.verdict, style), (complete, style), what))
    out.table(
        ("run", "events", "integrity", "completeness", "detail"),
        rows,
        right=("events",),
        whole=("run", "events", "integrity", "completeness"),
        drop=("events",),
        below="detail",
    )
    counts = Counter(exit_code([one]) for one in found)
    out.print()
    told = f"{counts[0]} intact and complete, {counts[1]} broken or missing, {counts[3]} unfinished or unattested"
    out.wrapped([f"{several(len(found), 'run')}: "], told)
    if any(one.integrity.reason in _OF_THE_INDEX for one in found):
        out.wrapped([""], _FORGET)
