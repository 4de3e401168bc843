"""Hold the redaction gate to its promises about shapes, fields, rules and bytes."""

from __future__ import annotations

import base64
import json
import random
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.redact_samples import ALNUM, INNOCENT, JWT, PEM, SECRETS, clean, letters

from playhead import _limits
from playhead.capture.redact import Redactor
from playhead.capture.redact_rules import Rule
from playhead.errors import ConfigError

NAUGHTY = Path(__file__).parents[2].parent / "shared" / "data" / "vectors" / "blns" / "blns.json"
SHAPES = [pytest.param(rule, secret, id=f"{rule}-{at}") for at, (rule, secret) in enumerate(SECRETS)]
PLAIN = Redactor(environ={})


@pytest.fixture(scope="module")
def gate() -> Redactor:
    return Redactor(environ={})


# --- shapes


@pytest.mark.parametrize(("rule", "secret"), SHAPES)
@pytest.mark.parametrize(
    "around",
    ["{}", "{} is at the start", "at the end is {}", "in the ('{}') middle", "KEY={}", "a/{}", "x\n{}\ny", "my_{}"],
)
def test_a_secret_of_a_known_shape_is_replaced_by_its_rule_and_nothing_else_is(
    gate: Redactor, rule: str, secret: str, around: str
) -> None:
    out, counts = clean(gate, around.replace("{}", secret))
    assert out == around.replace("{}", f"[redacted:{rule}]")
    assert counts == {rule: 1}


@pytest.mark.parametrize(("rule", "secret"), SHAPES)
def test_a_secret_is_found_in_nested_values_and_in_keys(gate: Redactor, rule: str, secret: str) -> None:
    mark = f"[redacted:{rule}]"
    out, counts = clean(gate, {"a": [1, None, {"b": f"x {secret}"}, True], secret: 2.5, "c": {}})
    assert out == {"a": [1, None, {"b": f"x {mark}"}, True], mark: 2.5, "c": {}}
    assert counts == {rule: 2}


@pytest.mark.parametrize(("rule", "secret"), SHAPES)
def test_a_secret_is_found_in_json_inside_json_and_in_urls(gate: Redactor, rule: str, secret: str) -> None:
    inner = json.dumps({"text": f"key:\n{secret}\n"})
    out, _ = clean(gate, {"arguments": inner, "again": json.dumps(inner)})
    assert f"[redacted:{rule}]" in out["arguments"]
    assert f"[redacted:{rule}]" in out["again"]
    assert json.loads(out["arguments"]) == {"text": f"key:\n[redacted:{rule}]\n"}
    if rule != "private-key":
        out, _ = clean(gate, f"https://x.example/?key%3D{secret}%26a")
        assert out == f"https://x.example/?key%3D[redacted:{rule}]%26a"


@pytest.mark.parametrize(("rule", "secret"), SHAPES)
def test_a_rule_that_is_switched_off_lets_its_shape_pass(rule: str, secret: str) -> None:
    gate = Redactor(environ={}, disabled=[rule])
    assert rule not in gate.rules
    assert clean(gate, f"x {secret} y") == (f"x {secret} y", {})


@pytest.mark.parametrize("text", INNOCENT)
def test_what_only_resembles_a_secret_survives(gate: Redactor, text: str) -> None:
    assert clean(gate, {"text": text, "list": [text]}) == ({"text": text, "list": [text]}, {})


@settings(deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["uuid", "sha1", "sha256", "call", "base64", "urlsafe", "hex"]))
def test_ids_digests_and_base64_survive(seed: int, form: str) -> None:
    source = random.Random(seed)
    text = {
        "uuid": lambda: str(uuid.UUID(int=source.getrandbits(128))),
        "sha1": lambda: source.randbytes(20).hex(),
        "sha256": lambda: source.randbytes(32).hex(),
        "call": lambda: "call_" + "".join(source.choices(ALNUM, k=24)),
        "base64": lambda: base64.b64encode(source.randbytes(6000)).decode(),
        # Short: in enough random letters with dashes among them, something that looks like a key does occur.
        "urlsafe": lambda: base64.urlsafe_b64encode(source.randbytes(48)).decode(),
        "hex": lambda: source.randbytes(16).hex().upper(),
    }[form]()
    assert clean(PLAIN, {"id": text, "text": f"see {text}."}) == ({"id": text, "text": f"see {text}."}, {})


@pytest.mark.parametrize(("rule", "secret"), SHAPES)
def test_secrets_that_follow_each_other_are_all_replaced(gate: Redactor, rule: str, secret: str) -> None:
    for between in (" ", ",", "\n", "%26"):
        out, counts = clean(gate, between.join([secret] * 5))
        assert out == between.join([f"[redacted:{rule}]"] * 5)
        assert counts == {rule: 5}


def test_a_long_run_of_data_does_not_hide_a_token(gate: Redactor) -> None:
    data = base64.b64encode(random.Random(4).randbytes(9000)).decode()
    for _, secret in SECRETS:
        text = f"{data}/{secret}"
        assert secret not in clean(gate, {"x": text})[0]["x"]


def test_a_private_key_that_was_cut_off_is_replaced_to_the_end_of_the_text(gate: Redactor) -> None:
    out, _ = clean(gate, ["before\n" + PEM[:70], "next"])
    assert out == ["before\n[redacted:private-key]", "next"]


def test_two_private_keys_are_two_and_the_text_between_them_stays(gate: Redactor) -> None:
    out, counts = clean(gate, f"{PEM}\nbetween\n{PEM}")
    assert out == "[redacted:private-key]\nbetween\n[redacted:private-key]"
    assert counts == {"private-key": 2}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgres://me:hunter2@db/x", "postgres://me:[redacted:url-password]@db/x"),
        ("redis://:hunter2@cache:6379/0", "redis://:[redacted:url-password]@cache:6379/0"),
        ("mongodb+srv://u:p%40ss@h", "mongodb+srv://u:[redacted:url-password]@h"),
        ("https://u:p@ss@h/a@b", "https://u:[redacted:url-password]@h/a@b"),
        ("a https://u:é@h, b", "a https://u:[redacted:url-password]@h, b"),
    ],
)
def test_of_a_url_only_the_password_is_replaced(gate: Redactor, url: str, expected: str) -> None:
    assert clean(gate, url) == (expected, {"url-password": 1})
    assert clean(gate, {"j": json.dumps(url, ensure_ascii=False)})[0]["j"] == json.dumps(expected)


@pytest.mark.parametrize("word", ["Bearer", "bearer", "BEARER"])
@pytest.mark.parametrize(
    "token", [letters(16) + "7", "yb29." + letters(40), "a.b.c." + letters(30), f"abc/def+{letters(20)}=="]
)
def test_what_follows_bearer_is_replaced(gate: Redactor, word: str, token: str) -> None:
    assert clean(gate, f"-H 'Authorization: {word} {token}' x") == (
        f"-H 'Authorization: {word} [redacted:bearer]' x",
        {"bearer": 1},
    )
    assert clean(gate, f"{word} {token}. End")[0] == f"{word} [redacted:bearer]. End"


@pytest.mark.parametrize("pair", ["user:secret", "admin:pässwörd", "a:" + "?>?>?>?>?>", "svc:x/y+z????>>>>"])
def test_what_follows_basic_is_replaced_when_it_is_a_user_and_a_password(gate: Redactor, pair: str) -> None:
    coded = base64.b64encode(pair.encode()).decode()
    assert clean(gate, f"authorization: Basic {coded}") == ("authorization: Basic [redacted:bearer]", {"bearer": 1})


def test_a_bearer_token_of_a_known_shape_is_named_by_its_shape(gate: Redactor) -> None:
    assert clean(gate, f"Bearer {JWT}")[0] == "Bearer [redacted:jwt]"


# --- fields


@pytest.mark.parametrize(
    "name",
    [
        *("password", "Password", "PASSWD", "paSSword", "api_key", "apikey", "apiKey", "API-KEY", "x-api-key"),
        *("Authorization", "Proxy-Authorization", "secret", "client_secret", "aws_secret_access_key", "private_key"),
        *("accessToken", "refresh-token", "id_token", "cookie", "Set-Cookie"),
    ],
)
def test_the_value_of_a_secret_field_is_replaced_as_a_whole(gate: Redactor, name: str) -> None:
    out, counts = clean(gate, {"args": [{name: "x", "user": "me"}]})
    assert out == {"args": [{name: {"$redacted": "field"}, "user": "me"}]}
    assert counts == {"field": 1}


def test_only_texts_of_secret_fields_are_replaced(gate: Redactor) -> None:
    value = {
        "password": "",
        "secret": None,
        "cookie": 7,
        "api_key": {"type": "string"},
        "authorization": ["a"],
        "token": "the",
        "secretary": "x",
        "my_password_hint": "x",
        "paſſword": "x",
        "coo\u212aie": "x",
        "text": 'say "password":"x"',
    }
    assert clean(gate, value) == (value, {})


def test_more_fields_can_be_named_and_the_rule_can_be_switched_off() -> None:
    more = Redactor(environ={}, fields=["PIN", "x-my-thing"])
    assert clean(more, {"pin": "1", "X_My_Thing": "2", "password": "3"})[1] == {"field": 3}
    assert clean(Redactor(environ={}, disabled=["field"]), {"password": "x"}) == ({"password": "x"}, {})


def test_a_field_whose_text_was_replaced_by_a_reference_still_looks_suspicious(gate: Redactor) -> None:
    assert gate.suspicious(b'{"password":{"$same":"3#/x"}}')
    assert gate.suspicious(b'{"password":{"$blob":"ab"}}')
    assert not gate.suspicious(b'{"password":{"type":"string"}}')


def test_a_caller_that_looks_at_keys_itself_can_ask_about_the_rest(gate: Redactor) -> None:
    off = Redactor(environ={}, disabled=["field"])
    assert gate.is_secret_field("X-Api-Key")
    assert not gate.is_secret_field("content")
    assert not off.is_secret_field("X-Api-Key")
    assert not gate.suspicious_text(b'{"x-api-key":"abc"}')
    assert gate.suspicious_text(b'{"x":"AKIA' + b"Q" * 16 + b'"}')


def test_two_secret_keys_of_one_object_stay_two(gate: Redactor) -> None:
    value = {"AKIA" + "A" * 16: 1, "AKIA" + "B" * 16: 2, "[redacted:aws-access-key]#2": 3}
    out, counts = clean(gate, value)
    assert list(out.values()) == [1, 2, 3]
    assert counts == {"aws-access-key": 2}
    assert clean(gate, out) == (out, {})


# --- rules of one's own


def test_a_rule_of_ones_own_is_applied_counted_and_named() -> None:
    gate = Redactor(environ={}, patterns={"badge": r"badge (?P<secret>\d+)", "colour": "#[0-9a-f]{6}"})
    at = gate.rules.index("badge")
    assert gate.rules[at : at + 3] == ("badge", "colour", "bearer")
    assert clean(gate, {"badge 12": "a #ff00ff, badge 7"}) == (
        {"badge [redacted:badge]": "a [redacted:colour], badge [redacted:badge]"},
        {"badge": 2, "colour": 1},
    )


def test_a_rule_with_hints_is_found_by_the_quick_test() -> None:
    rule = Rule("acme", r"acme:[a-z]{20}x", needles=("acme:",))
    inside = Rule("zeta", r"[a-z]+zeta_[a-z]{20}", needles=("zeta_",), in_run=True)
    gate = Redactor(environ={}, extra_rules=[rule, inside])
    assert clean(gate, ["acme:" + "a" * 20 + "x", "xzeta_" + "b" * 20])[1] == {"acme": 1, "zeta": 1}
    assert not gate.suspicious(b'"acme zeta"')


@pytest.mark.parametrize(
    "arguments",
    [
        {"patterns": {"bad": "("}},
        {"patterns": {"Not A Name": "x"}},
        {"patterns": {"jwt": "x"}},
        {"disabled": ["nosuch"]},
        {"fields": ['a"b']},
        {"patterns": {"assigned": "x"}},
    ],
)
def test_a_setting_that_cannot_work_is_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        Redactor(environ={}, **arguments)


def test_version_and_rules_say_what_is_in_force(gate: Redactor) -> None:
    assert gate.version == "r1"
    assert set(gate.rules) >= {rule for rule, _ in SECRETS} | {"url-password", "bearer", "env", "field", "known"}
    assert len(set(gate.rules)) == len(gate.rules)


# --- bytes


def test_bytes_are_redacted_whether_they_are_text_or_not(gate: Redactor) -> None:
    key, mark = b"AKIA" + b"Q" * 16, b"[redacted:aws-access-key]"
    counts: dict[str, int] = {}
    assert gate.redact_bytes(b"k = " + key + "é\n".encode(), counts) == b"k = " + mark + "é\n".encode()
    binary = bytes(range(256)) + b"\xff\xed\xa0\x80 "
    assert gate.redact_bytes(binary + key + b"\x00" + binary, counts) == binary + mark + b"\x00" + binary
    assert counts == {"aws-access-key": 2}
    assert gate.redact_bytes(binary, counts) is binary


@settings(deadline=None)
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_bytes_around_a_secret_survive(before: bytes, after: bytes) -> None:
    secret = b" AKIA" + b"Q" * 16 + b" "
    out = PLAIN.redact_bytes(before + secret + after, {})
    assert out == before + b" [redacted:aws-access-key] " + after


def test_the_naughty_strings_survive(gate: Redactor) -> None:
    if not NAUGHTY.exists():
        pytest.skip("the shared test data (shared/data/vectors/blns) is not beside this repository")
    strings = json.loads(NAUGHTY.read_text(encoding="utf-8"))
    assert len(strings) > 400
    changed = [text for text in strings if gate.redact(text, {}) is not text]
    assert changed == []


def test_a_text_that_was_clean_is_searched_again_when_more_is_known() -> None:
    gate = Redactor(environ={}, patterns={"badge": r"badge (?P<secret>\d+)"})
    text = "log in with hunter2-hunter2"
    for _ in range(2):
        assert gate.redact_text(text, {}) is text
    gate.add_known("hunter2-hunter2")
    for _ in range(2):
        assert gate.redact_text(text, {}) == "log in with [redacted:known]"


def test_remembering_clean_texts_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "CLEAN_CHARACTERS_MAX", 1000)
    gate = Redactor(environ={}, patterns={"badge": r"badge (?P<secret>\d+)"})
    for number in range(500):
        gate.redact_text(f"text {number}, which is one of many, badge {number}", {})
        gate.redact_text(f"text {number}, which is one of many", {})
    assert gate._clean is not None
    assert sum(map(len, gate._clean._held[1])) <= 1000
