"""Describe Span Chain: plain spans, with how they ended in attributes, and the run as the instance of the service."""

from __future__ import annotations

from playhead.ingest.otlp.conventions.base import Convention

CONVENTION = Convention(
    name="spanchain",
    title="Span Chain",
    attributes={
        "input": ("gf.task.input",),
        "agent": ("gf.agent.name",),
        "status": ("status",),
        "error": ("error",),
    },
)
