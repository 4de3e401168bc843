"""Hold the redaction gate to its promises about known values, and to those about everything."""

from __future__ import annotations

import base64
import gzip
import random
import threading
import zlib
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.capture.redact_corpus import NAMED
from tests.capture.redact_samples import ALNUM, SECRETS, clean, letters, spellings

from playhead import _limits
from playhead.capture import redact
from playhead.capture.redact import Redactor
from playhead.capture.redact_known import Known
from playhead.capture.redact_names import is_plainly_no_secret
from playhead.event.secret_names import is_secret_name

VALUES = [
    "hunter2-hunter2",
    "s3cr3t!?",
    "p@ss/w+rd=&x",
    'qu"ote\\back\\\\slash',
    "multi\nline\tvalue",
    "żółć-gęślą-jaźń",
    "🔑🔑🔑🔑🔑🔑🔑🔑",
    letters(40),
    letters(60, ALNUM + "+/"),
    "a b c d e f",
    "(.*)[x]{2}$^",
    "\x01\x02\x08\x0c ctl",
    "<html>&amp;'x'",
]


@pytest.mark.parametrize("value", VALUES)
def test_a_known_value_is_found_in_every_spelling(value: str) -> None:
    gate = Redactor(environ={"MY_TOKEN": value})
    for text in spellings(value):
        for around in ("{}", "x{}y", "a {} b\n", '"{}"'):
            whole = around.replace("{}", text)
            out, counts = clean(gate, {"k": whole})
            assert "[redacted:env]" in out["k"], text
            assert counts == {"env": 1}
            assert gate.redact_bytes(whole.encode(), {}) == out["k"].encode()


def test_of_base64_everything_the_value_decides_is_replaced() -> None:
    gate = Redactor(environ={"MY_TOKEN": "hunter2-hunter2"})
    for before in range(3):
        coded = base64.b64encode(b"x" * before + b"hunter2-hunter2" + b"tail").decode()
        left = gate.redact_text(coded, {}).split("[redacted:env]")
        assert [len(part) for part in left] == [[0, 8], [2, 7], [3, 6]][before], left


@pytest.mark.parametrize("value", [value for value in VALUES if len(value.encode()) >= 11])
@pytest.mark.parametrize("before", ["", "a", "ab", "user:"])
def test_a_known_value_is_found_in_base64_of_base64(value: str, before: str) -> None:
    gate = Redactor(environ={"MY_TOKEN": value})
    once = base64.b64encode(f"{before}{value}, and more".encode())
    for inner in (once, once.replace(b"+", b"-").replace(b"/", b"_")):
        for lead in (b"", b"x", b"xy"):
            twice = base64.b64encode(lead + inner).decode()
            out, counts = clean(gate, {"k": twice})
            assert counts == {"env": 1}
            left = base64.b64decode(out["k"].partition("[")[0] + "==", validate=False)
            assert len(left) < len(lead) + len(before) + 8


@pytest.mark.parametrize(
    "pack", [gzip.compress, zlib.compress, lambda data: zlib.compress(data, 1), lambda d: zlib.compress(d, 9)]
)
def test_a_secret_in_compressed_data_is_found_as_bytes_and_in_base64(pack: Any) -> None:
    gate = Redactor(environ={"MY_TOKEN": "hunter2-hunter2"})
    text = b"the password is hunter2-hunter2, " + b"and more " * 30
    for packed in (pack(text), pack(pack(text))):
        counts: dict[str, int] = {}
        assert gate.redact_bytes(packed, counts) == text.replace(b"hunter2-hunter2", b"[redacted:env]")
        assert counts == {"env": 1}
    for coded in (base64.b64encode(pack(text)).decode(), base64.urlsafe_b64encode(pack(text)).decode().rstrip("=")):
        assert clean(gate, {"k": f"data: {coded}."}) == ({"k": "data: [redacted:packed]."}, {"packed": 1})
    innocent = pack(b"nothing to see " * 30)
    assert gate.redact_bytes(innocent, {}) is innocent
    assert clean(gate, base64.b64encode(innocent).decode())[1] == {}
    assert gate.redact_bytes(pack(text)[:-9], {}) != pack(text)[:-9], "as far as it goes"


def test_compressed_data_that_is_too_large_or_damaged_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Redactor(environ={"MY_TOKEN": "hunter2-hunter2"})
    monkeypatch.setattr(_limits, "OPENED_BYTES_MAX", 1000)
    large = gzip.compress(b"hunter2-hunter2" + bytes(2000))
    damaged = b"\x1f\x8b\x08" + bytes(50)
    for data in (large, damaged, b"x\x9c" + bytes(9), b"xyz", b"x"):
        assert gate.redact_bytes(data, {}) is data


# --- values of fields


def test_the_value_of_a_secret_field_is_found_elsewhere_from_then_on() -> None:
    gate = Redactor(environ={})
    event = {"text": "use hunter2hunter2 there", "args": {"password": "hunter2hunter2"}, "then": "aHVudGVyMmh1bnRlcjI="}
    out, counts = clean(gate, event)
    assert out == {
        "text": "use [redacted:field] there",
        "args": {"password": {"$redacted": "field"}},
        "then": "[redacted:field]I=",
    }
    assert counts == {"field": 3}
    assert clean(gate, "again hunter2hunter2")[0] == "again [redacted:field]"
    assert clean(gate, {"authorization": "Bearer Ab3xTz9"})[1] == {"field": 1}


@pytest.mark.parametrize(
    "value", ["production", "understanding", "correct horse", "short1", "12345678901234", "your-key-1a2b3c4d"]
)
def test_an_ordinary_value_of_a_secret_field_is_not_looked_for_elsewhere(value: str) -> None:
    gate = Redactor(environ={})
    assert clean(gate, {"secret": value, "text": f"the {value} one"})[0]["text"] == f"the {value} one"
    assert gate.generation == 0


def test_two_redactors_with_the_same_rules_and_the_same_values_redact_alike_whatever_the_order() -> None:
    first, second = (
        Redactor(environ={"A_TOKEN": "hunter2-hunter2"}, patterns={"badge": r"badge-\d+"}) for _ in range(2)
    )
    for value in ("battery-staple-9", "staple-9-and-more"):
        first.add_known(value)
    for value in ("staple-9-and-more", "battery-staple-9"):
        second.add_known(value)
    texts = [
        text for value in ("hunter2-hunter2", "battery-staple-9", "staple-9-and-more") for text in spellings(value)
    ]
    for text in [*texts, *(secret for _, secret in SECRETS), "battery-staple-9-and-more", "badge-7"]:
        event = {"x": text, "password": "s3cr3t-9-s3cr3t"}
        recorded, replayed = clean(first, event), clean(second, event)
        assert recorded == replayed
        assert clean(second, recorded[0]) == (recorded[0], {}), "what is played back is not redacted once more"


def test_a_value_that_becomes_known_is_found_from_then_on() -> None:
    gate = Redactor(environ={})
    assert clean(gate, "x correct-horse y")[1] == {}
    before = gate.generation
    gate.add_known("correct-horse")
    assert gate.generation == before + 1
    assert clean(gate, "x correct-horse y") == ("x [redacted:known] y", {"known": 1})
    gate.add_known("correct-horse")
    gate.add_known(" correct-horse\n", "header")
    gate.add_known("short")
    assert gate.generation == before + 1
    gate.add_known("battery-staple", "header")
    assert clean(gate, "battery-staple")[0] == "[redacted:header]"


def test_a_known_value_inside_a_longer_one_does_not_split_it() -> None:
    gate = Redactor(environ={"A_TOKEN": "abcdefgh", "B_TOKEN": "abcdefgh-ijklmnop"})
    assert clean(gate, "abcdefgh-ijklmnop abcdefgh") == ("[redacted:env] [redacted:env]", {"env": 2})


def test_a_known_value_of_a_known_shape_goes_by_its_shape_so_that_a_replay_without_it_redacts_alike() -> None:
    key = "sk-ant-api03-" + letters(80)
    recorded, replayed = Redactor(environ={"ANTHROPIC_API_KEY": key}), Redactor(environ={})
    assert clean(recorded, f"x {key}") == clean(replayed, f"x {key}")
    assert clean(replayed, f"x {key}") == ("x [redacted:anthropic-key]", {"anthropic-key": 1})
    coded = base64.b64encode(key.encode()).decode()
    assert key[20:40] not in base64.b64decode(clean(recorded, coded)[0].split("[")[0] + "==").decode("latin-1")


def test_a_known_number_is_found_where_it_is_a_number() -> None:
    gate = Redactor(environ={"MY_SECRET": "4111111111111111"})
    assert clean(gate, {"card": 4111111111111111, "other": 4111111111111112}) == (
        {"card": "[redacted:env]", "other": 4111111111111112},
        {"env": 1},
    )


def test_values_become_known_from_many_threads() -> None:
    gate = Redactor(environ={})

    def add(part: int) -> None:
        for n in range(25):
            gate.add_known(f"value-{part}-{n:03}")

    threads = [threading.Thread(target=add, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert gate.generation == 100
    text = " ".join(f"value-{part}-{n:03}" for part in range(4) for n in range(25))
    assert gate.redact_text(text, {}) == " ".join(["[redacted:known]"] * 100)


@pytest.mark.parametrize(
    ("name", "secret"),
    [
        *((name, True) for name in ("OPENAI_API_KEY", "GITHUB_TOKEN", "PGPASSWORD", "db_passwd", "CLIENT_SECRET")),
        *((name, True) for name in ("AWS_SECRET_ACCESS_KEY", "GOOGLE_CREDENTIALS", "PRIVATE_THING", "HTTP_AUTH")),
        *((name, True) for name in ("MYAPP.TOKEN", "AWS_ACCESS_KEY_ID")),
        *((name, False) for name in ("SSH_AUTH_SOCK", "XAUTHORITY", "SSL_KEY_FILE", "KEY_PATH", "PATH", "MONKEY")),
        *((name, False) for name in ("TOKENIZERS_PARALLELISM", "KEYBOARD", "MAX_TOKENS", "AUTHOR", "HOME", "PWD")),
        *((name, False) for name in ("OLDPWD", "AUTH_TYPE")),
    ],
)
def test_a_variable_is_secret_by_the_parts_of_its_name(name: str, secret: bool) -> None:
    assert is_secret_name(name) is secret
    gate = Redactor(environ={name: "quite-a-value"})
    assert (clean(gate, "quite-a-value")[0] == "[redacted:env]") is secret


def test_values_that_are_plainly_no_secret_are_not_looked_for(tmp_path: Path) -> None:
    for value in (
        "short",
        "true",
        "Disabled",
        "12345678",
        "2026-11-15",
        str(tmp_path),
        "https://login.example.com/token",
    ):
        assert is_plainly_no_secret(value), value
        assert Redactor(environ={"MY_TOKEN": value}).generation == 0
    for value in (str(tmp_path / "absent"), "https://u:p@h", "https://h/?key=abc", "123456789012"):
        assert not is_plainly_no_secret(value), value
    assert Redactor(environ={"MY_TOKEN": "quite-a-value"}, disabled=["env"]).generation == 0


def test_a_known_value_that_is_not_utf8_is_found_in_bytes() -> None:
    gate = Redactor(environ={"MY_TOKEN": b"abc\xff\xfedefg".decode("utf-8", "surrogateescape")})
    assert gate.redact_bytes(b"x abc\xff\xfedefg y", {}) == b"x [redacted:env] y"


# --- promises about everything

PLAIN = Redactor(environ={})
known = ["hunter2-hunter2", "s3cr3t!?", 'qu"ote\\x\ny', "redacted", "field", "żółć-gęślą"]
BUSY = Redactor(environ={}, patterns={"badge": r"badge-\d+"}, fields=["pin"])
for one in known:
    BUSY.add_known(one)
BUSY.add_known("anthropic-key")

fragments = st.sampled_from(
    [
        *(secret for _, secret in SECRETS),
        *(text for value in known for text in spellings(value)),
        *("postgres://u:", "@h", "Bearer ", "basic ", "badge-7", "sk-", "eyJ", letters(30), "password"),
        *("-", "_", "\n", '"', "\\", "\\n", "=", "/", ".", "%3D", "[redacted:jwt]", "[redacted:", "env]"),
        *("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"),
        *(text.replace("{}", secret) for text, secret, _ in NAMED),
        *("--token ", "PASSWORD=", "Cookie: ", "?key=", base64.b64encode(gzip.compress(b"hunter2-hunter2")).decode()),
    ]
)
texts = st.lists(fragments | st.text(max_size=6), max_size=6).map("".join)
keys = texts | st.sampled_from(["password", "API-Key", "pin", "$redacted", "content", "cookie"])
values = st.recursive(
    texts | st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=400, deadline=None)
@given(values)
@example({"$redacted": "field"})
@example("hunter2-hunter2sk-ant-" + letters(30))
@example({"password": {"$redacted": "field"}, "x": "[redacted:redacted]"})
def test_the_quick_test_never_misses_and_redacting_twice_is_redacting_once(value: Any) -> None:
    before = orjson.dumps(value)
    counts: dict[str, int] = {}
    out = BUSY.redact(value, counts)
    assert orjson.dumps(value) == before, "the input was changed"
    assert BUSY.suspicious(before) or out is value
    assert (out is value) == (not counts)
    again: dict[str, int] = {}
    assert BUSY.redact(out, again) is out
    assert not again
    assert orjson.dumps(out) == orjson.dumps(BUSY.redact(value, {}))


@settings(max_examples=300, deadline=None)
@given(texts, texts, st.sampled_from(SECRETS))
def test_no_text_around_a_secret_hides_it(before: str, after: str, case: tuple[str, str]) -> None:
    _, secret = case
    text = f"{before} {secret} {after}"
    assert PLAIN.suspicious(orjson.dumps(text))
    assert f" {secret} " not in PLAIN.redact_text(text, {})


@settings(max_examples=300, deadline=None)
@given(texts, texts, st.sampled_from(known[:3] + known[-1:]), st.integers(0, 40))
def test_no_text_around_a_known_value_hides_it(before: str, after: str, value: str, which: int) -> None:
    forms = spellings(value)
    text = before + forms[which % len(forms)] + after
    assert BUSY.suspicious(orjson.dumps(text))
    assert value not in BUSY.redact_text(text, {})


@pytest.mark.parametrize("value", ['"quoted-value', "\\back-slash", "<angle-bracket", "/slash/slash", "źródło-hasło"])
def test_a_long_row_of_backslashes_does_not_stop_the_search(value: str) -> None:
    gate = Redactor(environ={"MY_TOKEN": value})
    text = "\\" * 200_000 + value[1:] + " " + value
    out, counts = clean(gate, text)
    assert value not in out
    assert counts["env"] >= 1


def test_more_secret_fields_than_can_be_learned_are_all_redacted_and_it_ends() -> None:
    redactor = Redactor(environ={})
    count = _limits.LEARNED_VALUES_MAX * 2 + 10
    secrets = [f"s{number}x9Q{number * 7}zK" for number in range(count)]
    value = [{"access_token": secret} for secret in secrets] + [{"said": f"it is {secrets[-1]}."}]
    counts: dict[str, int] = {}
    out = redactor.redact(value, counts)
    assert out[:count] == [{"access_token": {"$redacted": "field"}}] * count
    assert out[count] == {"said": "it is [redacted:field]."}
    assert counts == {"field": count + 1}
    assert redactor.redact(out, {}) is out


def test_what_stands_in_a_placeholder_or_beside_it_is_found_as_between_placeholders() -> None:
    """Whole texts are searched at once; the result is that of a search in every part between placeholders."""
    chance = random.Random(7)
    values = ["redacted", "redacted:field", "abcd1234", "1234abcd", "field]abcd", "abcd[redacted", "x/y+12345"]
    parts = [*values, "[redacted:field]", "[redacted:env]", "[redacted:", "]", " ", "ab", "12", "%2F", "\\/"]
    placeholder = redact._placeholders(frozenset({"field", "env"}))
    for _ in range(3000):
        text = "".join(chance.choice(parts) for _ in range(chance.randint(1, 8)))
        for form in Known(chance.choice(values), "env").forms:
            expected, begin = [], 0
            for at, part in enumerate(placeholder.split(text)):
                if at % 2 == 0:
                    expected += [(begin + start, begin + end) for start, end in form.spans(part)]
                begin += len(part)
            assert redact._spans_between(placeholder, form, text) == expected, text


def test_secret_keys_of_one_object_stay_apart() -> None:
    redactor = Redactor(environ={"MY_TOKEN": "abcd1234efgh"})
    value = {"abcd1234efgh": 0, "[redacted:env]#3": 1, **{f"abcd1234efgh{' ' * number}": number for number in (2, 3)}}
    out = redactor.redact(value, {})
    assert list(out.values()) == [0, 1, 2, 3]
    assert list(out)[:2] == ["[redacted:env]", "[redacted:env]#3"]
