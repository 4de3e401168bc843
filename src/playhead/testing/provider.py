"""Run a scripted provider in a process of its own: `python -m playhead.testing.provider SCRIPT.json --port 0`."""

from __future__ import annotations

import json
import os
import queue
import signal
import stat
import sys
import threading
from pathlib import Path
from typing import Any

from playhead.testing.exchanges import Exchange, ReceivedRequest
from playhead.testing.script import as_wire
from playhead.testing.server import ScriptedProvider

__all__ = ["Exchange", "ReceivedRequest", "ScriptedProvider", "main"]

_STDIN = 0
_KEYS = {"script", "by_prompt", "repeat", "wire"}


def main(arguments: list[str] | None = None) -> int:
    """Serve a script until SIGTERM or SIGINT, or the end of a pipe on stdin; prints the addresses as a line of JSON."""
    import argparse  # here, because whoever imports the provider does not need it

    parser = argparse.ArgumentParser(prog="python -m playhead.testing.provider", description=main.__doc__)
    parser.add_argument(
        "script", type=Path, help="a JSON file: a list of answers, or an object with script, by_prompt, repeat, wire"
    )
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free one")
    parser.add_argument("--log", type=Path, help="write each exchange into this file, as a line of JSON")
    given = parser.parse_args(arguments)
    watched = _somebody_holds_stdin()  # before anything of ours takes a number that was free
    try:
        provider = _provider_of(json.loads(given.script.read_text("utf-8")), given.port, given.log)
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        parser.error(f"{given.script}: {error}")
    try:
        provider.start()
    except (OSError, OverflowError) as error:
        where = f"cannot listen on port {given.port}: " if getattr(error, "filename", None) is None else ""
        print(f"{parser.prog}: {where}{error}", file=sys.stderr)
        return 1
    try:
        addresses = ("root_url", "base_url", "anthropic_url", "google_url")
        print(json.dumps({name: getattr(provider, name) for name in addresses}), flush=True)
        _wait(watched)
    finally:
        provider.close()
    return 0


def _provider_of(given: Any, port: int, log: Path | None) -> ScriptedProvider:
    options: dict[str, Any] = {"script": given} if isinstance(given, list) else dict(given)
    if unknown := set(options) - _KEYS:
        raise ValueError(f"unknown keys {sorted(unknown)}; known are {sorted(_KEYS)}")
    if "wire" in options:
        options["wire"] = as_wire(options["wire"])
    return ScriptedProvider(options.pop("script", ()), **options, port=port, log=log)


def _wait(watched: bool) -> None:
    # A simple queue may be put to from a signal handler; an event may not.
    ended: queue.SimpleQueue[None] = queue.SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.put(None))

    def watch() -> None:
        try:
            while os.read(_STDIN, 4096):  # not sys.stdin, whose lock would be held when the interpreter ends
                pass
        except OSError:
            pass  # closed under us, which is an end as well
        ended.put(None)

    if watched:
        threading.Thread(target=watch, name="stdin", daemon=True).start()
    ended.get()


def _somebody_holds_stdin() -> bool:
    """Say whether stdin ends with whoever started us: a shell gives a background job /dev/null, which is at its end."""
    try:
        mode = os.fstat(_STDIN).st_mode
    except OSError:
        return False  # it was never open
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


if __name__ == "__main__":
    sys.exit(main())
