"""Report: put together what is known of a run, or of two, for a page or a comment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib import resources
from pathlib import Path

import msgspec

from playhead import _limits
from playhead._api.auditing import audit_all
from playhead._api.children import children_told
from playhead._api.comparing import diff
from playhead._api.metrics import metrics_of_run
from playhead._api.reading import Run, load
from playhead._api.settling import Settled
from playhead._version import __version__
from playhead.errors import BrokenLine
from playhead.event.envelope import Event
from playhead.store import presence
from playhead.store.price_list import price_list_of
from playhead.store.reader import RunReader
from playhead.views.report import contract
from playhead.views.report.contents import contents_of
from playhead.views.report.contract import ReportedRun
from playhead.views.report.markdown import markdown_of
from playhead.views.report.page import page_of
from playhead.views.timeline import Timeline, window

_RESOLVED = ("request", "agent", "git", "ci", "environment", "origin", "tags", "error", "output", "metadata")


class Report(contract.Report):
    """A report, and the forms that it can be written in."""

    def html(self) -> str:
        """Return one page."""
        style, script = (
            resources.files("playhead.views.report").joinpath(name).read_text("utf-8")
            for name in ("page.css", "page.js")
        )
        return page_of(self, style, script)

    def markdown(self) -> str:
        """Return text for a pull request."""
        return markdown_of(self)


def report(
    left: Run | str | Path,
    right: Run | str | Path | None = None,
    *,
    events: int = _limits.REPORT_EVENTS_MAX,
    ignore: Sequence[str] = (),
) -> Report:
    """Put a report together: of one run, or of two and how they differ, but for the fields that are to be ignored.

    At most so many lines of each, 0 for all.
    """
    runs = [one if isinstance(one, Run) else load(one) for one in (left, right) if one is not None]
    compared = diff(*runs, ignore=ignore).as_dict() if len(runs) == 2 else None
    return Report(
        playhead=__version__,
        runs=[_reported(run, events) for run in runs],
        audit=audit_all(runs, together=False).as_dict(),  # a run and its baseline did nothing twice
        diff=compared,
    )


def _reported(run: Run, events: int) -> ReportedRun:
    from playhead.replay.judged import fidelity_of  # here: the command is asked for its help, too

    reader = RunReader(run.store, run.id)
    timeline = Timeline(reader.readable, price_list_of(run.store))
    timeline.take_all(_readable(reader))
    summary = timeline.finish()
    held = presence.is_written(run.store, run.id)
    about = {name: getattr(summary, name) for name in summary.__dataclass_fields__}
    about |= {name: reader.readable(about[name]) for name in _RESOLVED}
    about |= {"id": run.id, "status": summary.ended or ("running" if held else "crashed")}
    head, rows_left_out, tail = window(list(timeline.rows()), _limits.REPORT_ROWS_MAX)
    verified = run.verify()  # before the lines are read: there may be more of them meanwhile, and not less
    lines, left_out, at_end = window([line.decode("utf-8", "replace") for line in run.lines()], events)
    contents, contents_left_out = contents_of([*lines, *at_end], run.store.blob, _limits.REPORT_CONTENTS_BYTES_MAX)
    return ReportedRun(
        id=run.id,
        summary=about,
        timeline=[row.as_dict() for row in (*head, *tail)],
        rows_left_out=rows_left_out,
        verify=msgspec.to_builtins(verified) | {"fidelity": fidelity_of(reader) or {"verdict": "not_compared"}},
        metrics=metrics_of_run(reader, "model", running=held, events=_readable(reader)).as_dict(),
        lines=lines,
        lines_left_out=left_out,
        lines_at_end=at_end,
        contents=contents,
        contents_left_out=contents_left_out,
        artifacts_left_out=sum(row.kind == "artifact.created" for row in timeline.rows()),
        children=children_told(run),
    )


def _readable(reader: RunReader) -> Iterator[Event]:
    """Yield events up to the first line that cannot be read: which one that is, `verify` says on top of the page."""
    try:
        yield from Settled(reader).events()
    except BrokenLine:
        return
