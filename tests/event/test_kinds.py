"""Every kind of the design has a typed payload; what is unknown survives."""

from __future__ import annotations

from typing import Any

import msgspec
import orjson
import pytest

import playhead
from playhead.event import kinds
from playhead.event.envelope import KIND_FORM, parse

DESIGN = [
    "run.started",
    "run.finished",
    "run.invalidated",
    "run.reopened",
    "content.erased",
    "step.started",
    "step.finished",
    "model.invoked",
    "model.responded",
    "tool.called",
    "tool.returned",
    "mcp.requested",
    "mcp.answered",
    "mcp.notified",
    "http.sent",
    "http.received",
    "process.started",
    "process.exited",
    "output.written",
    "policy.checked",
    "artifact.created",
    "effect.observed",
    "ambient.read",
    "git.committed",
    "ci.reported",
    "note.added",
    "gap.noted",
    "replay.deviated",
    "replay.reported",
    "run.graded",
    "emitter.described",
    "log.emitted",
    "span.revised",
]

MAIN_FIELDS = {
    "run.started": "name input agent entrypoint environment git ci context_pack policy origin tags sdk external_id",
    "run.finished": "status output metadata error events root",
    "run.invalidated": "why by",
    "content.erased": "seq path why by",
    "step.started": "name attempt attributes",
    "step.finished": "status error attributes",
    "model.invoked": "provider model request",
    "model.responded": "response usage finish chunks error",
    "tool.called": "name input effects",
    "tool.returned": "output error",
    "mcp.requested": "method params server from_server",
    "mcp.answered": "status result error",
    "mcp.notified": "method params server from_server error",
    "http.sent": "method url body",
    "http.received": "status headers body",
    "process.started": "argv cwd stdin",
    "process.exited": "output exit_code",
    "output.written": "stream text",
    "policy.checked": "capability resource decision rule reason mode",
    "artifact.created": "name role media digest size",
    "git.committed": "commit files patch",
    "note.added": "text",
    "gap.noted": "reason count",
}


def test_every_kind_of_the_design_has_a_payload_and_no_other_has() -> None:
    assert sorted(kinds.PAYLOADS) == sorted(DESIGN)
    assert all(KIND_FORM.fullmatch(kind) for kind in DESIGN)


@pytest.mark.parametrize("kind", MAIN_FIELDS)
def test_a_payload_has_the_fields_that_the_design_names(kind: str) -> None:
    assert set(MAIN_FIELDS[kind].split()) <= {field.name for field in msgspec.structs.fields(kinds.PAYLOADS[kind])}


def test_opening_and_closing_kinds_are_paired() -> None:
    for opening, closing in kinds.OPENING_TO_CLOSING.items():
        assert kinds.phase(opening) == "opens"
        assert kinds.phase(closing) == "closes"
    opens = {kind for kind in DESIGN if kinds.phase(kind) == "opens"}
    assert opens == set(kinds.OPENING_TO_CLOSING)
    assert {kind for kind in DESIGN if kinds.phase(kind) == "closes"} == set(kinds.CLOSING)
    assert opens > kinds.CALLS
    assert kinds.phase("review.requested") == "point"


@pytest.mark.parametrize("kind", DESIGN)
def test_fields_of_a_newer_release_do_not_stop_an_older_one(kind: str) -> None:
    required: dict[str, Any] = {
        "name": "n", "type": "changed", "status": "ok", "outcome": "ok", "why": "w", "seq": 0, "path": "/", "method": "GET", "url": "u", "argv": [],
        "stream": "stdout", "text": "t", "capability": "c", "decision": "allow", "digest": "d", "size": 0, "what": "w", "target": "t",
        "commit": "c", "reason": "r", "verdict": "reproduced",
    }  # fmt: skip
    payload = kinds.PAYLOADS[kind]
    needed = {field.name for field in msgspec.structs.fields(payload) if field.required}
    data = {name: required[name] for name in needed}
    if kind == "http.received":
        data["status"] = 200
    read = msgspec.convert({**data, "colour_of_2031": {"deep": [1]}}, payload)
    for name, value in data.items():
        assert getattr(read, name) == value


def test_an_old_line_without_the_later_fields_is_still_of_its_type() -> None:
    for payload in kinds.PAYLOADS.values():
        for field in msgspec.structs.fields(payload):
            has_default = field.default is not msgspec.NODEFAULT or field.default_factory is not msgspec.NODEFAULT
            assert field.required is not has_default


def test_unknown_kinds_and_fields_survive_recording_reading_and_export() -> None:
    data = {"who": "me", "deep": {"$odd": [1, 1.0, True]}, "when": None}
    with playhead.record("agent") as run:
        run.record("review.requested", data)
        assert run.recording is not None
        run.recording.emit_fields("tool.called", {"name": "t", "from_the_future": [1, 2]})
    loaded = playhead.load(run.id)
    events = [event for event in loaded.events() if event.kind in ("review.requested", "tool.called")]
    assert events[0].data["deep"] == {"$dict": [["$odd", [1, 1.0, True]]]}
    assert events[1].data["from_the_future"] == [1, 2]
    assert [parse(line).data for line in loaded.lines()] == [event.data for event in loaded.events(resolve=False)]
    assert orjson.dumps(events[0].data["deep"]) == b'{"$dict":[["$odd",[1,1.0,true]]]}'
    assert loaded.verify().integrity.verdict == "intact"


@pytest.mark.parametrize(
    "kind", ["", "x", "X.y", "a.b.c", "a b.c", 'a".b', "a.b\n", "ä.b", "a." + "b" * 42, ".b", "a."]
)
def test_what_is_no_kind_is_refused(kind: str) -> None:
    with playhead.record("agent") as run, pytest.raises(playhead.PlayheadError):
        run.record(kind, {})
