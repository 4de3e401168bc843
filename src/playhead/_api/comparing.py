"""Compare: `playhead.diff("good", "bad").first`."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from playhead import _limits
from playhead import settings as settings_module
from playhead._api.children import children_of
from playhead._api.collecting import no_collecting
from playhead._api.reading import Run, load
from playhead.errors import PlayheadError
from playhead.event.envelope import Event
from playhead.event.normalise import Normalisers
from playhead.store.price_list import PriceList
from playhead.store.reader import RunReader
from playhead.views.diff.comparison import Comparison, compare
from playhead.views.diff.source import Options, Recorded


def diff(
    left: Run | str | Path, right: Run | str | Path, *, ignore: Sequence[str] = (), durations: bool = False
) -> Comparison:
    """Compare two runs: which differences there are, which came first, and what follows from what.

    `ignore` has JSON pointers of fields that are not compared, `*` for any name. NotComparable where a run cannot be
    read; that is never taken for no difference.
    """
    settings = settings_module.load()
    options = Options(
        ignore=tuple(ignore),
        normalisers=Normalisers.of_settings(settings.normalise),
        durations=durations,
        prices=PriceList(settings.prices, settings.store_root()),
    )
    ones = [one if isinstance(one, Run) else load(one) for one in (left, right)]
    # One that is still written must not have grown by the time it is read a second time.
    live = ones[0].id == ones[1].id and ones[0].status == "running"
    until = sum(1 for _ in ones[0].lines()) if live else None
    with no_collecting():
        return compare(_recorded(ones[0], until), _recorded(ones[1], until), options)


def _recorded(found: Run, until: int | None) -> Recorded:
    reader = RunReader(found.store, found.id)

    def event(seq: int) -> Event:
        one = reader.event(seq)
        return _with_content(found, one) if one.kind == "artifact.created" else one

    def children() -> list[str]:
        return [child.id for child in children_of(found)]

    return Recorded(lambda: islice(reader.events(), until), event, reader.value, children)


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
