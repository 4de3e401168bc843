"""Hold the gate to its promises about secrets that stand beside their names, and about texts that only speak of them."""

from __future__ import annotations

import base64
import json
import random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.redact_corpus import CLEAN, NAMED, PUTTY, SHAPES
from tests.capture.redact_samples import clean, letters

from playhead.capture import redact_quick
from playhead.capture.redact import Redactor
from playhead.capture.redact_named import WORDS
from playhead.event import speed

GATE = Redactor(environ={})


@pytest.mark.parametrize(("text", "secret", "rule"), NAMED)
def test_a_secret_beside_its_name_is_replaced_and_nothing_else_is(text: str, secret: str, rule: str) -> None:
    for around in ("{}", "first line\n{}\nlast line", "({})"):
        whole = around.replace("{}", text)
        out, counts = clean(GATE, {"content": whole.replace("{}", secret)})
        assert out["content"] == whole.replace("{}", f"[redacted:{rule}]")
        assert counts == {rule: 1}
        assert clean(GATE, out) == (out, {})


@pytest.mark.parametrize(("text", "secret", "rule"), NAMED)
def test_a_secret_beside_its_name_is_found_in_json_inside_json_and_in_bytes(text: str, secret: str, rule: str) -> None:
    whole = text.replace("{}", secret)
    inner = json.dumps({"text": whole})
    assert secret not in clean(GATE, {"arguments": inner})[0]["arguments"]
    assert secret.encode() not in GATE.redact_bytes(b"\xff\x00 " + whole.encode(), {})


@pytest.mark.parametrize(("rule", "secret"), SHAPES)
@pytest.mark.parametrize(
    "around", ["{}", "use {}, please", "KEY={}", "https://h/{}/x", "x\n{}\ny", '{"k": "{}"}', "%3D{}%26"]
)
def test_more_shapes_are_found(rule: str, secret: str, around: str) -> None:
    before = "123456789:" if rule == "telegram-token" else ""
    out, counts = clean(GATE, around.replace("{}", before + secret))
    assert out == around.replace("{}", f"{before}[redacted:{rule}]")
    assert counts == {rule: 1}


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("https://hooks.slack.com/services/T01234567/B01234567/" + letters(24), "slack-webhook"),
        ("https://discord.com/api/webhooks/123456789012345678/" + letters(68), "discord-webhook"),
    ],
)
def test_the_secret_part_of_a_webhook_is_replaced(address: str, rule: str) -> None:
    out, counts = clean(GATE, f"post to {address} now")
    assert address[-20:] not in out
    assert counts == {rule: 1}


def test_private_keys_of_other_forms_are_replaced() -> None:
    assert clean(GATE, f"a\n{PUTTY}\nb")[0] == "a\n[redacted:putty-key]\nb"
    account = {
        "type": "service_account",
        "private_key_id": letters(40),
        "private_key": "-----BEGIN PRIVATE KEY-----\nMII",
    }
    text = json.dumps(account, indent=2)
    out = clean(GATE, text)[0]
    assert "MII" not in out
    assert letters(40) not in out
    assert "service_account" in out


@pytest.mark.parametrize("text", CLEAN)
def test_text_that_only_speaks_of_secrets_is_kept(text: str) -> None:
    for whole in (text, f"first line\n{text}\nlast line", json.dumps({"t": text})):
        assert clean(GATE, {"content": whole}) == ({"content": whole}, {})


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["tool", "--password", "correcthorse", "-v"], ["tool", "--password", "[redacted:option]", "-v"]),
        (["tool", "--db-password", "x"], ["tool", "--db-password", "[redacted:option]"]),
        (["tool", "--token=abcdefgh1"], ["tool", "--token=[redacted:option]"]),
        (["curl", "-u", "me:pw", "https://h"], ["curl", "-u", "me:[redacted:login]", "https://h"]),
        (["tool", "--password", "--verbose"], None),
        (["tool", "--token"], None),
        (["docker", "-u", "1000:1000"], None),
        (["--token", "the token that is used"], None),
    ],
)
def test_the_argument_after_a_secret_option_is_replaced(argv: list[str], expected: list[str] | None) -> None:
    out, _ = clean(GATE, {"argv": argv})
    assert out == {"argv": expected or argv}
    assert clean(GATE, out) == (out, {})


# --- the quick test, compiled and not

pieces = st.sampled_from(
    [
        *(text.replace("{}", secret) for text, secret, _ in NAMED),
        *CLEAN,
        "--",
        "-u",
        "=",
        ":",
        '"',
        "\\",
        " ",
        "%3D",
        "token",
        *("PASSWORD", "api key", "x" * 9, "]", "'", ">", "a1b2c3d4", "?key", "Cookie", "\n", "é", ","),
        "--user",
        "me:pw",
    ]
)
texts = st.lists(pieces, max_size=7).map("".join)


@settings(max_examples=500, deadline=None)
@given(texts)
def test_the_quick_test_never_misses_a_name(text: str) -> None:
    value = {"a": text, "b": ["--token", text]}
    out = GATE.redact(value, {})
    if out is not value:
        assert GATE.suspicious(orjson.dumps(value))
        assert GATE.suspicious_text(orjson.dumps(value))
    assert GATE.redact(out, {}) is out


@settings(max_examples=500, deadline=None)
@given(texts, st.booleans(), st.booleans())
def test_the_quick_test_is_the_same_compiled_and_not(text: str, quoted: bool, structured: bool) -> None:
    data = orjson.dumps({"x": text}) if quoted else text.encode()
    if speed.names_secret is None:
        pytest.skip("there is no compiled form here")
    plainly = redact_quick._names_secret(data, WORDS, structured)
    assert speed.names_secret(data, WORDS, structured) == plainly


def test_the_quick_test_says_no_to_ordinary_events() -> None:
    source = random.Random(5)
    words = ["plan", "the", "token", "limit", "is", "key", "value", "secret", "to", "success", "user", "pass", "author"]
    event = {
        "messages": [{"role": "user", "content": " ".join(source.choices(words, k=400))} for _ in range(4)],
        "logprobs": [{"token": word, "logprob": -0.5} for word in words],
        "max_tokens": 100,
        "page_token": None,
        "image": base64.b64encode(source.randbytes(3000)).decode(),
    }
    assert not GATE.suspicious_text(orjson.dumps(event))


OWN = Redactor(environ={}, fields=["pin", "x-my-token", "door_code"])


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ('{"pin": "4711"}', '{"pin": "[redacted:named-field]"}'),
        (r'{\"pin\": \"args-PIN\"}', r'{\"pin\": \"[redacted:named-field]\"}'),
        ("door_code=open-sesame-9 X-My-Token: abcdef99", "door_code=[redacted:named-field] X-My-Token: [redacted:named-field]"),
        ("--door-code='4711'", "--door-code='[redacted:named-field]'"),
        ("door_code   =   4711-abc", "door_code   =   [redacted:named-field]"),
        ("pin = get_pin2(); self.pin = pin; if pin == expected1: pin=None; WHERE pin = u.id; map-pin: 24px", None),
        ("import pin == 1.2.3, pin=true, pin = models.ForeignKey2(User)", None),
        ("spinning: 123456, pin: str, reset_pin='abc123', the pin is in the drawer", None),
        ('{"pin": 4711, "pin": null, "pinned": "yes"}', None),
        ("pin = ${PIN}", None),
    ],
)  # fmt: skip
def test_what_follows_the_name_of_a_field_of_the_users_own_is_secret_in_text_too(text: str, clean: str | None) -> None:
    counts: dict[str, int] = {}
    assert OWN.redact_text(text, counts) == (text if clean is None else clean)
    assert set(counts) == (set() if clean is None else {"named-field"})
    assert Redactor(environ={}).redact_text(text, {}) == text


own_texts = st.lists(
    st.sampled_from(["pin", "PIN", "door-code", "door_code", '"', "'", "\\", ":", "=", " ", "4711", "abc", "x", "_", "-", "\n"]),
    max_size=9,
).map("".join)  # fmt: skip


@settings(max_examples=500, deadline=None)
@given(own_texts)
def test_the_quick_test_never_misses_a_field_of_the_users_own(text: str) -> None:
    value = {"a": text}
    out = OWN.redact(value, {})
    if out is not value:
        assert OWN.suspicious(orjson.dumps(value))
        assert OWN.suspicious_text(orjson.dumps(value))
    assert OWN.redact(out, {}) is out
