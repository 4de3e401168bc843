"""Say what a run tells of itself: what policies decided in it, and what is not on record."""

from __future__ import annotations

from typing import Any

from playhead import _limits
from playhead.event.envelope import Event
from playhead.event.kinds import UNSEEN
from playhead.views import points, text
from playhead.views.audit.acts import Act
from playhead.views.audit.findings import Decision
from playhead.views.imported import is_imported
from playhead.views.points import words
from playhead.views.text import Resolve

_STOPPED, _WENT_ON = ", and stopped", ", and only observed: nothing kept it from going on"
_UNSEEN = tuple(UNSEEN)  # a field of the wrong form can be looked up in it


class Decisions:
    """Follow what policies decided, and which questions were left open."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._made: dict[tuple[str, ...], Decision] = {}
        self._open: dict[tuple[str, str], list[Act]] = {}  # asked, by capability and resource

    def take(self, event: Event, data: dict[str, Any]) -> Act | None:
        """Take in a decision; return what is to be told of it, unless it allows something."""
        decision, capability = words(data.get("decision")), words(data.get("capability"))
        resource, rule = words(data.get("resource")), words(data.get("rule")) or "none"
        mode = words(data.get("mode")) or "observe"
        key = (decision, capability, resource, rule, mode)
        known = self._made.get(key)
        if known is None:
            known = self._made[key] = Decision(run=self._run, decision=decision, capability=capability,
                                               resource=resource or None, rule=rule, mode=mode, seqs=[])  # fmt: skip
        known.seqs.append(event.seq)
        asked = capability, resource
        if decision == "ask":
            act = _refused(data, capability, resource, rule, mode, asks=True)
            self._open.setdefault(asked, []).append(act)
            return act
        for answered in self._open.pop(asked, ()):
            answered.severity = "info"
            told = answered.detail.removesuffix(_STOPPED).removesuffix(_WENT_ON)
            answered.detail = f"{told}; answered at event {event.seq}: {decision}"
        return None if decision == "allow" else _refused(data, capability, resource, rule, mode)

    def all(self) -> list[Decision]:
        """Return every decision, in the order in which they were first made."""
        return list(self._made.values())


def _refused(data: dict[str, Any], capability: str, resource: str, rule: str, mode: str, *, asks: bool = False) -> Act:
    about = f"{capability} on {resource}" if resource else capability
    by = f" by the rule {rule}" if rule != "none" else ""
    reason = words(data.get("reason"))
    told = f"{about}: {'asked' if asks else 'denied'}{by}{f' ({reason})' if reason else ''}"
    told += _STOPPED if mode == "enforce" else _WENT_ON
    severity = "medium" if asks else "high"
    return Act(rule="deny", what="policy.checked", target=resource or capability, severity=severity, detail=told)


def gap(data: dict[str, Any], resolve: Resolve | None) -> tuple[Act, int]:
    """Return what is not on record: events that were lost, and how many; or something that was never seen."""
    reason = data.get("reason")
    if reason in _UNSEEN:
        told = text.cut(points.unseen(data, resolve), _limits.SHOW_VALUE_CHARACTERS_MAX)
        return _gap("low", str(reason), told, f"not captured: {told}"), 0
    count = data.get("count", 1)
    count = count if type(count) is int and count >= 0 else 1
    about = data.get("detail")
    more = f": {text.short(about, _limits.CELL_CHARACTERS_MAX, resolve)}" if about is not None else ""
    if not count:
        return _gap("info", words(reason), words(reason), f"nothing lost, but noted: {words(reason)}{more}"), 0
    told = f"{text.several(count, 'event')} lost: {words(reason)}{more}"
    return _gap("high", words(reason), words(reason), told), count


def unreadable(seq: int, why: str) -> Act:
    """Return that a line of the record is no event."""
    return _gap("high", "broken_line", f"event {seq}", f"line {seq + 1} of the record cannot be read: {why}")


def unwatched(data: dict[str, Any]) -> list[Act]:
    """Return what nobody watched in a run, from what its first event says."""
    out = []
    if is_imported(data):
        told = "it came from elsewhere: what it did to files, processes, the network and variables is not known"
        return [_gap("medium", "effects", "effects", told)]
    if data.get("effects") is False:
        told = "nobody watched what it did outside itself (capture=False): no effect of it is known"
        out.append(_gap("medium", "effects", "effects", told))
    if data.get("ambient") is False:
        told = "nobody watched its reads: which variables it read is not known (see `playhead record`)"
        out.append(_gap("info", "reads", "reads", told))
    return out


def _gap(severity: str, what: str, target: str, detail: str) -> Act:
    return Act(rule="gap", what=what, target=target, severity=severity, detail=detail)
