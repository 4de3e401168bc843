"""The line: thirteen fields, the hash last, checked with no JSON parser."""

from __future__ import annotations

import hashlib
import itertools
import os
import subprocess
import sys
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.event.values import json_values
from tests.shared_data import shared

from playhead.errors import BrokenLine
from playhead.event import envelope

RUN = "run_01hf7yat00000g40r40m30e209"
HEAD = envelope.head_of(RUN, 7, "2023-11-14T22:13:20.000001Z", 12, "a.b", "3", None, "0.1", "k1:" + "a" * 64)


def sealed(data: bytes = b"{}", head: bytes = HEAD, prev: bytes = b"0" * 64) -> bytes:
    return envelope.seal(head, data, prev)[0]


def test_a_line_has_thirteen_fields_in_one_order_and_ends_in_75_fixed_bytes() -> None:
    line, digest = envelope.seal(HEAD, b'{"x":1}', b"f" * 64)
    assert tuple(orjson.loads(line)) == envelope.FIELDS
    assert line.endswith(b',"hash":"' + digest + b'"}\n')
    assert len(b',"hash":"' + digest + b'"}') == envelope.SUFFIX_LENGTH == 75
    assert hashlib.sha256(line[:-76]).hexdigest().encode() == digest
    bare = line[:-1]
    assert bare[envelope.HASH_AT] == digest
    assert bare[envelope.PREV_AT] == b"f" * 64
    assert bare[envelope.PREV_OPENS_AT] == b',"prev":"'
    assert envelope.sound(bare)


@given(
    json_values,
    st.text(st.characters(exclude_categories=["Cs"])),
    st.none() | st.text(st.characters(exclude_categories=["Cs"])),
)
def test_any_value_and_any_foreign_span_id_make_one_line_that_reads_back(
    value: Any, span: str, parent: str | None
) -> None:
    head = envelope.head_of(RUN, 0, "2023-11-14T22:13:20.000000Z", 5, "a.b", span, parent, "0", None)
    line = sealed(orjson.dumps({"v": value}), head)
    assert line.count(b"\n") == 1
    assert b"\r" not in line
    event = envelope.parse(line)
    assert (event.run, event.seq, event.elapsed_us, event.kind, event.span, event.parent) == (
        RUN,
        0,
        5,
        "a.b",
        span,
        parent,
    )
    assert orjson.dumps(event.data) == orjson.dumps({"v": value})
    assert envelope.sound(line[:-1])
    assert (envelope.seq_of(line), envelope.run_of(line), envelope.kind_of(line)) == (0, RUN, "a.b")
    assert envelope.elapsed_of(line) == 5
    assert line.startswith(envelope.prefix(RUN, 0))


@pytest.mark.parametrize("text", ['"', "\\", '","kind":"x.y","span":"', "\n", "\u2028", "²", "٣", "a b", ""])
def test_a_foreign_span_id_cannot_break_out_of_its_quotes(text: str) -> None:
    line = sealed(head=envelope.head_of(RUN, 0, "t", 0, "a.b", text, text, "0", text))
    event = envelope.parse(line)
    assert (event.span, event.parent, event.key, event.kind) == (text, text, text, "a.b")


def test_every_single_byte_flip_makes_a_line_unsound() -> None:
    bare = sealed(b'{"text":"hello"}')[:-1]
    for at, bit in itertools.product(range(len(bare)), range(8)):
        flipped = bytearray(bare)
        flipped[at] ^= 1 << bit
        assert not envelope.sound(bytes(flipped)), (at, bit)
    for end in range(len(bare)):
        assert not envelope.sound(bare[:end])
    assert not envelope.sound(bare + b" ")


def test_the_first_line_is_bound_to_the_run() -> None:
    assert envelope.genesis(RUN) == hashlib.sha256(b"playhead/run/v1\0" + RUN.encode()).hexdigest()
    assert envelope.genesis(RUN) != envelope.genesis(RUN[:-1] + "8")


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"1", b"null", b'"x"', b"{}", b'{"v":0}', b'{"v":"1"}', b'{"v":true}', b'{"v":null}', b"\xff\xfe", b'{"v":1}',
     sealed().replace(b'"seq":7', b'"seq":"7"'), sealed().replace(b'"seq":7', b'"seq":7.5'), sealed().replace(b'"kind":"a.b"', b'"kind":null'),
     sealed().replace(b'"elapsed_us":12', b'"elapsed_us":99999999999999999999999999')],
    ids=itertools.count(),
)  # fmt: skip
def test_what_is_no_line_is_refused_with_a_named_error(line: bytes) -> None:
    with pytest.raises(BrokenLine):
        envelope.parse(line)


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"[]", b"null", b'{"run":"x","seq":1,', b'{"v":1,"run":"a\\"b","seq":1,', b'{"v":1,"run":"","seq":1,', b" " + sealed(),
     b'{"v":1,"run":"x","seq":-1,', b'{"v":1,"run":"x","seq":1e3,', b'{"v":1,"run":"x","seq":' + b"9" * 40 + b","],
    ids=itertools.count(),
)  # fmt: skip
def test_heads_that_are_none_are_read_as_nothing(line: bytes) -> None:
    assert envelope.seq_of(line) is None
    assert envelope.kind_of(line) is None
    assert envelope.elapsed_of(line) == 0


def test_unknown_fields_are_ignored_by_reading_and_stay_in_the_line() -> None:
    head = HEAD.replace(b'"data":', b'"colour":"red","data":')
    line = sealed(b'{"new":{"deep":[1]}}', head)
    event = envelope.parse(line)
    assert event.data == {"new": {"deep": [1]}}
    assert envelope.sound(line[:-1])
    assert b'"colour":"red"' in line


def test_a_line_of_a_newer_format_is_read_as_far_as_it_is_known() -> None:
    event = envelope.parse(sealed(b'{"x":1}', HEAD.replace(b'{"v":1,', b'{"v":9,')))
    assert (event.v, event.data) == (9, {"x": 1})


def test_parsing_cases_from_the_wild_never_raise_anything_else() -> None:
    for path in sorted(shared("vectors/json").glob("*.json")):
        data = path.read_bytes()
        for line in (data, HEAD + data + b',"prev":"' + b"0" * 64 + b'","hash":"' + b"0" * 64 + b'"}'):
            try:
                envelope.parse(line)
            except BrokenLine:
                pass
            envelope.sound(line)
            envelope.seq_of(line)


def test_events_are_read_also_when_the_public_name_was_used_first() -> None:
    program = (
        "import playhead; playhead.Event; from playhead.event.envelope import head_of, parse, seal;"
        "print(parse(seal(head_of('r', 0, 't', 0, 'a.b', None, None, '0', None), b'{}', b'0' * 64)[0]).kind)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("a.b\n", "")
