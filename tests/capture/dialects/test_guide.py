"""The guide shows what is shipped."""

from __future__ import annotations

from tests.docs_pages import ROOT, blocks

from playhead.capture.dialects import DIALECTS, ollama

GUIDE = (ROOT / "docs" / "guides" / "dialects.md").read_text("utf-8")


def test_the_example_of_the_guide_is_the_file_that_is_shipped() -> None:
    shown = next(block.body for block in blocks(GUIDE) if block.language == "python")
    with open(ollama.__file__, encoding="utf-8") as source:
        assert shown == source.read()


def test_every_dialect_is_in_the_guide() -> None:
    assert [dialect.name for dialect in DIALECTS if f"`{dialect.name}`" not in GUIDE] == []
