"""Hold a run to its policy: ask before something is done, record the answer, and stop what is denied.

The policy of a run is what its snapshot says. It is read when the run begins, or when a process joins it, and not
again: whoever edits the file meanwhile changes nothing. In mode `observe` all is recorded and nothing is stopped.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from playhead import _limits
from playhead import settings as settings_module
from playhead.capture import abandoned, audit, children, guard, lookups, scope, untold
from playhead.errors import ConfigError, EffectDenied, PlayheadError, PolicyDenied, Refused
from playhead.event import envelope, kinds
from playhead.policy import commands, hosts, rules
from playhead.policy.capabilities import needed
from playhead.policy.paths import Touch
from playhead.policy.rules import Decision, Rules, Spent
from playhead.policy.things import UNKNOWN_MODEL
from playhead.store import layout

if TYPE_CHECKING:
    from playhead.capture.charges import Charges
    from playhead.capture.recording import Recording
    from playhead.capture.scope import Scope
    from playhead.settings import Settings
    from playhead.store.base import Store

OF_FOLDER: Literal["folder"] = "folder"  # in place of a policy that is given
Given = Rules | None | Literal["folder"]

_COUNTS = ("input", "output", "cached", "reasoning")  # of tokens
_PORTS = {"http": 80, "https": 443}  # what may stand for them in a lookup

_of: weakref.WeakKeyDictionary[Recording, Enforcer] = weakref.WeakKeyDictionary()
_listens = False
_STOPS = {"enforce": "is denied", "observe": "would be denied"}
_UNHELD = "the policy does not hold in what it starts: a Python is held to it under `playhead record` only"


class Enforcer:
    """The policy of one run in this process, and what the run has used of its limits."""

    def __init__(self, policy: Rules, prices: Mapping[str, Mapping[str, float]], root: Path | None) -> None:
        """Take the user's own prices, and the store in which is kept what other models cost."""
        self.rules = policy
        self.spent = Spent()
        self._begun = time.monotonic()
        self.lock = threading.Lock()
        self.charges: Charges | None = None
        if "cost" in policy.limits:
            from playhead.capture.charges import Charges

            self.charges = Charges(prices, root)
        self._times: dict[tuple[str | None, ...], int] = {}

    def decide(
        self, capability: str, names: list[str], touch: Touch | None = None, holds: str | None = None
    ) -> Decision:
        """Decide about something by its names."""
        self.spent.seconds = time.monotonic() - self._begun
        free = capability != "model.use" or self.charges is None or self.charges.knows(names[0])
        found = rules.decide(
            self.rules, capability, names[0], spent=self.spent, touch=touch, holds=holds, unpriced=not free
        )
        if len(names) == 1 or found.rule.startswith("limits."):
            return found
        return rules.decide_any(self.rules, capability, names)

    def decide_call(self, capability: str, name: str, counter: str) -> Decision:
        """Decide about a call, and count it where it will be made: one that is stopped is none."""
        with self.lock:  # or two threads would both be the last that is allowed
            decision = self.decide(capability, [name])
            if decision.decision == "allow" or self.rules.mode == "observe":
                setattr(self.spent, counter, getattr(self.spent, counter) + 1)
        return decision

    def count(self, decided: tuple[str | None, ...]) -> int:
        """Return how often the same was decided in one place."""
        self._times[decided] = times = self._times.get(decided, 0) + 1
        return times

    def used(self, provider: str | None, models: Sequence[str | None], usage: Any) -> None:
        """Take in what an answer of a model cost: counts by name, or a Usage."""
        fields = usage if isinstance(usage, Mapping) else kinds.as_fields(usage)
        counts = [fields[name] if type(fields.get(name)) is int else 0 for name in _COUNTS]
        self.spent.tokens += counts[0] + counts[1]
        if self.charges is not None:
            self.spent.cost += self.charges.cost(provider, models, counts)


def begin(recording: Recording, store: Store, settings: Settings, run: str | None, given: Given) -> None:
    """Put the policy of a run in force: what was kept with it; of a new one what is given, else that of the folder."""
    policy: Rules | None
    if run is not None:
        policy = kept(store, run)
    elif given == OF_FOLDER:
        policy = _of_folder(settings)
    else:
        policy = given
    if policy is not None:
        _of[recording] = Enforcer(policy, settings.prices, getattr(store, "root", None))
        _install()
        untold.install_for_policy()


def _of_folder(settings: Settings) -> Rules | None:
    folder = Path.cwd()
    policy = rules.find(folder, settings.policy)
    if policy is None and (other := rules.above(folder)) is not None:
        guard.tell(
            f"no policy is in force: that of {other.parent} holds for agents that are started there. "
            f"PLAYHEAD_POLICY={other} puts it in force here too."
        )
    return policy


def insist(problem: Exception) -> None:
    """Raise where a run could not be opened that a policy was to be enforced in: without it nobody would ask."""
    if isinstance(problem, PolicyDenied):
        raise problem
    try:
        named = settings_module.load().policy
    except ConfigError:
        named = rules.FILE  # which is said by whoever cannot go on
    if (policy := rules.find(Path.cwd(), named)) is not None and policy.mode == "enforce":
        why, hint = getattr(problem, "message", problem), getattr(problem, "hint", None)
        said = f"its policy is to be enforced, and the run cannot be recorded: {why}"
        raise PolicyDenied(said, capability="run.start", rule="unrecorded", reason=said, hint=hint) from problem


def kept(store: Store, run: str) -> Rules | None:
    """Return the policy that was kept with a run; None where it had none.

    PolicyDenied where the run began with one that is enforced, and what is kept is not that.
    """
    import orjson

    first = next(iter(store.lines(run)), None)
    began = envelope.parse(first).data.get("policy") if first is not None else None
    declared: dict[str, Any] = began if isinstance(began, dict) else {}
    try:
        snapshot = store.file(run, layout.POLICY_SNAPSHOT)
        if hashlib.sha256(snapshot).hexdigest() == declared.get("digest"):
            return rules.of_snapshot(orjson.loads(snapshot))
        said = "is not the one that it began with"
    except (PlayheadError, OSError, ValueError) as problem:
        said = f"cannot be read: {problem}"
    if declared.get("mode") != "enforce":
        return None
    said = f"the policy of {run} is to be enforced, and what is kept of it ({layout.POLICY_SNAPSHOT}) {said}"
    raise PolicyDenied(said, capability="run.start", rule="snapshot", reason=said)


def refuse_uncaptured(recording: Recording) -> None:
    """Raise where a policy is to be enforced in a run that sees nothing of what its program does."""
    if (policy := policy_of(recording)) is not None and policy.mode == "enforce":
        said = "its policy is to be enforced, and with capture=False nobody sees what to ask about"
        raise PolicyDenied(said, capability="run.start", rule="uncaptured", reason=said)


def policy_of(recording: Recording) -> Rules | None:
    """Return the policy that rules a run."""
    found = _of.get(recording)
    return None if found is None else found.rules


def check(
    where: Scope | None,
    capability: str,
    *names: str,
    context: Mapping[str, Any] | None = None,
    by_agent: bool = False,
) -> Decision | None:
    """Ask the policy of a run, and record what it says. PolicyDenied where it says no and is enforced.

    Something with several names is denied where one of them is, and allowed where one of them is. None without a
    policy. `by_agent`: its own code asks.
    """
    enforcer = None if where is None else _of.get(where.recording)
    if where is None or enforcer is None:
        return None
    decision = enforcer.decide(capability, list(names) or [""])
    _hold(where, enforcer, capability, names[0] if names else None, decision, context, by_agent=by_agent)
    return decision


def _hold(
    where: Scope,
    enforcer: Enforcer,
    capability: str,
    resource: str | None,
    decision: Decision,
    context: Mapping[str, Any] | None = None,
    kind: type[PolicyDenied] = PolicyDenied,
    by_agent: bool = False,
) -> None:
    """Record a decision, and raise where it is no and is enforced."""
    _tell(where, enforcer, capability, resource, decision, context, by_agent)
    if decision.rule == rules.UNPRICED and enforcer.charges is not None:
        enforcer.charges.tell(f"{capability} on {resource} {_STOPS[enforcer.rules.mode]}: {decision.reason}")
    if decision.decision != "allow" and enforcer.rules.mode == "enforce":
        raise _denial(kind, enforcer, capability, resource, decision)


def is_enforced(where: Scope | None) -> bool:
    """Say whether a run has a policy that is enforced."""
    enforcer = None if where is None else _of.get(where.recording)
    return enforcer is not None and enforcer.rules.mode == "enforce"


def tool(where: Scope, name: str) -> None:
    """Ask before a tool is called."""
    enforcer = _of.get(where.recording)
    if enforcer is not None:
        _hold(where, enforcer, "tool.call", name, enforcer.decide_call("tool.call", name, "tool_calls"))


def model(where: Scope | None, provider: str | None, name: str | None) -> None:
    """Ask before a model is."""
    enforcer = None if where is None else _of.get(where.recording)
    if where is not None and enforcer is not None:
        asked = f"{provider or UNKNOWN_MODEL}/{name or UNKNOWN_MODEL}"
        _hold(where, enforcer, "model.use", asked, enforcer.decide_call("model.use", asked, "model_calls"))


def answered(recording: Recording, provider: str | None, names: Sequence[str | None], usage: Any) -> None:
    """Take in what a model used; the first of its names that has a price counts."""
    if usage and (enforcer := _of.get(recording)) is not None:
        enforcer.used(provider, names, usage)


def request(where: Scope, method: str, url: str, body: bytes | None) -> None:
    """Ask before a request goes out: where it goes, and which model it is for."""
    if where.recording not in _of:
        return
    from playhead.capture import dialects

    check(where, "net.connect", str(hosts.host_of(url)))
    found = dialects.find(method, url)
    if found is not None:
        model(where, found[1], dialects.model_of(found[0], url, body))


def tunnel(url: str) -> None:
    """Ask before a proxy is asked for a way to where a request goes: by then the proxy would be connected to it."""
    where = scope.live()
    if where is not None and where.recording.captures and not scope.muted.get():
        check(where, "net.connect", str(hosts.host_of(url)))


def effect(where: Scope, what: str, target: str, detail: Mapping[str, Any]) -> None:
    """Ask before something is done outside the process."""
    enforcer = _of.get(where.recording)
    if enforcer is None:
        return
    for need in needed(what, target, detail, detail.get("names", ()) if what == "socket.connected" else ()):
        decision = enforcer.decide(need.capability, need.names, need.touch, need.holds)
        if (
            need.capability == "process.exec"
            and not children.passing_on()
            and commands.is_python(detail.get("argv", ()))
        ):
            decision = decision._replace(reason=decision.reason or _UNHELD)
        _hold(where, enforcer, need.capability, need.names[0], decision, kind=EffectDenied)


def unjudged(capability: str, resource: Any, problem: Exception) -> None:
    """Deny what could not be judged, since something went wrong in judging it, where a policy is enforced."""
    where = scope.live()
    enforcer = None if where is None else _of.get(where.recording)
    if where is None or enforcer is None or enforcer.rules.mode != "enforce":
        return
    if isinstance(problem, (PolicyDenied, Refused)) or guard.is_the_programs(problem):
        return  # which keep it from being done themselves
    name = os.fsdecode(resource) if isinstance(resource, (str, bytes)) else repr(resource)
    decision = Decision("deny", "unjudged", f"it could not be judged: {type(problem).__name__}: {problem}")
    _tell(where, enforcer, capability, name, decision, None)
    raise _denial(EffectDenied, enforcer, capability, name, decision) from problem


def _tell(
    where: Scope,
    enforcer: Enforcer,
    capability: str,
    resource: str | None,
    decision: Decision,
    context: Mapping[str, Any] | None,
    by_agent: bool = False,
) -> None:
    """Record a decision; one that is made again and again in a place, less and less often, unless the agent asks."""
    times = 1 if by_agent else enforcer.count((where.span, where.lane.path, capability, resource, decision.rule))
    if times > _limits.EFFECT_REPEATS_MAX and str(times).strip("0") != "1":
        return
    about = {} if resource is None else {"resource": resource}
    fields: dict[str, Any] = {"capability": capability, "decision": decision.decision, **about}
    fields |= {"rule": decision.rule, **({"reason": decision.reason} if decision.reason else {})}
    fields |= {"mode": enforcer.rules.mode, "by": "policy", **({"asked": "agent"} if by_agent else {})}
    fields |= {"context": dict(context)} if context else {}
    fields |= {"times": times} if times > 1 else {}
    try:
        if abandoned.collecting():
            abandoned.leave(lambda: where.recording.emit_fields("policy.checked", fields, parent=where.span))
        else:
            where.recording.emit_fields("policy.checked", fields, parent=where.span)
    except Exception as problem:
        guard.absorb(problem, where.recording, "policy.checked", inside=True)


def _denial(
    kind: type[PolicyDenied], enforcer: Enforcer, capability: str, resource: str | None, decision: Decision
) -> PolicyDenied:
    said = (
        decision.reason or f"{'the policy asks first' if decision.decision == 'ask' else 'denied'} by {decision.rule}"
    )
    about = f"{capability} on {resource}" if resource else capability
    hint = kind.default_hint
    if decision.rule.endswith("default"):
        hint = f'To allow it, name it in `allow` of [capabilities."{capability}"] in {enforcer.rules.source}.'
    elif decision.rule == rules.UNPRICED and enforcer.charges is not None:
        hint = enforcer.charges.hint
    return kind(
        f"{about}: {said}", capability=capability, resource=resource, rule=decision.rule, reason=said, hint=hint
    )


def _after_fork_in_child() -> None:
    for enforcer in list(_of.values()):
        enforcer.lock = threading.Lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


# Names of hosts.


def _install() -> None:
    """Learn which addresses hosts have, and ask before one is looked up."""
    global _listens
    import socket

    if not _listens:
        _listens = True
        for looks in _LOOKUPS:
            audit.listen(*looks)
        lookups.install(socket)


def uninstall() -> None:
    """Ask no longer before a host is looked up, when the last run has closed."""
    global _listens
    if _listens:
        _listens = False
        for looks in _LOOKUPS:
            audit.unlisten(*looks)


def _looked_up(args: tuple[Any, ...]) -> None:
    lookup(args[0], args[1] if len(args) > 1 else None)


def _named(args: tuple[Any, ...]) -> None:
    """Ask before it is found out what an address is called, which somebody else is asked for."""
    if not lookups.is_numeric():
        lookup(args[0][0] if isinstance(args[0], tuple) else args[0], None, names_it=True)


_LOOKUPS = [(event, _looked_up) for event in ("socket.getaddrinfo", "socket.gethostbyname")]
_LOOKUPS += [(event, _named) for event in ("socket.gethostbyaddr", "socket.getnameinfo")]


def lookup(name: Any, port: Any, *, names_it: bool = False) -> None:
    """Ask before it is found out where a host is, which somebody wants to connect to, or the network to tell.

    To listen at an address of this machine, or to know it, nobody is asked. `names_it`: an address is to be named.
    """
    where = scope.live()
    enforcer = None if where is None else _of.get(where.recording)
    if where is None or enforcer is None or not isinstance(name, (str, bytes)):
        return
    host = hosts.host_of(os.fsdecode(name))
    is_address = hosts.address_of(host.name) is not None
    is_known = hosts.LOCALHOST in hosts.reached(host.name) if is_address and names_it else is_address
    if not host.name or ((is_known or hosts.is_here(host.name)) and (not port or lookups.to_listen())):
        return
    number = int(port) if isinstance(port, int) or str(port).isdecimal() else _PORTS.get(str(port))
    asked = str(host._replace(port=number or None))
    names = [str(host._replace(name=one, port=number)) for one in (lookups.names_of(asked) if is_address else ())]
    decision = enforcer.decide("net.connect", [*names, asked])
    _hold(where, enforcer, "net.connect", (names or [asked])[0], decision, kind=EffectDenied)
