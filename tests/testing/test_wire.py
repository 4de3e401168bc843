"""How a scripted provider sends its answers, and what goes wrong on the way: bytes, chunks, cuts, encodings, delays."""

from __future__ import annotations

import gzip
import http.client
import importlib
import importlib.util
import json
import socket
import sys
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import openai
import pytest

from playhead.testing import Failure, Raw, ScriptedProvider, Text, Wire

ASK: dict[str, Any] = {"model": "gpt-5", "messages": [{"role": "user", "content": "Hello?"}]}
LONG = "Grüß dich, 🎈 ünïcode und 日本語. " * 4


def ask(provider: ScriptedProvider, stream: bool = False) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(provider.root_url).netloc, timeout=20)
    connection.request("POST", "/v1/chat/completions", json.dumps(ASK | {"stream": stream}))
    return connection.getresponse()


def client_of(provider: ScriptedProvider) -> openai.OpenAI:
    return openai.OpenAI(base_url=provider.base_url, api_key="none", max_retries=0, timeout=20)


def text_of(body: bytes) -> str:
    content: str = json.loads(body)["choices"][0]["message"]["content"]
    return content


def installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


def decoder(encoding: str) -> Callable[[bytes], bytes]:
    if encoding == "gzip":
        return zlib.decompressobj(31).decompress
    if not installed(package := {"br": "brotli", "zstd": "zstandard"}[encoding]):
        pytest.skip(f"{package} is not installed")
    module: Any = importlib.import_module(package)
    if encoding == "br":
        decode: Callable[[bytes], bytes] = module.Decompressor().process
        return decode
    other: Callable[[bytes], bytes] = module.ZstdDecompressor().decompressobj().decompress
    return other


def test_the_same_script_gives_the_same_bytes() -> None:
    sent = []
    for _ in range(2):
        with ScriptedProvider([Text(LONG, wire=Wire(encoding="gzip"))], repeat=True) as provider:
            for stream in (False, True):
                ask(provider, stream).read()
            sent.append([(exchange.status, exchange.headers, exchange.chunks) for exchange in provider.exchanges])
    assert sent[0] == sent[1]


@pytest.mark.parametrize("encoding", ["gzip", "br", "zstd"])
@pytest.mark.parametrize("stream", [False, True])
def test_every_chunk_of_an_encoded_answer_can_be_decoded_when_it_arrives(encoding: Any, stream: bool) -> None:
    decode = decoder(encoding)
    with ScriptedProvider(["x", Text("x", wire=Wire(encoding=encoding))], repeat=True) as provider:
        plain, encoded = ask(provider, stream), ask(provider, stream)
        assert encoded.getheader("Content-Encoding") == encoding
        bodies = plain.read(), encoded.read()
        first, second = provider.exchanges
    assert bodies == (first.body, second.body)
    if not stream:
        assert b'"x"' in decode(second.body)
        return
    assert len(first.chunks) == len(second.chunks)
    for chunk, packed in zip(first.chunks, second.chunks, strict=True):
        assert decode(packed).replace(b"scripted-2", b"scripted-1") == chunk


def test_an_encoding_whose_library_is_missing_is_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("brotli", "zstandard", "backports.zstd", "compression.zstd"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(RuntimeError, match="needs the package brotli: pip install brotli"):
        Wire(encoding="br")
    with pytest.raises(RuntimeError, match="needs the package zstandard: pip install zstandard"):
        Wire(encoding="zstd")


@pytest.mark.parametrize(
    "wrong",
    [{"encoding": "lzw"}, {"cut": "later"}, {"split": "odd"}, {"split": 0}, {"split": (3, 0)}],
    ids=lambda wrong: str(wrong),
)
def test_what_cannot_be_sent_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}|at least one byte"):
        Wire(**wrong)


def test_torn_chunks_end_inside_characters_and_inside_lines_and_the_client_still_reads_the_text() -> None:
    with (
        ScriptedProvider([Text(LONG, wire=Wire(split="torn"))], repeat=True) as provider,
        client_of(provider) as client,
    ):
        text = "".join(
            chunk.choices[0].delta.content or ""
            for chunk in client.chat.completions.create(**ASK, stream=True)  # type: ignore[union-attr]
        )
        assert text_of(ask(provider).read()) == LONG == text
        torn, whole = provider.exchanges
    ends = [chunk[-1:] for chunk in torn.chunks[:-1]]
    assert any(end[0] >= 0xC0 for end in ends), "a chunk ends after the first byte of a character"
    assert b"\nda" in torn.chunks, "a chunk ends inside the word data"
    assert any(not chunk.endswith(b"\n\n") and chunk.endswith(b"\n") for chunk in torn.chunks)
    assert not any(chunk.endswith(b"\n\n") for chunk in torn.chunks[:-1]), "no chunk ends where an event does"
    assert len(whole.chunks) > 10


@pytest.mark.parametrize(("split", "sizes"), [((1, 5, 7), [1, 5, 7]), (10, [10, 10, 10]), ((10_000,), [])])
def test_chunks_can_be_set_by_hand(split: Any, sizes: list[int]) -> None:
    with ScriptedProvider([Text(LONG, wire=Wire(split=split))], repeat=True) as provider:
        assert text_of(ask(provider).read()) == LONG
        ask(provider, stream=True).read()
        for exchange in provider.exchanges:
            assert [len(chunk) for chunk in exchange.chunks[:3]][: len(sizes)] == sizes
            assert exchange.body.endswith(b"[DONE]\n\n") or json.loads(exchange.body)


def test_json_is_compact_or_indented() -> None:
    with ScriptedProvider(["ü", Text("ü", wire=Wire(pretty=True))]) as provider:
        compact, pretty = ask(provider).read(), ask(provider).read()
    assert b'"object":"chat.completion"' in compact
    assert pretty.startswith(b'{\n  "id": "chatcmpl-scripted-2",\n  "object"')
    assert "ü".encode() in pretty


def test_more_headers_are_sent_in_order_and_replace_our_own() -> None:
    pairs = (("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("X-Request-Id", "req_own"))
    with ScriptedProvider([Text("x", wire=Wire(headers=pairs)), "y"], wire=Wire(headers={"X-All": "1"})) as provider:
        first, second = ask(provider), ask(provider)
        assert first.read()
        assert second.read()
        exchange = provider.exchanges[0]
    assert first.headers.get_all("set-cookie") == ["a=1", "b=2"]
    assert first.headers.get_all("x-request-id") == ["req_own"]
    assert second.headers.get_all("x-request-id") == ["req_scripted_2"]
    assert (first.getheader("x-all"), second.getheader("x-all")) == (None, "1"), "an answer's own wire is all of it"
    assert exchange.headers == first.getheaders()


def test_a_whole_answer_can_come_without_a_length() -> None:
    with ScriptedProvider([Text(LONG, wire=Wire(chunked=True, split=50))]) as provider:
        answered = ask(provider)
        assert (answered.getheader("Content-Length"), answered.getheader("Transfer-Encoding")) == (None, "chunked")
        assert text_of(answered.read()) == LONG
        assert [len(chunk) for chunk in provider.exchanges[0].chunks][:2] == [50, 50]


def test_a_connection_can_be_cut_before_the_head() -> None:
    with ScriptedProvider([Text("x", wire=Wire(cut="before-head")), "y"]) as provider, client_of(provider) as client:
        with pytest.raises(openai.APIConnectionError):
            client.chat.completions.create(**ASK)
        assert client.chat.completions.create(**ASK).choices[0].message.content == "y"
        cut, whole = provider.exchanges
    assert (cut.status, cut.headers, cut.chunks, cut.cut, cut.left) == (None, [], [], True, False)
    assert (whole.status, whole.cut, whole.done) == (200, False, True)


@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_can_be_cut_after_the_head(stream: bool) -> None:
    with ScriptedProvider([Text(LONG, wire=Wire(cut="after-head"))]) as provider:
        answered = ask(provider, stream)
        assert answered.status == 200
        with pytest.raises(http.client.IncompleteRead) as caught:
            answered.read()
        assert caught.value.partial == b""
        (exchange,) = provider.exchanges
    assert (exchange.status, exchange.body, exchange.cut) == (200, b"", True)


@pytest.mark.parametrize("stream", [False, True])
def test_a_connection_can_be_cut_in_the_middle_of_a_body(stream: bool) -> None:
    with ScriptedProvider([Text(LONG), Text(LONG, wire=Wire(cut="mid-body"))]) as provider:
        full = len(ask(provider, stream).read())
        answered = ask(provider, stream)
        with pytest.raises(http.client.IncompleteRead) as caught:
            answered.read()
        exchange = provider.exchanges[1]
    assert caught.value.partial == exchange.body
    assert len(exchange.body) == full // 2
    assert exchange.cut


@pytest.mark.parametrize("after", [0, 1, 3])
def test_a_stream_can_be_cut_after_some_chunks(after: int) -> None:
    received = []
    with ScriptedProvider([Text(LONG, wire=Wire(cut=after))]) as provider, client_of(provider) as client:
        # Old versions of the client let the error of httpx through.
        with pytest.raises(Exception, match=r"Connection error|peer closed connection"):
            received.extend(client.chat.completions.create(**ASK, stream=True))
        (exchange,) = provider.exchanges
    assert len(received) == len(exchange.chunks) == after
    assert exchange.cut


def test_an_answer_can_be_slow_and_closing_does_not_wait_for_it() -> None:
    with ScriptedProvider(
        [Text("x", wire=Wire(delay_s=0.05, chunk_delay_s=0.01)), Text("y", wire=Wire(delay_s=600))]
    ) as provider:
        assert ask(provider, stream=True).read().endswith(b"[DONE]\n\n")
        with client_of(provider) as client, pytest.raises(openai.APITimeoutError):
            client.with_options(timeout=0.1).chat.completions.create(**ASK)


def test_bytes_given_by_hand_are_sent_as_they_are() -> None:
    script = [
        Raw(b"<html>bad gateway</html>", 502, "text/html"),
        Raw((b"data: {", b"}\n\n", b"data: [DONE]\n\n"), content_type="text/event-stream"),
    ]
    with ScriptedProvider(script) as provider:
        gateway, stream = ask(provider), ask(provider)
        assert (gateway.status, gateway.getheader("Content-Type")) == (502, "text/html")
        assert (gateway.read(), stream.read()) == (b"<html>bad gateway</html>", b"data: {}\n\ndata: [DONE]\n\n")
        assert provider.exchanges[1].chunks == [b"data: {", b"}\n\n", b"data: [DONE]\n\n"]


def test_a_failure_says_when_to_come_back() -> None:
    with ScriptedProvider(
        [Failure(429, retry_after=1.5, retry_after_ms=1500), Failure(429, retry_after=2)]
    ) as provider:
        first, second = ask(provider), ask(provider)
        assert first.read()
        assert second.read()
    assert (first.getheader("retry-after"), first.getheader("retry-after-ms")) == ("1.5", "1500")
    assert (second.getheader("retry-after"), second.getheader("retry-after-ms")) == ("2", None)


# Ordinary traffic.


def plain(provider: ScriptedProvider, method: str, path: str, body: Any = None, kind: str = "") -> Any:
    connection = http.client.HTTPConnection(urlsplit(provider.root_url).netloc, timeout=20)
    connection.request(method, path, body, {"Content-Type": kind} if kind else {})
    return connection.getresponse()


def test_ordinary_traffic_is_given_back_and_takes_nothing_from_the_script() -> None:
    with ScriptedProvider(["one"]) as provider:
        got = json.loads(plain(provider, "GET", "/plain/a%20b?x=1").read())
        form = json.loads(
            plain(provider, "POST", "/plain/f", "a=1&b=%C3%BC&a=", "application/x-www-form-urlencoded").read()
        )
        sent = json.loads(plain(provider, "PUT", "/plain/j", b'{"k": [1]}', "application/json; charset=utf-8").read())
        echo = plain(provider, "POST", "/plain/b", b"\x00\xff", "application/octet-stream").read()
        wrong = plain(provider, "POST", "/plain/j", b"{", "application/json")
        assert wrong.status == 400
        assert wrong.read()
        assert provider.remaining == 1
    assert got == {"method": "GET", "path": "/plain/a b", "query": {"x": "1"}}
    assert form["form"] == [["a", "1"], ["b", "ü"], ["a", ""]]
    assert (sent["method"], sent["json"]) == ("PUT", {"k": [1]})
    assert echo == b"\x00\xff"


def test_the_query_of_ordinary_traffic_says_how_it_is_answered() -> None:
    with ScriptedProvider() as provider:
        busy = plain(provider, "GET", "/plain/x?status=503&encoding=gzip&pretty=1")
        assert busy.status == 503
        assert gzip.decompress(busy.read()).startswith(b'{\n  "method"')
        assert len(plain(provider, "GET", "/plain/x?size=1000&split=300,300&chunked=1").read()) == 1000
        assert [len(chunk) for chunk in provider.exchanges[-1].chunks] == [300, 300, 400]
        with pytest.raises(http.client.IncompleteRead):
            plain(provider, "GET", "/plain/x?size=1000&cut=mid-body").read()
        assert plain(provider, "HEAD", "/plain/x").read() == b""
        assert plain(provider, "DELETE", "/plain/x?status=204").read() == b""


def test_a_request_that_comes_in_chunks_is_read_whole() -> None:
    with ScriptedProvider() as provider:
        pieces = (piece for piece in (b"one", b"two"))
        assert plain(provider, "POST", "/plain/x", pieces, "text/plain").read() == b"onetwo"
        assert provider.requests[0].body == b"onetwo"


def test_a_cut_ends_a_connection_that_is_kept_alive() -> None:
    with ScriptedProvider(["one", Text("two", wire=Wire(cut="before-head"))]) as provider:
        host, _, port = urlsplit(provider.root_url).netloc.partition(":")
        body = json.dumps(ASK).encode()
        request = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(request)
            first = connection.recv(65536)
            connection.sendall(request)
            assert first.startswith(b"HTTP/1.1 200 OK\r\n")
            assert connection.recv(65536) == b""
