"""Read the runs that LangSmith exports, one JSON object each, as spans."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from typing import Any

import orjson

from playhead import _limits
from playhead.errors import BadImport
from playhead.ingest.otlp import contents
from playhead.ingest.otlp.spans import Emitter, Span

_HINT = "`Client().list_runs(…)` of LangSmith gives runs; write one as JSON per line, or all as one list."
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")
_FRACTION = re.compile(r"\.(\d+)")
# Fields that become something of their own; what else a run has stays in the attribute `langsmith.run`.
_TAKEN = frozenset({"id", "trace_id", "parent_run_id", "run_type", "name", "inputs", "outputs", "error", "start_time",
                    "end_time", "extra", "events"})  # fmt: skip
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def read_runs(data: bytes) -> list[Span]:
    """Read an export: a list of runs, an object with `runs`, or one run per line."""
    if len(data) > _limits.IMPORT_FILE_BYTES_MAX:
        raise BadImport(f"it has more than {_limits.IMPORT_FILE_BYTES_MAX:,} bytes")
    runs = _runs(data)
    emitter = Emitter({"attributes": {"service.name": "langsmith"}}, {"name": "langsmith"})
    spans = [_span(run, number, emitter) for number, run in enumerate(runs, 1)]
    if not spans:
        raise BadImport("there is no run of LangSmith in it", hint=_HINT)
    return spans


def _runs(data: bytes) -> list[Any]:
    try:
        document = orjson.loads(data)
    except orjson.JSONDecodeError as problem:
        lines = [line for line in data.splitlines() if line.strip()]
        if len(lines) < 2:
            raise BadImport(f"it is no JSON: {problem}", hint=_HINT) from None
        try:
            return [orjson.loads(line) for line in lines]
        except orjson.JSONDecodeError as worse:
            raise BadImport(f"it is no JSON, and one of its lines is none: {worse}", hint=_HINT) from None
    if isinstance(document, dict):
        inner = document.get("runs", [document])
        return inner if isinstance(inner, list) else [document]
    if not isinstance(document, list):
        raise BadImport("it is no list of runs", hint=_HINT)
    return document


def _span(run: Any, number: int, emitter: Emitter) -> Span:
    if not isinstance(run, dict) or not isinstance(run.get("id"), str) or "run_type" not in run:
        raise BadImport(f"number {number} in it is no run of LangSmith: it has no id, or no run_type", hint=_HINT)
    if contents.deeper(run, _limits.OTLP_DEPTH_MAX):
        raise BadImport(f"run {run['id'][:40]} has more than {_limits.OTLP_DEPTH_MAX} lists and maps within each other")
    parent = run.get("parent_run_id")
    trace = run.get("trace_id") or run["id"]
    start = _ns(run.get("start_time"))
    error = run.get("error")
    return Span(
        trace=_hex(str(trace), 32),
        span=_hex(run["id"], 16),
        parent=_hex(parent, 16) if isinstance(parent, str) and parent else None,
        name=run["name"] if isinstance(run.get("name"), str) else "",
        kind=1,
        start_ns=start,
        end_ns=_ns(run.get("end_time")) or start,
        attributes=_attributes(run),
        status_code=2 if error else 0,
        status_message=error if isinstance(error, str) else "",
        emitter=emitter,
    )


def _attributes(run: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "langsmith.span.id": run["id"],
        "langsmith.span.kind": run["run_type"],
    }
    for field, name in (("trace_id", "langsmith.trace.id"), ("parent_run_id", "langsmith.span.parent_id"),
                        ("name", "langsmith.trace.name"), ("inputs", "gen_ai.prompt"), ("outputs", "gen_ai.completion"),
                        ("events", "langsmith.span.events")):  # fmt: skip
        if (value := run.get(field)) is not None:
            found[name] = value
    if run.get("start_time") is not None:
        found["langsmith.span.start_time"] = run["start_time"]
    if run.get("end_time") is not None:
        found["langsmith.span.end_time"] = run["end_time"]
    if run.get("error") is not None and not isinstance(run["error"], str):
        found["langsmith.span.error"] = run["error"]
    extra = run.get("extra")
    if isinstance(extra, dict):
        metadata = extra.get("metadata")
        for key, value in metadata.items() if isinstance(metadata, dict) else ():
            found[f"langsmith.metadata.{key}"] = value
        for key, value in extra.items():
            if key == "invocation_params":
                found["langsmith.invocation_params"] = value
            elif key != "metadata" or not isinstance(metadata, dict):
                found[f"langsmith.extra.{key}"] = value
    elif extra is not None:
        found["langsmith.extra"] = extra
    for field, name in (
        ("prompt_tokens", "gen_ai.usage.input_tokens"),
        ("completion_tokens", "gen_ai.usage.output_tokens"),
    ):
        if type(run.get(field)) is int and run["run_type"] in ("llm", "embedding"):  # of others they are sums
            found[name] = run[field]
    rest = {name: value for name, value in run.items() if name not in _TAKEN and value is not None}
    if rest:
        found["langsmith.run"] = rest
    return found


def _hex(id: str, letters: int) -> str:
    """Return an id as OpenTelemetry has it. The end of a UUID is used: the beginning of newer ones is the time."""
    found = id.lower()
    digits = (
        found.replace("-", "") if _UUID.fullmatch(found) else hashlib.sha256(id.encode("utf-8", "replace")).hexdigest()
    )
    short = digits[-letters:]
    return short if short.strip("0") else hashlib.sha256(id.encode()).hexdigest()[:letters]


def _ns(time: Any) -> int:
    """Return nanoseconds since 1970 of a time, which is UTC where it names no zone."""
    if isinstance(time, bool) or time is None:
        return 0
    if isinstance(time, int | float):  # seconds, or milliseconds as the API of the web page has them
        seconds = time / 1000 if abs(time) > 1e11 else time
        return int(seconds * 1e9) if 0 <= seconds < 1e10 else 0
    try:
        moment = dt.datetime.fromisoformat(_FRACTION.sub(lambda found: "." + (found[1] + "000000")[:6], str(time)))
    except ValueError:
        return 0
    passed = (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)) - _EPOCH
    return max(0, (passed.days * 86_400 + passed.seconds) * 10**9 + passed.microseconds * 1000)
