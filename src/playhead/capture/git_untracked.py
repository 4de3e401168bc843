"""Write the part of a diff that tells of files which git does not know: it would have to be told of them first."""

from __future__ import annotations

import os
import re
import stat
import time
from dataclasses import dataclass, field
from pathlib import Path

from playhead import _limits

_BINARY_LOOK_BYTES = 8000  # as git itself looks at the beginning only
_UNUSUAL = re.compile(rb'[\x00-\x1f"\\\x7f]')
_ESCAPES = {7: b"a", 8: b"b", 9: b"t", 10: b"n", 11: b"v", 12: b"f", 13: b"r", 34: b'"', 92: b"\\"}


@dataclass
class Added:
    """The sections, and the files that have none: those with no text, and those too large or not to be read."""

    diff: bytes = b""
    binary: list[str] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)


def added(root: Path, names: list[str], room: int, deadline: float) -> Added:
    """Return files as a diff that adds them, in the form of `git diff`, so that `git apply` takes it."""
    out, parts = Added(), []
    for name in names:
        content = None if time.monotonic() > deadline else _read(root / name, room)
        if content is None:
            out.omitted.append(name)
        elif b"\0" in content[1][:_BINARY_LOOK_BYTES]:
            out.binary.append(name)
        else:
            section = _section(os.fsencode(name), *content)
            if len(section) > room:
                out.omitted.append(name)
                continue
            room -= len(section)
            parts.append(section)
    out.diff = b"".join(parts)
    return out


def _read(path: Path, room: int) -> tuple[bytes, bytes] | None:
    """Return mode and content of a file or a link, as git would; None where it is too large or not to be read."""
    try:
        there = os.lstat(path)
        if stat.S_ISLNK(there.st_mode):
            return b"120000", os.fsencode(os.readlink(path))
        limit = min(_limits.GIT_NEW_FILE_BYTES_MAX, room)
        if not stat.S_ISREG(there.st_mode) or there.st_size > limit:
            return None
        with open(path, "rb") as file:
            content = file.read(limit + 1)
    except OSError:
        return None
    mode = b"100755" if there.st_mode & stat.S_IXUSR else b"100644"
    return (mode, content) if len(content) <= limit else None


def _section(name: bytes, mode: bytes, content: bytes) -> bytes:
    # No `index`: the hash of a file that a secret is taken out of could be guessed from.
    head = [b"diff --git %b %b" % (_quoted(b"a/" + name), _quoted(b"b/" + name)), b"new file mode " + mode]
    if not content:
        return b"\n".join(head) + b"\n"
    lines = content.split(b"\n")
    whole = lines[-1] == b""
    if whole:
        lines.pop()
    count = b"1" if len(lines) == 1 else b"1,%d" % len(lines)
    target = _quoted(b"b/" + name)
    body = [b"--- /dev/null", b"+++ " + target + (b"\t" if b" " in target else b""), b"@@ -0,0 +%b @@" % count]
    body += [b"+" + line for line in lines]
    if not whole:
        body.append(b"\\ No newline at end of file")
    return b"\n".join(head + body) + b"\n"


def _quoted(name: bytes) -> bytes:
    """Return a name as git writes it with `core.quotePath=false`."""
    if not _UNUSUAL.search(name):
        return name
    return b'"' + b"".join(_escaped(byte) for byte in name) + b'"'


def _escaped(byte: int) -> bytes:
    if byte in _ESCAPES:
        return b"\\" + _ESCAPES[byte]
    return b"\\%03o" % byte if byte < 32 or byte == 127 else bytes((byte,))
