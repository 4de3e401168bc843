"""Run a program and record it. Its stdout belongs to it; what Playhead has to say goes to stderr."""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import os
import shlex
import shutil
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

from playhead import settings as settings_module
from playhead.capture import children, enforcing
from playhead.capture.naming import is_python
from playhead.cli.arguments import store_root
from playhead.cli.earlier import good_one
from playhead.cli.output import Output, one_line, to_json
from playhead.cli.run_text import not_captured_lines
from playhead.cli.silence import swallowed
from playhead.errors import ConfigError, PlayheadError, UsageError
from playhead.policy import rules
from playhead.settings import Settings
from playhead.store.files import FileStore
from playhead.store.price_list import PriceList
from playhead.store.reader import RunReader
from playhead.views import denials, prices, redactions, text
from playhead.views.summary import Summary
from playhead.views.timeline import Timeline

if sys.platform != "win32":
    from playhead.capture.launch import NOT_FOUND, Launched, launch, open_run, policy_here, run_plainly


_CHILDREN_SHOWN = 8
_DENIED_SHOWN = 3
_WIDTH = 80  # of the summary, which stands among what the program wrote
# Effects whose name says less than is meant: whether a connection is answered is not known.
_DONE = {
    "socket.connected": "connection attempted",
    "socket.bound": "port bound",
    "environment.changed": "variable changed",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    options = "[--name NAME] [--tag KEY=VALUE] [--policy FILE] [--quiet] [--grade] [--strict] [--no-ambient]"
    parser.usage = f"playhead record {options} -- PROGRAM [ARGUMENTS]"
    parser.add_argument("--name", help="name of the run, where no agent in it has one")
    parser.add_argument("--tag", action="append", default=[], metavar="KEY=VALUE", help="mark the run; may be repeated")
    parser.add_argument("--policy", metavar="FILE", help="the policy that rules the run; else that of this folder")
    parser.add_argument("--quiet", action="store_true", help="no summary at the end")
    parser.add_argument("--grade", action="store_true", help="replay it against itself at once, and say what differs")
    parser.add_argument("--strict", action="store_true", help="refuse to run what cannot be recorded")
    parser.add_argument("--no-ambient", action="store_true", help="do not keep what clocks, random numbers, files said")
    parser.add_argument("command", nargs=argparse.REMAINDER, metavar="-- PROGRAM", help="what to run")
    parser.epilog = (
        "The program keeps its stdin, its terminal and its signals; its exit code is ours. The summary goes to\n"
        "stderr, with --json as JSON. Every Python that it is, or starts, is recorded without a change to its code;\n"
        "an agent inside it (@playhead.agent) adopts the run.\n"
        "Exit code: that of the program; 128 + n when signal n killed it; 127 not found, 126 not executable.\n\n"
        "examples:\n"
        "  playhead record -- python agent.py --issue 1842\n"
        "  playhead record --name nightly --tag branch=main -- make agent"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if sys.platform == "win32":
        raise UsageError("a program is recorded on Linux and macOS, not on Windows", hint="Use WSL.")
    command = _command(args)
    if not command:
        raise UsageError("say what to run", hint="For instance `playhead record -- python agent.py`.")
    if args.policy is not None:  # in the environment, so that it rules the Pythons that the program starts as well
        os.environ["PLAYHEAD_POLICY"] = os.path.abspath(args.policy)
    settings = settings_module.load()
    if settings.disabled:
        return run_plainly(command)
    if args.policy is not None:
        _refuse_another(args.policy, settings)
    if args.strict:
        settings = dataclasses.replace(settings, strict=True)
    if args.no_ambient:
        settings = dataclasses.replace(settings, ambient=False)
    tags = dict(_tag(item) for item in args.tag)
    if _is_missing(command[0]):
        return _tell_missing(command, out)
    store = FileStore(store_root(args.store))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            recording = open_run(store, settings)
        except PlayheadError as problem:
            if settings.strict or isinstance(problem, ConfigError) or children.holds():
                raise  # as for every other setting that is wrong; and what a policy rules does not run without it
            enforcing.insist(problem)
            _say(out, f"playhead: the program runs, but it is NOT recorded: {problem.message}\n  {problem.hint}")
            os.environ["PLAYHEAD_DIR"] = str(store.root)  # an agent inside must not record somewhere else instead
            return run_plainly(command)
        launched = launch(recording, command, name=args.name, tags=tags)
    complaints = [str(warning.message).removeprefix("playhead: ") for warning in told]
    _conclude(launched, [*launched.warnings, *complaints], store, settings, args, out)
    if args.grade and not launched.problem:
        _grade(launched, store, settings, out)
    return launched.exit_code


def _refuse_another(named: str, settings: Settings) -> None:
    """Raise where a policy is named, and another one is enforced in the run that we were started in."""
    around = policy_here(settings)
    if around is not None and rules.load(named).digest != around.digest:
        raise UsageError(
            f"{named} cannot be in force here: {around.source} is enforced in the run in which this was started",
            hint="Leave --policy out: what is enforced holds in all that is started.",
        )


def _is_missing(program: str) -> bool:
    """Say whether there is no such program, so that nothing would run that could be recorded."""
    return shutil.which(program) is None and not (os.sep in program and os.path.lexists(program))


def _tell_missing(command: list[str], out: Output) -> int:
    """Say so as a shell does, and what may have been meant."""
    program = command[0]
    meant = command if program.endswith(".py") else [f"{os.curdir}{os.sep}{program}", *command[1:]]
    hint = "Nothing ran, and nothing was recorded."
    if os.path.isfile(program):
        python = ["python"] if program.endswith(".py") else []
        hint = f"Did you mean `playhead record -- {shlex.join([*python, *meant])}`?"
    problem = UsageError(f"cannot run {program}: there is no such program", hint=hint)
    _say(out, to_json(problem.as_dict()) if out.json else f"playhead: {problem.message}\n  {problem.hint}")
    return NOT_FOUND


def _command(args: argparse.Namespace) -> list[str]:
    command: list[str] = args.command
    return command[1:] if command[:1] == ["--"] else command


def _grade(launched: Launched, store: FileStore, settings: Settings, out: Output) -> None:
    from playhead.cli.commands.grade import lines
    from playhead.replay.grade import grade

    try:
        with swallowed():
            found = grade(RunReader(store, launched.run), store, settings).as_dict()
    except PlayheadError as problem:
        _say(out, f"playhead: {launched.run} could not be graded: {problem.message}")
        return
    if out.json:
        _say(out, to_json({"grade": found}))
    else:
        for line in lines(found):
            _say(out, line)


def _tag(item: str) -> tuple[str, str]:
    key, equals, value = item.partition("=")
    if not key or not equals:
        raise UsageError(f"not a tag: {item!r}", hint="A tag is KEY=VALUE, for instance `--tag branch=main`.")
    return key, value


def _conclude(
    launched: Launched,
    complaints: list[str],
    store: FileStore,
    settings: Settings,
    args: argparse.Namespace,
    out: Output,
) -> None:
    if launched.problem:
        _say(out, f"playhead: {launched.problem}")
    for complaint in complaints:
        _say(out, f"playhead: {complaint}")
    if args.quiet:
        return
    try:
        timeline = Timeline(prices=PriceList(settings.prices, store.root))
        summary = timeline.take_all(RunReader(store, launched.run).events()).finish()
    except (PlayheadError, OSError) as problem:
        _say(out, f"playhead: {launched.run} cannot be read back: {problem}")
        return
    if args.name not in (None, summary.name):
        _say(out, f"playhead: the run is called {one_line(summary.name)}, as the agent is that adopted it")
    lost = max(launched.lost, sum(summary.gaps.values()))
    children = _children(store, launched.run, settings)
    if out.json:
        _say(
            out, to_json(_document(launched, summary, lost) | {"children": [_child(*one) for one in children.items()]})
        )
    else:
        reference = _reference(launched.path, args.store, settings)
        # As far as is known without reading all of it once more.
        unseen = lost or summary.not_captured or launched.not_attached or summary.ambient is False
        mode = " --mode exact" if not unseen and is_python(_command(args)) else ""
        good = None if summary.ended == "ok" else good_one(store, launched.run, summary.name)
        for line in _lines(launched, summary, lost, children, reference, mode, good):
            _say(out, line)


def _children(store: FileStore, run: str, settings: Settings) -> dict[str, Summary]:
    """Sum up the runs of programs that the program started, and that those started; ids are in the order of time."""
    family, out = {run}, {}
    sold = PriceList(settings.prices, store.root)
    for id in store.runs():
        if id > run:
            try:
                events = RunReader(store, id).events()
                started = next(events, None)
                origin = started.data.get("origin") if started is not None and started.kind == "run.started" else None
                if started is not None and isinstance(origin, dict) and origin.get("run") in family:
                    out[id] = Timeline(prices=sold).take_all([started, *events]).finish()
                    family.add(id)
            except (PlayheadError, OSError):
                continue  # `doctor` tells of runs that cannot be read
    return out


def _child(id: str, summary: Summary) -> dict[str, Any]:
    return {
        "run": id, "name": summary.name, "status": summary.ended, **_counts(summary), "denied": summary.denied,
    }  # fmt: skip


def _counts(summary: Summary) -> dict[str, Any]:
    return {
        "events": summary.events,
        "model_calls": summary.model_calls,
        "model_failures": summary.model_failures,
        "tool_calls": summary.tool_calls,
        "http_requests": summary.http_requests,
        "tokens_in": summary.tokens_in,
        "tokens_out": summary.tokens_out,
        "calls_without_usage": summary.calls_without_usage,
        "cost": summary.cost,
        "cost_unpriced": summary.cost_unpriced,
    }


def _document(launched: Launched, summary: Summary, lost: int) -> dict[str, Any]:
    return {
        "run": launched.run,
        "name": summary.name,
        "status": summary.ended,
        "exit_code": launched.exit_code,
        "signal": _signal_name(launched.returncode),
        "duration_ms": summary.duration_us / 1000,
        **_counts(summary),
        "lost": lost,
        "gaps": summary.gaps,
        "effects": summary.effects,
        "files_changed": summary.files_changed,
        "not_captured": summary.not_captured,
        "not_attached": launched.not_attached,
        "denied": summary.denied,
        "redacted": summary.redacted,
        "redacted_at_least": summary.redacted_at_least,
        "last_words": summary.last_words,
        "path": str(launched.path),
    }


def _counted_up(summary: Summary) -> str:
    counts = [text.several(summary.events, "event")]
    silent, spent = summary.calls_without_usage, summary.tokens_in or summary.tokens_out
    if summary.model_calls:
        counts.append(text.several(summary.model_calls, "model call"))
    if silent and not spent:
        all_of_them = silent == summary.model_calls
        counts.append(
            f"{'which' if all_of_them else text.number(silent)} did not say {'its' if silent == 1 else 'their'} tokens"
        )
    if summary.model_failures:
        counts.append(f"{text.number(summary.model_failures)} failed")
    if summary.tool_calls:
        counts.append(text.several(summary.tool_calls, "tool call"))
    if summary.http_requests:
        counts.append(text.several(summary.http_requests, "http request"))
    if spent:
        without = f" ({text.several(silent, 'call')} did not say)" if silent else ""
        counts.append(f"{text.number(summary.tokens_in)} tokens in, {text.number(summary.tokens_out)} out{without}")
    return ", ".join(counts)


def _lines(
    launched: Launched,
    summary: Summary,
    lost: int,
    children: dict[str, Summary],
    reference: str,
    mode: str = "",
    good: str | None = None,
) -> list[str]:
    ended = _signal_name(launched.returncode) or f"exit {launched.exit_code}"
    lines = [
        "",
        f"playhead: {summary.name}  {summary.ended or 'unfinished'} ({ended}), {text.duration(summary.duration_us)}",
        f"  {_counted_up(summary)}",
    ]
    if summary.last_words:
        lines.append(f"  stderr: … {one_line(summary.last_words)}")
    if cost := prices.told(summary.cost, summary.cost_unpriced, summary.calls_without_usage):
        lines.append(f"  cost: {cost}")
    for id, child in itertools.islice(children.items(), _CHILDREN_SHOWN):
        lines.append(f"  it started {child.name}, a run of its own: {_child_told(child)} ({id})")
    if len(children) > _CHILDREN_SHOWN:
        lines.append(f"  … and {text.several(len(children) - _CHILDREN_SHOWN, 'run')} more; `playhead ls` has them all")
    lines += _effects(summary)
    if summary.reads and summary.ambient is not False:
        lines.append(f"  reads: {summary.reads:,} of clocks, variables, files and the like; `show --reads` lists them")
    if denied := denials.told(summary.denied, _DENIED_SHOWN):
        lines.append(f"  policy: {one_line(denied)}")
    if summary.files_changed:
        lines.append(f"  {text.several(summary.files_changed, 'file')} changed in the working tree")
    if redacted := redactions.told(summary.redacted, summary.redacted_at_least):
        lines.append(f"  redacted: {one_line(redacted)}")
    if summary.not_captured:
        lines += [f"  not captured: {told}" for told in not_captured_lines(summary)]
        lines.append("    (what went on there was not seen; the rest is on record)")
    if lost:
        gaps = _times({name: count for name, count in summary.gaps.items() if count})
        lines.append(f"  LOST, though it was seen: {gaps or text.several(lost, 'event')}")
        lines.append("    (so the run is not played back; `show` says where, `doctor` may say why)")
    told = [f"playhead show {reference}", f"playhead verify {reference}"]
    if good is not None:
        told.insert(1, f"playhead diff {good} {reference}")
    if not lost:  # a run with gaps is not played back
        told.append(f"playhead replay {reference}{mode}")
    return [
        *lines,
        f"  {_short(launched.path)}",
        *(f"  {'     ' if number else 'next:'} {one}" for number, one in enumerate(told)),
    ]


def _child_told(child: Summary) -> str:
    """Sum up a program that the program started; it is a run of its own."""
    cost = prices.told(child.cost, child.cost_unpriced, child.calls_without_usage)
    lost = sum(child.gaps.values())
    denied, missed = denials.told(child.denied, 1), f"{lost} NOT recorded" if lost else ""
    told = [child.ended or "unfinished", _counted_up(child), cost, one_line(denied), missed]
    return ", ".join(part for part in told if part)


def _times(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,}× {one_line(name)}" for name, count in sorted(counts.items()))


def _effects(summary: Summary) -> list[str]:
    """Say what was done outside the program, and how often; `show` says to what."""
    if not summary.effects:
        return []
    told = _times({_DONE.get(what, what.replace(".", " ")): count for what, count in summary.effects.items()})
    whole = told.replace(" ", "\xa0").replace(",\xa0", ", ")  # broken between two of them only
    lines = [line.replace("\xa0", " ") for line in text.wrap(whole, _WIDTH - len("  effects: "))]
    return [f"  effects: {lines[0]}", *(f"           {line}" for line in lines[1:])]


def _signal_name(returncode: int) -> str | None:
    if returncode >= 0:
        return None
    try:
        return signal.Signals(-returncode).name
    except ValueError:  # a real-time signal has no name
        return f"signal {-returncode}"


def _reference(path: Path, named: str | None, settings: Settings) -> str:
    """Return what to type to name the run from here; not `@last`, since programs that it started may be runs too."""
    in_force = named is None or path.is_relative_to(settings.store_root())
    return path.name if in_force else f"{path.name} --store {named}"


def _short(path: Path) -> str:
    relative = os.path.relpath(path)
    return str(path) if relative.startswith("..") else relative


def _say(out: Output, text: str) -> None:
    try:
        out.warn(text)
    except OSError:
        pass  # nobody listens on stderr any more; the program's exit code is what counts
