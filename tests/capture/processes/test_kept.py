"""What is kept of output is clean, however it was cut, and what was no secret is kept byte for byte."""

from __future__ import annotations

import gzip
import random
from types import SimpleNamespace
from typing import Any

import pytest

from playhead.capture.processes import kept
from playhead.capture.redact import Redactor

SECRET = b"sk-proj-" + b"Ab3dE6gH9" * 5
KEY = b"-----BEGIN RSA PRIVATE KEY-----\n" + b"MIIEowIBAAKCAQEA7Zq3\n" * 800 + b"-----END RSA PRIVATE KEY-----\n"
LINES = [b"some line of text\n", "ünïcode wörds\n".encode(), b"x" * 50 + b"\n", b"\xff\xfe no text\n", b"\n"]


@pytest.fixture
def recording() -> Any:
    return SimpleNamespace(redactor=Redactor(environ={}))


def cut(raw: bytes, dice: random.Random) -> list[bytes]:
    """Return bytes in pieces, as a pipe may give them."""
    pieces = []
    while raw:
        size = dice.choice([1, 7, 60, 4096, 30_000, 70_000])
        pieces.append(raw[:size])
        raw = raw[size:]
    return pieces


@pytest.mark.parametrize("seed", range(20))
def test_secrets_are_taken_out_of_the_pieces_in_which_they_lie(recording: Any, seed: int) -> None:
    dice = random.Random(seed)
    lines = dice.choices(LINES, k=dice.choice([20, 8000]))
    times = dice.randrange(6)
    for _ in range(times):
        lines.insert(dice.randrange(len(lines)), b"key " + SECRET + b"\n")
    raw, counts = b"".join(lines), dict[str, int]()
    pieces = cut(raw, dice)
    whole, apart = kept.clean(recording, pieces, counts)
    assert whole == b"".join(apart) == raw.replace(SECRET, b"[redacted:openai-key]")
    assert len(apart) == len(pieces)
    assert counts == ({"openai-key": times} if times else {})


@pytest.mark.parametrize("before", [0, 10_000, 2000, 100_000])
def test_a_private_key_of_many_lines_is_taken_out_as_a_whole(recording: Any, before: int) -> None:
    start = b"a line\n" * (before // 7)
    for pieces in ([start + KEY + b"end\n" * 9000], cut(start + KEY + b"end\n" * 9000, random.Random(before))):
        whole, _ = kept.clean(recording, pieces, counts := {})
        assert whole == start + b"[redacted:private-key]\n" + b"end\n" * 9000
        assert counts == {"private-key": 1}


@pytest.mark.parametrize("size", [10, 100_000])
def test_what_is_compressed_is_looked_into(recording: Any, size: int) -> None:
    clean, told = gzip.compress(b"a line\n" * size), gzip.compress(b"a line\n" * size + SECRET)
    for data in (clean, told):
        whole, apart = kept.clean(recording, [data[:50], data[50:]], {})
        assert SECRET not in whole
        assert (whole == data, b"".join(apart) == whole) == (data is clean, True)
