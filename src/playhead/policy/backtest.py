"""Ask a policy about a run that was recorded: what it would have denied."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from playhead.event.envelope import Event
from playhead.event.plain import restore
from playhead.policy import hosts
from playhead.policy.capabilities import needed
from playhead.policy.paths import Touch
from playhead.policy.rules import KNOWN, Decision, Rules, Spent, decide, decide_any


class Asked(NamedTuple):
    """What a run did that a policy has a say in."""

    seq: int  # of the decision that was recorded about it; else its own
    capability: str
    names: list[str]  # of what it was done to; a host may have several
    touch: Touch | None = None  # of a file: its name is all that is known of it now
    decided: Decision | None = None  # what the policy of the run said


@dataclass
class Backtest:
    """What a policy says about one run."""

    run: str = ""
    asked: int = 0
    denied: list[dict[str, Any]] = field(default_factory=list)  # seq, capability, resource, decision, rule, reason


def _asked(event: Event, requests: _Requests, decided: _Decided) -> Iterator[Asked]:
    """Yield what an event says was done that needs a capability, or was kept from being done."""
    data = event.data
    if event.kind == "tool.called" and isinstance(data.get("name"), str):
        yield decided.about(event, "tool.call", [data["name"]])
    elif event.kind == "model.invoked":
        yield decided.about(event, "model.use", [f"{data.get('provider') or '?'}/{data.get('model') or '?'}"])
    elif event.kind == "effect.observed":
        what, target, detail = str(data.get("what")), _text(data.get("target")), restore(data.get("detail"))
        known = detail.get("names") if isinstance(detail, dict) and what == "socket.connected" else None
        near = requests.around(event) if what == "socket.connected" else []
        for need in needed(what, target, detail, map(str, known or ())):
            names = [*need.names, *(name for name in near if name not in need.names)]
            touch: Touch | None = need.touch and ("unknown" if need.touch == "unknown" else "recorded")
            yield decided.about(event, need.capability, names, touch)
    if (url := _url(event)) is not None:
        yield decided.about(event, "net.connect", [str(hosts.host_of(url))])


def _text(value: Any) -> str:
    """Return a name as the program has it, also where it is not UTF-8."""
    return str(restore(value))


def _is_told_by_another(checked: Mapping[str, Any]) -> bool:
    """Say whether what was decided about has an event of its own: what a policy let happen of what Playhead sees."""
    stopped = checked.get("decision") != "allow" and checked.get("mode") == "enforce"
    of_its_own = checked.get("by") == "policy" and checked.get("asked") != "agent"
    return of_its_own and checked.get("capability") in KNOWN and not stopped


class _Decided:
    """What the policy of a run decided about what it did: an audit and a timeline point to the decision."""

    def __init__(self) -> None:
        self._open: dict[tuple[str, str, str], list[Event]] = {}  # by lane, capability and resource
        self._last: dict[tuple[str, str, str], Event] = {}

    def take(self, event: Event) -> Iterator[Asked]:
        """Take in a decision; yield it where what it was about has no event."""
        if event.kind != "policy.checked":
            return
        if _is_told_by_another(event.data):
            about = event.lane, str(event.data.get("capability")), _text(event.data.get("resource") or "")
            self._open.setdefault(about, []).append(event)
            self._last[about] = event
        else:
            yield _of_decision(event)

    def about(self, event: Event, capability: str, names: list[str], touch: Touch | None = None) -> Asked:
        """Return what an event says was done, with the decision about it: the last one there.

        Not each that is alike is kept: of those that are not, the last that was is the answer.
        """
        about = event.lane, capability, names[0]
        decisions = self._open.get(about)
        decision = decisions.pop() if decisions else None
        seq = event.seq if decision is None else decision.seq
        return Asked(seq, capability, names, touch, _decision_of(decision or self._last.get(about)))

    def lookups(self) -> Iterator[Asked]:
        """Yield what nothing came after: to look a host up is no event, and is asked about as a connection is."""
        for (_, capability, _), decisions in self._open.items():
            if capability == "net.connect":
                yield from map(_of_decision, decisions)


def _of_decision(event: Event) -> Asked:
    capability, resource = str(event.data.get("capability")), _text(event.data.get("resource") or "")
    touch: Touch | None = None
    if capability.startswith("fs."):
        by_agent = event.data.get("asked") == "agent" or event.data.get("by") != "policy"
        touch = "recorded" if by_agent or os.path.isabs(resource) else "unknown"
    return Asked(event.seq, capability, [resource], touch, _decision_of(event))


def _decision_of(event: Event | None) -> Decision | None:
    if event is None or event.data.get("by") != "policy":
        return None
    return Decision(*(event.data.get(name) for name in Decision._fields))  # type: ignore[arg-type]


class _Requests:
    """Where the requests of a run went, by lane: a connection is recorded with its address alone."""

    def __init__(self, events: Iterable[Event]) -> None:
        self._by_lane: dict[str, list[tuple[int, hosts.Host]]] = {}
        for event in events:
            if (url := _url(event)) is not None:
                self._by_lane.setdefault(event.lane, []).append((event.seq, hosts.host_of(url)))

    def around(self, event: Event) -> list[str]:
        """Return the hosts of the requests before and after a connection, where they have its port."""
        asked = self._by_lane.get(event.lane, [])
        port = hosts.host_of(str(event.data.get("target"))).port
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


def backtest(
    rules: Rules,
    run: str,
    events: Iterable[Event],
    costs: Mapping[int, float] | None = None,
    priced: Callable[[str], bool] | None = None,
    *,
    is_its_own: bool = False,
) -> Backtest:
    """Say what a policy would have denied in a run.

    `costs` are those of the answers of models, by their seq; `priced` says whether it is known what a model costs.
    Where the policy `is_its_own`, what was recorded of it is the answer. Another one is asked about the names that
    were recorded, and not about the files of today. A connection counts as one to the names that were looked up, and
    to the host that was asked next to it. Limits are held against what the run used until then; under a policy that
    is enforced a call that is denied is not made.
    """
    found = Backtest(run)
    spent = Spent()
    events = list(events)
    asked = _by_event(events)
    for event in events:
        spent.seconds = max(0.0, (event.elapsed_us - events[0].elapsed_us) / 1e6)
        is_made = True
        for one in asked.get(event.seq, ()):
            found.asked += 1
            decision = one.decided if is_its_own and one.decided is not None else _judged(rules, one, spent, priced)
            if decision.decision != "allow":
                found.denied.append(_told(one, decision))
                is_made = rules.mode == "observe"
        if is_made:
            _spend(spent, event)
        if costs is not None:
            spent.cost += costs.get(event.seq, 0.0)
    found.denied.sort(key=lambda entry: int(entry["seq"]))
    return found


def _by_event(events: list[Event]) -> dict[int, list[Asked]]:
    """Return what each event says was done, by its seq."""
    requests, decided = _Requests(events), _Decided()
    found = {event.seq: [*decided.take(event), *_asked(event, requests, decided)] for event in events}
    for lookup in decided.lookups():
        found[lookup.seq].append(lookup)
    return found


def _judged(rules: Rules, one: Asked, spent: Spent, priced: Callable[[str], bool] | None) -> Decision:
    free = one.capability != "model.use" or priced is None or priced(one.names[0])
    decision = decide(rules, one.capability, one.names[0], spent=spent, touch=one.touch, unpriced=not free)
    if len(one.names) > 1 and not decision.rule.startswith("limits."):
        return decide_any(rules, one.capability, one.names)
    return decision


def _spend(spent: Spent, event: Event) -> None:
    spent.model_calls += event.kind == "model.invoked"
    spent.tool_calls += event.kind == "tool.called"
    usage = event.data.get("usage") if event.kind == "model.responded" else None
    if isinstance(usage, dict):
        spent.tokens += sum(usage[name] for name in ("input", "output") if type(usage.get(name)) is int)


def _told(one: Asked, decision: Decision) -> dict[str, Any]:
    return {"seq": one.seq, "capability": one.capability, "resource": one.names[0], **decision._asdict()}
