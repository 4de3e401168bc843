"""Make the environments of the peers: one for each table of `environments.toml`, cached for all checkouts.

    python -m bench.peers.environments [NAME…]        makes those (without a name: all) and prints where each lies

They are made like those of tests/matrix, but lie apart: `~/.cache/playhead-bench`, or `$PLAYHEAD_BENCH_CACHE`.
"""

from __future__ import annotations

import os
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.matrix.environments import Environment, Unavailable, Unresolvable

PINS = Path(__file__).with_name("environments.toml")
CACHE = Path(os.environ.get("PLAYHEAD_BENCH_CACHE") or "~/.cache/playhead-bench").expanduser().absolute()


@dataclass(frozen=True)
class PeerEnvironment(Environment):
    """What one peer is installed in."""

    @property
    def folder(self) -> Path:
        """Return where it lies: made anew when its pins or the Python that makes it change."""
        return CACHE / super().folder.name

    @property
    def pins(self) -> str:
        """Return the versions that were asked for, as they are told to the reader."""
        return ", ".join(self.packages)


def environments() -> dict[str, PeerEnvironment]:
    """Read the pins."""
    tables = tomllib.loads(PINS.read_text("utf-8"))
    return {name: PeerEnvironment(name, tuple(table["packages"])) for name, table in tables.items()}


def main(names: list[str]) -> int:
    """Make the named environments and print where each lies; return 1 if one cannot be made."""
    known = environments()
    if unknown := [name for name in names if name not in known]:
        _say(f"no such peer: {', '.join(unknown)}; there are {', '.join(known)}")
        return 2
    failed = False
    for name in names or known:
        try:
            known[name].make()
            print(known[name].folder)
        except Unresolvable as error:
            _say(f"{error}\nthe pins contradict each other: see {PINS.name}")
            failed = True
        except Unavailable as error:
            _say(f"{error}\nthe package registry could not be reached, or a package failed to install")
            failed = True
    return int(failed)


def _say(text: str) -> None:
    print(f"bench-environments: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
