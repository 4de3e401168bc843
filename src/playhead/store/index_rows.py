"""Turn the lines of a timeline into rows of the index.

What the next lines build on is kept in the run's own row and in `progress`, so that reading a timeline in pieces gives
the same rows as reading it at once. Lines come from files that anybody may have written: a line that is not one is
counted and skipped, a payload field of the wrong type becomes null or its JSON text, and nothing here raises.
The chain is not verified here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import orjson

from playhead._clock import moment_us
from playhead.errors import PlayheadError
from playhead.event.usage import is_silent, is_talk
from playhead.store import index_received, index_reports
from playhead.store.index_reads import Load, rows_of, whole
from playhead.store.index_values import (
    CALL_CLOSES,
    CALL_OPENS,
    EXACT_MAX,
    Line,
    count,
    error_text,
    mapping,
    money,
    orjson_text,
    read_line,
    text,
)

EnvelopeMatches = Callable[[dict[str, Any]], bool | None]
Row = tuple[Any, ...]

HASH_IN_TAIL = slice(9, 73)
TAIL_BYTES = 76  # of the last line read: `,"hash":"` and 64 digits and `"}` and the newline
_SUM_MAX = 2**63 - 1

_TREE_CHANGED = "files in the working tree: "  # as in event/kinds.py, which is too much to load for a list
_LEAVE_THE_TAPE = ("model", "step", "fork", "resume")  # replays that say at their end what they asked of the world
_CHANGED = ("files", "altered", "undone", "new", "gone")  # files, in the note that says what changed

# Every column of `runs`, with what it holds before the first line.
NEW_RUN: dict[str, Any] = {
    "id": None, "name": None, "status": "running", "started": None, "finished": None, "started_us": None,
    "duration_us": None, "events": 0, "model_calls": 0, "tool_calls": 0, "steps": 0, "artifacts": 0, "tokens_in": 0,
    "tokens_out": 0, "tokens_cached": 0, "tokens_reasoning": 0, "cost": None, "error": None, "origin": None,
    "replayable": 0, "reasons": "[]", "envelope_hash": None, "agent": None, "agent_version": None, "git_commit": None,
    "git_branch": None, "git_dirty": None, "git_root": None, "git_remote": None, "ci_provider": None,
    "ci_run_id": None, "external_id": None, "tags": "{}", "gaps": 0, "lost": 0, "bad_lines": 0, "head_seq": None,
    "head_hash": None, "bytes": 0, "received": None,
}  # fmt: skip
# The same for `progress`.
NEW_PROGRESS: dict[str, Any] = {
    "run": None, "tail": "", "held": 0, "first_elapsed_us": None, "last_elapsed_us": None, "ended": None,
    "ended_elapsed_us": None, "envelope_ok": None, "invalidated": 0,
}  # fmt: skip

# In this order: a row is there before it is closed.
INSERTS = {
    "events": "INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?,?)",
    "calls": "INSERT INTO calls (run, span, seq, parent, kind, name, provider, model, elapsed_us, key, effects,"
    " attempt, taped, silent) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
    "steps": "INSERT INTO steps (run, span, seq, parent, name, attempt, elapsed_us) VALUES (?,?,?,?,?,?,?)",
    # An opening line comes before the line that closes it; saying so makes any batch size give the same rows.
    "calls closed": "UPDATE calls SET end_seq=?, latency_us=?-elapsed_us, status=?, error=?, code=?, tokens_in=?,"
    " tokens_out=?, tokens_cached=?, tokens_reasoning=?, cost=?, silent=min(silent, ?),"
    " model=coalesce(nullif(?, ''), model), name=coalesce(name, ?)"
    " WHERE run=? AND span=? AND kind=? AND end_seq IS NULL AND seq<?",
    "steps closed": "UPDATE steps SET end_seq=?, duration_us=?-elapsed_us, status=?, error=?"
    " WHERE run=? AND span=? AND end_seq IS NULL AND seq<?",
    # A replay that left its tape says what it asked of the world. The rest was told by the tape, but for what
    # those calls were a part of.
    "calls taped": "UPDATE calls SET taped=1 WHERE run=? AND taped IS NULL AND seq<?",
    "calls live": "UPDATE calls SET taped=0 WHERE run=? AND seq<? AND"
    " (span=? OR span=(SELECT parent FROM calls WHERE run=? AND span=? ORDER BY seq LIMIT 1))",
    # A span that was told anew has a later row, which takes the place of the earlier one.
    "calls superseded": "DELETE FROM calls WHERE run=? AND span=? AND seq<?",
    "steps superseded": "DELETE FROM steps WHERE run=? AND span=? AND seq<?",
    "traces": "INSERT OR IGNORE INTO traces VALUES (?,?,?)",
    "policy_checks": "INSERT INTO policy_checks VALUES (?,?,?,?,?,?,?,?)",
    "artifacts": "INSERT INTO artifacts VALUES (?,?,?,?,?,?,?)",
    "effects": "INSERT INTO effects VALUES (?,?,?,?,?,?)",
    "reads": "INSERT INTO reads VALUES (?,?,?,?,?,?,?,?,?)",
    "commits": "INSERT INTO commits VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?)",
    "ci_results": "INSERT INTO ci_results VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
}


class Rows:
    """Collect the rows of some lines of one run. `run` and `progress` are brought up to date in place."""

    def __init__(
        self,
        run: dict[str, Any],
        progress: dict[str, Any],
        envelope_matches: EnvelopeMatches | None,
        load: Load | None = None,
        resolve: Callable[[Any], Any] | None = None,
    ) -> None:
        self.run = run
        self.progress = progress
        self.pending: dict[str, list[Row]] = {name: [] for name in INSERTS}
        self.lines = 0
        self.revised = False  # a span was told anew: what was counted so far is wrong
        self._id: str = run["id"]
        self._envelope_matches = envelope_matches
        self._load = load
        self._resolve = resolve

    def add(self, raw: bytes | None, tail: bytes, length: int) -> None:
        """Take the next `length` bytes of the file: a whole line with its newline, or None for one too long to read."""
        run, offset = self.run, self.run["bytes"]
        self.lines += 1
        run["bytes"] = offset + length
        self.progress["tail"] = tail.decode("latin-1")
        after = -1 if run["head_seq"] is None else run["head_seq"]
        line = None if raw is None else read_line(raw, self._id, after)
        if line is None:
            run["bad_lines"] += 1
            return
        seq, kind, span, elapsed_us = line["seq"], line["kind"], line.get("span"), line["elapsed_us"]
        self.pending["events"].append(
            (self._id, seq, line["time"], elapsed_us, kind, span, line.get("parent"), line.get("lane"), line.get("key"),
             offset, length - 1)
        )  # fmt: skip
        run["events"] += 1
        # As it stands at the end of the line, and so also in `tail`: where these two differ, the index is damaged.
        run["head_seq"], run["head_hash"] = seq, self.progress["tail"][HASH_IN_TAIL]
        progress = self.progress
        if progress["first_elapsed_us"] is None:
            progress["first_elapsed_us"] = progress["last_elapsed_us"] = elapsed_us
            run["started"], run["started_us"] = line["time"], moment_us(line["time"])
        elif elapsed_us > progress["last_elapsed_us"]:
            progress["last_elapsed_us"] = elapsed_us
        elif (
            elapsed_us < progress["first_elapsed_us"]
        ):  # of a run that came from outside, what began first may come late
            progress["first_elapsed_us"] = elapsed_us
        self.take(line, line["data"])
        if self.run["received"] is not None and "otlp" in line["data"]:
            index_received.note_trace(self, line, mapping(line["data"]["otlp"]).get("trace"))

    def take(self, line: Line, data: dict[str, Any]) -> None:
        """Take over what an event says."""
        take = _TAKES.get(line["kind"])
        if take:
            take(self, line, data)

    def settle(self, held: bool) -> None:
        """Say what the run is now, from all lines so far and from whether a writer holds it."""
        run, progress = self.run, self.progress
        progress["held"] = int(held)
        ended = progress["ended"]
        run["status"] = ended or ("running" if held else "crashed")
        if progress["first_elapsed_us"] is not None:
            until = progress["ended_elapsed_us"] if ended else progress["last_elapsed_us"]
            run["duration_us"] = until - progress["first_elapsed_us"]
        reasons = [
            reason
            for reason, holds in (
                ("execution_incomplete", ended is None),
                ("recording_failure", run["gaps"] > 0),
                ("envelope_invalid", progress["envelope_ok"] == 0),
                ("manually_invalidated", progress["invalidated"] == 1),
            )
            if holds
        ]
        run["reasons"], run["replayable"] = orjson.dumps(reasons).decode(), int(not reasons)

    def _plus(self, field: str, amount: int | None) -> None:
        if amount:
            self.run[field] = min(self.run[field] + amount, _SUM_MAX)

    def _run_started(self, line: Line, data: dict[str, Any]) -> None:
        run, git, ci = self.run, mapping(data.get("git")), mapping(data.get("ci"))
        run["name"] = text(data.get("name"))
        run["origin"] = None if data.get("origin") is None else orjson_text(data["origin"])
        run["external_id"] = text(data.get("external_id"))
        received = mapping(data.get("received"))
        run["received"] = orjson_text(received) if received else None
        index_received.note_trace(self, line, received.get("trace"))
        run["tags"] = orjson_text(mapping(data.get("tags")))
        run["git_commit"], run["git_branch"] = text(git.get("commit")), text(git.get("branch"))
        run["git_root"], run["git_remote"] = text(git.get("root")), text(git.get("remote"))
        run["git_dirty"] = None if git.get("dirty") is None else int(bool(git["dirty"]))
        run["ci_provider"], run["ci_run_id"] = text(ci.get("provider")), text(ci.get("run_id"))
        run["agent"] = run["agent_version"] = run["envelope_hash"] = self.progress["envelope_ok"] = None
        self._asked(data)

    def _asked(self, data: dict[str, Any]) -> None:
        """Take over who was asked what: from run.started, or from the agent that adopted the run."""
        run, agent = self.run, mapping(data.get("agent"))
        if agent:
            run["agent"], run["agent_version"] = text(agent.get("name")), text(agent.get("version"))
        if data.get("envelope_hash") is None:
            return
        run["envelope_hash"] = text(data["envelope_hash"])
        if self._envelope_matches is not None:
            try:
                matches = self._envelope_matches(data)
            except PlayheadError:  # an envelope that cannot be read back does not match its hash
                matches = False
            self.progress["envelope_ok"] = None if matches is None else int(matches)

    def _run_finished(self, line: Line, data: dict[str, Any]) -> None:
        status = data.get("status")
        self.progress["ended"] = status if status in ("ok", "error", "cancelled") else "error"
        self.progress["ended_elapsed_us"] = line["elapsed_us"]
        self.run["finished"], self.run["error"] = line["time"], error_text(data.get("error"))

    def _run_reopened(self, line: Line, data: dict[str, Any]) -> None:
        self.progress["ended"] = self.progress["ended_elapsed_us"] = None
        self.run["finished"] = self.run["error"] = None

    def _run_invalidated(self, line: Line, data: dict[str, Any]) -> None:
        self.progress["invalidated"] = 1

    def _step_started(self, line: Line, data: dict[str, Any]) -> None:
        if data.get("adopts") is True:  # it is the run itself, and none of its steps
            if data.get("name") is not None:
                self.run["name"] = text(data["name"])
            if tags := mapping(data.get("tags")):
                self.run["tags"] = orjson_text({**orjson.loads(self.run["tags"]), **tags})
            self._asked(data)
            return
        self._plus("steps", 1)
        attempt = count(data.get("attempt"))
        self.pending["steps"].append(
            (self._id, line["span"], line["seq"], line.get("parent"), text(data.get("name")),
             1 if attempt is None else attempt, line["elapsed_us"])
        )  # fmt: skip

    def _step_finished(self, line: Line, data: dict[str, Any]) -> None:
        self.pending["steps closed"].append(
            (line["seq"], line["elapsed_us"], text(data.get("status")), error_text(data.get("error")),
             self._id, line["span"], line.get("bound", line["seq"]))
        )  # fmt: skip

    def _call_opened(self, line: Line, data: dict[str, Any]) -> None:
        kind = CALL_OPENS[line["kind"]]
        if kind in ("model", "tool"):
            self._plus(f"{kind}_calls", 1)
        model = text(data.get("model")) if kind == "model" else None
        effects = data.get("effects")
        self.pending["calls"].append(
            (self._id, line["span"], line["seq"], line.get("parent"), kind, _call_name(kind, data),
             text(data.get("provider")), model, line["elapsed_us"], line.get("key"),
             orjson_text(effects) if effects else None, count(data.get("attempt")) or 1,
             1 if _mode(self.run["origin"]) in ("exact", "reingest") else None,
             int(is_talk(data.get("operation"))) if kind == "model" else None)
        )  # fmt: skip

    def _call_closed(self, line: Line, data: dict[str, Any]) -> None:
        kind = CALL_CLOSES[line["kind"]]
        usage = mapping(data.get("usage")) if kind == "model" else {}
        tokens = [count(usage.get(field)) for field in ("input", "output", "cached", "reasoning")]
        for field, amount in zip(("tokens_in", "tokens_out", "tokens_cached", "tokens_reasoning"), tokens, strict=True):
            self._plus(field, amount)
        cost = money(data.get("cost")) if kind == "model" else None
        if cost is not None:
            self.run["cost"] = (self.run["cost"] or 0.0) + cost
        code = data.get("status") if kind == "http" else data.get("exit_code")
        code = code if type(code) is int and abs(code) <= EXACT_MAX else None
        model = text(data.get("model")) if kind == "model" else None
        counted = tokens[0] is not None or tokens[1] is not None
        silent = int(is_silent(data, counted)) if kind == "model" else None
        # What is inferred is written at one moment: nobody knows how long it took.
        ended_us = None if kind == "tool" and data.get("inferred") is True else line["elapsed_us"]
        self.pending["calls closed"].append(
            (line["seq"], ended_us, text(data.get("outcome" if kind == "http" else "status")),
             error_text(data.get("error")), code, *tokens, cost, silent, model, model,
             self._id, line["span"], kind, line.get("bound", line["seq"]))
        )  # fmt: skip

    def _span_revised(self, line: Line, data: dict[str, Any]) -> None:
        index_received.revise(self, line, data)

    def _replay_reported(self, line: Line, data: dict[str, Any]) -> None:
        if _mode(self.run["origin"]) not in _LEAVE_THE_TAPE:
            return
        self.pending["calls taped"].append((self._id, line["seq"]))
        live = whole(data.get("live_spans"), self._load)
        for span in live if type(live) is list else []:
            if type(span) is str:
                self.pending["calls live"].append((self._id, line["seq"], span, self._id, span))

    def _policy_checked(self, line: Line, data: dict[str, Any]) -> None:
        resource, reason = text(self._same(data.get("resource"))), text(self._same(data.get("reason")))
        capability, decision = text(data.get("capability")), text(data.get("decision"))
        rule, mode = text(data.get("rule", "none")), text(data.get("mode", "observe"))
        self.pending["policy_checks"].append(
            (self._id, line["seq"], capability, resource, decision, rule, reason, mode)
        )  # fmt: skip

    def _same(self, value: Any) -> Any:
        """Return a long text that stands in an earlier line in the place of what refers to it."""
        return value if self._resolve is None or "$same" not in mapping(value) else self._resolve(value)

    def _artifact_created(self, line: Line, data: dict[str, Any]) -> None:
        self._plus("artifacts", 1)
        fields = [text(data.get(field)) for field in ("name", "role", "media", "digest")]
        self.pending["artifacts"].append((self._id, line["seq"], *fields, count(data.get("size"))))

    def _effect_observed(self, line: Line, data: dict[str, Any]) -> None:
        detail = orjson_text(data["detail"]) if data.get("detail") else None
        row = (self._id, line["seq"], 0, text(data.get("what")), text(data.get("target")), detail)
        self.pending["effects"].append(row)
        if data.get("what") == "file.renamed" and type(data.get("detail")) is dict:  # both names were touched
            self.pending["effects"].append((*row[:2], 1, row[3], text(data["detail"].get("to")), detail))

    def _ambient_read(self, line: Line, data: dict[str, Any]) -> None:
        for item, row in enumerate(rows_of(data, self._load)):
            self.pending["reads"].append((self._id, line["seq"], item, *row))

    def _note_added(self, line: Line, data: dict[str, Any]) -> None:
        """Take the files that changed in the working tree; a list too large to stand in its line is passed over."""
        told, said = data.get("data"), data.get("text")
        if type(told) is dict and type(said) is str and said.startswith(_TREE_CHANGED):
            names = [name for key in _CHANGED if type(told.get(key)) is list for name in told[key]]
            for item, name in enumerate(names):
                self.pending["effects"].append((self._id, line["seq"], item, "file.changed", text(name), None))

    def _git_committed(self, line: Line, data: dict[str, Any]) -> None:
        self._report("commits", line, index_reports.commit(data, line["time"]))
        detail = orjson_text({"commit": data.get("commit")})
        for item, name in enumerate(index_reports.files_made(data)):
            self.pending["effects"].append((self._id, line["seq"], item, "file.committed", text(name), detail))

    def _ci_reported(self, line: Line, data: dict[str, Any]) -> None:
        self._report("ci_results", line, index_reports.result(data, line["time"]))

    def _report(self, table: str, line: Line, values: Row) -> None:
        self.pending[table].append(
            (self._id, line["seq"], *(value if count(value) is not None else text(value) for value in values))
        )

    def _gap_noted(self, line: Line, data: dict[str, Any]) -> None:
        if data.get("reason") in ("not_captured", "python_not_attached"):
            return  # never seen, and not lost: see event/kinds.py
        lost = count(data.get("count", 1))
        self._plus("gaps", 1)
        self._plus("lost", 1 if lost is None else lost)


@lru_cache(maxsize=64)
def _mode(origin: str | None) -> str | None:
    """Return how a run came from another one: exact, fork, child, …"""
    mode = None if origin is None else mapping(orjson.loads(origin)).get("mode")
    return mode if type(mode) is str else None


def _call_name(kind: str, data: dict[str, Any]) -> str | None:
    """Name a call so that calls of one sort have one name: no query of a URL, no arguments of a program."""
    if kind == "model":
        return text(data.get("model"))
    if kind == "http":
        url = (text(data.get("url")) or "").split("?")[0].split("#")[0]
        return f"{text(data.get('method')) or ''} {url}".strip()
    if kind == "process":
        argv = data.get("argv")
        first = text(argv[0]) if type(argv) is list and argv else text(argv)
        return next(iter((first or "").split()), first) if data.get("shell") is True else first
    return text(data.get("method" if kind == "mcp" else "name"))


_TAKES: dict[str, Callable[[Rows, Line, dict[str, Any]], None]] = {
    "run.started": Rows._run_started,
    "run.finished": Rows._run_finished,
    "run.reopened": Rows._run_reopened,
    "run.invalidated": Rows._run_invalidated,
    "step.started": Rows._step_started,
    "step.finished": Rows._step_finished,
    **dict.fromkeys(CALL_OPENS, Rows._call_opened),
    **dict.fromkeys(CALL_CLOSES, Rows._call_closed),
    "replay.reported": Rows._replay_reported,
    "span.revised": Rows._span_revised,
    "policy.checked": Rows._policy_checked,
    "artifact.created": Rows._artifact_created,
    "effect.observed": Rows._effect_observed,
    "ambient.read": Rows._ambient_read,
    "note.added": Rows._note_added,
    "git.committed": Rows._git_committed,
    "ci.reported": Rows._ci_reported,
    "gap.noted": Rows._gap_noted,
}
