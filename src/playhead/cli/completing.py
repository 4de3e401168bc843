"""Complete commands and runs in a shell. Imported only when a shell asks, or when a parser names a run."""

from __future__ import annotations

import os
from typing import Any

_OFFERED_MAX = 50


def complete() -> None:
    """Answer the shell and end the process; returns where argcomplete finds that nothing is asked."""
    import argparse

    import argcomplete

    from playhead.cli.arguments import add_shared
    from playhead.cli.main import COMMANDS, module_of

    words = os.environ.get("COMP_LINE", "").split()
    parser = argparse.ArgumentParser(prog="playhead")
    commands = parser.add_subparsers()
    for name, told in COMMANDS.items():
        command = commands.add_parser(name, help=told)
        if name in words:
            module_of(name).configure(command)
            add_shared(command)
    argcomplete.autocomplete(parser)


def complete_runs(prefix: str, parsed_args: Any, **_: Any) -> list[str]:
    """Offer ids that begin like this, names of recent runs, and @last."""
    from playhead.cli.arguments import store_root
    from playhead.cli.quick_index import open_quick_index

    with open_quick_index(store_root(getattr(parsed_args, "store", None))) as index:
        if prefix.startswith("run_"):
            return index.with_prefix(prefix, _OFFERED_MAX)
        recent = index.list_runs(limit=_OFFERED_MAX)
    offered = ["@last", *dict.fromkeys(run["name"] for run in recent if run["name"]), *(run["id"] for run in recent)]
    return [text for text in offered if text.startswith(prefix)]
