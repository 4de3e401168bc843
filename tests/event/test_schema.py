from __future__ import annotations

import copy
import datetime as dt
import decimal
import json
from typing import Any

import jsonschema
import pytest

import playhead
from playhead.event.envelope import FIELDS
from playhead.event.kinds import PAYLOADS
from playhead.event.plain import MARKS
from playhead.event.schema import _MARK_FORMS, schema
from playhead.store.memory import MemoryStore


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    document = schema()
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


@pytest.fixture(scope="module")
def lines() -> list[dict[str, Any]]:
    """Return real lines: every sort of value, references, a blob, a redacted secret, and all that a recorder writes."""
    store = MemoryStore()
    cycle: list[Any] = []
    cycle.append(cycle)

    class Opaque:
        pass

    strange = {
        "bytes": b"\x00", "surrogate": "\ud800", "nan": float("nan"), "big": 2**80, "set": {1, 2}, "tuple": (1, "a"),
        "when": dt.datetime(2026, 1, 1, tzinfo=dt.UTC), "money": decimal.Decimal("1.10"), "error": ValueError("x"),
        "cycle": cycle, "opaque": Opaque(), "keys": {1: "a", "$b": 2}, "large": "x" * 50_000, "none": None,
    }  # fmt: skip
    messages = [{"role": "user", "content": "Please fix the login. " * 30}]
    with playhead.record("sample", input={"strange": strange}, store=store, tags={"team": "search"}) as run:
        with playhead.step("plan", depth=2) as step:
            step.set_attributes(found=3)
            for _ in range(3):
                with playhead.model_call(provider="p", model="m", request={"messages": messages}) as call:
                    call.respond({"strange": strange}, usage={"input": 1, "output": 2}, finish="stop")
                messages = [*messages, {"role": "assistant", "content": "y" * 400}]
        with pytest.raises(ValueError, match="no"), playhead.step("failing"):
            raise ValueError("no")
        playhead.check("repo.write", resource="src/")
        playhead.artifact("patch.diff", "--- a", role="patch")
        playhead.note("n" * 300)
        playhead.note("n" * 300)
        playhead.context_pack({"files": []})
        run.record("review.requested", {"from": "ada"})
        run.output = strange
    return [json.loads(line) for line in store.lines(run.id)]


def test_every_real_line_is_valid(validator, lines):
    text = json.dumps(lines)
    for mark in ("$same", "$extends", "$blob", "$bytes", "$repr", "$dict", "$cycle"):
        assert f'"{mark}"' in text
    for line in lines:
        assert [error.message for error in validator.iter_errors(line)] == []


def test_every_kind_of_real_line_is_valid_under_its_own_schema(lines):
    for line in lines:
        if line["kind"] in PAYLOADS:
            jsonschema.Draft202012Validator(schema(line["kind"])).validate(line)


def test_the_thirteen_fields_are_there_in_order_and_required():
    document = schema()
    assert tuple(document["properties"]) == FIELDS
    assert tuple(document["required"]) == FIELDS


def test_every_kind_and_every_mark_is_described():
    document = schema()
    described = {case["if"]["properties"]["kind"]["const"] for case in document["allOf"]}
    assert described == set(PAYLOADS)
    assert set(_MARK_FORMS) == set(MARKS)
    for kind in PAYLOADS:
        jsonschema.Draft202012Validator.check_schema(schema(kind))


@pytest.mark.parametrize("field", FIELDS)
def test_a_line_without_a_field_is_not_valid(validator, lines, field):
    line = copy.deepcopy(lines[1])
    del line[field]
    assert not validator.is_valid(line)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("v", 2), ("seq", -1), ("time", "yesterday"), ("kind", "NotAKind"), ("lane", "a"), ("hash", "00"), ("data", []),
        ("span", 5), ("elapsed_us", "1"),
    ],
)  # fmt: skip
def test_a_field_of_the_wrong_form_is_not_valid(validator, lines, field, value):
    assert not validator.is_valid({**lines[1], field: value})


def test_a_payload_of_the_wrong_form_is_not_valid(validator, lines):
    step = next(line for line in lines if line["kind"] == "step.finished")
    assert not validator.is_valid({**step, "data": {"status": "perhaps"}})
    assert not validator.is_valid({**step, "data": {}})
    invoked = next(line for line in lines if line["kind"] == "model.invoked")
    assert not validator.is_valid({**invoked, "data": {"request": {"$nomark": 1}}})
    assert not validator.is_valid({**invoked, "data": {"request": {"$same": "not a reference"}}})


def test_more_fields_and_unknown_kinds_are_valid(validator, lines):
    line = next(line for line in lines if line["kind"] == "tool.called" or line["kind"] == "model.invoked")
    assert validator.is_valid({**line, "novelty": 1, "data": {**line["data"], "new": [1]}})
    assert validator.is_valid({**line, "kind": "weather.changed", "data": {"anything": 1}})
