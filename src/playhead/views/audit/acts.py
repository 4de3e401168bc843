"""Say what an effect that was observed amounts to: what was done to what, and how grave that is where it was done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

from playhead.views import text
from playhead.views.audit.addresses import is_local, split
from playhead.views.audit.around import Around
from playhead.views.audit.findings import SEVERITIES
from playhead.views.audit.places import QUIET, SORTS, Places
from playhead.views.points import words

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
_DATABASE = "sqlite"  # the mode of a file that is one: what is then done to it is not seen
_HOW = {"a": "appended to", "x": "created", "r+": "changed in place", _DATABASE: "a database, opened to be written"}


@dataclass(slots=True, kw_only=True)
class Act:
    """Something that was done, once or several times, in one span."""

    rule: str
    what: str
    target: str
    severity: str
    detail: str = ""
    shown: str = ""  # the target in a sentence, where that is shorter
    did: str = ""  # what was done, in a sentence, where its rule says too much
    around: Around | None = None
    key: tuple[Any, ...] = ()  # of what is the same
    past_tape: bool = False
    lane: str = "0"
    quiet: bool = False  # to temporary files and the like, or to nothing: it could not be done
    sure: bool = False  # done in a replay, too: the program itself
    count: int = 0
    seqs: list[int] = field(default_factory=list)
    own: set[str] = field(default_factory=set)  # the spans of calls that it is made of
    asked: Counter[str] = field(default_factory=Counter)  # of the network: requests by method, models by name
    connections: int = 0
    names: set[str] = field(default_factory=set)  # hosts that were looked up and lead to where it connected
    reached: list[str] = field(default_factory=list)  # the numbers of a host that is named
    listens: bool = False

    @property
    def only_asks(self) -> bool:
        """Say whether nothing was sent to the network but requests that change nothing."""
        return bool(self.asked) and SAFE_METHODS.issuperset(self.asked) and not self.listens

    @property
    def only_connects(self) -> bool:
        """Say whether nothing is known but that it connected somewhere."""
        return self.rule == "network" and not self.asked and not self.listens

    def with_connections(self, others: list[Act]) -> Act:
        """Return the same with connections that were made for it."""
        return replace(
            self,
            count=self.count + sum(one.count for one in others),
            connections=self.connections + sum(one.connections for one in others),
            reached=sorted({split(one.target)[0] for one in others}),
            seqs=sorted(seq for one in (self, *others) for seq in one.seqs),
        )


def of_file(what: str, target: str, detail: dict[str, Any], places: Places, *, own: bool) -> Act:
    """Return what was done to a file, a folder or a link; `own` says that this run had made it itself."""
    to = words(detail.get("to"))
    if what.endswith(".deleted"):
        name, severity, place = _where((target,), places, deletes=True)
        if own:
            severity = max(severity, "low", key=SEVERITIES.index)
        told = [f"{name} delete: {_shown(what, target, places)}", "made by this run" if own else ""]
        return _act("delete", what, target, severity, told, place, _shown(what, target, places))
    moved = what == "file.renamed" and bool(to)
    name, severity, place = _where((target, to) if moved else (target,), places)
    shown = _shown(what, target, places)
    if to:
        shown = f"{shown} → {places.shown(to) if moved else to}"
    told = [f"{name} write: {shown}", _how(what, detail)]
    act = _act("write", what, to if moved else target, severity, told, place, shown)
    act.did = "opened to be written:" if detail.get("mode") == _DATABASE else ""
    return act


def _act(rule: str, what: str, target: str, severity: str, told: list[str], place: str, shown: str) -> Act:
    outside = "outside of the repository and the working directory" if place == "outside" else ""
    detail = ", ".join(filter(None, (*told, outside)))
    quiet = place in QUIET
    return Act(rule=rule, what=what, target=target, severity=severity, detail=detail, shown=shown, quiet=quiet)


def _where(paths: tuple[str, ...], places: Places, *, deletes: bool = False) -> tuple[str, str, str]:
    """Return what the gravest of some places is called, how grave that is, and its sort, or `outside`."""
    graded = [(SORTS[places.sort(path)][2 if deletes else 1], path) for path in paths]
    severity, path = min(graded, key=lambda one: SEVERITIES.index(one[0]))
    sort = "outside" if places.is_outside(path) else places.sort(path)
    return SORTS[places.sort(path)][0], severity, sort


def _shown(what: str, target: str, places: Places) -> str:
    folder = what.startswith("directory.")
    return places.shown(target) + ("/" if folder and not target.endswith("/") else "")


def _how(what: str, detail: dict[str, Any]) -> str:
    match what:
        case "file.written":
            if "length" in detail:
                return "truncated"
            mode = detail.get("mode")
            if mode == _DATABASE:
                return _HOW[_DATABASE]
            return "created" if detail.get("created") is True else _HOW.get(str(mode), "overwritten")
        case "file.created":
            return f"a {words(detail.get('type')) or 'file'}"
        case "file.renamed":
            return "renamed"
        case "link.created":
            return "a link" if detail.get("symbolic") is True else "a second name"
        case "directory.created":
            return "a folder"
        case "mode.changed":
            return f"mode {words(detail.get('mode'))}"
        case "owner.changed":
            return f"owner {words(detail.get('owner'))}"
        case "times.changed":
            return "its times"
        case "attribute.changed":
            return f"attribute {words(detail.get('name'))}"
        case _:
            return what  # recorded by the agent itself, or by a newer Playhead


def of_signal(target: str, detail: dict[str, Any]) -> Act:
    """Return which process was sent which signal."""
    number = detail.get("signal")
    name = text.signal_name(number) if type(number) is int else "a signal"
    whom = "the group of processes" if detail.get("group") is True else "process"
    shown = f"{name} to {whom} {target}"
    return Act(rule="process", what="process.signalled", target=target, severity="medium",
               detail=f"signal: {shown}", shown=shown)  # fmt: skip


def of_place(place: str, *, listens: bool = False) -> Act:
    """Return that a place on the network was contacted, or listened at; what was asked there is counted in it."""
    what, severity = f"network.{'bound' if listens else 'contacted'}", "low" if is_local(place) else "medium"
    return Act(rule="network", what=what, target=place, severity=severity, listens=listens)


def network_detail(act: Act) -> str:
    """Say what went to a place: the requests by method, the connections."""
    asked = ", ".join(f"{count}× {name}" if count > 1 else name for name, count in act.asked.items())
    reached = f" to {', '.join(act.reached)}" if act.reached else ""
    told = [
        asked,
        f"{text.several(act.connections, 'connection')} attempted{reached}" if act.connections else "",
        "listened at" if act.listens else "",
    ]
    place = f"{act.target} ({', '.join(sorted(act.names))})" if act.names else act.target
    return f"{place}: {', '.join(filter(None, told))}" if any(told) else place
