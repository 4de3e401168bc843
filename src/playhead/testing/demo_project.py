"""Give the demo agent something to repair: a small project in a temporary folder, with a real bug and a real check."""

from __future__ import annotations

import difflib
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

_CHECK_TIMEOUT_S = 60.0
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@")

LOGIN_PATH = "src/login.py"
CHECK_PATH = "tests/check_login.py"
FILES = {
    LOGIN_PATH: '''\
"""Let people in."""

PHRASES = {"ada@example.org": "open sesame"}


def normalise(address: str) -> str:
    return address.strip()


def login(address: str, phrase: str) -> bool:
    return PHRASES.get(normalise(address)) == phrase
''',
    CHECK_PATH: '''\
"""Check the login; print one line for each case and exit with the number of failures."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "src"))
from login import login

CASES = [
    ("the exact address", "ada@example.org", "open sesame", True),
    ("an address with spaces", " ada@example.org ", "open sesame", True),
    ("an address in capitals", "Ada@Example.org", "open sesame", True),
    ("a wrong phrase", "ada@example.org", "sesame", False),
]
failures = 0
for name, address, phrase, expected in CASES:
    passed = login(address, phrase) is expected
    failures += not passed
    print("ok  " if passed else "FAIL", name)
print(f"{len(CASES) - failures} passed, {failures} failed")
sys.exit(failures)
''',
}
PATCH = """\
--- a/src/login.py
+++ b/src/login.py
@@ -4,7 +4,7 @@
 
 
 def normalise(address: str) -> str:
-    return address.strip()
+    return address.strip().lower()
 
 
 def login(address: str, phrase: str) -> bool:
"""


class PatchRejected(ValueError):
    """The patch does not fit the files."""


class ChecksFailed(RuntimeError):
    """The project's own check found failures; the message is what it printed."""


class DemoProject:
    """A folder that exists for as long as the `with` statement lasts."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="playhead-demo-")
        self._root = Path(self._folder.name).resolve()
        for path, text in FILES.items():
            target = self._root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def paths(self) -> list[str]:
        """List the files, relative and sorted."""
        return sorted(FILES)

    def read(self, path: str) -> str:
        """Return the text of a file."""
        return self._inside(path).read_text(encoding="utf-8")

    def apply(self, diff: str) -> list[str]:
        """Apply a unified diff and return the paths it changed; nothing is written unless all of it fits."""
        patched = {path: _patched(path, self.read(path), hunks) for path, hunks in _parse(diff).items()}
        for path, text in patched.items():
            self._inside(path).write_text(text, encoding="utf-8")
        return sorted(patched)

    def check(self) -> str:
        """Run the project's check in a process of its own; raise ChecksFailed with its output when it fails."""
        done = subprocess.run(
            [sys.executable, "-I", "-B", CHECK_PATH],
            cwd=self._root,
            capture_output=True,
            text=True,
            timeout=_CHECK_TIMEOUT_S,
            check=False,
        )
        if done.returncode != 0:
            raise ChecksFailed(done.stdout + done.stderr)
        return done.stdout

    def diff(self) -> str:
        """Return what changed since the beginning, as a unified diff."""
        lines: list[str] = []
        for path, before in FILES.items():
            after = self.read(path)
            lines += difflib.unified_diff(
                before.splitlines(keepends=True), after.splitlines(keepends=True), f"a/{path}", f"b/{path}"
            )
        return "".join(lines)

    def _inside(self, path: str) -> Path:
        target = (self._root / path).resolve()
        if not target.is_relative_to(self._root):
            raise PatchRejected(f"not a file of the project: {path}")
        return target


def paths_of(diff: str) -> list[str]:
    """Name the files that a unified diff would change."""
    return sorted(_parse(diff))


def _parse(diff: str) -> dict[str, list[tuple[int, list[str]]]]:
    """Return, for each path, the first line of each hunk and its lines."""
    files: dict[str, list[tuple[int, list[str]]]] = {}
    hunks: list[tuple[int, list[str]]] | None = None
    for line in diff.splitlines(keepends=True):
        header = _HUNK.match(line)
        if line.startswith("+++ "):
            hunks = files.setdefault(line[4:].strip().removeprefix("b/"), [])
        elif line.startswith("--- "):
            hunks = None
        elif header and hunks is not None:
            hunks.append((int(header[1]), []))
        elif hunks and line[0] in " +-":
            hunks[-1][1].append(line)
        else:
            raise PatchRejected(f"not a line of a unified diff: {line.rstrip()!r}")
    if not files:
        raise PatchRejected("the patch is empty")
    return files


def _patched(path: str, text: str, hunks: list[tuple[int, list[str]]]) -> str:
    lines, result, at = text.splitlines(keepends=True), [], 0
    for first, body in hunks:
        result += lines[at : first - 1]
        at = first - 1
        for line in body:
            mark, content = line[0], line[1:]
            if mark in " -":
                if lines[at : at + 1] != [content]:
                    raise PatchRejected(f"line {at + 1} of {path} is not {content.rstrip()!r}")
                at += 1
            if mark in " +":
                result.append(content)
    return "".join(result + lines[at:])
