"""Say what an audit can find, and hold what it found: rules, severities, findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from playhead.errors import UsageError

RULES: Final = {  # in the order in which they are told
    "write": "something was written: a file, a folder, a link, a database, a commit",
    "delete": "a file or a folder was deleted",
    "process": "a process was started, or signalled",
    "network": "a place on the network was contacted, or listened at",
    "secret": "a variable of the environment that looks secret was read, set or handed on",
    "deny": "a policy said no, or asked and nobody answered",
    "undeclared": "a tool did what it does not declare",
    "repeated": "the same side effect was attempted more than once",
    "redaction": "something was taken out of the record, since it is secret",
    "gap": "something is not on record",
}
SEVERITIES: Final = ("high", "medium", "low", "info")
_ALWAYS_DONE = ("write", "delete", "redaction", "gap")  # where `info` does not say that it was not
_NOT_WHOLE = ("missing", "unfinished", "unattested")  # verdicts, the worst first


@dataclass(slots=True, kw_only=True)
class Finding:
    """One thing that an audit found, and where it stands in the record."""

    rule: str  # one of RULES
    severity: str  # one of SEVERITIES
    run: str
    seq: int  # of the first event that tells of it
    detail: str  # for people
    what: str  # for scripts: `file.written`, `http.sent`, `tool.called`
    target: str = ""  # the file, the command, the address, the variable, the tool
    path: str = ""  # the names of the spans that it is in
    lane: str = "0"
    count: int = 1  # how often; what is done very often in one place is not recorded each time
    seqs: list[int] = field(default_factory=list)  # of every event that tells of it, in this run
    real: bool = True  # false in a replay: it was done in a scratch folder, or answered from the tape
    attempts: list[dict[str, Any]] = field(default_factory=list)  # of `repeated`: run, seq, status

    @property
    def is_done(self) -> bool:
        """Say whether the agent did what it tells of, so that its rule may fail a check.

        A replay did it in its scratch folder; `info` are the program that was recorded, a variable that was not set, a
        question that was answered.
        """
        return self.real and (self.severity != "info" or self.rule in _ALWAYS_DONE)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {name: getattr(self, name) for name in Finding.__dataclass_fields__}


@dataclass(slots=True, kw_only=True)
class Decision:
    """What a policy decided, as often as it decided it in one run."""

    run: str
    decision: str
    capability: str
    resource: str | None
    rule: str
    mode: str
    seqs: list[int]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {name: getattr(self, name) for name in Decision.__dataclass_fields__}


@dataclass(slots=True, kw_only=True)
class AuditedRun:
    """One of the runs that were audited: what it is, and whether its record can be relied on."""

    run: str
    name: str
    status: str | None  # as it ended; None while there is no end
    origin: dict[str, Any] | None
    events: int
    level: str
    integrity: dict[str, Any]  # verdict, at, reason, message
    completeness: dict[str, Any]  # verdict, detail
    timeline: str | None = None  # the file, where there is one

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {name: getattr(self, name) for name in AuditedRun.__dataclass_fields__}


@dataclass(slots=True)
class Audit:
    """What runs touched and were allowed to touch. It says nothing of whether the record is true: `integrity` does."""

    runs: list[AuditedRun]
    findings: list[Finding]
    policy: list[Decision]  # every decision, those that allowed something too

    @property
    def integrity(self) -> dict[str, Any]:
        """Return what is wrong with the first record that is broken, else with one whose end is cut or torn."""
        for name, fine in (("verdict", "intact"), ("reason", None)):
            for one in self.runs:
                if one.integrity[name] != fine:
                    return {**one.integrity, "run": one.run}
        return {"verdict": "intact", "at": None, "reason": None, "message": None, "run": None}

    @property
    def completeness(self) -> dict[str, Any]:
        """Return what is missing of the record that is the least complete; `complete` where none is."""
        for verdict in _NOT_WHOLE:
            for one in self.runs:
                if one.completeness["verdict"] == verdict:
                    return {**one.completeness, "run": one.run}
        return {"verdict": "complete", "detail": None, "run": None}

    @property
    def counts(self) -> dict[str, int]:
        """Count the findings of each rule."""
        found = Counter(one.rule for one in self.findings)
        return {rule: found[rule] for rule in RULES}

    @property
    def severities(self) -> dict[str, int]:
        """Count the findings of each severity."""
        found = Counter(one.severity for one in self.findings)
        return {severity: found[severity] for severity in SEVERITIES}

    def only(self, rules: Collection[str]) -> Audit:
        """Return the same with the findings of some rules alone; decisions of policies are of the rule `deny`."""
        _check(rules, RULES)
        decided = self.policy if "deny" in rules else []
        return Audit(self.runs, [one for one in self.findings if one.rule in rules], decided)

    def failing(self, names: Iterable[str]) -> dict[str, int]:
        """Count the findings that are of a rule, or at least of a severity, that is named; those of none are absent.

        Of a rule only what was done counts (`Finding.is_done`).
        """
        names = list(names)
        _check(names, (*RULES, *SEVERITIES))
        out: dict[str, int] = {}
        for name in names:
            severe = SEVERITIES[: SEVERITIES.index(name) + 1] if name in SEVERITIES else ()
            if count := sum((one.rule == name and one.is_done) or one.severity in severe for one in self.findings):
                out[name] = count
        return out

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON, as `playhead audit --json` prints it."""
        return {
            "runs": [one.as_dict() for one in self.runs],
            "integrity": self.integrity,
            "completeness": self.completeness,
            "findings": [one.as_dict() for one in self.findings],
            "counts": self.counts,
            "severities": self.severities,
            "policy": [one.as_dict() for one in self.policy],
        }


def _check(names: Iterable[str], known: Collection[str]) -> None:
    """Refuse what is no rule: nothing would be found of it, whatever there is."""
    if unknown := sorted({*names}.difference(known)):
        raise UsageError(f"no rule is called {unknown[0]!r}", hint=f"There are {', '.join(known)}.")
