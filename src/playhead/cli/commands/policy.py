"""Look at a policy: whether it is one, what it says about something, what it would have denied."""

from __future__ import annotations

import argparse
import difflib
import os
from collections import Counter
from typing import Any

from playhead._api import policing
from playhead._api.children import children_of
from playhead._api.policing import policy_here, tested
from playhead._api.reading import Run, load, open_index, open_store
from playhead.cli import filters
from playhead.cli.arguments import add_run, add_shared
from playhead.cli.output import Output, one_line
from playhead.cli.run_text import symbol
from playhead.errors import ConfigError, UsageError
from playhead.policy import commands, patterns, pushes
from playhead.policy.rules import KNOWN, Rules, decide
from playhead.views import text

_SHOWN = 20  # of what would be denied, of each rule
_ALIKE = 0.8  # how much a capability must look like another one to be taken for it
_RESOURCES = {  # an example for each
    "fs.write": "out/report.md",
    "fs.delete": "out/report.md",
    "process.exec": "'git status'",
    "net.connect": "api.example.com:443",
    "tool.call": "read_file",
    "model.use": "gpt-5",
    "git.push": "origin",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.epilog = (
        "examples:\n"
        "  playhead policy check\n"
        "  playhead policy explain fs.write src/../.env\n"
        "  playhead policy explain net.connect https://api.openai.com/v1\n"
        "  playhead policy test --since 30d            what would it have denied last month?\n"
        "  playhead policy test @last --policy stricter.toml"
    )
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    check = _sub(what, "check", "whether a policy is one, and what it has")
    check.add_argument("file", nargs="?", metavar="FILE", help="the policy; else that of this folder")
    explain = _sub(what, "explain", "what a policy says about something, and by which rule")
    explain.add_argument("capability", help=f"such as {', '.join(KNOWN)}, or one of your own")
    explain.add_argument("resource", nargs="?", default="", help="a path, a command, a host or URL, a name")
    test = _sub(what, "test", "what a policy would have denied in recorded runs")
    add_run(test, "runs", nargs="*")
    filters.add_filters(test)
    test.add_argument("-n", "--limit", type=int, default=0, metavar="N", help="at most so many, the newest; 0 for all")
    test.add_argument("--exit-code", action="store_true", help="exit with 1 where something would have been denied")
    for one in (check, explain, test):
        one.add_argument("--policy", metavar="FILE", help="the policy; else that of this folder")


def _sub(what: Any, name: str, told: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = what.add_parser(name, help=told, description=f"Say {told}.")
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add_shared(parser, inner=True)
    return parser


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if args.what == "check":
        return _check(args, out)
    policy = policy_here(args.policy)
    return _explain(policy, args, out) if args.what == "explain" else _test(policy, args, out)


def _check(args: argparse.Namespace, out: Output) -> int:
    try:
        policy = policy_here(_file(args))
    except ConfigError as problem:
        if out.json:
            out.emit({"valid": False, **problem.as_dict()})
        else:
            out.warn(f"playhead: {problem.message}\n  {problem.hint}")
        return 1
    doubts = [*patterns.doubts(policy.capabilities, KNOWN, policy.search), *policing.doubts(policy)]
    document = {"valid": True, "doubts": doubts, **policy.as_snapshot()}
    if out.json:
        out.emit(document)
        return 0
    out.styled(("✓ " if out.unicode else "+ ", "green"), f"{one_line(policy.source)}, mode {policy.mode}")
    for name, table in sorted(policy.capabilities.items()):
        told = "; ".join(f"{how} {', '.join(given)}" for how, given in table.items() if given)
        out.print(f"  {name:<14} {one_line(told)}")
    for name, value in policy.limits.items():
        out.print(f"  at most {value:g} {name}")
    missing = [name for name in KNOWN if name not in policy.capabilities]
    if missing:
        out.wrapped([("  denied, since it is not named: ", "dim")], ", ".join(missing))
    _doubt(doubts, out)
    return 0


def _doubt(doubts: list[str], out: Output) -> None:
    for doubt in doubts:
        out.wrapped([(f"  {'⚠' if out.unicode else '!'} ", "yellow")], doubt)


def _file(args: argparse.Namespace) -> str | None:
    if args.file is not None and args.policy is not None:
        raise UsageError("two policies", hint="Name one: `playhead policy check FILE`, or `--policy FILE`.")
    named: str | None = args.policy if args.file is None else args.file
    return named


def _explain(policy: Rules, args: argparse.Namespace, out: Output) -> int:
    if not args.resource and args.capability in KNOWN:
        asked = f"playhead policy explain {args.capability} {_RESOURCES[args.capability]}"
        raise UsageError(f"{args.capability} on what?", hint=f"Name the resource: `{asked}`.")
    questions = [(args.capability, args.resource), *_asked_too(args.capability, args.resource)]
    decisions = [(capability, resource, decide(policy, capability, resource)) for capability, resource in questions]
    whole = next((one for *_, one in decisions if one.decision != "allow"), decisions[0][2])
    known = [*KNOWN, *policy.capabilities]
    meant = [] if args.capability in known else difflib.get_close_matches(args.capability, known, 1, _ALIKE)
    if out.json:
        told = {"capability": args.capability, "resource": args.resource, "mode": policy.mode, **whole._asdict()}
        each = [{"capability": capability, "resource": on, **one._asdict()} for capability, on, one in decisions]
        out.emit({**told, "asked": each, "did_you_mean": meant[0] if meant else None})
        return 0 if whole.decision == "allow" else 1
    for capability, resource, decision in decisions:
        sign, style = symbol(decision.decision, out)
        out.styled((f"{sign} {decision.decision}", style), f"  {one_line(capability)} {one_line(resource)}")
        out.print(f"  by {one_line(decision.rule)}" + (f": {one_line(decision.reason)}" if decision.reason else ""))
    if policy.mode == "observe" and whole.decision != "allow":
        out.print("  mode observe: it would be recorded, and not stopped")
    if meant:
        out.print(f"  {one_line(args.capability)} is asked by nothing but playhead.check: did you mean {meant[0]}?")
    return 0 if whole.decision == "allow" else 1


def _asked_too(capability: str, resource: str) -> list[tuple[str, str]]:
    """Return what else is asked about what is done: a command that pushes needs leave for both."""
    pushed = pushes.pushed_to(commands.words_of(resource), os.getcwd()) if capability == "process.exec" else None
    return [] if pushed is None else [("git.push", pushed)]


def _test(policy: Rules, args: argparse.Namespace, out: Output) -> int:
    runs = _runs(args)
    found = []
    with out.progress(len(runs), "asking") as advance:
        for one in tested(policy, runs):
            found.append(one)
            advance(1)
    denied = sum(len(one.denied) for one in found)
    doubts = policing.unjudged(found)
    if out.json:
        out.emit({"policy": policy.source, "runs": [vars(one) for one in found], "denied": denied, "doubts": doubts})
    else:
        counts = Counter(str(entry["rule"]) for one in found for entry in one.denied)
        asked = sum(one.asked for one in found)
        out.styled(
            (f"{denied:,} of {asked:,}", "bold"), f" would have been denied in {text.several(len(found), 'run')}"
        )
        for rule, count in counts.most_common():
            out.styled((f"\n{one_line(rule)}", "bold"), f"  {count:,}")
            entries = [(one.run, entry) for one in found for entry in one.denied if entry["rule"] == rule]
            for run_id, entry in entries[:_SHOWN]:
                what = f"{entry['capability']} {entry['resource']}"
                out.print(f"  {run_id}  event {entry['seq']:<6} {one_line(what)}")
            if len(entries) > _SHOWN:
                out.styled((f"  … {len(entries) - _SHOWN:,} more (--json)", "dim"))
        if doubts:
            out.print()
            _doubt(doubts, out)
    return 1 if args.exit_code and denied else 0


def _runs(args: argparse.Namespace) -> list[Run]:
    """Return the runs that are asked about, each with those of the Pythons that its program started."""
    found = {run.id: run for chosen in _chosen(args) for run in (chosen, *children_of(chosen))}
    return list(found.values())


def _chosen(args: argparse.Namespace) -> list[Run]:
    if args.runs:
        if filters.given(args):
            raise UsageError("runs are named, or chosen by filters", hint="Leave one of the two out.")
        return [load(name, args.store) for name in args.runs]
    store = open_store(args.store)
    with open_index(store) as index:
        listed = index.list_runs(limit=args.limit or -1, include_replays=False, **filters.chosen(args))
    return [Run(store, one["id"]) for one in listed]
