"""Turn what is particular to runs that came from outside into rows: their traces, and spans that were told anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from playhead.store.index_values import CLOSED_BY, Line, mapping, text

if TYPE_CHECKING:
    from playhead.store.index_rows import Rows

# What a run has in sum, from its rows: after a span was told anew, what it had counted before is wrong.
SUMS = (
    "SELECT coalesce(sum(kind = 'model'), 0), coalesce(sum(kind = 'tool'), 0), coalesce(sum(tokens_in), 0),"
    " coalesce(sum(tokens_out), 0), coalesce(sum(tokens_cached), 0), coalesce(sum(tokens_reasoning), 0), sum(cost),"
    " (SELECT count(*) FROM steps WHERE run = ?1) FROM calls WHERE run = ?1"
)
SUMMED = (
    "model_calls", "tool_calls", "tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning", "cost", "steps",
)  # fmt: skip


def note_trace(rows: Rows, line: Line, trace: Any) -> None:
    """Note that a trace is in the run."""
    if type(trace) is str:
        rows.pending["traces"].append((trace, rows.run["id"], line["seq"]))


def revise(rows: Rows, line: Line, data: dict[str, Any]) -> None:
    """Put what a span is now in the place of what it was."""
    opens, elapsed, span, seq = data.get("opens"), data.get("elapsed_us"), line.get("span"), line["seq"]
    closes = CLOSED_BY.get(opens) if type(opens) is str else None
    if closes is None or span is None or type(elapsed) is not list or [type(at) for at in elapsed] != [int, int]:
        return
    opened, closed = mapping(data.get("opened")), mapping(data.get("closed"))
    rows.take({**line, "kind": opens, "elapsed_us": elapsed[0]}, opened)
    rows.take({**line, "kind": closes, "elapsed_us": elapsed[1], "bound": seq + 1}, closed)
    run = rows.run["id"]
    rows.pending["calls superseded"].append((run, span, seq))
    rows.pending["steps superseded"].append((run, span, seq))
    rows.revised = True
    note_trace(rows, line, text(mapping(closed.get("otlp")).get("trace")))
