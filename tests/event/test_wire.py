"""A body is kept so that its exact bytes come back, also through a timeline."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.event.values import json_values

import playhead
from playhead.event import wire

# What several encoders make of a value, and what none of them would write.
ENCODERS = {
    "json:compact": orjson.dumps,
    "json:compact-ascii": lambda value: json.dumps(value, separators=(",", ":")).encode(),
    "json:spaced": lambda value: json.dumps(value, ensure_ascii=False).encode(),
    "json:spaced-ascii": lambda value: json.dumps(value).encode(),
    "json:indented": lambda value: json.dumps(value, ensure_ascii=False, indent=2).encode(),
    "json:indented-ascii": lambda value: json.dumps(value, indent=2).encode(),
}
ODD = [
    b"",
    b" ",
    b"\n",
    b"null",
    b"true",
    b"-1",
    b"0",
    b"00",
    b"7\n",
    b'""',
    b"{}",
    b"[]",
    b"{}\n",
    b"{}\n\n",
    b"{}\r\n",
    b"[\n]",
    b"[ ]",
    b'{"a": 1}',
    b'{"a":1 }',
    b'{"a" : 1}',
    b'{"a":1,"a":2}',
    b'{"a":1, "b":2}',
    b'{"a": 1,"b": 2}',
    b"[1, 2]",
    b"[1,2]",
    b"[1.0,1e2,-0.0,0.1,1E+2]",
    b"[12345678901234567890123]",
    b"[9007199254740993,18446744073709551615,-9223372036854775808]",
    b"[1e400]",
    b"[NaN]",
    b"[Infinity,-Infinity]",
    b'{"a":NaN}',
    b'\xef\xbb\xbf{"a":1}',
    b'"\\ud800"',
    b'["\\ud83d\\ude00"]',
    b'["\\u00e9"]',
    b'["\\u00E9"]',
    b'["\\/"]',
    b'["\x7f"]',
    b'["\\u2028"]',
    '["é"]'.encode(),
    '["é \\u00e9"]'.encode(),
    '["é"]'.encode("latin-1"),
    b"\xff\xfe{}",
    b"\x00",
    b'{"a": "x,y"}',
    b'{"a:b":1}',
    b'{"a":"\\": "}',
    b'{\n  "a": 1\n}\n',
    b'{\n\t"a": 1\n}',
    b'{\n    "a": 1\n}',
    b'{\n  "a": []\n}',
    b'{"$bytes":"AAAA"}',
    b'{"$same":"0#/a"}',
    b'{"$ref":"#/definitions/a","$defs":{}}',
    b'{"$redacted":"x"}',
    b'["$bytes"]',
    b"data: {}\n\n",
    b'{"a":"' + b"x" * 50_000 + b'"}',
    b"x" * 50_000,
    b"\xff" * 50_000,
    orjson.dumps({"list": [{"$ref": f"#/{n}", "text": "y" * 300} for n in range(200)]}),
    b"[" * 2000 + b"]" * 2000,
    b'{"a":' * 400 + b"1" + b"}" * 400,
    "emoji 😀 \x00 text".encode(),
]
BODIES = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.builds(lambda value, encode: encode(value), json_values, st.sampled_from(list(ENCODERS.values()))),
    st.builds(
        lambda value, encode, end: encode(value) + end,
        json_values,
        st.sampled_from(list(ENCODERS.values())),
        st.sampled_from([b"\n", b"\r\n", b" ", b"\n\n"]),
    ),
)


@given(BODIES)
def test_any_body_comes_back(data: bytes) -> None:
    value, form = wire.read(data)
    assert wire.write(value, form) == data


@pytest.mark.parametrize("data", ODD, ids=lambda data: repr(data[:24]))
def test_odd_bodies_come_back(data: bytes) -> None:
    value, form = wire.read(data)
    assert wire.write(value, form) == data
    assert (form == wire.NONE) == (data == b"")


@pytest.mark.parametrize("form", ENCODERS)
@pytest.mark.parametrize("ending", ["", "+newline"])
def test_each_form_is_recognised_and_kept_as_a_value(form: str, ending: str) -> None:
    value = {"naïve": ["ü", 1, 2.5, None, True, {}], "b": {"c": [1, 2]}}
    data = ENCODERS[form](value) + (b"\n" if ending else b"")
    assert wire.read(data) == (value, form + ending)


def test_numbers_as_python_spells_them_are_kept_as_json() -> None:
    data = '{"ü":[1e-07,1e+16,1.5e-05]}'.encode()
    assert wire.read(data) == ({"ü": [1e-07, 1e16, 1.5e-05]}, "json:compact-python")
    assert wire.read(data + b"\n")[1] == "json:compact-python+newline"


@pytest.mark.parametrize("data", [b"[1, 2, 3]", b'["a", "b"]', b"[[1, 2], 3]", b'{"a": {"b": 1}}', b'{"a":{"b":1}}'])
def test_json_of_common_encoders_is_kept_as_json(data: bytes) -> None:
    assert wire.read(data)[1].startswith(wire.JSON)


@pytest.mark.parametrize("form", [wire.UNOPENED, "json:someday"])
def test_a_form_that_cannot_be_written_is_refused_with_its_name(form: str) -> None:
    with pytest.raises(ValueError, match=form):
        wire.write({}, form)


@pytest.mark.parametrize("data", ODD, ids=lambda data: repr(data[:24]))
def test_odd_bodies_come_back_out_of_a_timeline(data: bytes) -> None:
    value, form = wire.read(data)
    with playhead.record("bodies") as run:
        fields = {"outcome": "ok", "form": form} | ({} if form == wire.NONE else {"body": value})
        run.record("body.kept", fields)
    events = playhead.load("@last").events()
    assert wire.response_bytes(next(event.data for event in events if event.kind == "body.kept")) == data


def test_a_body_in_chunks_is_cut_where_it_was() -> None:
    data = {"form": "text", "body": "grüß dich", "chunks": {"sizes": [3, 1, 7], "at_us": [1, 2, 3]}}
    assert wire.response_chunks(data) == ["grüß dich".encode()[:3], b"\xbc", "ß dich".encode()]
    assert wire.response_chunks({"form": "text", "body": "x"}) == [b"x"]
    assert wire.response_chunks({"form": "none"}) == []
