"""Verify: check that runs are what was recorded."""

from __future__ import annotations

from pathlib import Path

from playhead._api.reading import Run, load, load_all
from playhead._api.stores import Named
from playhead.errors import PlayheadError
from playhead.ledger.verify import Integrity, Verification
from playhead.store.cassettes.reading import Cassette


def verify(run: Run | str | Path, *, deep: bool = False) -> Verification:
    """Check one run: `playhead.verify("@last").integrity.verdict`."""
    if isinstance(run, Run):
        return run.verify(deep=deep)
    if isinstance(load_all(run)[0].store, Cassette):
        return verify_all(run, deep=deep)[0][0]
    return load(run).verify(deep=deep)


def verify_all(reference: str | Path, store: Named = None, *, deep: bool = False) -> list[tuple[Verification, Run]]:
    """Check every run that a reference names; of a cassette also what no line tells of: header and contents."""
    judged = [(run.verify(deep=deep), run) for run in load_all(reference, store)]
    cassette = judged[0][1].store
    if isinstance(cassette, Cassette) and all(one.integrity.verdict == "intact" for one, _ in judged):
        try:
            cassette.check()
        except PlayheadError as problem:
            first = judged[0][0]
            if first.completeness.verdict != "missing":  # else that says it all
                first.level = "broken"
                first.integrity = Integrity(verdict="broken", at=0, reason="bad_cassette", message=problem.message)
    return judged
