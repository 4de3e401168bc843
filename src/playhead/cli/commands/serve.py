"""Serve a store: spans in from any agent, in any language; runs, cassettes and jobs over HTTP."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys

from playhead import _limits
from playhead.cli.arguments import store_root
from playhead.cli.output import Output
from playhead.errors import UsageError

_NEEDED = ("starlette", "uvicorn", "httptools", "zstandard", "opentelemetry.proto")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument(
        "--port",
        type=int,
        default=_limits.SERVE_PORT,
        metavar="N",
        help="the port; 0 for one that is free (%(default)s)",
    )
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="the address to listen at; any but this machine's own asks for keys (%(default)s)",
    )
    parser.add_argument(
        "--name",
        action="append",
        default=[],
        metavar="HOST",
        help="a name by which a server without keys may be called as well; repeatable",
    )
    parser.add_argument(
        "--rate",
        type=float,
        default=_limits.RATE_PER_S,
        metavar="N",
        help="requests a second that one key may make, 0 for any (%(default)s)",
    )
    parser.add_argument(
        "--quiet",
        type=float,
        default=_limits.RUN_QUIET_S,
        metavar="SECONDS",
        help="after its root ended, in which nothing more came: then a run is over (%(default)s)",
    )
    parser.add_argument(
        "--lease",
        type=float,
        default=_limits.JOB_LEASE_S,
        metavar="SECONDS",
        help="after which a job whose worker says nothing is done by another (%(default)s)",
    )
    parser.add_argument(
        "--writers",
        type=int,
        default=None,
        metavar="N",
        help="processes that write runs (2 where there are several processors, else 1)",
    )
    parser.epilog = (
        "Any OpenTelemetry exporter may send there:\n"
        "  OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4000 OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf\n\n"
        "examples:\n"
        "  playhead serve\n"
        "  playhead serve --port 0 --json          says on stdout where it listens\n"
        "  playhead keys create && playhead serve --host 0.0.0.0\n"
        "  playhead ls --store http://localhost:4000"
    )


def run(args: argparse.Namespace, out: Output) -> int:
    """Answer."""
    if not 0 <= args.port <= 65_535:
        raise UsageError(f"not a port: {args.port}", hint="A port is a number up to 65535; 0 takes one that is free.")
    for name, seconds in (("--quiet", args.quiet), ("--lease", args.lease)):
        if not 0 < seconds <= _limits.SERVE_SECONDS_MAX:
            raise UsageError(f"{name} is more than 0 seconds, and no more than {_limits.SERVE_SECONDS_MAX:,}")
    writers = _limits.SERVE_WRITERS if args.writers is None else args.writers
    if not 1 <= writers <= _limits.SERVE_WRITERS_MAX:
        raise UsageError(f"--writers is at least 1, and no more than {_limits.SERVE_WRITERS_MAX}")
    if args.writers is None and (os.cpu_count() or 1) == 1:
        writers = 1
    missing = [name for name in _NEEDED if not _is_there(name)]
    if missing:
        raise UsageError(f"{missing[0]} is not installed", hint="pip install 'playhead[server]'")
    import logging

    from playhead.server.running import serve

    root = store_root(args.store)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="playhead: %(message)s")

    def ready(address: str, keys: bool) -> None:
        if out.json:
            out.emit({"address": address, "store": str(root), "keys": keys})
        else:
            out.print(f"Serving {root} at {address}  (API: {address}/docs, stop: Ctrl-C)")
            if not keys:
                out.print("There are no keys: only this machine is answered, and keys that are sent are ignored.")
        out.stdout.flush()

    serve(
        root, host=args.host, port=args.port, rate_per_s=args.rate, names=tuple(args.name), quiet_s=args.quiet,
        lease_s=args.lease, writers=writers, ready=ready,
    )  # fmt: skip
    return 0


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False
