"""Hold redaction to its promises about exchanges: headers, addresses, forms, pieces of streams, encoded bodies."""

from __future__ import annotations

import base64
import gzip
import json
import random
import sys
import types
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.redact_samples import SECRETS, letters

from playhead import _limits
from playhead.capture import redact_http, redact_inside
from playhead.capture.redact import Redactor

HIDDEN = {"$redacted": "header"}
KEY = "sk-ant-api03-" + letters(40)


@pytest.fixture
def gate() -> Redactor:
    return Redactor(environ={})


# --- headers


def test_a_request_keeps_all_names_in_order_and_only_the_values_that_tell_no_secret(gate: Redactor) -> None:
    counts: dict[str, int] = {}
    pairs = [
        ("Host", "api.example.com"),
        ("User-Agent", "a/1"),
        ("Authorization", "Bearer abc"),
        ("user-agent", "b/2"),
        ("X-Stainless-Retry-Count", "0"),
        ("x-something-new", "who knows"),
        ("Cookie", "a=b"),
        ("mcp-protocol-version", "2026-07-28"),
        ("anthropic-version", "2026-10-21"),
        ("x-api-key", "k"),
    ]
    assert redact_http.request_headers(gate, pairs, counts) == [
        ["Host", "api.example.com"],
        ["User-Agent", "a/1"],
        ["Authorization", HIDDEN],
        ["user-agent", "b/2"],
        ["X-Stainless-Retry-Count", "0"],
        ["x-something-new", HIDDEN],
        ["Cookie", HIDDEN],
        ["mcp-protocol-version", "2026-07-28"],
        ["anthropic-version", "2026-10-21"],
        ["x-api-key", HIDDEN],
    ]
    assert counts == {"header": 4}


def test_headers_may_come_as_bytes_and_leave_as_text(gate: Redactor) -> None:
    pairs = [(b"Accept", b"*/*"), (b"X-Odd", b"\xe9"), (b"Authorization", b"x")]
    assert redact_http.request_headers(gate, pairs, {}) == [
        ["Accept", "*/*"],
        ["X-Odd", HIDDEN],
        ["Authorization", HIDDEN],
    ]
    assert redact_http.response_headers(gate, [(b"X-Odd", b"\xe9")], {}) == [["X-Odd", "é"]]


def test_a_response_loses_only_the_values_that_are_secret(gate: Redactor) -> None:
    counts: dict[str, int] = {}
    kept = [
        ["content-type", "application/json"],
        ["x-request-id", "req_1"],
        ["x-ratelimit-remaining-tokens", "149984"],
        ["anthropic-ratelimit-tokens-limit", "80000"],
        ["www-authenticate", 'Bearer realm="x", error="invalid_token"'],
        ["x-cache-key", "abc"],
        ["mcp-session-id", "s1"],
        ["etag", '"1"'],
    ]
    lost = [
        "Set-Cookie",
        "set-cookie",
        "authorization",
        "x-amz-security-token",
        "X-Auth-Token",
        "x-api-key",
        "x-my-secret",
    ]
    pairs = [(name, value) for name, value in kept] + [(name, "abc") for name in lost]
    assert redact_http.response_headers(gate, pairs, counts) == kept + [[name, HIDDEN] for name in lost]
    assert counts == {"header": len(lost)}
    out = redact_http.response_headers(
        gate,
        [("WWW-Authenticate", "Negotiate YIIabc"), ("Location", "https://h/cb?access_token=abc&x=1#id_token=d")],
        {},
    )
    assert out[0][1] == HIDDEN
    assert out[1][1] == "https://h/cb?access_token=[redacted:url-secret]&x=1#id_token=[redacted:url-secret]"


def test_names_that_the_settings_add_and_rules_that_they_switch_off_count_here_too() -> None:
    more = Redactor(environ={}, fields=["x-pin"])
    assert redact_http.response_headers(more, [("X-Pin", "1")], {}) == [["X-Pin", HIDDEN]]
    off = Redactor(environ={}, disabled=["header", "url-secret"])
    assert redact_http.request_headers(off, [("cookie", "a=b")], {}) == [["cookie", "a=b"]]
    assert redact_http.url(off, "https://h/?key=abc", {}) == "https://h/?key=abc"


def test_what_stands_for_a_header_is_left_alone_by_the_gate(gate: Redactor) -> None:
    headers = redact_http.request_headers(gate, [("authorization", "x"), ("password", "y")], {})
    assert gate.redact({"headers": headers}, {}) == {"headers": headers}


# --- keys that requests carry


@pytest.mark.parametrize(
    ("name", "value", "secrets"),
    [
        ("Authorization", "Bearer my-own-opaque-9", ["my-own-opaque-9"]),
        ("authorization", "my-own-opaque-9", ["my-own-opaque-9"]),
        (b"Authorization", b"Token my-own-opaque-9", ["my-own-opaque-9"]),
        ("Authorization", 'Token token="my-own-opaque-9", x=1', ["my-own-opaque-9"]),
        (
            "Proxy-Authorization",
            "Basic " + base64.b64encode(b"me:my-own-opaque-9").decode(),
            ["my-own-opaque-9", base64.b64encode(b"me:my-own-opaque-9").decode()],
        ),
        ("x-api-key", "my-own-opaque-9", ["my-own-opaque-9"]),
        ("api-key", "my-own-opaque-9", ["my-own-opaque-9"]),
        ("X-Goog-Api-Key", "my-own-opaque-9", ["my-own-opaque-9"]),
        ("X-My-Access-Token", "my-own-opaque-9", ["my-own-opaque-9"]),
        ("Cookie", "theme=dark; sid=0123456789abcdef01; lang=en-US", ["0123456789abcdef01"]),
    ],
)
def test_a_key_in_a_header_is_known_from_then_on(gate: Redactor, name: Any, value: Any, secrets: list[str]) -> None:
    redact_http.learn_from_request(gate, [(name, value)], "https://h/")
    for secret in secrets:
        assert secret not in gate.redact_text(f"they said {secret}!", {})


@pytest.mark.parametrize(
    "address",
    [
        "https://h/p?key=my-own-opaque-9&x=1",
        "https://h/p?x=1&api_key=my-own-opaque-9",
        "https://h/p?access_token=my%2Down%2Dopaque%2D9",
        "https://h/p?api%5Fkey=my-own-opaque-9",
        "https://me:my-own-opaque-9@h/p",
        "https://h/cb#access_token=my-own-opaque-9",
    ],
)
def test_a_key_in_an_address_is_known_from_then_on_and_not_kept(gate: Redactor, address: str) -> None:
    redact_http.learn_from_request(gate, [], address)
    assert "opaque" not in gate.redact_text("they said my-own-opaque-9!", {})
    assert "opaque" not in redact_http.url(gate, address, {})
    assert "opaque" not in redact_http.url(Redactor(environ={}), address, {})


def test_what_is_no_key_is_not_learned_and_what_was_learned_costs_nothing_more(gate: Redactor) -> None:
    pairs = [
        ("Accept", "application/json"),
        ("Idempotency-Key", "a1b2c3d4e5f6a7b8"),
        ("Authorization", "AWS4-HMAC-SHA256 Credential=a/b, SignedHeaders=host, Signature=0123456789abcdef"),
        ("Authorization", "none"),
        ("Cookie", "theme=dark-and-very-long-indeed; n=12345678901234567890"),
        ("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ]
    redact_http.learn_from_request(gate, pairs, "https://h/?page_token=abc123abc123&X-Amz-Signature=0123456789abcdef")
    assert gate.generation == 0
    again = [("x-api-key", "my-own-opaque-9")]
    redact_http.learn_from_request(gate, again, "https://h/?key=other-opaque-8")
    before = gate.generation
    redact_http.learn_from_request(gate, again, "https://h/?key=other-opaque-8")
    assert gate.generation == before == 2


def test_a_program_that_makes_new_keys_all_the_time_does_not_fill_the_memory(
    gate: Redactor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_limits, "LEARNED_VALUES_MAX", 3)
    gate.add_known("said-by-the-program-1")
    for number in range(9):
        redact_http.learn_from_request(gate, [("x-api-key", f"my-own-opaque-{number}")], "https://h/")
    assert gate.redact_text("my-own-opaque-8", {}) == "[redacted:header]"  # what is in use now
    assert gate.redact_text("my-own-opaque-0", {}) == "my-own-opaque-0"
    assert gate.redact_text("said-by-the-program-1", {}) == "[redacted:known]"  # for good
    redact_http.learn_from_request(gate, [("x-api-key", "my-own-opaque-0")], "https://h/")
    assert gate.redact_text("my-own-opaque-0", {}) == "[redacted:header]"


# --- addresses


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("https://h/p?key=a&x=%20b+c&&=&y", "https://h/p?key=[redacted:url-secret]&x=%20b+c&&=&y"),
        ("https://h/p?api%5fkey=a", "https://h/p?api%5fkey=[redacted:url-secret]"),
        ("https://me:pw@h:1/p", "https://me:[redacted:url-password]@h:1/p"),
        (
            "https://b/o?X-Amz-Date=1&X-Amz-Signature=ab",
            "https://b/o?X-Amz-Date=1&X-Amz-Signature=[redacted:url-secret]",
        ),
        ("https://b/o?sv=1&sig=a%2Fb%3D", "https://b/o?sv=1&sig=[redacted:url-secret]"),
        ("/rel?token=a", "/rel?token=[redacted:url-secret]"),
        ("https://h/cb?code=a&state=b", "https://h/cb?code=[redacted:url-secret]&state=b"),
        ("wss://h/?client_secret=a#x", "wss://h/?client_secret=[redacted:url-secret]#x"),
        (
            "https://h/?next=https%3A%2F%2Fi%2F%3Ftoken%3Dabc",
            "https://h/?next=https%3A%2F%2Fi%2F%3Ftoken%3D%5Bredacted%3Aurl-secret%5D",
        ),
        (f"https://h/p/{KEY}/x", "https://h/p/[redacted:anthropic-key]/x"),
    ],
)
def test_of_an_address_only_what_is_secret_is_replaced(gate: Redactor, address: str, expected: str) -> None:
    counts: dict[str, int] = {}
    assert redact_http.url(gate, address, counts) == expected
    assert sum(counts.values()) == 1
    again: dict[str, int] = {}
    assert redact_http.url(gate, expected, again) == expected
    assert not again


@pytest.mark.parametrize(
    "address",
    [
        "https://api.openai.com/v1/chat/completions",
        "https://h/?alt=sse&page_token=abc&max_tokens=9&keyword=x&code=DE#section=2",
        "https://me@h/a@b?x=%zz&y=a%3Db#",
        "http://[::1]:8080/?key=",
        "",
        "?",
        "not an address & no = parameters",
    ],
)
def test_an_address_without_secrets_stays_as_it_is(gate: Redactor, address: str) -> None:
    assert redact_http.url(gate, address, {}) == address


# --- forms


def test_the_secret_fields_of_a_form_are_replaced(gate: Redactor) -> None:
    body = "grant_type=authorization_code&code=abc&client_id=me&client_secret=s%20x&redirect_uri=https%3A%2F%2Fh&a=1+2"
    assert redact_http.form(gate, body, {}) == (
        "grant_type=authorization_code&code=[redacted:url-secret]&client_id=me&client_secret=[redacted:url-secret]"
        "&redirect_uri=https%3A%2F%2Fh&a=1+2"
    )
    assert redact_http.form(gate, "code=DE&q=key", {}) == "code=DE&q=key"


def test_the_secret_fields_of_a_form_in_parts_are_replaced(gate: Redactor) -> None:
    parts = [
        b'--XX\r\nContent-Disposition: form-data; name="api_key"\r\n\r\nabc\r\nd\r\n',
        b'--XX\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nassistants\r\n',
        b'--XX\r\nContent-Disposition: form-data; name="file"; filename="x.bin"\r\n\r\n\x00\xff '
        + KEY.encode()
        + b"\r\n",
        b"--XX--\r\n",
    ]
    counts: dict[str, int] = {}
    out = redact_http.multipart(gate, b"".join(parts), 'multipart/form-data; boundary="XX"', counts)
    assert out == (
        b'--XX\r\nContent-Disposition: form-data; name="api_key"\r\n\r\n[redacted:url-secret]\r\n'
        + parts[1]
        + parts[2].replace(KEY.encode(), b"[redacted:anthropic-key]")
        + parts[3]
    )
    assert counts == {"url-secret": 1, "anthropic-key": 1}
    assert redact_http.multipart(gate, out, "multipart/form-data; boundary=XX", {}) is out
    assert redact_http.multipart(gate, parts[1], "multipart/form-data", {}) is parts[1]


# --- pieces of a stream


@pytest.mark.parametrize("cut", range(1, len(KEY) + 12))
def test_a_secret_in_several_pieces_is_found(gate: Redactor, cut: int) -> None:
    whole = f"é: {KEY} end é".encode()
    parts = [whole[:cut], whole[cut : cut + 3], whole[cut + 3 :]]
    out = redact_http.pieces(gate, parts, {})
    assert b"".join(out) == "é: [redacted:anthropic-key] end é".encode()
    assert len(out) == 3


def test_pieces_without_a_secret_are_the_same_object(gate: Redactor) -> None:
    parts = [b"data: {}\n", b"\n", b"\xff", b""]
    assert redact_http.pieces(gate, parts, {}) is parts


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.sampled_from([KEY, SECRETS[1][1], "é", "🔑", "hunter2-hunter2", " ", "x", "[redacted:jwt]", "\n"]),
        max_size=9,
    ),
    st.binary(max_size=5),
    st.lists(st.integers(0, 400), max_size=6),
)
def test_what_is_not_replaced_stays_in_its_piece(texts: list[str], odd: bytes, places: list[int]) -> None:
    gate = Redactor(environ={"A_TOKEN": "hunter2-hunter2"})
    whole = " ".join(texts).encode() + odd
    cuts = sorted({min(place, len(whole)) for place in places})
    parts = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    out = redact_http.pieces(gate, parts, {})
    assert len(out) == len(parts)
    assert b"".join(out) == gate.redact_bytes(whole, {})
    for before, after in zip(parts, out, strict=True):
        left = after
        for mark in (b"[redacted:anthropic-key]", b"[redacted:openai-key]", b"[redacted:env]"):
            left = left.replace(mark, b"")
        assert len(left) <= len(before)
    if out == parts:
        assert out is parts


def test_of_pieces_between_secrets_every_byte_stays_where_it_was(gate: Redactor) -> None:
    parts = [
        b"one",
        b" two " + KEY[:9].encode(),
        KEY[9:30].encode(),
        KEY[30:].encode() + b" three",
        "fo\u00fcr".encode()[:3],
    ]
    parts.append("fo\u00fcr".encode()[3:])
    out = redact_http.pieces(gate, parts, {})
    assert out == [b"one", b" two [redacted:anthropic-key]", b"", b" three", *parts[4:]]


# --- encoded bodies


def raw_deflate(data: bytes) -> bytes:
    machine = zlib.compressobj(wbits=-15)
    return machine.compress(data) + machine.flush()


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("gzip", gzip.compress),
        ("GZIP", gzip.compress),
        ("x-gzip", lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:])),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
        ("gzip, gzip", lambda data: gzip.compress(gzip.compress(data))),
        ("identity", bytes),
        ("gzip", bytes),
    ],
)
def test_a_secret_in_an_encoded_body_is_found_and_a_clean_one_is_left_alone(
    gate: Redactor, encoding: str, encode: Any
) -> None:
    assert redact_http.encoded(gate, encode(b'{"text": "nothing here"}'), encoding, {}) is None
    counts: dict[str, int] = {}
    dirty = encode(b'{ "text": "' + KEY.encode() + b'" }')
    assert redact_http.encoded(gate, dirty, encoding, counts) == b'{ "text": "[redacted:anthropic-key]" }'
    assert counts == {"anthropic-key": 1}
    field = encode(b'{"a": 1, "password": "x"}')
    assert json.loads(redact_http.encoded(gate, field, encoding, {}) or b"") == {
        "a": 1,
        "password": {"$redacted": "field"},
    }


def test_a_body_that_was_cut_off_is_looked_through_as_far_as_it_goes(gate: Redactor) -> None:
    noise = random.Random(1).randbytes(5000).hex().encode()
    whole = gzip.compress(KEY.encode() + b" " + noise)
    assert (redact_http.encoded(gate, whole[:-900], "gzip", {}) or b"").startswith(b"[redacted:anthropic-key] ")
    assert redact_http.encoded(gate, gzip.compress(noise)[:-900], "gzip", {}) is None


def test_what_cannot_be_looked_into_is_said_and_why(gate: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    def reason(data: bytes, encoding: str) -> str:
        with pytest.raises(redact_http.Unopened) as caught:
            redact_http.encoded(gate, data, encoding, {})
        return f"{caught.value.encoding}: {caught.value.reason}"

    assert reason(b"x", "lzma9") == "lzma9: no_decoder"
    damaged = bytearray(gzip.compress(random.Random(2).randbytes(9000)))
    damaged[20:60] = bytes(40)
    assert reason(bytes(damaged), "gzip") == "gzip: damaged"
    monkeypatch.setattr(redact_inside, "_library", lambda *names: None)
    assert reason(b"x", "br") == "br: no_decoder"
    assert reason(b"x", "zstd") == "zstd: no_decoder"
    monkeypatch.setattr(_limits, "OPENED_BYTES_MAX", 100_000)
    assert reason(gzip.compress(bytes(100_001)), "gzip") == "gzip: too_large"
    assert redact_http.encoded(gate, gzip.compress(bytes(100_000)), "gzip", {}) is None


def test_a_bomb_is_not_unpacked(gate: Redactor) -> None:
    machine = zlib.compressobj(9, wbits=31)
    block = bytes(1 << 20)
    bomb = b"".join(machine.compress(block) for _ in range(200)) + machine.flush()
    with pytest.raises(redact_http.Unopened, match="too_large"):
        redact_http.encoded(gate, bomb, "gzip", {})


@pytest.mark.parametrize("encoding", ["br", "zstd"])
def test_brotli_and_zstandard_are_opened_where_a_library_is_installed(gate: Redactor, encoding: str) -> None:
    if encoding == "br":
        compress = pytest.importorskip("brotli", reason="brotli is not installed").compress
    else:
        compress = pytest.importorskip("zstandard", reason="zstandard is not installed").ZstdCompressor().compress
    text = b"a" * 300_000 + b" " + KEY.encode()
    assert redact_http.encoded(gate, compress(text), encoding, {}) == b"a" * 300_000 + b" [redacted:anthropic-key]"
    assert redact_http.encoded(gate, compress(b"clean"), encoding, {}) is None
    with pytest.raises(redact_http.Unopened, match="damaged"):
        redact_http.encoded(gate, b"\x00\x01not" * 40, encoding, {})


def test_the_module_of_newer_pythons_for_zstandard_is_used(gate: Redactor, monkeypatch: pytest.MonkeyPatch) -> None:
    class Machine:
        """As `compression.zstd.ZstdDecompressor`: gives out so many bytes at a time and keeps the rest."""

        def __init__(self) -> None:
            self.left, self.unused_data, self.eof, self.needs_input = b"", b"", False, True

        def decompress(self, data: bytes, most: int) -> bytes:
            self.left += data.removeprefix(b"ZSTD:")
            out, self.left = self.left[:most], self.left[most:]
            self.eof, self.needs_input = not self.left, not self.left
            return out

    module = types.ModuleType("zstd")
    module.ZstdDecompressor, module.ZstdError = Machine, ValueError  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "compression", types.ModuleType("compression"))
    monkeypatch.setitem(sys.modules, "compression.zstd", module)
    text = b"a" * 200_000 + b" " + KEY.encode()
    assert redact_http.encoded(gate, b"ZSTD:" + text, "zstd", {}) == b"a" * 200_000 + b" [redacted:anthropic-key]"
