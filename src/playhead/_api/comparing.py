"""Compare: `playhead.diff("good", "bad").first`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from playhead import _limits
from playhead import settings as settings_module
from playhead._api.children import children_of
from playhead._api.collecting import no_collecting
from playhead._api.reading import Run, load
from playhead._api.settling import Settled
from playhead.errors import NotComparable, PlayheadError
from playhead.event.envelope import Event
from playhead.event.normalise import Normalisers
from playhead.store.files import OneRun
from playhead.store.price_list import PriceList
from playhead.store.reader import RunReader
from playhead.views.diff.children import Child, Started, paired
from playhead.views.diff.comparison import Comparison, compare
from playhead.views.diff.nodes import REPLAYS
from playhead.views.diff.source import Options, Recorded
from playhead.views.imported import standing

_NEAR = 8  # events: to read so many is quicker than to open a file
_ALONE = "the {side} run is in no store, where those would be that it started"


def diff(
    left: Run | str | Path, right: Run | str | Path, *, ignore: Sequence[str] = (), durations: bool = False
) -> Comparison:
    """Compare two runs: which differences there are, which came first, and what follows from what.

    `ignore` has JSON pointers of fields that are not compared, `*` for any name. NotComparable where a run cannot be
    read; that is never taken for no difference. The runs of Pythons that the two started are compared alike.
    """
    settings = settings_module.load()
    options = Options(
        ignore=(ignore,) if isinstance(ignore, str) else tuple(ignore),
        normalisers=Normalisers.of_settings(settings.normalise),
        durations=durations,
        prices=PriceList(settings.prices, settings.store_folder()),
    )
    ones = [one if isinstance(one, Run) else load(one) for one in (left, right)]
    return _compared(ones[0], ones[1], options, lambda: _children(ones[0], ones[1], options))


def _compared(left: Run, right: Run, options: Options, children: Callable[[], list[Child]] = list) -> Comparison:
    # One that is still written must not have grown by the time it is read a second time.
    live = left.id == right.id and left.status == "running"
    until = sum(1 for _ in left.lines()) if live else None
    ones = _recorded(left, until), _recorded(right, until)
    try:
        with no_collecting():
            return compare(*ones, options, children)
    except RecursionError:  # by a value that somebody else wrote: our own are cut before that
        raise NotComparable("a value in one of the runs is nested too deep to be compared") from None


def _children(left: Run, right: Run, options: Options) -> list[Child]:
    """Compare the runs of Pythons that the programs of two runs started, as many as that is worth."""
    runs = [{child.id: child for child in children_of(run)} for run in (left, right)]
    lefts, rights = ([_started(child) for child in found.values()] for found in runs)
    none = [_starts_none(run) for run in (left, right)] if lefts or rights else []
    alone = [
        _ALONE.format(side=side) * isinstance(run.store, OneRun) for side, run in (("left", left), ("right", right))
    ]
    found: list[Child] = []
    compared = 0
    for one, other in paired(lefts, rights):
        if one is not None and other is not None:
            if compared == _limits.DIFFERENCE_CHILDREN_MAX:
                found.append(Child(one.name, one.run, other.run, problem=f"only the first {compared} are compared"))
            else:
                compared += 1
                found.append(_child(one.name, runs[0][one.run], runs[1][other.run], options))
        elif one is not None and not none[1]:
            found.append(Child(one.name, one.run, None, problem=alone[1]))
        elif other is not None and not none[0]:
            found.append(Child(other.name, None, other.run, problem=alone[0]))
    return found


def _child(name: str, left: Run, right: Run, options: Options) -> Child:
    try:
        return Child(name, left.id, right.id, _compared(left, right, options))
    except PlayheadError as problem:
        return Child(name, left.id, right.id, problem=problem.message)


def _started(run: Run) -> Started:
    try:
        data = run.event(0).data
    except PlayheadError:
        data = {}  # which is told where it is compared
    entrypoint = data.get("entrypoint")
    argv = entrypoint.get("argv") if isinstance(entrypoint, dict) else None
    return Started(run.id, str(data.get("name") or ""), tuple(map(str, argv)) if isinstance(argv, list) else ())


def _starts_none(run: Run) -> bool:
    """Say whether no Python that it starts has a run: it is a replay, or that of an agent by itself."""
    data = run.event(0).data
    origin = data.get("origin")
    return data.get("agent") is not None or (isinstance(origin, dict) and origin.get("mode") in REPLAYS)


def _recorded(found: Run, until: int | None) -> Recorded:
    reader = RunReader(found.store, found.id)
    onward, settled = _Onward(reader), Settled(reader)

    def event(seq: int) -> Event:
        one = settled.event(seq) if settled.is_imported else onward.event(seq)
        return _with_content(found, one) if one.kind == "artifact.created" else one

    return Recorded(lambda: standing(islice(reader.events(), until), reader.readable), event, reader.value)


class _Onward:
    """Look up one event after the other: to go on from the last one is quicker than to find each by itself."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._at = 0
        self._lines: Iterator[bytes] = iter(())
        self._going_on = threading.Lock()  # several threads may ask one comparison

    def event(self, seq: int) -> Event:
        """Return an event, every value as it was."""
        with self._going_on:
            if not self._at <= seq < self._at + _NEAR:
                self._at, self._lines = seq, self._reader.lines_from(seq)
            for line in self._lines:
                self._at += 1
                if self._at > seq:
                    return self._reader.parsed(line)
        return self._reader.event(seq)  # which says what is wrong


def _with_content(run: Run, event: Event) -> Event:
    """Return an artifact with what it holds, where that is a text of which the difference can be read."""
    name, size = event.data.get("name"), event.data.get("size")
    if not isinstance(name, str) or not isinstance(size, int) or size > _limits.DIFFERENCE_ARTIFACT_BYTES_MAX:
        return event
    try:
        text = run.artifact(name).decode()
    except (PlayheadError, UnicodeDecodeError):
        return event  # gone, altered or no text: its digest says whether it differs
    data: dict[str, Any] = {**event.data, "content": text}
    return msgspec.structs.replace(event, data=data)
