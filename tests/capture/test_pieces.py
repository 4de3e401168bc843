from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from playhead import _limits
from playhead.capture.pieces import Pieces

KEY = (
    b"-----BEGIN RSA PRIVATE KEY-----\n" + b"\n".join(b"MIIEpAIBAAKCAQEA" * 4 for _ in range(20)) +
    b"\n-----END RSA PRIVATE KEY-----\n"
)  # fmt: skip


def joined(parts: list[str | bytes]) -> bytes:
    return b"".join(part if isinstance(part, bytes) else part.encode() for part in parts)


@given(st.lists(st.one_of(st.binary(max_size=40), st.text(max_size=20).map(str.encode)), max_size=30), st.booleans())
def test_the_pieces_of_anything_joined_are_what_was_written(chunks: list[bytes], hurried: bool) -> None:
    pieces = Pieces()
    out: list[str | bytes] = []
    for chunk in chunks:
        out += pieces.take(chunk)
        if hurried:
            out += pieces.overdue()
    out += pieces.rest()
    assert joined(out) == b"".join(chunks)
    assert not pieces


def test_a_line_is_kept_together_however_it_was_written() -> None:
    pieces = Pieces()
    assert pieces.take(b"the token is sk-") == []
    assert pieces.take(b"ant-abc and") == []
    assert pieces.take(b" more\nnext") == ["the token is sk-ant-abc and more\n"]
    assert pieces.rest() == ["next"]


def test_whole_lines_that_came_together_are_one_piece() -> None:
    assert Pieces().take(b"one\ntwo\nthree\n") == ["one\ntwo\nthree\n"]


def test_a_character_is_never_cut_even_when_its_end_is_overdue() -> None:
    pieces = Pieces()
    euro = "€".encode()
    assert pieces.take(b"price: 5 " + euro[:1]) == []
    assert pieces.overdue() == ["price: 5 "]
    assert pieces.take(euro[1:]) == []
    assert pieces.overdue() == [], "a word waits for its end"
    assert pieces.rest() == ["€"]


def test_half_a_character_at_the_end_is_kept_as_bytes() -> None:
    pieces = Pieces()
    assert pieces.take(b"a\n\xe2\x82") == ["a\n"]
    assert pieces.rest() == [b"\xe2\x82"]


def test_what_is_not_text_is_kept_as_bytes() -> None:
    assert Pieces().take(b"\x89PNG\r\n\x1a\n") == [b"\x89PNG\r\n\x1a\n"]


def test_a_long_line_is_cut_at_a_space() -> None:
    pieces = Pieces()
    words = b"word " * 10_000
    out = pieces.take(words)
    assert all(isinstance(part, str) and part.endswith(" ") for part in out)
    assert joined(out + pieces.rest()) == words


def test_no_piece_of_large_output_is_large() -> None:
    pieces = Pieces()
    out = pieces.take(os.urandom(300_000)) + pieces.rest()
    assert max(len(part) for part in out) <= _limits.OUTPUT_PIECE_BYTES_MAX


def test_a_private_key_of_many_lines_is_one_piece_though_it_comes_line_by_line() -> None:
    pieces = Pieces()
    out: list[str | bytes] = []
    for line in (b"before\n" + KEY + b"after\n").splitlines(keepends=True):
        out += pieces.take(line)
        out += pieces.overdue()
    holding = [part for part in out if b"MIIE" in joined([part])]
    assert len(holding) == 1
    assert joined(holding).strip() == KEY.strip()
    assert joined(out + pieces.rest()) == b"before\n" + KEY + b"after\n"


def test_a_private_key_across_the_size_of_a_piece_is_not_cut() -> None:
    pieces = Pieces()
    filler = b"x" * 99 + b"\n"
    before = filler * (_limits.OUTPUT_PIECE_BYTES_MAX // 100 - 3)
    out = pieces.take(before + KEY + filler) + pieces.rest()
    assert len([part for part in out if b"MIIE" in joined([part])]) == 1
    assert joined(out) == before + KEY + filler


def test_a_key_that_never_ends_is_not_held_for_ever() -> None:
    pieces = Pieces()
    endless = b"-----BEGIN PRIVATE KEY-----\n" + b"MIIE\n" * (_limits.OUTPUT_KEY_BYTES_MAX // 4)
    assert joined(pieces.take(endless))


def test_a_token_that_comes_in_two_halves_is_never_cut() -> None:
    pieces = Pieces()
    assert pieces.take(b"the key is sk-ant-api03-Ab3dEfGh1jKl") == []
    assert pieces.overdue() == ["the key is "]
    assert pieces.overdue() == [], "the half of it waits"
    assert pieces.take(b"Mn0pQrStUvWx and more\n") == ["sk-ant-api03-Ab3dEfGh1jKlMn0pQrStUvWx and more\n"]


def test_a_token_at_the_end_of_a_full_piece_goes_into_the_next_one() -> None:
    pieces = Pieces()
    filler, token = b"x, " * (_limits.OUTPUT_PIECE_BYTES_MAX // 3 - 4), b"sk-ant-api03-Ab3dEfGh1jKlMn0pQrStUvWx"
    out = pieces.take(filler + token + b" " + filler)
    out += pieces.rest()
    assert "".join(str(piece) for piece in out).encode() == filler + token + b" " + filler
    assert sum(token.decode() in str(piece) for piece in out) == 1


def test_a_long_line_is_cut_at_a_blank_so_that_an_address_stays_whole() -> None:
    secret = b"postgres://bob:s3cretPassw0rd!@db.host/x"
    for shift in range(0, len(secret), 3):
        pieces = Pieces()
        filler = b"x" * (_limits.OUTPUT_PIECE_BYTES_MAX - len(secret) + shift - 1) + b" "
        out = [*pieces.take(filler + secret + b" and more"), *pieces.rest()]
        assert sum(secret.decode() in str(piece) for piece in out) == 1
