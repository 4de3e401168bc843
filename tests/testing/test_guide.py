"""The page about testing names everything that there is."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest
from tests.docs_pages import ROOT

from playhead import testing
from playhead.testing.provider import main

PAGE = (ROOT / "docs" / "guides" / "testing.md").read_text("utf-8")
NAMED = set(re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", PAGE)))
KINDS = (
    testing.Embeddings, testing.Exchange, testing.Failure, testing.Raw, testing.ReceivedRequest, testing.Refusal,
    testing.Text, testing.ToolCall, testing.ToolCalls, testing.Usage, testing.Wire,
)  # fmt: skip


def test_every_public_name_is_in_the_guide() -> None:
    assert testing.__all__ == sorted(testing.__all__)
    missing = [name for name in testing.__all__ if name not in NAMED and name != "ScriptedProvider"]
    assert not missing
    assert "ScriptedProvider" in PAGE


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_field_is_in_the_guide(kind: Any) -> None:
    assert {field.name for field in fields(kind)} <= NAMED


def test_every_flag_of_the_process_is_in_the_guide(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    flags = set(re.findall(r"--[a-z]+", capsys.readouterr().out)) - {"--help"}
    assert flags
    assert flags <= NAMED
