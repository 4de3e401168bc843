"""Every change of a timeline is found, and the first bad line is named."""

from __future__ import annotations

import itertools
import random
from typing import Any, Literal

import pytest
from tests.ledger.timelines import OTHER, finish, hash_of, judged, ledger, lines_of, resealed, timeline

from playhead.event import envelope

LINES = timeline(100)
SMALL = timeline(10)


def assert_broken(data: Any, at: int, reason: str) -> None:
    found = judged(data)
    assert (found.integrity.verdict, found.integrity.at, found.integrity.reason) == ("broken", at, reason), (
        found.integrity
    )
    assert str(at) in str(found.integrity.message)
    assert found.level == "broken"
    sound = (data if isinstance(data, bytes) else b"".join(data)).split(b"\n")[:at]
    # Damage after run.finished leaves the body complete: two answers.
    assert (found.completeness.verdict == "complete") == any(b'"kind":"run.finished"' in line for line in sound)


def test_an_untouched_run_is_intact_and_complete() -> None:
    found = judged(LINES, deep=True)
    assert (found.integrity.verdict, found.completeness.verdict, found.level) == (
        "intact",
        "complete",
        "self-consistent",
    )
    assert (found.events, found.head, found.root_checked, found.open_tail) == (100, hash_of(LINES[-1]), True, 0)
    assert found.integrity.at is None


# Flips


def flip(lines: list[bytes], number: int, at: int, mask: int) -> list[bytes]:
    line = bytearray(lines[number])
    line[at] ^= mask
    return [*lines[:number], bytes(line), *lines[number + 1 :]]


def structural(line: bytes) -> set[int]:
    """Return the places that hold the form of a line: quotes, brackets, field names, the seals, the newline."""
    at = {index for index, byte in enumerate(line) if byte in b'{}[]":,\n'}
    for name in envelope.FIELDS:
        start = line.find(b'"%b":' % name.encode())
        at |= set(range(start, start + len(name) + 3))
    return at | set(range(len(line) - 160, len(line)))


def test_every_byte_of_a_small_run_flipped_is_found_at_its_line() -> None:
    for number, line in enumerate(SMALL):
        for at in range(len(line)):
            assert_broken(flip(SMALL, number, at, 1 << (at % 8)), number, "edited")


def test_flips_of_a_hundred_event_run_are_found_at_their_line() -> None:
    for number, line in enumerate(LINES):
        places = set(range(number % 7, len(line), 7)) | {0, len(line) - 1, len(line) - 2}
        for at in places:
            assert_broken(flip(LINES, number, at, 0x01), number, "edited")


@pytest.mark.hard
def test_every_single_byte_flip_of_a_hundred_event_run_is_found_at_its_line() -> None:
    for number, line in enumerate(LINES):
        masks = itertools.cycle((0x01, 0x80, 0x20, 0xFF, 0x04))
        for at in range(len(line)):
            assert_broken(flip(LINES, number, at, next(masks)), number, "edited")


@pytest.mark.hard
def test_every_bit_of_every_structural_byte_is_found_at_its_line() -> None:
    for number, line in enumerate(SMALL):
        for at in structural(line):
            for bit in range(8):
                assert_broken(flip(SMALL, number, at, 1 << bit), number, "edited")


def test_a_byte_turned_into_a_newline_or_a_newline_into_a_byte_is_found() -> None:
    for number, line in enumerate(SMALL):
        for at in range(0, len(line) - 1, 3):
            split = line[:at] + b"\n" + line[at + 1 :]
            assert_broken([*SMALL[:number], split, *SMALL[number + 1 :]], number, "edited")
        joined = line[:-1] + b" "
        assert_broken([*SMALL[:number], joined, *SMALL[number + 1 :]], number, "edited")
        assert_broken([*SMALL[:number], line[:-1] + b"\r\n", *SMALL[number + 1 :]], number, "edited")


# Lines


def test_every_line_deleted_is_found() -> None:
    for number in range(len(LINES) - 1):
        assert_broken(LINES[:number] + LINES[number + 1 :], number, "removed")


def test_several_lines_deleted_are_named() -> None:
    found = judged(LINES[:10] + LINES[20:])
    assert (found.integrity.at, found.integrity.reason) == (10, "removed")
    assert "events 10 to 19" in str(found.integrity.message)


def test_every_line_doubled_is_found() -> None:
    for number, line in enumerate(LINES):
        assert_broken([*LINES[: number + 1], line, *LINES[number + 1 :]], number + 1, "inserted")


def test_every_line_swapped_with_its_neighbour_is_found() -> None:
    for number in range(len(LINES) - 1):
        lines = list(LINES)
        lines[number], lines[number + 1] = lines[number + 1], lines[number]
        assert_broken(lines, number, "swapped")


def test_lines_swapped_far_apart_are_found_at_the_first() -> None:
    pairs = random.Random(1).sample(list(itertools.combinations(range(len(LINES)), 2)), 300)
    for left, right in pairs:
        lines = list(LINES)
        lines[left], lines[right] = lines[right], lines[left]
        assert_broken(lines, left, "swapped")


@pytest.mark.hard
def test_any_two_lines_swapped_are_found_at_the_first() -> None:
    for left, right in itertools.combinations(range(len(LINES)), 2):
        lines = list(LINES)
        lines[left], lines[right] = lines[right], lines[left]
        assert_broken(lines, left, "swapped")


def test_every_line_repeated_later_is_found() -> None:
    for number in range(0, len(LINES) - 1, 7):
        for place in range(number + 2, len(LINES) + 1, 13):
            assert_broken([*LINES[:place], LINES[number], *LINES[place:]], place, "inserted")


def test_a_line_of_another_run_is_found_wherever_it_is_put() -> None:
    other = timeline(100, OTHER)
    for number in range(len(LINES)):
        assert_broken([*LINES[:number], other[number], *LINES[number:]], number, "foreign_run")
        assert_broken([*LINES[:number], other[number], *LINES[number + 1 :]], number, "foreign_run")
    assert_broken([*LINES, other[0]], len(LINES), "foreign_run")


def test_another_run_under_this_name_is_found() -> None:
    assert_broken(timeline(5, OTHER), 0, "foreign_run")


def test_an_empty_line_and_garbage_are_found() -> None:
    for rubbish in (b"\n", b"{}\n", b"\x00" * 200 + b"\n", b"null\n", b'{"v":1}\n', b" " + SMALL[3]):
        for number in range(len(SMALL) + 1):
            assert_broken([*SMALL[:number], rubbish, *SMALL[number:]], number, "edited")


def test_bytes_before_the_first_line_are_found() -> None:
    assert_broken(b"\xef\xbb\xbf" + b"".join(SMALL), 0, "edited")


# Lines sealed anew by somebody who knows the format


def test_an_inserted_line_that_was_sealed_properly_is_found_at_its_place() -> None:
    for number in range(1, len(SMALL) - 1):
        forged = resealed(SMALL[number], data={"text": "forged"})
        assert_broken([*SMALL[:number], forged, *SMALL[number:]], number, "inserted")


def test_an_inserted_line_with_a_wrong_link_is_found_at_its_place() -> None:
    for number in range(1, len(SMALL) - 1):
        forged = resealed(SMALL[number], data={"text": "forged"}, prev="0" * 64)
        assert_broken([*SMALL[:number], forged, *SMALL[number:]], number, "inserted")


def test_an_edited_line_that_was_sealed_anew_is_found() -> None:
    for number in range(len(SMALL) - 2):
        forged = resealed(SMALL[number], data={"text": "forged"})
        assert_broken([*SMALL[:number], forged, *SMALL[number + 1 :]], number, "edited")


def test_the_last_but_one_line_sealed_anew_is_found_though_either_could_be_the_forged_one() -> None:
    number = len(SMALL) - 2
    found = judged([*SMALL[:number], resealed(SMALL[number], data={"text": "forged"}), SMALL[-1]])
    assert found.integrity.verdict == "broken"
    assert found.integrity.at in (number, number + 1)


def test_a_rewritten_tail_is_found_by_who_remembers_the_head_and_by_the_root() -> None:
    lines = list(SMALL)
    lines[4] = resealed(lines[4], data={"text": "forged"})
    for number in range(5, len(lines)):
        lines[number] = resealed(lines[number], prev=hash_of(lines[number - 1]))
    assert judged(lines).integrity.verdict == "intact", "a chain alone cannot show a whole rewrite"
    assert judged(lines, deep=True).integrity.reason == "root_mismatch"
    found = judged(lines, known_head=(6, hash_of(SMALL[6])))
    assert (found.integrity.verdict, found.integrity.at, found.integrity.reason) == ("broken", 6, "rewritten")
    assert judged(SMALL, known_head=(6, hash_of(SMALL[6]))).integrity.verdict == "intact"


def test_the_first_bad_line_stays_the_first_when_more_is_wrong_after_it() -> None:
    lines = flip(SMALL, 8, 50, 1)
    found = judged(lines, known_head=(3, "0" * 64))
    assert (found.integrity.at, found.integrity.reason) == (3, "rewritten")


@pytest.mark.parametrize(
    "data",
    [b"null", b"[]", b"5", b'"x"', b'{"policy":"x","context_pack":[1]}', b'{"reason":[],"count":"x"}', b'{"events":"ten","root":[]}',
     b"{not json", b'{"digest":5,"name":[]}', b'{"role":"context_pack","digest":{}}'],
)  # fmt: skip
@pytest.mark.parametrize(
    "kind", ["run.started", "run.finished", "gap.noted", "artifact.created", "content.erased", "run.reopened", "run.x"]
)
def test_no_sealed_line_makes_verify_raise(kind: str, data: bytes) -> None:
    writer, log, _ = ledger()
    writer.append("run.started", b'{"name":"t"}', opens=True)
    writer.append(kind, data)
    found = judged(bytes(log.buffer), deep=True, check=lambda *_: None)
    assert found.integrity.verdict == ("broken" if data == b"{not json" else "intact")


# Cuts


def cut_verdict(lines: list[bytes], at: int) -> None:
    raw = b"".join(lines)
    found = judged(raw[:at])
    whole = raw[:at].count(b"\n")
    assert found.integrity.verdict == "intact", "a cut is no edit"
    assert found.completeness.verdict == "unfinished"
    assert found.events == whole
    if raw[:at].endswith(b"\n") or at == 0:
        assert (found.integrity.at, found.integrity.reason) == (None, None)
    else:
        assert (found.integrity.at, found.integrity.reason) == (whole, "torn_tail")
        assert "torn tail" in str(found.completeness.detail)
    assert found.level == "open tail"


def test_every_cut_of_a_small_run_reads_as_open_never_as_complete() -> None:
    for at in range(sum(map(len, SMALL))):
        cut_verdict(SMALL, at)


def test_cuts_of_a_hundred_event_run_read_as_open_never_as_complete() -> None:
    total = sum(map(len, LINES))
    ends = list(itertools.accumulate(map(len, LINES)))[:-1]
    for at in {*range(0, total, 211), *ends, *(end - 1 for end in ends), total - 1}:
        cut_verdict(LINES, at)


@pytest.mark.hard
def test_every_cut_of_a_hundred_event_run_reads_as_open_never_as_complete() -> None:
    for at in range(sum(map(len, LINES))):
        cut_verdict(LINES, at)


def test_a_cut_tail_is_missing_for_who_remembers_the_head() -> None:
    head = (len(LINES) - 1, hash_of(LINES[-1]))
    for count in range(0, len(LINES), 9):
        found = judged(LINES[:count], known_head=head)
        assert (found.integrity.verdict, found.completeness.verdict) == ("intact", "missing")
        assert f"100 events were indexed, {count} are left" in str(found.completeness.detail)


# Completeness is another answer


def test_completeness_is_judged_apart_from_integrity() -> None:
    writer, log, _ = ledger()
    writer.append("run.started", b'{"name":"t"}', opens=True)
    assert judged(bytes(log.buffer)).completeness.verdict == "unfinished"
    writer.append("run.finished", b'{"status":"ok"}', span="0")
    assert judged(bytes(log.buffer)).completeness.verdict == "unattested"
    finish(writer)
    assert judged(bytes(log.buffer)).completeness.verdict == "complete"
    writer.append("note.added", b'{"text":"late"}')
    found = judged(bytes(log.buffer))
    assert (found.completeness.verdict, found.open_tail) == ("complete", 1)
    writer.append("run.reopened", b"{}")
    assert judged(bytes(log.buffer)).completeness.verdict == "unfinished"
    finish(writer)
    assert judged(bytes(log.buffer), deep=True).completeness.verdict == "complete"
    writer.lose("write_failed", 3)
    writer.append("note.added", b'{"text":"later"}')
    found = judged(bytes(log.buffer))
    assert (found.integrity.verdict, found.completeness.verdict, found.level) == ("intact", "missing", "declared loss")
    assert found.gaps == {"write_failed": 3}
    assert "3 × write_failed" in str(found.completeness.detail)


def test_a_false_count_is_missing_not_broken() -> None:
    writer, log, _ = ledger()
    writer.append("run.started", b'{"name":"t"}', opens=True)
    writer.append("run.finished", b'{"status":"ok","events":9}', span="0")
    found = judged(bytes(log.buffer))
    assert (found.integrity.verdict, found.completeness.verdict) == ("intact", "missing")
    assert "9 events were declared, 2 are there" in str(found.completeness.detail)


def test_an_empty_timeline_is_unfinished_not_broken() -> None:
    found = judged(b"")
    assert (found.integrity.verdict, found.completeness.verdict, found.events) == ("intact", "unfinished", 0)


Answer = Literal["missing", "altered"] | None


def contents(answers: dict[str, Answer]) -> Any:
    return lambda kind, digest, name: answers.get(name if kind == "artifact" else kind)


def with_content() -> list[bytes]:
    writer, log, _ = ledger()
    writer.append(
        "run.started", b'{"name":"t","context_pack":"%b","policy":{"digest":"%b"}}' % (b"1" * 64, b"2" * 64), opens=True
    )
    writer.append("artifact.created", b'{"name":"a.txt","digest":"%b","size":1}' % (b"3" * 64))
    writer.append("note.added", b'{"text":{"$blob":"%b","len":9,"as":"text"}}' % (b"4" * 64))
    finish(writer)
    return lines_of(log)


@pytest.mark.parametrize("what", ["a.txt", "blob", "context_pack", "policy_snapshot"])
def test_altered_content_breaks_integrity_and_missing_content_completeness(what: str) -> None:
    lines = with_content()
    assert judged(lines, check=contents({})).level == "self-consistent"
    altered = judged(lines, check=contents({what: "altered"}))
    assert (altered.integrity.verdict, altered.integrity.reason) == ("broken", "content_altered")
    missing = judged(lines, check=contents({what: "missing"}))
    assert (missing.integrity.verdict, missing.completeness.verdict) == ("intact", "missing")
    assert len(missing.missing) == 1


@pytest.mark.parametrize("what", ["a.txt", "blob", "context_pack", "policy_snapshot"])
def test_a_torn_tail_does_not_hide_altered_content(what: str) -> None:
    torn = b"".join(with_content())[:-20]
    found = judged(torn, check=contents({what: "altered"}))
    assert (found.integrity.verdict, found.integrity.reason) == ("broken", "content_altered")


# The files that hold the context pack and the policy


def with_packs(*packs: tuple[bytes, str], end: str = "finished") -> list[bytes]:
    """Return a run that starts with pack 0 and sets packs, each of one digit, from lanes; `note` speaks in a lane."""
    writer, log, _ = ledger()
    writer.append(
        "run.started", b'{"name":"t","context_pack":"%b","policy":{"digest":"%b"}}' % (b"0" * 64, b"9" * 64), opens=True
    )
    for digit, lane in packs:
        if digit == b"note":
            writer.append("note.added", b'{"text":"x"}', lane=lane)
        else:
            data = b'{"name":"context_pack.json","role":"context_pack","digest":"%b","size":1}' % (digit * 64)
            writer.append("artifact.created", data, lane=lane)
    if end == "lossy":
        writer.lose("ENOSPC", 1)
    if end != "killed":
        finish(writer)
    return lines_of(log)


def holding(digit: str) -> Any:
    """Answer as a run directory does whose context_pack.json holds this pack."""
    return lambda kind, digest, name: "altered" if kind == "context_pack" and digest != digit * 64 else None


def test_only_the_pack_that_was_recorded_last_will_do() -> None:
    lines = with_packs((b"1", "0"), (b"2", "0"))
    assert judged(lines, check=holding("2")).integrity.verdict == "intact"
    for old in "01":
        found = judged(lines, check=holding(old)).integrity
        assert (found.verdict, found.at, found.reason) == ("broken", 2, "content_altered")
        assert "is not what event 2 recorded" in str(found.message)
    assert judged(with_packs(), check=holding("0")).integrity.verdict == "intact"


def test_an_altered_policy_names_the_event_that_recorded_it() -> None:
    found = judged(with_packs((b"1", "0")), check=contents({"policy_snapshot": "altered"})).integrity
    assert (found.at, "is not what event 0 recorded" in str(found.message)) == (0, True)


@pytest.mark.parametrize("end", ["killed", "lossy"])
def test_a_writer_cut_short_between_event_and_file_leaves_one_of_the_packs_before(end: str) -> None:
    lines = with_packs((b"1", "0"), (b"2", "0"), end=end)
    for pack, verdict in (("2", "intact"), ("1", "intact"), ("0", "intact"), ("3", "broken")):
        assert judged(lines, check=holding(pack)).integrity.verdict == verdict, pack


def test_lanes_that_died_between_event_and_file_leave_the_pack_before_all_of_them() -> None:
    lines = with_packs((b"1", "0"), (b"note", "0"), (b"2", "0.1"), (b"3", "0.2"), (b"note", "0"))
    for pack, verdict in (("3", "intact"), ("2", "intact"), ("1", "intact"), ("4", "broken")):
        assert judged(lines, check=holding(pack)).integrity.verdict == verdict, pack


def test_of_two_lanes_that_set_a_pack_at_once_either_may_come_last() -> None:
    lines = with_packs((b"1", "0.1"), (b"2", "0.2"), (b"note", "0.2"), (b"note", "0.1"))
    for pack, verdict in (("2", "intact"), ("1", "intact"), ("0", "broken")):
        assert judged(lines, check=holding(pack)).integrity.verdict == verdict, pack
    lines = with_packs((b"1", "0.1"), (b"note", "0.1"), (b"2", "0.2"), (b"note", "0.2"))
    assert judged(lines, check=holding("2")).integrity.verdict == "intact"
    assert judged(lines, check=holding("1")).integrity.verdict == "broken", "it had been written before the other"


def test_a_chain_that_was_made_anew_is_found_although_it_declares_a_loss() -> None:
    def chain(text: bytes) -> list[bytes]:
        writer, log, _ = ledger()
        writer.append("run.started", b'{"name":"t"}', opens=True)
        writer.lose("torn_tail", 1)
        writer.append("note.added", b'{"text":"%b"}' % text)
        return lines_of(log)

    seen, forged = chain(b"seen"), chain(b"forged")
    assert judged(seen, known_head=(2, hash_of(seen[2]))).integrity.verdict == "intact"
    found = judged(forged, known_head=(2, hash_of(seen[2]))).integrity
    assert (found.verdict, found.at, found.reason) == ("broken", 2, "rewritten")
    assert found.message == "event 2 is not the one that the index remembers; a loss is declared before it"


# What is said of a run without an end


def test_an_unfinished_run_has_nothing_but_an_open_tail() -> None:
    found = judged(SMALL[:-1])
    assert (found.level, found.open_tail, found.events) == ("open tail", 9, 9)


def test_completeness_is_left_unjudged_only_where_the_chain_breaks() -> None:
    broken = judged(flip(SMALL[:-1], 4, 50, 1)).completeness
    assert (broken.verdict, broken.detail) == ("unfinished", "not judged: the chain is broken at event 4")
    altered = judged(with_content()[:-1], check=contents({"a.txt": "altered"}))
    assert altered.integrity.verdict == "broken"
    assert altered.completeness.detail == "the run was not finished, or its end was cut off"
