"""Read a policy, and decide by it. Whatever is not allowed is denied: deny wins over ask, ask over allow.

A policy says what an agent may do with what: `[capabilities."fs.write"] allow = ["src/**"]`. A capability that it does
not name is denied. Deciding proves nothing about what happens after: it is a guard against mistakes, and no sandbox.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from playhead import _limits
from playhead.errors import ConfigError
from playhead.policy import paths, patterns
from playhead.policy.paths import Touch
from playhead.policy.things import Thing, thing_of

FILE = "playhead.policy.toml"
KNOWN = ("fs.write", "fs.delete", "process.exec", "net.connect", "tool.call", "model.use", "git.push")
# What is denied once a limit is reached; None for everything.
LIMITS = {
    "tokens": "model.use",
    "cost": "model.use",
    "model_calls": "model.use",
    "tool_calls": "tool.call",
    "seconds": None,
}
UNPRICED = "limits.cost unpriced"  # the rule that denies a model of which nobody knows what it costs
_EFFECTS = ("deny", "ask", "allow")  # in the order in which they count
_CAPABILITY = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
_HINT = "docs/guides/policy.md says what a policy may have."
_TOP = ("version", "mode", "capabilities", "limits")

Decided = Literal["allow", "deny", "ask"]
Mode = Literal["observe", "enforce"]


class Decision(NamedTuple):
    """What a policy says, by which rule, and why."""

    decision: Decided
    rule: str
    reason: str | None = None


@dataclass
class Spent:
    """What a run has used so far, for the limits of a policy; calls that were denied are none."""

    tokens: int = 0
    cost: float = 0.0
    model_calls: int = 0
    tool_calls: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Rules:
    """A policy: what is allowed, denied and to be asked for, by capability; and limits."""

    mode: Mode = "observe"
    capabilities: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    root: str = ""  # the folder that relative paths are in
    source: str = ""  # the file
    digest: str = ""  # of what it said
    search: str = ""  # where programs were looked for when it was read: an agent may change its PATH

    def as_snapshot(self) -> dict[str, Any]:
        """Return what is kept with a run, and rules it from then on."""
        capabilities = {
            name: {how: list(rules) for how, rules in table.items()} for name, table in self.capabilities.items()
        }
        policy = {name: getattr(self, name) for name in ("root", "source", "digest", "search")}
        return {"mode": self.mode, "policy": {"capabilities": capabilities, "limits": dict(self.limits), **policy}}


def load(path: str | Path) -> Rules:
    """Read a policy from a file. ConfigError, with the place, where it is not one."""
    path = Path(path)
    try:
        with open(path, "rb") as file:
            raw = file.read(_limits.POLICY_BYTES_MAX + 1)
    except OSError as problem:
        raise ConfigError(f"the policy {path} cannot be read: {problem.strerror}", hint=_HINT) from None
    if len(raw) > _limits.POLICY_BYTES_MAX:
        raise ConfigError(f"the policy {path} has more than {_limits.POLICY_BYTES_MAX:,} bytes", hint=_HINT)
    return parse(raw, str(path), root=str(path.absolute().parent))


def parse(raw: bytes, source: str, root: str) -> Rules:
    """Read the text of a policy."""
    import tomllib

    try:
        table = tomllib.loads(raw.decode())
    except (ValueError, RecursionError) as problem:  # no TOML, no UTF-8, a number of thousands of digits
        raise ConfigError(f"{source} cannot be read: {problem}", hint=_HINT) from None
    problems = list(_problems(table))
    if not problems:
        problems = [
            f'capabilities."{name}": {how} {pattern!r} can never fit: {why}'
            for name, rules in _capabilities(table.get("capabilities", {})).items()
            for how, given in rules.items()
            for pattern in given
            if (why := patterns.problem_of(name, pattern)) is not None
        ]
    if problems:
        more = "".join(f"\n  {problem}" for problem in problems[1:10])
        raise ConfigError(f"{source}: {problems[0]}{more}", hint=_HINT)
    return Rules(
        mode=table.get("mode", "observe"),
        capabilities=_capabilities(table.get("capabilities", {})),
        limits={name: float(value) for name, value in table.get("limits", {}).items()},
        root=root,
        source=source,
        digest=hashlib.sha256(raw).hexdigest(),
        search=os.environ.get("PATH") or os.defpath,
    )


def of_snapshot(snapshot: Any) -> Rules | None:
    """Return the policy that rules a run from what was kept with it; None where it had none."""
    policy = snapshot.get("policy") if isinstance(snapshot, dict) else None
    if not isinstance(policy, dict) or "capabilities" not in policy:
        return None
    mode: Mode = "enforce" if snapshot.get("mode") == "enforce" else "observe"
    table = {"capabilities": policy["capabilities"], "limits": policy.get("limits", {})}
    if any(_problems(table)):
        return Rules(mode=mode, source=str(policy.get("source")))  # somebody altered it: nothing is allowed
    return Rules(
        mode=mode,
        capabilities=_capabilities(policy["capabilities"]),
        limits=dict(policy.get("limits", {})),
        root=str(policy.get("root", "")),
        source=str(policy.get("source", "")),
        digest=str(policy.get("digest", "")),
        search=str(policy.get("search", "")),
    )


def find(folder: Path, named: str = FILE) -> Rules | None:
    """Return the policy of a folder: the file that a setting names; None where that is the usual one and not there."""
    path = folder / os.path.expanduser(named)
    return None if named == FILE and not os.path.lexists(path) else load(path)  # a link to nothing is an error


def above(folder: Path) -> Path | None:
    """Return the policy of the nearest folder above, up to that of the repository: it is not in force here."""
    for at in (folder, *folder.parents):
        if at != folder and os.path.lexists(at / FILE):
            return at / FILE
        if os.path.lexists(at / ".git"):
            return None
    return None


def decide(
    rules: Rules,
    capability: str,
    resource: str | None,
    *,
    spent: Spent | None = None,
    touch: Touch | None = None,
    holds: str | None = None,
    unpriced: bool = False,
) -> Decision:
    """Say whether a capability may be used on a resource. This is the one place where that is decided.

    Of a file, `touch` says whether its name is meant or what that leads to, and `holds` is the folder whose contents
    go with it. A path with a slash at its end is a folder that is made. A model is `unpriced` where nobody knows what
    it costs: under a limit of dollars it is denied, since nobody could tell when that is reached.
    """
    over = _over(rules.limits, capability, spent) if spent is not None else None
    if over is not None:
        return over
    table = rules.capabilities.get(capability)
    if table is None:
        return Decision("deny", "default", f"the policy does not name {capability}")
    if capability.startswith("fs."):
        return _decide_file(table, capability, resource or "", rules.root, touch, holds)
    found = _hold(table, thing_of(capability, resource or "", rules.root, rules.search))
    if unpriced and "cost" in rules.limits and capability == LIMITS["cost"] and found.decision == "allow":
        return Decision("deny", UNPRICED, f"nobody knows what {resource} costs, so limits.cost cannot be judged")
    return found


def _hold(table: Mapping[str, tuple[str, ...]], thing: Thing) -> Decision:
    """Hold the patterns of a capability against a thing."""
    for how in _EFFECTS:
        for pattern in table.get(how, ()):
            if thing.fits(pattern, any_case=how != "allow"):
                if how == "allow" and thing.has_other_names and not _allows_all(table):
                    unknown = "the file has other names, and they are unknown"
                    return Decision("deny", f"{thing.capability} hard link", unknown)
                if how == "allow" and (why := thing.unheld_by(pattern)) is not None:
                    return Decision("deny", f"{thing.capability} unheld", why)
                return Decision(how, f"{thing.capability} {how} {pattern}")  # type: ignore[arg-type]
    return Decision("deny", f"{thing.capability} default", f"nothing allows {thing.capability} on {thing.name}")


def _decide_file(
    table: Mapping[str, tuple[str, ...]],
    capability: str,
    path: str,
    root: str,
    touch: Touch | None,
    holds: str | None,
) -> Decision:
    """Decide about a file: the name, what it leads to, and all that it holds, as far as it is touched."""
    touch = touch or ("name" if capability == "fs.delete" else "target")
    if touch == "unknown" and not _allows_all(table):
        return Decision("deny", f"{capability} unknown file", "nobody can tell which file it is")
    if touch == "recorded":
        name = paths.recorded_name(path, root)
        return _hold(table, Thing(name, capability, root, names=(name,), is_folder=path.endswith("/")))
    decisions = []
    for itself in (touch == "name",) if touch != "both" else (False, True):
        names = tuple(paths.names_of(path, root, itself=itself))
        thing = Thing(names[-1], capability, root, names=names, is_folder=path.endswith("/"),
                       has_other_names=not itself and paths.has_other_names(names[-1]))  # fmt: skip
        decisions.append(_hold(table, thing))
        if decisions[-1].decision != "allow":
            return decisions[-1]
    if holds is not None and os.path.isdir(holds) and not os.path.islink(holds):
        return _decide_inside(table, thing, holds) or decisions[0]
    return decisions[0]


def _decide_inside(table: Mapping[str, tuple[str, ...]], folder: Thing, holds: str) -> Decision | None:
    """Decide about what a folder holds, whose names begin with that of the folder; None where all is allowed."""
    forbidden = [*table.get("deny", ()), *table.get("ask", ())]
    if not any(paths.reaches(pattern, folder.name, folder.root) for pattern in forbidden) and any(
        paths.means_all_in(pattern, folder.name, folder.root) for pattern in table.get("allow", ())
    ):
        return None
    try:
        for at, name in enumerate(paths.inside(holds)):
            if at >= _limits.POLICY_FOLDER_MAX:
                many = f"{holds} holds more than {_limits.POLICY_FOLDER_MAX} files, too many to look at"
                return Decision("deny", f"{folder.capability} folder", many)
            whole = os.path.join(folder.name, name)
            decision = _hold(table, Thing(whole, folder.capability, folder.root, names=(whole,)))
            if decision.decision != "allow":
                why = decision.reason or f"{decision.decision} by {decision.rule}"
                return decision._replace(reason=f"{name} is in it: {why}")
    except OSError as problem:
        return Decision("deny", f"{folder.capability} folder", f"nobody can tell what it holds: {problem}")
    return None


def decide_any(rules: Rules, capability: str, names: Sequence[str]) -> Decision:
    """Decide about a thing with several names: what one of them is denied, is; what one of them is allowed, else is."""
    decisions = [decide(rules, capability, name) for name in names]
    for how in _EFFECTS:
        for one in decisions:
            if one.decision == how and not (how == "deny" and one.rule.endswith("default")):
                return one
    return decisions[0]


def _allows_all(table: Mapping[str, tuple[str, ...]]) -> bool:
    return not table.get("deny") and not table.get("ask") and bool({"**", "/**"} & set(table.get("allow", ())))


def _over(limits: Mapping[str, float], capability: str, spent: Spent) -> Decision | None:
    """Deny what a limit is about once that is reached, and say what else it is about."""
    for name, most in limits.items():
        used = getattr(spent, name)
        if LIMITS[name] in (None, capability) and used >= most:
            what = "nothing more is allowed" if LIMITS[name] is None else f"no more {capability} is allowed"
            return Decision("deny", f"limits.{name}", f"{used:.12g} of {most:.12g} {name} are used: {what} in this run")
    return None


def _capabilities(table: Mapping[str, Any]) -> dict[str, dict[str, tuple[str, ...]]]:
    return {
        name: {how: tuple([given] if isinstance(given, str) else given) for how, given in rules.items()}
        for name, rules in table.items()
    }


def _problems(table: Mapping[str, Any]) -> Any:
    """Yield what is wrong with a policy, each with its place."""
    for name in table:
        if name not in _TOP:
            yield f"there is no {name!r} in a policy; there are {', '.join(_TOP)}"
    if table.get("version", 1) != 1:
        yield f"version {table['version']!r} is not known; this Playhead reads version 1"
    if table.get("mode", "observe") not in ("observe", "enforce"):
        yield f"mode = {table['mode']!r} is neither 'observe' nor 'enforce'"
    capabilities = table.get("capabilities", {})
    if not isinstance(capabilities, Mapping):
        yield 'capabilities must be a table: [capabilities."fs.write"]'
        capabilities = {}
    for name, rules in capabilities.items():
        yield from _problems_of(name, rules)
    limits = table.get("limits", {})
    if not isinstance(limits, Mapping):
        yield "limits must be a table: [limits] tokens = 100000"
        return
    for name, value in limits.items():
        if name not in LIMITS:
            yield f"there is no limit {name!r}; there are {', '.join(LIMITS)}"
        elif type(value) not in (int, float) or not 0 <= value <= sys.float_info.max:
            yield f"limits.{name} must be a number from 0 on, and not {value!r}; leave it out for no limit"


def _problems_of(name: Any, rules: Any) -> Any:
    place = f'capabilities."{name}"'
    if not isinstance(name, str) or not _CAPABILITY.fullmatch(name):
        yield f'{place}: a capability is two words or more with dots, as "fs.write"'
    if not isinstance(rules, Mapping):
        hint = (
            f' (write [capabilities."{name}.…"] with its quotes)' if isinstance(name, str) and "." not in name else ""
        )
        yield f"{place} must be a table with allow, deny and ask{hint}"
        return
    for how, given in rules.items():
        if how not in _EFFECTS:
            yield f'{place}: there is no {how!r}, only allow, deny and ask (a name with dots needs quotes: "fs.write")'
        elif not isinstance(given, str) and not (
            isinstance(given, list) and all(isinstance(one, str) for one in given)
        ):
            yield f"{place}: {how} must be a list of texts"
