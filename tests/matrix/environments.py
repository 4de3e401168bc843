"""Make the environments of the matrix: one for each set of packages of `environments.toml`, cached for all checkouts.

    python tests/matrix/environments.py [NAME…]        makes those (without a name: all) and prints where each lies

Nothing of a checkout is installed there, so checkouts share them; `environment(name).variables()` puts this one's
source on the path. A cached environment is found by its pins and the Python that made it; change one and another is
made, the old one stays until the cache folder is removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PINS = Path(__file__).with_name("environments.toml")
# Read when this is loaded: the tests take every setting of the person who runs them out of the environment.
CACHE = Path(os.environ.get("PLAYHEAD_TEST_CACHE") or "~/.cache/playhead-test").expanduser().absolute()


class Unavailable(Exception):
    """The packages could not be fetched; the message says what pip said."""


class Unresolvable(Exception):
    """The pins of an environment contradict each other: a mistake in `environments.toml`."""


@dataclass(frozen=True)
class Environment:
    """One set of packages and where it lies."""

    name: str
    packages: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Return where it lies: the same for everyone with the same Python and the same packages."""
        made_by = [sys.version, sysconfig.get_platform(), *self.packages]
        return CACHE / f"{self.name}-{hashlib.sha256(chr(0).join(made_by).encode()).hexdigest()[:16]}"

    @property
    def python(self) -> Path:
        """Return its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def is_made(self) -> bool:
        """Say whether it is there in full."""
        return self._stamp.exists()

    def variables(self) -> dict[str, str]:
        """Return the environment variables of a program that runs in it, with this checkout's Playhead in reach."""
        # Keys, endpoints and tracing of the person who runs the tests would change what the programs send; a proxy would
        # see what is meant for loopback.
        dropped = ("PLAYHEAD_", "OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "LANGCHAIN_", "LANGSMITH_", "AWS_")
        proxies = {"http_proxy", "https_proxy", "all_proxy"}
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(dropped) and name.lower() not in proxies
        }
        # botocore writes a set into its User-Agent: with a fixed seed two runs send the same.
        return kept | {"PYTHONPATH": str(ROOT / "src"), "PYTHONHASHSEED": "0", "PLAYHEAD_GIT": "0"}

    def make(self) -> None:
        """Make it unless it is there. Whoever else is making it is waited for."""
        if self.is_made:
            return
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        with open(f"{self.folder}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.is_made:
                return
            # What lies there was left by somebody who was killed. Made in place and not renamed into it, because the
            # console scripts of an environment hold its path; the stamp at the end is what makes it count.
            shutil.rmtree(self.folder, ignore_errors=True)
            self._install(lock.fileno())
            self._stamp.touch()

    def _install(self, lock: int) -> None:
        _say(f"making {self.name} ({', '.join(self.packages[:3])}, …)")
        has_pip = importlib.util.find_spec("pip") is not None
        make = [sys.executable, "-m", "venv", *(["--without-pip"] if has_pip else []), str(self.folder)]
        runner = (
            [sys.executable, "-m", "pip", "--python", str(self.python)] if has_pip else [str(self.python), "-m", "pip"]
        )
        install = [*runner, "install", "--quiet", "--disable-pip-version-check", *self.packages]
        for command in (make, install):
            # The child holds the lock too: should this process be killed, nobody else starts while pip still writes.
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, pass_fds=[lock], check=False
            )
            if done.returncode != 0:
                lines = [line for line in (done.stdout + done.stderr).splitlines() if "WARNING" not in line]
                message = f"environment {self.name}: {' '.join(command[1:4])} failed: " + "\n".join(lines[-8:])
                raise (Unresolvable if "ResolutionImpossible" in message else Unavailable)(message)
        _say(f"made {self.name}")

    @property
    def _stamp(self) -> Path:
        return self.folder / ".ready"


def environments() -> dict[str, Environment]:
    """Read the pins, and add what Playhead needs at run time."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    tables = tomllib.loads(PINS.read_text("utf-8"))
    return {name: Environment(name, (*table["packages"], *project["dependencies"])) for name, table in tables.items()}


def environment(name: str) -> Environment:
    """Return one environment, made or not."""
    return environments()[name]


def main(names: list[str]) -> int:
    """Make the named environments and print where each lies."""
    known = environments()
    unknown = [name for name in names if name not in known]
    if unknown:
        _say(f"no such environment: {', '.join(unknown)}; there are {', '.join(known)}")
        return 2
    failed = False
    for name in names or known:
        try:
            known[name].make()
            print(known[name].folder)
        except (Unavailable, Unresolvable) as error:
            _say(str(error))
            failed = True
    if failed and os.environ.get("CI") != "true":
        _say("the tests of what is missing will skip (with CI=true they fail)")
        return 0
    return int(failed)


def _say(text: str) -> None:
    print(f"test-environments: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
