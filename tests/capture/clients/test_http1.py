"""The parser of HTTP/1: whatever the pieces in which bytes come, the body is the body."""

from __future__ import annotations

import itertools
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from playhead.capture.clients import http1
from playhead.capture.exchange import Exchange


class Told:
    """Keep what the parser tells."""

    def __init__(self) -> None:
        self.status: int | None = None
        self.headers: list[Any] = []
        self.reason: str | None = None
        self.version: str | None = None
        self.chunks: list[bytes] = []
        self.unended: list[int] = []
        self.pieces: list[bytes] = []
        self.ended = self.was_opened = False

    def head(self, status: int, headers: Any, *, reason: str | None, version: str | None, at: int) -> None:
        assert self.status is None, "one answer has one head"
        self.status, self.headers = status, list(headers)
        self.reason, self.version = reason, version

    def chunk(self, data: bytes, *, unended: bool = False, at: int = 0) -> None:
        assert not self.ended
        if unended:
            self.unended.append(len(self.chunks))
        self.chunks.append(data)

    def end(self, at: int = 0) -> None:
        self.ended = True

    def sent(self, piece: bytes, *, unended: bool = False) -> None:
        assert not self.was_opened
        self.pieces.append(piece)

    def opened(self) -> None:
        self.was_opened = True


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    return [data[start:end] for start, end in itertools.pairwise(edges)]


def followed(data: bytes, places: list[int], method: str = "GET") -> tuple[Told, http1.Answer]:
    told = Told()
    answer = http1.Answer(cast(Exchange, told), method, lambda status: status == 100)
    for piece in cut(data, places):
        answer.feed(piece)
    return told, answer


bodies = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
places = st.lists(st.integers(0, 2000), max_size=20)


@given(bodies, places, st.sampled_from([b"", b";name", b';a="b"']), st.sampled_from([b"", b"x-end: 1\r\ny: 2\r\n"]))
def test_a_chunked_answer_is_its_chunks_wherever_the_packets_are_cut(
    body: list[bytes], places: list[int], extension: bytes, trailers: bytes
) -> None:
    framed = b"".join(b"%X%s\r\n%s\r\n" % (len(piece), extension, piece) for piece in body)
    head = b"HTTP/1.1 100 Go on\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\nx: 1\r\n\r\n"
    told, _ = followed(head + framed + b"0\r\n" + trailers + b"\r\n" + b"of the next answer", places)
    assert (told.status, b"".join(told.chunks), told.ended) == (200, b"".join(body), True)
    assert told.headers == [(b"Transfer-Encoding", b"gzip, Chunked"), (b"x", b"1")]


@given(st.binary(max_size=200), places)
def test_an_answer_of_known_length_ends_with_its_last_byte(body: bytes, places: list[int]) -> None:
    told, _ = followed(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%smore" % (len(body), body), places)
    assert (b"".join(told.chunks), told.ended) == (body, True)


@given(st.binary(max_size=200), places)
def test_an_answer_without_a_length_ends_with_the_connection(body: bytes, places: list[int]) -> None:
    told, answer = followed(b"HTTP/1.0 200 OK\n\n" + body, places)
    assert (b"".join(told.chunks), told.ended) == (body, False)
    assert answer.closed_here()
    assert told.ended


def test_an_answer_that_has_no_body_by_its_nature_ends_with_its_head() -> None:
    for method, status in (("HEAD", 200), ("GET", 204), ("GET", 304), ("GET", 101)):
        told, _ = followed(b"HTTP/1.1 %d Fine\r\ncontent-length: 5\r\n\r\nother" % status, [], method)
        assert (told.status, told.chunks, told.ended) == (status, [], True)


def test_an_answer_that_is_cut_is_not_whole() -> None:
    for data in (
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n1234",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n12345\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-le",
    ):
        told, answer = followed(data, [])
        assert not answer.closed_here()
        assert not told.ended


@given(st.binary(max_size=300), places)
def test_no_bytes_make_it_raise(data: bytes, places: list[int]) -> None:
    followed(data, places)
    followed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + data, places)


def test_folded_and_repeated_headers_keep_their_order() -> None:
    told, _ = followed(
        b"HTTP/1.1 200 OK\r\na: 1\r\nB: 2\r\n  more\r\na: 3\r\nno header\r\ncontent-length:0\r\n\r\n", []
    )
    assert told.headers == [(b"a", b"1"), (b"B", b"2 more"), (b"a", b"3"), (b"content-length", b"0")]


@given(bodies, places)
def test_the_body_of_a_request_is_told_without_its_framing(body: list[bytes], places: list[int]) -> None:
    told = Told()
    question = http1.Question(cast(Exchange, told), [(b"Transfer-Encoding", b"chunked")])
    framed = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in body)
    for piece in cut(b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + framed + b"0\r\n\r\n", places):
        question.feed(piece)
    assert (b"".join(told.pieces), told.was_opened) == (b"".join(body), True)


def test_the_first_line_is_told_with_its_words_and_its_protocol() -> None:
    told, answer = followed(b"", [])
    answer.feed(b"HTTP/1.0 404  Not here at all \r\nx: y\r\n\r\n")
    assert (told.status, told.reason, told.version) == (404, "Not here at all", "HTTP/1.0")


def test_pieces_that_do_not_end_their_chunk_are_told_as_such() -> None:
    told, answer = followed(b"", [])
    answer.feed(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n6\r\nse")
    for piece in (b"co", b"nd\r\n3\r\none\r\n5\r\ncut"):
        answer.feed(piece)
    assert told.chunks == [b"se", b"co", b"nd", b"one", b"cut"]
    assert told.unended == [0, 1, 4]
