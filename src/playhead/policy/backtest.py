"""Ask a policy about a run that was recorded: what it would have denied."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from playhead.event.envelope import Event
from playhead.policy import resources
from playhead.policy.capabilities import needed
from playhead.policy.paths import Touch
from playhead.policy.rules import Decision, Rules, Spent, decide, decide_any


class Asked(NamedTuple):
    """What a run did that a policy has a say in."""

    seq: int
    capability: str
    names: list[str]  # of what it was done to; a host may have several
    touch: Touch | None = None  # of a file: what was done to the path


@dataclass
class Backtest:
    """What a policy says about one run."""

    run: str = ""
    asked: int = 0
    denied: list[dict[str, Any]] = field(default_factory=list)  # seq, capability, resource, decision, rule, reason


def asked_of(events: Sequence[Event]) -> Iterator[Asked]:
    """Yield what a run did that needs a capability, and what it was kept from doing."""
    requests = _Requests(events)
    for event in events:
        data = event.data
        if event.kind == "tool.called" and isinstance(data.get("name"), str):
            yield Asked(event.seq, "tool.call", [data["name"]])
        elif event.kind == "model.invoked":
            yield Asked(event.seq, "model.use", [f"{data.get('provider') or '?'}/{data.get('model') or '?'}"])
        elif event.kind == "policy.checked" and (data.get("by") != "policy" or data.get("decision") != "allow"):
            yield Asked(event.seq, str(data.get("capability")), [str(data.get("resource") or "")])
        elif event.kind == "effect.observed":
            what, target = str(data.get("what")), str(data.get("target"))
            names = requests.around(event) if what == "socket.connected" else []
            for need in needed(what, target, data.get("detail"), names):
                yield Asked(event.seq, need.capability, need.names, need.touch)
        if (url := _url(event)) is not None:
            yield Asked(event.seq, "net.connect", [str(resources.host_of(url))])


class _Requests:
    """Where the requests of a run went, by lane: a connection is recorded with its address alone."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._by_lane: dict[str, list[tuple[int, resources.Host]]] = {}
        for event in events:
            if (url := _url(event)) is not None:
                self._by_lane.setdefault(event.lane, []).append((event.seq, resources.host_of(url)))

    def around(self, event: Event) -> list[str]:
        """Return the hosts of the requests before and after a connection, where they have its port."""
        asked = self._by_lane.get(event.lane, [])
        port = resources.host_of(str(event.data.get("target"))).port
        at = bisect_left(asked, (event.seq,))
        return sorted({host.name for _, host in asked[max(0, at - 1) : at + 1] if host.port == port})


def _url(event: Event) -> str | None:
    """Return where a request went; None for anything else."""
    if event.kind == "http.sent":
        url = event.data.get("url")
    elif event.kind == "model.invoked" and isinstance(http := event.data.get("http"), dict):
        url = http.get("url")
    else:
        return None
    return url if isinstance(url, str) else None


def backtest(rules: Rules, run: str, events: Iterable[Event]) -> Backtest:
    """Say what a policy would have denied in a run.

    A connection is known by its address: it counts as one to the host that was asked next to it. Limits are held
    against what the run used, without its cost.
    """
    found = Backtest(run)
    spent = Spent()
    past: list[tuple[int, Spent]] = []
    events = list(events)
    for event in events:
        _spend(spent, event, events[0])
        past.append((event.seq, Spent(**vars(spent))))
    used = dict(past)
    for one in asked_of(events):
        found.asked += 1
        decision = decide(rules, one.capability, one.names[0], spent=used.get(one.seq), touch=one.touch)
        if len(one.names) > 1 and not decision.rule.startswith("limits."):
            decision = decide_any(rules, one.capability, one.names)
        if decision.decision != "allow":
            found.denied.append(_told(one, decision))
    return found


def _spend(spent: Spent, event: Event, first: Event) -> None:
    spent.model_calls += event.kind == "model.invoked"
    spent.tool_calls += event.kind == "tool.called"
    spent.seconds = max(0.0, (event.elapsed_us - first.elapsed_us) / 1e6)
    usage = event.data.get("usage") if event.kind == "model.responded" else None
    if isinstance(usage, dict):
        spent.tokens += sum(usage[name] for name in ("input", "output") if type(usage.get(name)) is int)


def _told(one: Asked, decision: Decision) -> dict[str, Any]:
    return {"seq": one.seq, "capability": one.capability, "resource": one.names[0], **decision._asdict()}
