"""Run every bench and print one table. Ratios are taken within one run: absolute numbers move with the machine."""

from __future__ import annotations

import importlib
import sys

BENCHES = (
    "record",
    "verify",
    "conversation",
    "index",
    "search",
    "stats",
    "startup",
    "traffic",
    "ambient",
    "replay",
    "diff",
)


def main(names: list[str]) -> int:
    """Print a row for each measurement; return 1 if one is beyond its limit."""
    missed = 0
    for name in names or BENCHES:
        for row in importlib.import_module(name).run():
            missed += not row.ok
            print(f"{'ok ' if row.ok else 'MISS'}  {row.name:38s} {row.value:>12s}  {row.against}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
