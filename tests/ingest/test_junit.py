from __future__ import annotations

import pytest
from tests.shared_data import shared

from playhead import _limits
from playhead.errors import BadImport
from playhead.ingest import junit

NESTED = b"""<?xml version="1.0"?><testsuites>
<testsuite name="unit" time="1,002.5" timestamp="2026-01-02T03:04:05">
  <properties><property name="python" value="3.12"/></properties>
  <testcase classname="a.T" name="ok" time="0.5" file="a.py" line="7"><system-out>said</system-out></testcase>
  <testcase classname="a.T" name="bad"><failure message="m1" type="AssertionError">t1</failure><error message="m2">t2</error></testcase>
  <testsuite name="inner">
    <testcase name="broken"><error>trace\nback</error></testcase>
    <testcase name="left"><skipped message="not here"/></testcase>
    <testcase name="flaky"><flakyFailure message="once"/></testcase>
  </testsuite>
  <system-err>of the suite</system-err>
</testsuite></testsuites>"""


def test_the_file_of_pytest_is_read_with_its_failure_and_property() -> None:
    report = junit.read((shared("agents") / "pytest_junit.xml").read_bytes())
    (suite,) = report.suites
    ok, bad = suite.tests
    assert (suite.name, suite.duration_us, suite.timestamp) == ("pytest", 73000, "2026-11-15T02:38:11.012472+00:00")
    assert (ok.title, ok.status, ok.duration_us) == ("test_junit::test_ok", "passed", 1000)
    assert ok.properties == {junit.RUN_PROPERTY: "run_123"}
    assert (bad.status, bad.message, bad.told) == ("failed", "assert 1 == 2", "test_junit::test_bad: assert 1 == 2")
    assert bad.text is not None
    assert bad.text.endswith("test_junit.py:3: AssertionError")


def test_suites_nest_and_every_outcome_text_and_output_is_kept() -> None:
    outer, inner = junit.read(NESTED).suites
    assert (outer.name, inner.name, outer.duration_us) == ("unit", "unit / inner", 1_002_500_000)
    assert (outer.properties, outer.stderr) == ({"python": "3.12"}, "of the suite")
    ok, bad = outer.tests
    assert (ok.file, ok.line, ok.stdout) == ("a.py", 7, "said")
    assert (bad.status, bad.message, bad.text, bad.type) == ("failed", "m1\n\nm2", "t1\n\nt2", "AssertionError")
    assert [(test.name, test.status, test.reruns) for test in inner.tests] == [
        ("broken", "error", 0), ("left", "skipped", 0), ("flaky", "passed", 1),
    ]  # fmt: skip
    assert (inner.tests[0].told, inner.tests[1].message) == ("broken: trace", "not here")


def test_there_is_an_event_for_the_file_for_each_suite_and_for_each_test_that_failed() -> None:
    whole, outer, inner, bad, broken = junit.events(junit.read(NESTED), "tests")
    assert {event.job for event in (whole, outer, inner, bad, broken)} == {"tests"}
    assert (whole.step, whole.result) == (None, "failure")
    assert whole.counts == {"error": 1, "failed": 1, "passed": 2, "skipped": 1}
    assert whole.errors == ["a.T::bad: m1", "broken: trace"]
    assert (outer.step, inner.step, outer.log) == ("unit", "unit / inner", {"stderr": "of the suite"})
    # All tests stand in their suite: in full, or short where an event of their own has the rest.
    assert outer.tests[0]["stdout"] == "said"
    assert outer.tests[1] == {"name": "bad", "classname": "a.T", "status": "failed"}
    assert bad.test is not None
    assert (bad.step, bad.test["text"], bad.result) == ("unit", "t1\n\nt2", "failure")
    assert broken.test is not None
    assert broken.test["status"] == "error"


def test_of_many_failures_the_first_have_an_event_and_the_rest_are_whole_in_their_suite(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_limits, "JUNIT_EVENTS_MAX", 2)
    cases = b"".join(b'<testcase name="t%d"><failure message="m%d"/></testcase>' % (n, n) for n in range(5))
    whole, *own = junit.events(junit.read(b'<testsuite name="s">' + cases + b"</testsuite>"))
    assert [event.test["name"] for event in own if event.test] == ["t0", "t1"]
    assert (whole.job, whole.counts, len(whole.errors)) == ("s", {"failed": 5}, 2)
    assert "message" not in whole.tests[1]
    assert whole.tests[4]["message"] == "m4"


@pytest.mark.parametrize(
    ("tests", "result"),
    [
        (b"", "unknown"),
        (b'<testcase name="a"><skipped/></testcase>', "skipped"),
        (b'<testcase name="a"/><testcase name="b"><skipped/></testcase>', "success"),
        (b'<testcase name="a"/><testcase name="b"><error/></testcase>', "failure"),
    ],
)
def test_what_was_not_run_is_no_success(tests: bytes, result: str) -> None:
    assert junit.events(junit.read(b"<testsuite>" + tests + b"</testsuite>"))[0].result == result


def test_a_test_that_was_switched_off_did_not_pass() -> None:
    gtest = b'<testcase name="DISABLED_a" status="notrun" result="suppressed"/><testcase name="b" status="run"/>'
    ctest = b'<testcase name="c" status="disabled"/><testcase name="d" status="notrun"><failure/></testcase>'
    tests = junit.read(b"<testsuite>" + gtest + ctest + b"</testsuite>").tests
    assert [test.status for test in tests] == ["skipped", "passed", "skipped", "failed"]


@pytest.mark.parametrize(
    ("suites", "failed"),
    [
        # A suite that could not be loaded has no test that could tell of it.
        (b'<testsuite name="s" errors="1" tests="0"/>', ["s: 1 failed that is not in the file"]),
        (
            b'<testsuite name="s" failures="2"><testcase name="b"/></testsuite>',
            ["s: 2 failed that are not in the file"],
        ),
        (b'<testsuite name="s"><testcase name="b"/><error message="set-up"/></testsuite>', ["s: set-up"]),
        (
            b'<testsuite name="o" failures="1"><testsuite name="s"><failure/></testsuite></testsuite>',
            ["o / s: failure"],
        ),
        (b'<testsuite name="s" failures="1"><testcase name="b"><failure/></testcase></testsuite>', ["b"]),
        (
            b'<testsuite name="s" failures="5"><testcase name="b"><failure/></testcase></testsuite>',
            ["s: 4 failed that are not in the file", "b"],
        ),
    ],
)
def test_a_suite_that_says_it_failed_is_no_success(suites: bytes, failed: list[str]) -> None:
    ok = b'<testsuite name="ok"><testcase name="a"/></testsuite>'
    report = junit.read(b'<testsuites errors="1">' + ok + suites + b"</testsuites>")
    whole, fine, *_ = junit.events(report)
    assert (report.failed, whole.errors, whole.result, fine.result) == (failed, failed, "failure", "success")


def test_a_file_that_says_it_failed_is_no_success() -> None:
    report = junit.read(b'<testsuites errors="1"><testsuite name="ok"><testcase name="a"/></testsuite></testsuites>')
    assert (junit.result(report.suites), report.failed) == ("failure", ["1 failed that is not in the file"])


def test_names_with_a_prefix_are_those_names() -> None:
    (test,) = junit.read(
        b'<j:testsuite xmlns:j="urn:x"><j:testcase name="a"><j:error/></j:testcase></j:testsuite>'
    ).tests
    assert test.status == "error"


@pytest.mark.parametrize(("time", "duration_us"), [("0,073", 73_000), ("1,204", 1_204_000_000), ("1.204,5", None)])
def test_a_comma_in_a_time_is_read_as_it_is_meant(time: str, duration_us: int | None) -> None:
    (test,) = junit.read(f'<testsuite><testcase name="a" time="{time}"/></testsuite>'.encode()).tests
    assert test.duration_us == duration_us


def test_tests_outside_of_any_suite_are_read_too() -> None:
    (suite,) = junit.read(b'<testsuites><testcase name="alone"/></testsuites>').suites
    assert [test.name for test in suite.tests] == ["alone"]


LAUGHS = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><testsuite name="&b;"/>'


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (LAUGHS, "entities"),
        (b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><testsuite>&a;</testsuite>', "entities"),
        (b'<!DOCTYPE x [<!ENTITY % p SYSTEM "http://x.test/"> %p;]><testsuite/>', "entities"),
        (b'<!DOCTYPE x SYSTEM "http://x.test/x.dtd"><testsuite>&secret;</testsuite>', "entities"),
        (b"<html/>", "begins with <html>"),
        (b"not xml", "no XML"),
        (b"", "no XML"),
        (b"<testsuite", "no XML"),
        (b'<?xml version="1.0" encoding="nope"?><testsuite/>', "nope"),
        (b"<testsuite>" * 60, "elements within elements"),
    ],
)
def test_what_is_no_junit_file_or_not_safe_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(BadImport, match=why):
        junit.read(data)


def test_a_doctype_without_entities_does_no_harm() -> None:
    data = b'<!DOCTYPE testsuite SYSTEM "http://x.test/junit.dtd"><testsuite><testcase name="a"/></testsuite>'
    assert [test.name for test in junit.read(data).tests] == ["a"]


def test_a_file_beyond_the_limits_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "JUNIT_TESTS_MAX", 2)
    with pytest.raises(BadImport, match="more than 2 tests"):
        junit.read(b"<testsuite>" + b'<testcase name="a"/>' * 3 + b"</testsuite>")
    with pytest.raises(BadImport, match="more than 2 suites"):
        junit.read(b"<testsuites>" + b"<testsuite/>" * 3 + b"</testsuites>")
    monkeypatch.setattr(_limits, "IMPORT_FILE_BYTES_MAX", 10)
    with pytest.raises(BadImport, match="more than 10 bytes"):
        junit.read(b"<testsuite/>")


@pytest.mark.parametrize("time", ["nan", "-1", "1e400", "soon", ""])
def test_a_time_that_is_none_is_left_out(time: str) -> None:
    (test,) = junit.read(f'<testsuite><testcase name="a" time="{time}" line="x"/></testsuite>'.encode()).tests
    assert (test.duration_us, test.line) == (None, None)


def test_a_test_that_failed_in_many_ways_has_all_of_them_and_takes_no_longer_for_it() -> None:
    many = 30_000
    failures = b'<failure message="m">t</failure>' * many
    (test,) = junit.read(b'<testsuite><testcase name="a">' + failures + b"</testcase></testsuite>").tests
    assert (test.status, test.message, test.text) == ("failed", "\n\n".join("m" * many), "\n\n".join("t" * many))
