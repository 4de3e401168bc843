"""Replay a recording against itself, for free, and say of each source whether it is reproduced."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from playhead import settings as settings_module
from playhead._api.reading import load
from playhead.cli.arguments import add_run, store_root
from playhead.cli.output import Output, clean, one_line
from playhead.cli.replay_text import drifted
from playhead.cli.silence import swallowed
from playhead.errors import UsageError
from playhead.store.files import FileStore
from playhead.store.reader import RunReader
from playhead.store.remote.reading import RemoteStore

EXITS = {"reproduced": 0, "differs": 1, "could_not_tell": 3}
_SAID = {
    "reproduced": "reproduced: a replay of this run is the same, over the recorded surface",
    "differs": "differs: a replay of this run is not the same",
    "could_not_tell": "could not tell: the program did not come to its end",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_run(parser)
    parser.epilog = (
        "No model is asked and nothing is paid: every answer comes from the recording itself. The verdict is written\n"
        "into the run; one that differs is refused by `replay --mode exact` until a later grade says otherwise. The\n"
        "code must be that which was recorded: where it has changed and differs, nothing is written.\n"
        "Exit code: 0 reproduced, 1 differs, or reproduced and refused for another reason, 3 could not tell.\n\n"
        "examples:\n"
        "  playhead grade @last\n"
        "  playhead grade fix-login --json | jq .sources"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if sys.platform == "win32":
        raise UsageError("a program is replayed on Linux and macOS, not on Windows", hint="Use WSL.")
    from playhead.replay.grade import grade

    recorded = load(args.run, args.store)
    if isinstance(recorded.store, RemoteStore):
        raise UsageError(
            f"{args.run} is on a server, where no program is run: the grade is written into the run",
            hint=f"`playhead pack {args.run} --store {recorded.store.root} -o x.cassette` brings it here, and"
            " `playhead replay x.cassette --mode exact` compares without writing.",
        )
    if type(recorded.store) is not FileStore:
        raise UsageError(
            f"{args.run} is a file: the grade is written into the run, and a file stays as it is",
            hint="`playhead replay FILE --mode exact` compares without writing.",
        )
    with swallowed():
        found = grade(
            RunReader(recorded.store, recorded.id), FileStore(store_root(args.store)), settings_module.load()
        ).as_dict()
    if out.json:
        out.emit(found)
    else:
        for line in lines(found):
            out.print(line)
    return 1 if found["refused"] else EXITS[found["verdict"]]


def lines(found: dict[str, Any]) -> list[str]:
    """Say a grade: the verdict, a line for each source, and what differs."""
    said = _SAID[found["verdict"]]
    if changed := found["code_changed"]:
        said = f"could not tell: the code has changed since, which may be why it differs: {', '.join(changed)}"
    out = [f"{found['run']}  {said}"]
    for row in found["sources"]:
        counts = f"{row['recorded']} recorded, {row['served']} served"
        more = f", {row['drifted']} from elsewhere" if row["drifted"] else ""
        more += f", {row['extra']} more than recorded" if row["extra"] else ""
        out.append(f"  {row['verdict']:<11} {row['source']:<28} {counts}{more}")
    for gap in found["not_captured"]:
        out.append(f"  not captured {one_line(gap['source'])}: {one_line(gap['where'])}")
    for number, one in enumerate(found["differences"]):
        head, *rest = clean(str(one["text"])).splitlines() or [""]
        place = one.get("where")
        out.append(f"  differs: {head}" + (f" ({place})" if place and place not in head else ""))
        out += [f"    {line}" for line in rest] if not number else []  # `--json` has all of each
    out += drifted(found["replay"]["surface"]["drift"])
    if refused := found["refused"]:
        told = "; ".join(f"{reason}: {one_line(detail)}" for reason, detail in refused.items())
        out.append(f"  refused all the same by `playhead replay --mode exact`: {told}")
        out.append(f"    `--waive {','.join(refused)}` lets that not count")
    return out
