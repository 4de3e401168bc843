"""A file that somebody else made is read only as far as it is a cassette, and refused with the reason. Nothing is written.

Each file here is one that `pack` wrote, changed in one way, and otherwise put in order again: sizes, counts and lists of
members are right, so that what is refused is what was changed.
"""

from __future__ import annotations

import hashlib
import json
import random
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.packed import FORMS, member, packed, record_family, record_rich, relined, rezipped

import playhead
from playhead import _limits
from playhead._api.packing import unpack_file
from playhead.errors import Altered, BadCassette, PlayheadError
from playhead.event import envelope
from playhead.store.cassettes.reading import Cassette
from playhead.store.files import FileStore

Members = list[tuple[zipfile.ZipInfo, bytes]]
Lines = list[bytes]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Give the bytes of one good cassette of each form."""
    folder = tmp_path_factory.mktemp("made")
    run = record_rich(FileStore(folder / "store"))
    return {form: packed(run, folder, form).read_bytes() for form in FORMS}


@pytest.fixture
def zipped(made: dict[str, bytes], tmp_path: Path) -> Path:
    path = tmp_path / "x.cassette"
    path.write_bytes(made[".cassette"])
    return path


@pytest.fixture
def lined(made: dict[str, bytes], tmp_path: Path) -> Path:
    path = tmp_path / "x.cassette.jsonl"
    path.write_bytes(made[".cassette.jsonl"])
    return path


def refused(path: Path, kind: type[PlayheadError], match: str) -> None:
    """Check that nobody can use a file, that the reason is said with a hint, and that nothing is written anywhere."""
    with pytest.raises(kind, match=match) as problem:
        playhead.load(path)
    assert problem.value.hint
    assert str(path.name) in problem.value.message
    with pytest.raises(kind, match=match):
        unpack_file(path, path.parent / "target")
    assert not (path.parent / "target").exists()


def reheaded(data: bytes, **fields: Any) -> bytes:
    return json.dumps({**json.loads(data), **fields}, separators=(",", ":")).encode() + b"\n"


# Zips


@pytest.mark.parametrize(
    "name",
    [
        "/etc/passwd", "../../x", "contents/../../x", "contents\\x", "C:/x", "timelines/", "CASSETTE.JSON", "contents/" + "A" * 64,
        "contents/" + "é" * 64, "timelines/run_x.jsonl", "private/x", "cassette.json/", "x.py", "cassette.json\x00", "",
        "contents/" + "a" * 64 + "/", " cassette.json", "./cassette.json",
    ],
)  # fmt: skip
def test_a_member_that_no_cassette_has_is_refused(zipped: Path, name: str) -> None:
    rezipped(zipped, lambda members: members.append((member("x"), b"x")))
    raw = name.encode()
    data = zipped.read_bytes()
    first, last = data.index(b"PK\x03\x04", data.rindex(b"PK\x03\x04")), data.rindex(b"PK\x01\x02")
    local = data[first : first + 26] + struct.pack("<H", len(raw)) + data[first + 28 : first + 30] + raw
    entry = data[last : last + 28] + struct.pack("<H", len(raw)) + data[last + 30 : last + 46] + raw
    end = data.rindex(b"PK\x05\x06")
    start = struct.unpack_from("<L", data, end + 16)[0]
    grown = len(raw) - 1
    size = struct.unpack_from("<L", data, end + 12)[0]
    tail = data[end : end + 12] + struct.pack("<2L", size + grown, start + grown) + data[end + 20 :]
    zipped.write_bytes(data[:first] + local + data[first + 31 : last] + entry + tail)
    refused(zipped, BadCassette, "no cassette has a member")


def test_a_link_is_refused(zipped: Path) -> None:
    def change(members: Members) -> None:
        members[-1][0].external_attr = 0o120777 << 16

    rezipped(zipped, change)
    refused(zipped, BadCassette, "is not a plain file")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused(zipped: Path) -> None:
    rezipped(zipped, lambda members: members.append((member(members[-1][0].filename), b"other")))
    refused(zipped, BadCassette, "it has two members contents/")


def test_the_header_stands_first(zipped: Path) -> None:
    rezipped(zipped, lambda members: members.reverse())
    refused(zipped, BadCassette, r"first member is not cassette\.json")


def test_a_member_that_nobody_refers_to_is_refused(zipped: Path) -> None:
    def change(members: Members) -> None:
        header = json.loads(members[0][1])
        members[0] = members[0][0], reheaded(members[0][1], contents=header["contents"] + 1)
        members.append((member(f"contents/{hashlib.sha256(b'x').hexdigest()}"), b"x"))

    rezipped(zipped, change)
    refused(zipped, Altered, "nobody refers to content 2d711642b726")


def test_a_member_more_or_less_than_declared_is_refused(zipped: Path) -> None:
    rezipped(zipped, lambda members: members.pop())
    refused(zipped, BadCassette, r"declares \d+ contents and has \d+")


def test_a_content_that_is_gone_is_refused(zipped: Path) -> None:
    def change(members: Members) -> None:
        members.pop()
        members[0] = members[0][0], reheaded(members[0][1], contents=len(members) - 2)

    rezipped(zipped, change)
    refused(zipped, Altered, "is gone")


def test_a_content_that_was_exchanged_is_refused(zipped: Path) -> None:
    def change(members: Members) -> None:
        members[-1] = members[-1][0], b"something else"

    rezipped(zipped, change)
    refused(zipped, Altered, "is not what was packed")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda line: line.replace(b"rich", b"poor"), "event 0 was edited"),
        (lambda line: b"", "event 0 was removed"),
        (lambda line: line + line, "event 1 was inserted"),
        (lambda line: b"\xff\xfe\n" + line, "event 0 was edited"),
        (lambda line: b'{"v":1,"data":NaN}\n' + line, "event 0 was edited"),
        (lambda line: line[:-1], "event 0 was edited"),
    ],
)
def test_a_timeline_that_was_changed_is_refused(zipped: Path, change: Callable[[bytes], bytes], match: str) -> None:
    def apply(members: Members) -> None:
        info, data = members[1]
        first, rest = data.split(b"\n", 1)
        members[1] = info, change(first + b"\n") + rest

    rezipped(zipped, apply)
    refused(zipped, Altered, match)


@pytest.mark.parametrize("keep", [-1, 3, 0])
def test_a_timeline_without_its_end_is_refused(zipped: Path, lined: Path, keep: int) -> None:
    def cut(members: Members) -> None:
        info, data = members[1]
        members[1] = info, b"".join(data.splitlines(keepends=True)[:keep])

    rezipped(zipped, cut)
    refused(zipped, Altered, r"is cut: \d+ events were packed")

    def shorten(lines: Lines) -> None:
        events = [line for line in lines if line.startswith(b'{"v":1')]
        lines[1 : len(events) + 1] = events[:keep]

    relined(lined, shorten)
    refused(lined, Altered, "is cut: ")


def test_a_timeline_that_goes_on_after_its_head_is_refused(tmp_path: Path) -> None:
    run = record_rich(FileStore(tmp_path / "store"))
    old = packed(run, tmp_path, ".cassette")
    run.invalidate("later")
    later = list(run.lines())[-1] + b"\n"

    def change(members: Members) -> None:
        members[1] = members[1][0], members[1][1] + later

    rezipped(old, change)
    refused(old, Altered, "goes on after event")


def test_a_run_that_was_made_anew_is_not_the_one_of_the_header(zipped: Path) -> None:
    with zipfile.ZipFile(zipped) as archive:
        lines = archive.read(archive.namelist()[1]).splitlines()
    prev, forged = envelope.genesis(Cassette(zipped).header.run).encode(), b""
    for line in lines:
        body = line[: -envelope.SUFFIX_LENGTH].replace(b"--- a", b"--- b").replace(b'"fixed":true', b'"fixed":null')
        body = body[:-65] + prev + b'"'
        prev = hashlib.sha256(body).hexdigest().encode()
        forged += body + b',"hash":"' + prev + b'"}\n'

    def change(members: Members) -> None:
        members[1] = members[1][0], forged

    rezipped(zipped, change)
    refused(zipped, Altered, "is not the one that its header names")


@pytest.mark.parametrize(
    ("flag", "match"), [(0x1, "is encrypted"), (0x8, "a way that `pack` does not use"), (0x800, "a way that")]
)
def test_encryption_and_oddities_are_refused(zipped: Path, flag: int, match: str) -> None:
    data = bytearray(zipped.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    place = struct.unpack_from("<L", data, at + 42)[0]
    data[at + 8 : at + 10] = data[place + 6 : place + 8] = struct.pack("<H", flag)
    zipped.write_bytes(data)
    refused(zipped, BadCassette, match)


def test_other_compressions_are_refused(zipped: Path) -> None:
    def change(members: Members) -> None:
        members[-1][0].compress_type = zipfile.ZIP_BZIP2

    rezipped(zipped, change)
    refused(zipped, BadCassette, "a way that `pack` does not use")


def test_a_zip64_is_refused(zipped: Path) -> None:
    data = bytearray(zipped.read_bytes())
    end = data.rindex(b"PK\x05\x06")
    data[end + 16 : end + 20] = b"\xff" * 4
    zipped.write_bytes(data)
    refused(zipped, BadCassette, "zip64")
    with zipfile.ZipFile(zipped, "w") as archive, archive.open(member("cassette.json"), "w", force_zip64=True) as out:
        out.write(b"{}")
    refused(zipped, BadCassette, "or is another one there")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda data: data[:-1], "its end is missing"),
        (lambda data: data[: len(data) // 2], "its end is missing"),
        (lambda data: data[:4], "its end is missing"),
        (lambda data: data[:30], "its end is missing"),
        (lambda data: data + b"x", "something was added"),
        (lambda data: b"#!/bin/sh\n" + data, "is not a cassette"),
        (lambda data: b"", "is not a cassette"),
        (lambda data: b"PK\x05\x06" + bytes(18), "is not a cassette"),
        (lambda data: b"PK\x03\x04" + b"PK\x05\x06" + bytes(18), "is not where it says"),
    ],
)
def test_a_file_that_is_cut_or_grown_is_refused(zipped: Path, change: Callable[[bytes], bytes], match: str) -> None:
    zipped.write_bytes(change(zipped.read_bytes()))
    refused(zipped, BadCassette, match)


def test_a_comment_is_refused(zipped: Path) -> None:
    with zipfile.ZipFile(zipped, "a") as archive:
        archive.comment = b"hello"
    refused(zipped, BadCassette, "something was added")


def test_what_hides_between_members_is_refused(zipped: Path) -> None:
    data = zipped.read_bytes()
    end = data.rindex(b"PK\x05\x06")
    start = struct.unpack_from("<L", data, end + 16)[0]
    tail = data[end : end + 16] + struct.pack("<L", start + 6) + data[end + 20 :]
    zipped.write_bytes(data[:start] + b"hidden" + data[start:end] + tail)
    refused(zipped, BadCassette, "something stands between")


def test_members_that_overlap_are_refused(zipped: Path) -> None:
    """As in bombs whose members share their data: a few kilobytes become petabytes, at any ratio of one member."""
    data = bytearray(zipped.read_bytes())
    last = data.rindex(b"PK\x01\x02")
    before = data.rindex(b"PK\x01\x02", 0, last)
    data[last + 42 : last + 46] = data[before + 42 : before + 46]
    zipped.write_bytes(data)
    refused(zipped, BadCassette, "does not stand where its list says")


def test_a_member_that_is_another_one_at_its_place_is_refused(zipped: Path) -> None:
    data = bytearray(zipped.read_bytes())
    place = data.rindex(b"PK\x03\x04")
    data[place + 39] ^= 1  # the first letter of a digest, where only programs that ignore the list look
    zipped.write_bytes(data)
    refused(zipped, BadCassette, "or is another one there")


def _sizes(zipped: Path, change: Callable[[int], int]) -> None:
    """Declare another size of the last member, in both places."""
    data = bytearray(zipped.read_bytes())
    at = data.rindex(b"PK\x01\x02")
    place = struct.unpack_from("<L", data, at + 42)[0]
    size = struct.pack("<L", change(struct.unpack_from("<L", data, at + 24)[0]))
    data[at + 24 : at + 28] = data[place + 22 : place + 26] = size
    zipped.write_bytes(data)


@pytest.mark.parametrize("by", [-1, 1])
def test_a_member_that_declares_another_size_is_refused(zipped: Path, by: int) -> None:
    _sizes(zipped, lambda size: size + by)
    refused(zipped, BadCassette, "does not hold the")


def test_a_member_that_is_too_large_is_refused_before_it_is_read(zipped: Path) -> None:
    _sizes(zipped, lambda size: _limits.CASSETTE_MEMBER_BYTES_MAX + 1)
    refused(zipped, BadCassette, r"a part of it has 1,073,741,825 bytes")


def test_a_bomb_is_refused_before_it_is_read(zipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change(members: Members) -> None:
        members.append((member(f"contents/{'0' * 64}"), bytes(100_000_000)))

    rezipped(zipped, change)
    assert zipped.stat().st_size < 500_000
    monkeypatch.setattr("playhead.store.cassettes.zips._inflated", pytest.fail)
    with pytest.raises(BadCassette, match="more than 200 times as large"):
        playhead.load(zipped)


def test_more_than_is_allowed_in_all_is_refused(zipped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(_limits, "CASSETTE_BYTES_MAX", 1000)
        refused(zipped, BadCassette, "more than 1,000 bytes")
    monkeypatch.setattr(_limits, "CASSETTE_MEMBERS_MAX", 3)
    refused(zipped, BadCassette, "more than 3 members")


def test_data_that_cannot_be_decompressed_is_refused(zipped: Path) -> None:
    data = bytearray(zipped.read_bytes())
    place = data.rindex(b"PK\x03\x04") + 30 + len("contents/") + 64
    data[place] = 0xFF
    zipped.write_bytes(data)
    refused(zipped, BadCassette, "cannot be decompressed|does not hold")


def test_a_zip_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.cassette"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "hello")
    refused(path, BadCassette, r"no cassette has a member 'readme\.txt'")


# The header


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"playhead": "tape"}, "is not a cassette"),
        ({"format": 2}, "has format 2, this Playhead reads up to 1"),
        ({"format": 0}, "contradicts itself"),
        ({"format": "1"}, "header is not one"),
        ({"run": "run_x"}, "contradicts itself"),
        ({"runs": []}, "contradicts itself"),
        ({"contents": -1}, "declares -1 contents"),
        ({"contents": "many"}, "header is not one"),
        ({"runs": [{"run": "x"}]}, "header is not one"),
    ],
)
@pytest.mark.parametrize("form", FORMS)
def test_a_header_that_is_none_is_refused(made: Any, tmp_path: Path, form: str, fields: Any, match: str) -> None:
    path = tmp_path / f"x{form}"
    path.write_bytes(made[form])
    _rehead(path, lambda header: header.update(fields))
    refused(path, BadCassette, match)


def _rehead(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    def changed(data: bytes) -> bytes:
        header = json.loads(data)
        change(header)
        return json.dumps(header, separators=(",", ":")).encode() + b"\n"

    if path.name.endswith(".jsonl"):
        relined(path, lambda lines: lines.__setitem__(0, changed(lines[0])))
    else:
        rezipped(path, lambda members: members.__setitem__(0, (members[0][0], changed(members[0][1]))))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("change", "kind", "match"),
    [
        (lambda run: run["head"].update(seq=-1), BadCassette, "names no digest"),
        (lambda run: run["head"].update(hash="0" * 63), BadCassette, "names no digest"),
        (lambda run: run["head"].update(hash="0" * 64), Altered, "is not the one that its header names"),
        (lambda run: run["head"].update(seq=10**15), Altered, "is cut: "),
        (lambda run: run["head"].update(seq=2), Altered, "not the one that its header names"),
        (lambda run: run.update(finished=False), Altered, "whether"),
        (lambda run: run.update(run="run_" + "i" * 26), BadCassette, "is not a run id|contradicts"),
        (lambda run: run["files"].update({"artifacts/../../x": "0" * 64}), BadCassette, "unusable part"),
        (lambda run: run["files"].update({"/etc/passwd": "0" * 64}), BadCassette, "has no file '/etc/passwd'"),
        (lambda run: run["files"].update({"artifacts/a\\b": "0" * 64}), BadCassette, "forbidden character"),
        (lambda run: run["files"].update({"timeline.jsonl": "0" * 64}), BadCassette, "has no file"),
        (lambda run: run["files"].update({"artifacts/x": "0" * 64}), Altered, "artifacts/x of run_.* is not what an event"),
        (lambda run: run["files"].update({"artifacts/x": "zero"}), BadCassette, "names no digest"),
        (lambda run: run["files"].update({"artifacts/patch.diff/x": "0" * 64}), BadCassette, "stands below another file"),
    ],
)  # fmt: skip
def test_a_header_that_lies_is_refused(
    made: Any, tmp_path: Path, form: str, change: Any, kind: type[PlayheadError], match: str
) -> None:
    path = tmp_path / f"x{form}"
    path.write_bytes(made[form])
    _rehead(path, lambda header: change(header["runs"][0]))
    refused(path, kind, match)


@pytest.mark.parametrize(
    "text", [b"{", b"[]", b"null", b'{"playhead":"cassette","format":NaN}', b'"\\ud800"', b"[" * 5000]
)
def test_a_header_that_is_no_json_object_is_refused(zipped: Path, lined: Path, text: bytes) -> None:
    rezipped(zipped, lambda members: members.__setitem__(0, (members[0][0], text)))
    refused(zipped, BadCassette, "is not JSON|is not a cassette")
    relined(lined, lambda lines: lines.__setitem__(0, b'{"playhead":"cassette",' + text + b"\n"))
    refused(lined, BadCassette, "is not JSON")


@pytest.mark.parametrize("form", FORMS)
def test_a_header_larger_than_any_is_refused(
    made: Any, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"x{form}"
    path.write_bytes(made[form])
    monkeypatch.setattr(_limits, "CASSETTE_HEADER_BYTES_MAX", 100)
    refused(path, BadCassette, "header")


@pytest.mark.parametrize("form", FORMS)
def test_a_field_of_a_later_release_is_no_reason_to_refuse(made: Any, tmp_path: Path, form: str) -> None:
    path = tmp_path / f"x{form}"
    path.write_bytes(made[form])
    _rehead(path, lambda header: header.update(novelty={"a": 1}))
    assert playhead.load(path).name == "rich"


# Lines


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda lines: lines.insert(-1, b"hello\n"), "is neither a content nor the end"),
        (lambda lines: lines.insert(-1, lines[1]), "is neither a content nor the end"),
        (lambda lines: lines.insert(-1, lines[-2]), "is there twice"),
        (lambda lines: lines.append(lines[-1]), "damaged, or does not count|something stands after its end"),
        (lambda lines: lines.insert(-1, b'{"content":"x"}\n'), "is not written as one"),
        (lambda lines: lines.__setitem__(-2, lines[-2].replace(b'"size":', b'"size":-')), "is not written as one"),
        (lambda lines: lines.__setitem__(-2, lines[-2][:-2] + b"\n"), "is not written as one"),
        (lambda lines: lines.__setitem__(-2, lines[-2].replace(b'"size":', b'"size":1')), "has .* bytes and declares"),
        (lambda lines: lines.pop(-2), "declares"),
    ],
)
def test_lines_that_do_not_belong_are_refused(lined: Path, change: Callable[[Lines], Any], match: str) -> None:
    relined(lined, change)
    refused(lined, BadCassette, match)


@pytest.mark.parametrize(
    ("form", "instead", "match"),
    [
        ("text", b'"text":"other"}', "bytes and declares"),
        ("text", b'"text":"\\ud800"}', "cannot be read"),
        ("text", b'"text":NaN}', "cannot be read"),
        ("text", b'"text":7}', "is no text"),
        ("text", b'"text":"a","text":"b"}', "cannot be read"),
        ("base64", b'"base64":"!!"}', "cannot be read"),
        ("base64", b'"base64":"AA"}', "cannot be read"),
        ("base64", b'"base64":["AA=="]}', "is no text"),
        ("json", b'"json":NaN}', "cannot be read"),
        ("json", b'"json":{}} }', "cannot be read"),
    ],
)
def test_a_content_that_cannot_be_read_is_refused(lined: Path, form: str, instead: bytes, match: str) -> None:
    def change(lines: Lines) -> None:
        mark = b',"%b":' % form.encode()
        at = next(number for number, line in enumerate(lines) if line.startswith(b'{"content"') and mark in line[:400])
        lines[at] = lines[at][: lines[at].index(mark) + 1] + instead + b"\n"

    relined(lined, change)
    refused(lined, BadCassette, match)


def test_a_content_that_is_called_by_another_name_is_refused(lined: Path) -> None:
    def change(lines: Lines) -> None:
        at = next(
            number for number, line in enumerate(lines) if line.startswith(b'{"content"') and b"patch.diff" in line
        )
        lines[at] = lines[at].replace(b"patch.diff", b"patch.exe", 1)

    relined(lined, change)
    refused(lined, BadCassette, "does not have the names")


def test_a_content_of_the_same_size_is_not_the_same(lined: Path) -> None:
    relined(
        lined, lambda lines: lines.__setitem__(slice(None), [line.replace(b"--- a\\n", b"--- b\\n") for line in lines])
    )
    refused(lined, Altered, "is not what was packed")


@pytest.mark.parametrize("cut", [1, 20, 40, 3000])
def test_lines_without_their_end_are_refused(lined: Path, cut: int) -> None:
    lined.write_bytes(lined.read_bytes()[:-cut])
    refused(lined, BadCassette, "its end is|is not written as one")


def test_line_ends_of_windows_get_the_hint_that_mends_them(lined: Path) -> None:
    lined.write_bytes(lined.read_bytes().replace(b"\n", b"\r\n"))
    with pytest.raises(BadCassette, match="CR LF") as problem:
        playhead.load(lined)
    assert ".gitattributes" in problem.value.hint


def test_a_timeline_that_was_exported_is_not_a_cassette(tmp_path: Path) -> None:
    run = record_rich(FileStore(tmp_path / "store"))
    path = tmp_path / "x.cassette.jsonl"
    path.write_bytes(b"".join(line + b"\n" for line in run.lines()))
    refused(path, BadCassette, "is not a cassette")


def test_runs_of_a_family_stand_in_order_and_all_of_them(tmp_path: Path) -> None:
    run, family = record_family(FileStore(tmp_path / "store"))
    path = packed(run, tmp_path, ".cassette.jsonl")
    _rehead(path, lambda header: header["runs"].append(header["runs"].pop(1)))
    refused(path, BadCassette, "do not stand in order")
    _rehead(path, lambda header: header["runs"].sort(key=lambda run: run["run"]))
    assert playhead.load(path).id == run.id
    relined(
        path,
        lambda lines: lines.__setitem__(
            slice(None), [line for line in lines if not line.startswith(b'{"v":1,"run":"%b"' % family[1].encode())]
        ),
    )
    refused(path, BadCassette, f"has no line of {family[1]}")


# Whatever


@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_whatever_is_changed_is_refused_or_changes_nothing(made: Any, tmp_path: Path, form: str, seed: int) -> None:
    random_ = random.Random(seed)
    data = bytearray(made[form])
    match random_.randrange(5):
        case 0:
            data[random_.randrange(len(data))] ^= 1 << random_.randrange(8)
        case 1:
            del data[random_.randrange(len(data)) :]
        case 2:
            at = random_.randrange(len(data))
            del data[at : at + random_.randrange(1, 200)]
        case 3:
            at = random_.randrange(len(data))
            data[at:at] = data[at : at + random_.randrange(1, 2000)]
        case 4:
            at = random_.randrange(len(data))
            data[at : at + 4] = random_.randbytes(4)
    path, good = tmp_path / f"x{form}", tmp_path / f"good{form}"
    path.write_bytes(data)
    good.write_bytes(made[form])
    try:
        loaded = playhead.load(path)
    except PlayheadError:
        return
    true = playhead.load(good)
    assert list(loaded.lines()) == list(true.lines())
    assert [event.data for event in loaded.events()] == [event.data for event in true.events()]
    assert [loaded.artifact(name) for name in ("patch.diff", "logs/[x].bin")] == [
        true.artifact(name) for name in ("patch.diff", "logs/[x].bin")
    ]
