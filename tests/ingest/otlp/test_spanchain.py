"""Spans of Span Chain: how they ended is in attributes, and the run is the instance of the service."""

from __future__ import annotations

from typing import Any

from tests.ingest.otlp.bodies import attributes, message, request

from playhead.ingest.otlp.decoding import read_traces
from playhead.ingest.otlp.facts import Facts, facts
from playhead.ingest.otlp.grouping import group_of


def sent(name: str, **said: Any) -> Facts:
    body = request(
        message(name=name, attributes=attributes({key.replace("__", "."): value for key, value in said.items()})),
        **{"service.instance.id": "run-otlp-test", "service.name": "ghostfactory-sdk-python"},
    )
    received = read_traces(body, "json")
    assert received.rejected == 0
    assert group_of(received.spans[0]) == ("instance", "run-otlp-test")
    return facts(received.spans[0])


def test_the_call_of_a_model() -> None:
    found = sent("llm_call", gen_ai__system="anthropic", gen_ai__request__model="claude-x", gen_ai__usage__input_tokens=128,
                 gen_ai__usage__output_tokens=64, gf__usage__cost_usd=0.003, status="ok")  # fmt: skip
    assert found.opens == "model.invoked"
    assert found.asked == {
        "provider": "anthropic",
        "model": "claude-x",
        "request": {"model": "claude-x"},
        "operation": "chat",
    }
    assert found.answered == {"status": "ok", "usage": {"input": 128, "output": 64}}


def test_a_failure_is_in_attributes() -> None:
    found = sent("decide", status="error", error="boom")
    assert found.answered == {"status": "error", "error": {"type": "error", "message": "boom"}}
    assert sent("decide", status="error").answered["error"] == {"type": "error", "message": ""}
    assert sent("decide", status="ok").answered == {"status": "ok"}


def test_agents_reasons_and_tasks_are_steps() -> None:
    found = sent(
        "task", gf__task__input="Fix it", gf__task__reason="too hard", gf__agent__model="claude-x", status="ok"
    )
    assert found.opens == "step.started"
    assert found.asked["attributes"] == {"input": "Fix it", "gf.task.reason": "too hard", "gf.agent.model": "claude-x"}
    assert found.question == ("task", {"input": "Fix it", "gf.task.reason": "too hard", "gf.agent.model": "claude-x"})
