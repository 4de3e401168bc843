from __future__ import annotations

import io
import zipfile

import pytest
from tests.ingest.actions import DONE, SETUP, TESTS, lines, logs_zip, zipped

from playhead import _limits
from playhead.errors import BadImport
from playhead.ingest import actions_log


def test_a_zip_is_read_by_job_and_step_in_order_of_time() -> None:
    logs = actions_log.read(logs_zip(), "x")
    build, lint = logs.jobs
    assert (build.name, lint.name, logs.ignored) == ("build  call", "lint", ["readme.md"])
    assert [(step.number, step.name) for step in build.steps] == [
        (1, "Set up job"), (2, "Run pytest"), (10, "Complete job"),
    ]  # fmt: skip
    assert build.steps[1].log == TESTS
    assert (build.steps[1].started, build.steps[1].finished) == (
        "2026-01-02T03:01:00.1234567Z", "2026-01-02T03:01:04.1234567Z",
    )  # fmt: skip
    assert (build.steps[1].groups, build.steps[1].errors) == (["Run pytest"], ["Process completed with exit code 1."])
    # What is in the steps is not kept twice, and a job without files for its steps has its log.
    assert (build.log, lint.log) == ("", lines(0, "all good").rstrip("\n"))


def test_a_log_tells_of_failure_and_never_of_success() -> None:
    build, lint = actions_log.read(logs_zip(), "x").jobs
    assert [step.result for step in build.steps] == ["unknown", "failure", "unknown"]
    assert (build.result, lint.result, lint.result_from) == ("failure", "unknown", "log")


@pytest.mark.parametrize(
    ("text", "result"),
    [
        ("##[error]Process completed with exit code 0.", "unknown"),
        ("##[error]Process completed with exit code 137.", "failure"),
        ("##[error]tests/a.py:3 is wrong", "failure"),
        ("##[error]The operation was canceled.", "cancelled"),
        ("echo '##[error]not a mark'", "unknown"),
        ("##[warning]careful", "unknown"),
    ],
)
def test_only_a_marked_error_counts(text: str, result: str) -> None:
    assert actions_log.judge(lines(0, "start", text))[0] == result


def test_a_line_of_the_job_that_is_in_no_step_is_kept() -> None:
    data = zipped({"0_b.txt": SETUP + lines(5, "beside") + DONE, "b/1_s.txt": SETUP, "b/2_d.txt": DONE})
    assert actions_log.read(data, "x").jobs[0].log == lines(5, "beside").rstrip("\n")


def test_the_log_of_one_job_is_split_where_something_is_run() -> None:
    text = SETUP + TESTS + lines(3, "##[group]Run make it", "made")
    (job,) = actions_log.read(text.encode(), "build").jobs
    assert [(step.name, step.number, step.result) for step in job.steps] == [
        ("Run pytest", None, "failure"), ("Run make it", None, "unknown"),
    ]  # fmt: skip
    assert (job.name, job.log, job.result) == ("build", SETUP.rstrip("\n"), "failure")


def test_a_zip_with_one_file_for_each_job_is_split_as_the_log_of_one_job_is() -> None:
    data = zipped({"0_build.txt": SETUP + TESTS, "build/system.txt": "of the machine"})
    (job,) = actions_log.read(data, "x").jobs
    assert [(step.name, step.result) for step in job.steps] == [("system", "unknown"), ("Run pytest", "failure")]
    assert (job.log, job.result) == (SETUP.rstrip("\n"), "failure")


def test_what_gh_prints_is_split_by_its_own_columns() -> None:
    text = "".join(f"build\tSet up\t{line}\n" for line in SETUP.splitlines())
    text += "".join(f"build\tTest it\t{line}\n" for line in TESTS.splitlines())
    text += f"other\tUNKNOWN STEP\t\ufeff{DONE}a line without a time\n"
    build, other = actions_log.read(text.encode(), "x").jobs
    assert [(step.name, step.result) for step in build.steps] == [("Set up", "unknown"), ("Test it", "failure")]
    assert build.steps[1].log == TESTS.rstrip("\n")
    assert (build.result, build.finished) == ("failure", "2026-01-02T03:01:04.1234567Z")
    assert (other.steps, "a line without a time" in other.log) == ([], True)


def test_a_name_that_is_no_text_is_shown_as_far_as_it_is_one_and_the_log_has_all_of_it() -> None:
    line = b"build\tmake \xff\t" + TESTS.splitlines()[-1].replace("exit", "\xff").encode("latin-1")
    (job,) = actions_log.read(line, "x").jobs
    (step,) = job.steps
    assert (step.name, step.errors) == ("make \ufffd", ["Process completed with \ufffd code 1."])
    assert step.log.encode("utf-8", "surrogateescape") == line.rpartition(b"\t")[2]


def test_there_is_an_event_for_each_job_and_each_step_with_its_times() -> None:
    found = actions_log.events(actions_log.read(logs_zip(), "x"), {"run_id": "7"})
    assert [(event.job, event.step, event.result) for event in found] == [
        ("build  call", None, "failure"), ("build  call", "Set up job", "unknown"),
        ("build  call", "Run pytest", "failure"), ("build  call", "Complete job", "unknown"), ("lint", None, "unknown"),
    ]  # fmt: skip
    job, _, tests, *_ = found
    assert job.errors == ["Run pytest: Process completed with exit code 1."]
    assert (job.counts, job.ci, job.source) == ({"failure": 1, "unknown": 2}, {"run_id": "7"}, "actions-log")
    assert (tests.duration_us, tests.number, tests.log) == (4_000_000, 2, TESTS)


def _lying(name: str) -> bytes:
    data = bytearray(zipped({"0_b.txt": SETUP}))
    return bytes(data.replace(b"0_b.txt", name.encode()))


def _special(**fields: int) -> bytes:
    info, target = zipfile.ZipInfo("0_b.txt"), io.BytesIO()
    for field, value in fields.items():
        setattr(info, field, value)
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(info, SETUP)
    return target.getvalue()


def _encrypted() -> bytes:
    data = bytearray(zipped({"0_b.txt": SETUP}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def _twice() -> bytes:
    return zipped({"0_b.txt": SETUP, "0_c.txt": SETUP}).replace(b"0_c.txt", b"0_b.txt")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (_lying("../b.tx"), "leads elsewhere"),
        (_lying("/b/.txt"), "leads elsewhere"),
        (_lying("a\\b.txt"), "leads elsewhere"),
        (_twice(), "two files"),
        (_encrypted(), "encrypted"),
        (_special(external_attr=0o120777 << 16), "no plain file"),
        (_special(compress_type=zipfile.ZIP_BZIP2), "compressed in a way"),
        (zipped({"readme.md": "x"}), "no log of GitHub Actions in it"),
        (zipped({}), "it is a zip, and it is empty"),
        (zipped({"build/": ""}), "it is a zip, and it is empty"),
        (logs_zip()[:-40], "cannot be unpacked"),
        (b"nothing with a time\n", "no line begins with a time"),
        (b"", "no line begins with a time"),
        (b"\0" * 100, "no line begins with a time"),
    ],
)  # fmt: skip
def test_what_is_no_log_or_not_safe_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(BadImport, match=why):
        actions_log.read(data, "x")


def test_a_bomb_is_refused_while_it_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "ACTIONS_BYTES_MAX", 10_000)
    with pytest.raises(BadImport, match="more than 10,000 bytes"):
        actions_log.read(zipped({"0_a.txt": b"0" * 6000, "1_b.txt": b"0" * 6000}), "x")
    monkeypatch.setattr(_limits, "ACTIONS_MEMBERS_MAX", 1)
    with pytest.raises(BadImport, match="more than 1 files"):
        actions_log.read(zipped({"0_a.txt": b"", "1_b.txt": b""}), "x")
    monkeypatch.setattr(_limits, "IMPORT_FILE_BYTES_MAX", 10)
    with pytest.raises(BadImport, match="more than 10 bytes"):
        actions_log.read(logs_zip(), "x")


def test_of_many_marks_the_first_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "ACTIONS_MARKS_MAX", 2)
    assert actions_log.judge(lines(0, *["##[error]x"] * 5)) == ("failure", ["x", "x"], [])


def test_many_short_lines_in_a_small_zip_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "ACTIONS_LINES_MAX", 5)
    assert actions_log.read(zipped({"0_a.txt": lines(0, "one", "two"), "1_b.txt": lines(0, "three")}), "x").jobs
    with pytest.raises(BadImport, match="more than 5 lines"):
        actions_log.read(zipped({"0_a.txt": "\n" * 3, "1_b.txt": "\n" * 3}), "x")
    with pytest.raises(BadImport, match="more than 5 lines"):
        actions_log.read(lines(0, *"abcdef").encode(), "x")


@pytest.mark.parametrize("name", ["9" * 5000 + "_a.txt", "b/" + "9" * 5000 + "_a.txt"])
def test_a_file_with_a_number_that_nobody_counts_to_is_no_log(name: str) -> None:
    assert actions_log.read(zipped({"0_b.txt": SETUP, name: SETUP}), "x").ignored == [name]


def test_a_file_without_a_name_is_no_log() -> None:
    data = zipped({"0_b.txt": SETUP, "?": SETUP}).replace(b"?", b"\0")
    with pytest.raises(BadImport):
        actions_log.read(data, "x")
