"""Identity: the same question has the same key, in every process and every release."""

from __future__ import annotations

import copy
import hashlib
import struct
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.event.values import json_values
from tests.shared_data import shared

import playhead
from playhead.capture.request import hash_of
from playhead.event.keys import ASKED, call_key, canonical, envelope_hash
from playhead.event.plainer import Plainer, plain


@pytest.mark.parametrize("name", ["arrays", "french", "structures", "unicode", "values", "weird"])
def test_the_vectors_of_rfc_8785_are_met(name: str) -> None:
    folder = shared("vectors/rfc8785")
    value = orjson.loads((folder / "input" / f"{name}.json").read_bytes())
    assert canonical(value) == bytes.fromhex((folder / "outhex" / f"{name}.txt").read_text())
    assert canonical(value) == (folder / "output" / f"{name}.json").read_bytes()


@given(json_values)
@settings(max_examples=300)
@example({"\U0001f600": 1, "\ufb33": 2, "\r": 3, "1": 4, "\u0080": 5, "ö": 6, "€": 7})
@example(
    [
        1e15,
        1e16,
        1e20,
        1e21,
        1e22,
        1e-6,
        1e-7,
        0.001,
        0.0009999,
        123456789012345.6,
        999999999999999.9,
        -0.0,
        2.0**53,
        5e-324,
    ]
)
@example('\x00\x01\x08\t\n\x0b\x0c\r\x1f"\\/\x7f\u2028\u2029\u00ad')
def test_any_json_has_its_rfc_8785_form(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@given(st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0]))
@settings(max_examples=500)
def test_any_float_has_its_rfc_8785_form(number: float) -> None:
    if number - number == 0.0:
        assert canonical([number]) == rfc8785.dumps([number])


@pytest.mark.hard
@given(st.integers(0, 2**64 - 1).map(lambda bits: struct.unpack("<d", bits.to_bytes(8, "little"))[0]))
@settings(max_examples=50_000)
def test_any_float_has_its_rfc_8785_form_many_times(number: float) -> None:
    if number - number == 0.0:
        assert canonical([number]) == rfc8785.dumps([number])


@given(json_values)
def test_what_a_walk_noted_gives_the_same_form_as_looking_again(value: Any) -> None:
    plainer = Plainer()
    out = plainer.value({"v": value})
    assert canonical(out, plainer.floats, plainer.unusual_keys) == canonical(out)


def test_a_marked_value_has_a_canonical_form() -> None:
    value = plain({"ü": {1: (2.5, b"x")}, "f": 1.0, "n": float("nan"), "big": 2**60})
    assert canonical(value) == rfc8785.dumps(orjson.loads(orjson.dumps(value)))


# Golden: written once, never changed. A different normalisation is `k2:`.
GOLDEN = [
    (("tool.called", "search", {"query": "login"}), "k1:444073f4fc0f2b750a29d70f9adc380b7bd2d5fe7f5b13fdf783c86b7d648167"),
    (("tool.called", "search", None), "k1:24cc82601f8e86bde5eb6a725a21cb47364a3d0bd4df4982a48f30029969dead"),
    (("model.invoked", None, {"temperature": 1.0, "messages": [{"role": "user", "content": "hé 😀"}]}), "k1:3b04ecbb262ba22ab1b724b856a4774c478b8fda791b2b505bb4bf2326289030"),
    (("model.invoked", "gpt-5", {"b": 1, "a": [1e21, 1e-7, -0.0, 0.1]}), "k1:8c5ec1687378851aa545f0a7a3483987bf70804f642a17756eef4ab823762808"),
    (("http.sent", "GET", ["https://x.test/", None]), "k1:afb72b3133614a2214afbcd191dd96eacca4357651edba9bad6a9d7e51854fcb"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "key"), GOLDEN)
def test_a_key_never_changes(question: tuple[str, str | None, Any], key: str) -> None:
    assert call_key(*question) == key


def test_a_key_sees_through_number_forms_and_key_order_only() -> None:
    same = call_key("tool.called", "f", {"a": 1, "b": 2.0})
    assert call_key("tool.called", "f", {"b": 2, "a": 1.0}) == same
    for other in ({"a": 1}, {"a": 1, "b": "2"}, {"a": 1, "b": 3}, {"a": True, "b": 2}, [1, 2]):
        assert call_key("tool.called", "f", other) != same
    assert call_key("tool.called", "g", {"a": 1, "b": 2}) != same
    assert call_key("model.invoked", "f", {"a": 1, "b": 2}) != same
    assert call_key("tool.called", None, {"a": 1, "b": 2}) != same


# The hash of a request


def test_a_request_hash_never_changes() -> None:
    assert envelope_hash("fix-login", {"issue": 1842, "tags": ["a"]}, {}) == (
        "e1:2a07573a84280e37c16cfe24965739fd762741a5cde6945413c9ce7ff42eb48d"
    )


def test_a_request_hash_does_not_depend_on_how_the_encoder_writes_floats() -> None:
    floats = [1e21, 1e-7, 5e-324, 1e16, -1e300, 0.1, 1.0, -0.0]
    written = '["i",[{"$float":"1e+21"},{"$float":"1e-07"},{"$float":"5e-324"},{"$float":"1e+16"},{"$float":"-1e+300"},0.1,1.0,-0.0],{}]'
    digest = hashlib.sha256(b"playhead/envelope/v1\0" + written.encode()).hexdigest()
    assert envelope_hash("i", floats, {}) == f"e1:{digest}"


@given(json_values, st.data())
def test_any_changed_byte_of_a_payload_changes_the_hash(payload: Any, data: st.DataObject) -> None:
    encoded = orjson.dumps(payload, option=orjson.OPT_SORT_KEYS)
    at = data.draw(st.integers(0, len(encoded) - 1))
    flipped = encoded[:at] + bytes([encoded[at] ^ data.draw(st.integers(1, 127))]) + encoded[at + 1 :]
    try:
        other = orjson.loads(flipped)
    except orjson.JSONDecodeError:
        return
    if orjson.dumps(other, option=orjson.OPT_SORT_KEYS) != encoded:
        assert envelope_hash("i", other, {}) != envelope_hash("i", payload, {})


def test_the_hash_covers_intent_payload_and_metadata() -> None:
    base = envelope_hash("i", {"a": 1}, {"m": 1})
    assert envelope_hash("j", {"a": 1}, {"m": 1}) != base
    assert envelope_hash("i", {"a": 2}, {"m": 1}) != base
    assert envelope_hash("i", {"a": 1}, {"m": 2}) != base
    assert envelope_hash("i", {"a": 1}, {}) != base
    assert envelope_hash("i", {"a": 1, "m": 1}, {}) != base


@pytest.mark.parametrize(
    "pair", [(1, 1.0), (1, True), (0, False), (0.0, -0.0), ("1", 1), (None, "null"), ([], {}), ("", None)]
)
def test_values_that_python_calls_equal_are_different_requests(pair: tuple[Any, Any]) -> None:
    assert envelope_hash("i", {"v": pair[0]}, {}) != envelope_hash("i", {"v": pair[1]}, {})


def recorded_hash(**fields: Any) -> str:
    """Record a run for this request and return the hash in its first line."""
    with playhead.record("agent", input=playhead.Envelope(**fields)) as run:
        pass
    started = next(iter(playhead.load(run.id).events()))
    assert started.data["envelope_hash"] == hash_of(started.data["input"])
    return str(started.data["envelope_hash"])


def test_three_identical_requests_hash_alike_whatever_their_id_time_and_trace() -> None:
    payload = {"issue": 1842, "deep": {"text": "x" * 50_000, "set": {"b", "a"}}}
    hashes = {
        recorded_hash(
            intent="fix", payload=copy.deepcopy(payload), metadata={"who": "me"}, id=str(n), time=str(n), trace={"n": n}
        )
        for n in range(3)
    }
    assert len(hashes) == 1
    payload["deep"]["text"] = "x" * 49_999 + "y"
    assert recorded_hash(intent="fix", payload=payload, metadata={"who": "me"}) not in hashes


def test_a_process_is_asked_for_by_its_command_and_how_it_is_run():
    def key(**data: Any) -> str:
        return call_key("process.started", *ASKED["process.started"]({"argv": ["ls", "-l"], **data}))

    plain = call_key("process.started", None, [["ls", "-l"], None])
    assert key() == key(cwd="/a") == key(env={"A": "b"}) == key(streams={"stdout": "pipe"}) == key(options={}) == plain
    others = [key(stdin="x"), key(shell=True), key(options={"cwd": "/a"}), key(options={"cwd": "/b"})]
    assert len({plain, *others}) == 5
