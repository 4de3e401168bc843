"""List runs, newest first, from the index alone: no timeline is read, and little is imported."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playhead import _limits
from playhead._api.listing import list_runs, told
from playhead._clock import SystemClock
from playhead._ids import is_run_id
from playhead.cli.arguments import store_place
from playhead.cli.filters import add_filters, chosen, say_none, words
from playhead.cli.output import Output
from playhead.cli.quick_index import SHORT_ID_CHARACTERS, open_quick_index, with_short_ids
from playhead.errors import UsageError
from playhead.store.index_questions import Questions
from playhead.views import prices, text

if TYPE_CHECKING:
    from playhead.store.remote.address import Address

STYLES = {"ok": "green", "error": "red", "crashed": "bold red", "cancelled": "yellow", "running": "cyan"}

_DROPPED = ("cost", "events", "tools", "models", "tokens", "started", "took")  # on a narrow terminal, in this order
_LOOK_S = 0.2  # of reading, until the progress is shown again


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("text", nargs="?", metavar="TEXT", help="only runs whose name holds this text")
    add_filters(parser)
    parser.add_argument("--text", metavar="QUERY", dest="query",
                        help="only runs with an event that holds these words: 'refund failed', '\"could not refund\"', "
                        "'refund* -test'")  # fmt: skip
    parser.add_argument("-n", "--limit", type=int, default=_limits.LIST_RUNS_DEFAULT, metavar="N",
                        help="at most so many; 0 for all (%(default)s)")  # fmt: skip
    parser.add_argument("--before", metavar="RUN", help="only runs older than this one: the next page")
    parser.epilog = (
        "A name after an arrow is that of a child: a run that a program of another run made; after a ring (↻) that of\n"
        "a replay.\n\n"
        "examples:\n"
        "  playhead ls --status error --since 2h\n"
        "  playhead ls --name fix-login --tag team=search\n"
        "  playhead ls --error --text '\"could not refund\"'\n"
        "  playhead ls --json | jq '.[] | select(.replayable) | .id'"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    root = store_place(args.store)
    if not 0 <= args.limit <= _limits.LIST_RUNS_MAX:
        raise UsageError("--limit is a number of runs, 0 for all")
    ids = None if args.query is None else _holding(root, args.query, out)
    with open_quick_index(root) as index:
        runs = list_runs(
            index,
            limit=args.limit or -1,
            before=None if args.before is None else _full_id(args.before, args.store),
            text=args.text,
            ids=ids,
            **chosen(args),
        )
        if out.json:
            out.emit([told(found) for found in runs])
            return 0
        if not runs:
            say_none(root, index, out)
            return 0
        neighbours = _neighbours(index, runs)
    _print(runs, neighbours, out)
    if args.limit and len(runs) == args.limit:
        older = f"Older ones: playhead ls {_same_question(args)}--before {runs[-1]['id']}"
        out.print(f"\n{with_short_ids(root, older) if out.terminal and text.cells(older) > out.width else older}")
    return 0


def _holding(root: Path | Address, query: str, out: Output) -> list[str]:
    """Return the runs with an event that holds what is looked for, after reading what is new."""
    if not isinstance(root, Path):
        from playhead.store.remote.reading import RemoteStore
        from playhead.store.remote.searching import runs_with

        return runs_with(RemoteStore(root).connection, query)
    from playhead.store.search import TextIndex
    from playhead.store.search_words import read

    read(query)  # what cannot be asked is said before the runs are read
    with out.progress(None, "reading what runs say") as advance, TextIndex(root) as texts:
        while not texts.catch_up(_LOOK_S):
            advance(1)
        return texts.runs_with(query)


def _same_question(args: argparse.Namespace) -> str:
    """Repeat the filters, so that the next page belongs to the same list."""
    typed = [*([args.text] if args.text else []), *words(args)]
    if args.query is not None:
        typed += ["--text", args.query]
    if args.store is not None:
        typed += ["--store", args.store]
    if args.limit != _limits.LIST_RUNS_DEFAULT:
        typed += ["--limit", str(args.limit)]
    return "".join(shlex.quote(word) + " " for word in typed)


def _print(runs: list[dict[str, Any]], neighbours: dict[str, tuple[str | None, str | None]], out: Output) -> None:
    now_us = SystemClock().wall_us()
    columns: tuple[str, ...] = (
        "run",
        "name",
        "status",
        "started",
        "took",
        "events",
        "models",
        "tools",
        "tokens",
        "cost",
    )
    rows = [
        [
            (text.unique_prefix(run["id"], neighbours.get(run["id"], ()), SHORT_ID_CHARACTERS), "cyan"),
            text.cut(_name(run, out), _limits.CELL_CHARACTERS_MAX),
            (run["status"], STYLES[run["status"]]),
            text.ago(run["started_us"], now_us),
            text.duration(_took_us(run, now_us)),
            text.number(run["events"]),
            text.number(run["model_calls"]),
            text.number(run["tool_calls"]),
            _tokens(run),
            _cost(run),
        ]
        for run in runs
    ]
    if not any(run["cost"] is not None or _is_unknown(run) for run in runs):
        columns, rows = columns[:-1], [row[:-1] for row in rows]
    whole = [column for column in columns if column != "name"]
    out.table(columns, rows, right=columns[3:], whole=whole, drop=_DROPPED, short="name")


def _name(run: dict[str, Any], out: Output) -> str:
    """Mark a run that a program of another run made, and one that replays another."""
    origin = run["origin"]
    child = isinstance(origin, dict) and origin.get("mode") == "child"
    mark = ("↳ ", "> ") if child else ("↻ ", "= ") if run["replay_of"] is not None else ("", "")
    return mark[0 if out.unicode else 1] + (run["name"] or "")


def _tokens(run: dict[str, Any]) -> str:
    """Say how many tokens a run used, and with a `+` that there are more of which nobody knows."""
    count = run["tokens_in"] + run["tokens_out"]
    if not run["calls_without_usage"]:
        return text.number(count)
    return f"{text.number(count)}+" if count else "?"


def _cost(run: dict[str, Any]) -> str:
    """Say what a run cost, and with a `+` that there is more of which nobody knows."""
    known = "" if run["cost"] is None else prices.money(run["cost"])
    return known + ("+" if known else "?") if _is_unknown(run) else known


def _is_unknown(run: dict[str, Any]) -> bool:
    """Say whether there is something of which nobody knows what it cost."""
    return bool(run["cost_unpriced"] or run["calls_without_usage"])


def _took_us(run: dict[str, Any], now_us: int) -> int | None:
    """Return how long a run took; one that is running has been since its start, whether or not it says something."""
    if run["status"] == "running" and run["started_us"] is not None:
        return max(0, now_us - int(run["started_us"]))
    took: int | None = run["duration_us"]
    return took


def _neighbours(index: Questions, runs: list[dict[str, Any]]) -> dict[str, tuple[str | None, str | None]]:
    """Return the ids before and after each one in the whole store: what a short id must differ from."""
    marks = ",".join("?" * min(len(runs), 500))
    out: dict[str, tuple[str | None, str | None]] = {}
    ids = [found["id"] for found in runs]
    sql = (
        "SELECT r.id, (SELECT max(id) FROM runs WHERE id < r.id), (SELECT min(id) FROM runs WHERE id > r.id)"
        f" FROM runs r WHERE r.id IN ({marks})"
    )
    for start in range(0, len(ids), 500):
        page = ids[start : start + 500]
        page += [page[0]] * (min(len(ids), 500) - len(page))
        out.update({row[0]: (row[1], row[2]) for row in index.query(sql, page)[1]})
    return out


def _full_id(reference: str, store: str | None) -> str:
    if is_run_id(reference):
        return reference
    from playhead._api.reading import load

    return load(reference, store).id
