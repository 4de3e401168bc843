"""Ask a policy about a run that was recorded: what it would have denied."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from playhead.event.envelope import Event
from playhead.policy import hosts
from playhead.policy.capabilities import needed
from playhead.policy.paths import Touch
from playhead.policy.rules import KNOWN, Decision, Rules, Spent, decide, decide_any


class Asked(NamedTuple):
    """What a run did that a policy has a say in."""

    seq: int  # of the decision that was recorded about it; else its own
    capability: str
    names: list[str]  # of what it was done to; a host may have several
    touch: Touch | None = None  # of a file: what was done to the path


@dataclass
class Backtest:
    """What a policy says about one run."""

    run: str = ""
    asked: int = 0
    denied: list[dict[str, Any]] = field(default_factory=list)  # seq, capability, resource, decision, rule, reason


def _asked(event: Event, requests: _Requests) -> Iterator[Asked]:
    """Yield what an event says was done that needs a capability, or was kept from being done."""
    data = event.data
    if event.kind == "tool.called" and isinstance(data.get("name"), str):
        yield Asked(event.seq, "tool.call", [data["name"]])
    elif event.kind == "model.invoked":
        yield Asked(event.seq, "model.use", [f"{data.get('provider') or '?'}/{data.get('model') or '?'}"])
    elif event.kind == "policy.checked" and not _is_told_by_another(data):
        yield Asked(event.seq, str(data.get("capability")), [str(data.get("resource") or "")])
    elif event.kind == "effect.observed":
        what, target = str(data.get("what")), str(data.get("target"))
        names = requests.around(event) if what == "socket.connected" else []
        for need in needed(what, target, data.get("detail"), names):
            yield Asked(event.seq, need.capability, need.names, need.touch)
    if (url := _url(event)) is not None:
        yield Asked(event.seq, "net.connect", [str(hosts.host_of(url))])


def _is_told_by_another(checked: Mapping[str, Any]) -> bool:
    """Say whether what was decided about has an event of its own: what a policy let happen of what Playhead sees."""
    stopped = checked.get("decision") != "allow" and checked.get("mode") == "enforce"
    of_its_own = checked.get("by") == "policy" and checked.get("asked") != "agent"
    return of_its_own and checked.get("capability") in KNOWN and not stopped


class _Decided:
    """The decisions of a policy about what has an event of its own: an audit and a timeline point to the decision."""

    def __init__(self) -> None:
        self._seqs: dict[tuple[str, str | None, str, str], list[int]] = {}

    def take(self, event: Event) -> None:
        """Take in a decision."""
        if event.kind == "policy.checked" and _is_told_by_another(event.data):
            about = str(event.data.get("capability")), str(event.data.get("resource") or "")
            self._seqs.setdefault((event.lane, event.parent, *about), []).append(event.seq)

    def seq_of(self, event: Event, asked: Asked) -> int:
        """Return the decision about what an event says was done: the last one there; not each that is alike is kept."""
        seqs = self._seqs.get((event.lane, event.parent, asked.capability, asked.names[0]))
        return seqs.pop() if seqs else asked.seq


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
) -> Backtest:
    """Say what a policy would have denied in a run.

    `costs` are those of the answers of models, by their seq; `priced` says whether it is known what a model costs.
    A connection is known by its address: it counts as one to the host that was asked next to it. Limits are held
    against what the run used until then; under a policy that is enforced a call that is denied is not made.
    """
    found = Backtest(run)
    spent = Spent()
    events = list(events)
    requests, decided = _Requests(events), _Decided()
    for event in events:
        spent.seconds = max(0.0, (event.elapsed_us - events[0].elapsed_us) / 1e6)
        is_made = True
        decided.take(event)
        for one in _asked(event, requests):
            found.asked += 1
            seq = decided.seq_of(event, one)
            free = one.capability != "model.use" or priced is None or priced(one.names[0])
            decision = decide(rules, one.capability, one.names[0], spent=spent, touch=one.touch, unpriced=not free)
            if len(one.names) > 1 and not decision.rule.startswith("limits."):
                decision = decide_any(rules, one.capability, one.names)
            if decision.decision != "allow":
                found.denied.append(_told(one._replace(seq=seq), decision))
                is_made = rules.mode == "observe"
        if is_made:
            _spend(spent, event)
        if costs is not None:
            spent.cost += costs.get(event.seq, 0.0)
    found.denied.sort(key=lambda entry: int(entry["seq"]))
    return found


def _spend(spent: Spent, event: Event) -> None:
    spent.model_calls += event.kind == "model.invoked"
    spent.tool_calls += event.kind == "tool.called"
    usage = event.data.get("usage") if event.kind == "model.responded" else None
    if isinstance(usage, dict):
        spent.tokens += sum(usage[name] for name in ("input", "output") if type(usage.get(name)) is int)


def _told(one: Asked, decision: Decision) -> dict[str, Any]:
    return {"seq": one.seq, "capability": one.capability, "resource": one.names[0], **decision._asdict()}
