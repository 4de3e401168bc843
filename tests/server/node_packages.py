"""Fetch the packages of JavaScript that the tests of emitters need, into a cache that all checkouts share.

python tests/server/node_packages.py        fetches them, and prints where they lie
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

PINS = Path(__file__).with_name("emitters") / "package.json"
# Read when this is loaded: the tests take every setting of the person who runs them out of the environment.
CACHE = Path(os.environ.get("PLAYHEAD_TEST_CACHE") or "~/.cache/playhead-test").expanduser().absolute()


class Unavailable(Exception):
    """There is no node here, or the registry cannot be reached; the message says which."""


def folder() -> Path:
    """Return the folder that has `node_modules`, made if need be. Whoever else is making it is waited for."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        raise Unavailable("node and npm are not on this machine")
    version = subprocess.run([node, "--version"], capture_output=True, check=True).stdout
    found = CACHE / f"node-{hashlib.sha256(version + PINS.read_bytes()).hexdigest()[:16]}"
    stamp = found / ".ready"
    if stamp.exists():
        return found
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(f"{found}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not stamp.exists():
            shutil.rmtree(found, ignore_errors=True)  # left by somebody who was killed
            found.mkdir()
            shutil.copy(PINS, found)
            command = [npm, "install", "--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1"]
            done = subprocess.run(
                command, cwd=found, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                pass_fds=[lock.fileno()],
            )  # fmt: skip
            if done.returncode != 0:
                raise Unavailable("npm install failed: " + "\n".join(done.stderr.splitlines()[-8:]))
            stamp.touch()
    return found


if __name__ == "__main__":
    try:
        print(folder())
    except Unavailable as problem:
        print(f"node-packages: {problem}", file=sys.stderr)
        sys.exit(os.environ.get("CI") == "true" and shutil.which("node") is not None)
