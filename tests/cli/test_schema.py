from __future__ import annotations

from playhead.event.kinds import PAYLOADS


def test_the_schema_is_one_json_document(ask):
    document = ask("schema").json
    assert document["$schema"].endswith("2020-12/schema")
    assert len(document["allOf"]) == len(PAYLOADS)
    assert ask("schema", "--json").json == document


def test_one_kind_has_a_schema_of_its_own(ask):
    document = ask("schema", "--kind", "model.invoked").json
    assert document["properties"]["kind"] == {"const": "model.invoked"}
    assert "ModelInvoked" in document["$defs"]
    assert "ToolCalled" not in document["$defs"]


def test_an_unknown_kind_is_a_usage_error_that_lists_them(ask):
    said = ask("schema", "--kind", "model.guessed")
    assert said.code == 2
    assert "model.invoked" in said.err
