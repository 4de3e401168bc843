"""Follow the events of one run, and know what was done in it: to what, by whom, how often.

Events come from files that anybody may have written: a field of the wrong form is told as it is, and nothing here
raises for it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from playhead import _limits
from playhead.event.envelope import Event
from playhead.event.kinds import CLOSING, OPENING_TO_CLOSING, TREE_CHANGED
from playhead.event.secret_names import is_secret_name
from playhead.views import text
from playhead.views.audit import standing
from playhead.views.audit.acts import SAFE_METHODS, Act, network_detail, of_file, of_place, of_signal
from playhead.views.audit.addresses import destination
from playhead.views.audit.around import IRREVERSIBLE, WRITE, Around, Spans
from playhead.views.audit.findings import Decision, Finding
from playhead.views.audit.joining import joined
from playhead.views.audit.places import Places
from playhead.views.audit.reality import Reality
from playhead.views.audit.redactions import Redactions
from playhead.views.audit.repeats import Attempt
from playhead.views.audit.standing import Decisions
from playhead.views.audit.undeclared import undeclared
from playhead.views.audit.unseen import Seen, unseen_changes
from playhead.views.points import mapping, words
from playhead.views.redactions import marks
from playhead.views.spans import command_line
from playhead.views.starts import Starts
from playhead.views.text import Resolve

_FILES = ("attribute.", "directory.", "file.", "link.", "mode.", "owner.", "times.")
_MADE = ("directory.created", "file.created", "link.created")
_UNSEEN_NETWORK = ("websocket", "grpc", "curl_cffi", "uvloop", "transport")  # sources of gaps
_DONE = ("write", "delete", "process", "network", "secret")  # what a replay may only seem to do
CHILD = "child"  # the mode of the origin of a run that another started
_NOT_MADE = ("started_from", "older", "range")  # how commits belong to a run that did not make them


class Watched:
    """What one run did, taken in event by event.

    `resolve` follows references inside of values. `others` are runs that were watched before, by their ids: a run whose
    program was started by that of one of them belongs to the tool that did so.
    """

    def __init__(self, run: str, resolve: Resolve | None = None, others: Mapping[str, Watched] | None = None) -> None:
        self.run = run
        self.name = ""
        self.ended: str | None = None
        self.origin: dict[str, Any] | None = None
        self.spans = Spans(run)
        self.places = Places()
        self.seen = Seen()  # to write and to delete which files
        self._resolve = resolve
        self._others = others or {}
        self._starts = Starts(resolve)
        self._reality = Reality()
        self._decisions, self._redactions = Decisions(run), Redactions()
        self._acts: dict[tuple[Any, ...], Act] = {}
        self._claims: list[Act] = []
        self._processes: dict[str, Act] = {}  # by span
        self._attempts: list[Attempt] = []
        self._made: set[str] = set()  # what this run has made itself
        self._by_program = False
        self._tree: tuple[Event, dict[str, Any]] | None = None  # what changed in the working tree

    def take(self, event: Event) -> None:
        """Look at the next event."""
        data = mapping(event.data)
        self._redactions.take(event)
        if event.kind in CLOSING:
            self._close(event, data)
            return
        match event.kind:
            case "run.started":
                self._start(event, data)
            case kind if kind in OPENING_TO_CLOSING:
                self._open(event, data)
            case "effect.observed":
                self._effect(event, data)
            case "ambient.read":
                self._reads(event, data)
            case "policy.checked":
                asks = data.get("decision") == "ask"
                data = {name: self._whole(value) for name, value in data.items()}
                if (act := self._decisions.take(event, data)) is not None:
                    self._add(event, act, by=event.seq if asks else act.detail, times=data.get("times"))
            case "gap.noted":
                self._gap(event, data)
            case "git.committed":
                self._commit(event, data)
            case "note.added":
                self._note(event, data)
            case "replay.reported":
                self._reality.reported(self._whole(data.get("live_spans")))
            case "run.reopened":
                self.ended = None

    def take_unreadable(self, seq: int, why: str) -> None:
        """Take in that a line could not be read."""
        act = standing.unreadable(seq, why)
        act.count, act.seqs = 1, [seq]
        self._acts["gap", seq] = act

    # What is found.

    def decisions(self) -> list[Decision]:
        """Return what policies decided."""
        return self._decisions.all()

    def findings(self, seen: Collection[Seen]) -> list[Finding]:
        """Return all that was found in this run alone; `seen` is what all runs of the audit were seen to do."""
        unseen = [] if self._tree is None else unseen_changes(*self._tree, seen)
        acts = [*joined(self._acts.values()), *unseen]
        found = [self._finding(act) for act in acts]
        return [*found, *undeclared(self.run, acts, self._claims, self._is_real), *self._redactions.findings(self.run)]

    def attempts(self) -> list[Attempt]:
        """Return the calls that may have had a side effect, as far as they were made in the world."""
        acting: set[Around] = set()
        for act in self._acts.values():
            changes = act.rule in ("write", "delete", "process") or (act.rule == "network" and _sends(act))
            if changes and not act.quiet and act.around is not None:
                acting.update(act.around.tools())
        for attempt in self._attempts:
            attempt.acted = attempt.call in acting
        return [one for one in self._attempts if self._reality.holds(one.call.seq, one.call)]

    def _is_real(self, act: Act) -> bool:
        return any(self._reality.holds(seq, act.around, act.own) for seq in act.seqs)

    def _finding(self, act: Act) -> Finding:
        real = act.sure or act.rule not in _DONE or self._is_real(act)
        detail = network_detail(act) if act.rule == "network" else act.detail
        if not real:
            files = act.rule in ("write", "delete")
            detail += f", {'in the scratch folder of a replay' if files else 'in a replay, which did not do it'}"
        return Finding(
            rule=act.rule,
            severity=act.severity if real else "info",
            run=self.run,
            seq=act.seqs[0],
            detail=detail,
            what=act.what,
            target=act.target,
            path="" if act.around is None else act.around.path,
            lane=act.lane,
            count=act.count,
            seqs=act.seqs,
            real=real,
        )

    # Events.

    def _add(self, event: Event, act: Act, *, by: Any = None, own: str | None = None, times: Any = None) -> Act:
        """Count something that was done; the same in the same span is one act."""
        around = self.spans.of(event.parent)
        key = act.rule, act.what, act.target, by, around, self._reality.is_past_tape
        known = self._acts.get(key)
        if known is None:
            known = self._acts[key] = act
            act.around, act.lane, act.key, act.past_tape = around, event.lane, key, self._reality.is_past_tape
        known.count += 1
        if type(times) is int and times > known.count:
            known.count = times
        known.seqs.append(event.seq)
        if own is not None:
            known.own.add(own)
        return known

    def _start(self, event: Event, data: dict[str, Any]) -> None:
        self.name = words(data.get("name"))
        self.origin = mapping(self._whole(data.get("origin"))) or None
        origin = mapping(self.origin)
        parent = self._others.get(words(origin.get("run"))) if origin.get("mode") == CHILD else None
        self.spans.started_by = None if parent is None else parent.spans.opened_at(origin.get("at"))
        self.spans.opened(event)
        self._reality.began(self.origin)
        # As `playhead record` starts a run; a program that was started by another is recorded from inside alone.
        self._by_program = data.get("agent") is None and origin.get("mode") != CHILD
        git, entry = mapping(self._whole(data.get("git"))), mapping(self._whole(data.get("entrypoint")))
        root = words(git.get("root")) or ("" if parent is None else parent.places.root)
        self.places = Places(root, words(entry.get("cwd")))
        for act in standing.unwatched(data):
            self._add(event, act)

    def _open(self, event: Event, data: dict[str, Any]) -> None:
        first, effects = self.spans.is_first(), self._whole(data.get("effects"))
        declared = tuple(one for one in effects if isinstance(one, str)) if isinstance(effects, list) else ()
        call = self.spans.opened(event, declared if event.kind == "tool.called" else ())
        match event.kind:
            case "step.started" if data.get("adopts") is True:
                self.name = words(data.get("name")) or self.name
            case "process.started":
                self._process(event, data, call, is_program=first and self._by_program)
            case "tool.called":
                self._tool(event, data, call)
            case "mcp.requested" if data.get("from_server") is not True:
                self._server(event, call)
            case "http.sent":
                method, url = words(data.get("method")).upper(), words(self._whole(data.get("url")))
                self._contact(event, destination(url), call.span, method or "?")
                if method not in SAFE_METHODS:
                    name = text.cut(f"{method} {url}", _limits.CELL_CHARACTERS_MAX)
                    self._attempted(event, call, name, method)
            case "model.invoked":
                url = words(mapping(self._whole(data.get("http"))).get("url"))
                provider = words(data.get("provider")) or "a provider that is not named"
                self._contact(event, destination(url) if url else provider, call.span, f"model {call.name}")

    def _close(self, event: Event, data: dict[str, Any]) -> None:
        self.spans.closed(event)
        if event.kind == "process.exited":
            self._starts.closed(event)
            if data.get("error") is not None and data.get("exit_code") is None:
                self._not_started(event)
        elif event.kind == "run.finished":
            self.ended = words(data.get("status"))

    def _not_started(self, event: Event) -> None:
        """Tell of a process that could not be started, or was kept from it, apart from those that were."""
        act = self._processes.pop(event.span or "", None)
        if act is not None and act.own == {event.span}:
            del self._acts[act.key]
            act.severity, act.detail = "low", f"{act.detail}, which was not started"
            act.did, act.quiet = "tried to start", True
            act.key = (*act.key, event.seq)
            self._acts[act.key] = act

    def _process(self, event: Event, data: dict[str, Any], call: Around, *, is_program: bool) -> None:
        self._starts.opened(event)
        argv = self._whole(data.get("argv"))
        command = command_line({**data, "argv": argv}) or "a process that is not named"
        told = f"process: {command}{' (by a shell)' if data.get('shell') is True else ''}"
        act = Act(rule="process", what=event.kind, target=command, severity="medium", detail=told)
        if is_program:
            self.spans.program = call
            act.severity, act.detail, act.sure = "info", f"process: {command}, the program that was recorded", True
        self._processes[call.span] = self._add(event, act, own=call.span)
        if not is_program:
            self._attempted(event, call, text.cut(f"process {command}", _limits.CELL_CHARACTERS_MAX))
        for name, value in mapping(self._whole(data.get("env"))).items():
            if value is not None and _is_secret(name, value):
                told = f"{name} handed to the process {command}"
                self._secret(event, name, "medium", told, by=command, own=call.span)

    def _tool(self, event: Event, data: dict[str, Any], call: Around) -> None:
        given = data.get("input")
        told = "" if given is None else text.arguments(given, _limits.CELL_CHARACTERS_MAX, self._resolve)
        self._attempted(event, call, f"tool {call.name}({told})")
        for sort in (IRREVERSIBLE, WRITE):
            if sort in call.declared:
                self._claims.append(Act(rule=sort, what=event.kind, target=f"tool {call.name}", severity="",
                                        detail="", around=call.up, lane=event.lane, count=1, seqs=[event.seq],
                                        own={call.span}))  # fmt: skip
                break
        self._server(event, call)

    def _server(self, event: Event, call: Around) -> None:
        if "://" in call.server:  # else it is a command line, or in this process
            self._contact(event, destination(call.server), call.span, f"MCP {call.name}")

    def _attempted(self, event: Event, call: Around, name: str, method: str = "") -> None:
        if event.key is not None:
            self._attempts.append(Attempt(call, event.key, name, method, event.lane))

    def _contact(self, event: Event, place: str, own: str | None, asked: str) -> None:
        self._add(event, of_place(place), own=own).asked[asked] += 1

    def _effect(self, event: Event, data: dict[str, Any]) -> None:
        what, target = words(data.get("what")), words(self._whole(data.get("target")))
        detail = mapping(self._whole(data.get("detail")))
        times = detail.get("times")
        if what == "process.started":
            if not self._starts.has(event):
                command = command_line(detail) or target
                how = " (this process becomes it)" if detail.get("by") == "os.exec" else ""
                self._add(event, Act(rule="process", what=what, target=command, severity="medium",
                                     detail=f"process: {command}{how}"))  # fmt: skip
        elif what == "process.signalled":
            self._add(event, of_signal(target, detail), by=words(detail.get("signal")))
        elif what in ("socket.connected", "socket.bound"):
            act = self._add(event, of_place(target, listens=what == "socket.bound"), times=times)
            if not act.listens:
                act.connections = max(act.connections + 1, times if type(times) is int else 0)
                names = detail.get("names")
                act.names |= {name for name in names if isinstance(name, str)} if isinstance(names, list) else set()
        elif what == "environment.changed":
            if _is_secret(target, detail.get("set")):
                self._secret(event, target, "low", f"{target} {'removed' if 'removed' in detail else 'set'}", by=what)
        elif what.startswith(_FILES):
            self._file(event, what, target, detail)
        else:  # recorded by the agent itself, or by a newer Playhead
            rule = "delete" if what.endswith((".deleted", ".removed")) else "write"
            self._add(event, Act(rule=rule, what=what, target=target, severity="medium", detail=f"{what}: {target}"))

    def _file(self, event: Event, what: str, target: str, detail: dict[str, Any]) -> None:
        act = of_file(what, target, detail, self.places, own=target in self._made)
        if what in _MADE or (what == "file.written" and detail.get("created") is True):
            self._made.add(target)
        elif what == "file.renamed" and target in self._made:
            self._made.add(act.target)
        self.seen.take(what, target, act.target)
        by = None if what == "file.written" else act.detail  # which says from where, to which mode, to whom
        self._add(event, act, by=by, times=detail.get("times"))

    def _secret(self, event: Event, name: str, severity: str, told: str, *, by: Any, own: str | None = None) -> None:
        act = Act(rule="secret", what=event.kind, target=name, severity=severity, detail=told)
        self._add(event, act, by=by, own=own)

    def _reads(self, event: Event, data: dict[str, Any]) -> None:
        groups = text.followed(data.get("reads"), self._resolve)
        for group in groups if isinstance(groups, list) else ():
            group = mapping(text.followed(group, self._resolve))
            values = self._whole(group.get("values")) if group.get("of") == "os.environ" else None
            by = words(group.get("by")) or "the program"
            for value in values if isinstance(values, list) else ():
                for name, told in mapping(value).items():
                    if name and name != "*" and _is_secret(name, told):
                        unset = told is None
                        detail = f"{name} {'asked for' if unset else 'read'} by {by}{', and not set' if unset else ''}"
                        self._secret(event, name, "info" if unset else "medium", detail, by=(by, unset))

    def _gap(self, event: Event, data: dict[str, Any]) -> None:
        act, lost = standing.gap(data, self._resolve)
        self._add(event, act, by=event.seq if lost else None, times=lost)
        about = mapping(self._whole(data.get("detail")))
        if data.get("reason") == "not_captured" and about.get("source") in _UNSEEN_NETWORK:
            place = words(about.get("where")).rpartition(" at ")[0] or words(about.get("where"))
            self._contact(event, destination(place), None, f"by {words(about['source'])}, not captured")

    def _commit(self, event: Event, data: dict[str, Any]) -> None:
        if data.get("link") in _NOT_MADE:
            return
        files = self._whole(data.get("files"))
        count = text.several(len(files), "file") if isinstance(files, list) else "files"
        commit, message = words(data.get("commit")), words(self._whole(data.get("message"))).partition("\n")[0]
        detail = f"repo write: commit {commit[:10]} of {count}{f': {message}' if message else ''}"
        self._add(event, Act(rule="write", what=event.kind, target=commit, severity="low", detail=detail))

    def _note(self, event: Event, data: dict[str, Any]) -> None:
        told = mapping(self._whole(data.get("data")))
        if "left_tape" in told:
            self._reality.left(event.seq, self.spans)
        elif words(data.get("text")).startswith(TREE_CHANGED) and "root" in told:
            self._tree = event, told

    def _whole(self, value: Any) -> Any:
        """Return a value with nothing in it replaced by references."""
        if self._resolve is None or not isinstance(value, (dict, list)):
            return value
        return self._resolve(value)


def _sends(act: Act) -> bool:
    """Say whether something was asked of the network that may change something there; models do not."""
    return any(name not in SAFE_METHODS and not name.startswith(("model ", "by ")) for name in act.asked)


def _is_secret(name: Any, value: Any) -> bool:
    """Say whether a variable holds a secret, by its name, or since its value was redacted."""
    return isinstance(name, str) and (is_secret_name(name) or bool(marks(value)))
