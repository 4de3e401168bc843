"""Say what a run was, in one object."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Summary:
    """What a run was. `in_flight` lists spans that nothing closed, of a run that has ended too."""

    id: str = ""
    name: str = ""
    started: str = ""
    finished: str | None = None
    ended: str | None = None  # ok, error, cancelled; None while there is no run.finished
    duration_us: int = 0
    events: int = 0
    model_calls: int = 0
    model_failures: int = 0  # of them, by an error of the provider or on the way to it
    tool_calls: int = 0
    http_requests: int = 0
    steps: int = 0
    reads: int = 0  # of clocks, random numbers, variables, files
    tokens_in: int = 0
    tokens_out: int = 0
    calls_without_usage: int = 0  # calls of models that did not say their tokens: those are not in the sums
    cost: float | None = None  # estimated, in US dollars
    cost_unpriced: list[str] = field(default_factory=list)  # models whose calls are not in it
    models: list[str] = field(default_factory=list)
    lanes: list[str] = field(default_factory=list)
    request: Any = None
    agent: Any = None
    git: Any = None
    ci: Any = None
    environment: Any = None
    origin: Any = None
    tags: Any = None
    ambient: Any = None  # whether clocks, variables and files were watched from the beginning; None where nobody says
    external_id: Any = None  # under which it came from outside
    received: Any = None  # of a run that a server took in: by what, the rule by which its spans are one run, the trace
    gaps: dict[str, int] = field(default_factory=dict)  # what was lost, by reason
    not_captured: list[str] = field(default_factory=list)  # what went on and was never seen; nothing is lost by it
    effects: dict[str, int] = field(default_factory=dict)  # what was done outside the process, by what it was
    files_changed: int = 0  # in the working tree, until the end: changed, new, undone and gone
    denied: list[dict[str, Any]] = field(default_factory=list)  # by a policy: capability, resource, enforced, times
    redacted: dict[str, int] = field(default_factory=dict)  # by rule
    redacted_at_least: list[str] = field(default_factory=list)  # rules of which nobody said how often: as events show
    invalidated: dict[str, Any] | None = None
    error: Any = None
    last_words: str | None = None  # the last line on stderr, where the error only says how the program ended
    wrote_stderr: bool = False  # the program that was recorded
    output: Any = None
    metadata: Any = None
    after: int = 0  # events after run.finished
    in_flight: list[dict[str, Any]] = field(default_factory=list)
    no_result: list[dict[str, Any]] = field(default_factory=list)  # tools that a model asked for: seq, name, arguments
