"""Read JUnit XML, as pytest and most other test runners write it.

The file may come from anywhere: entities are refused, declared or used, and so is what is too deep or too much.
"""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

import msgspec

from playhead import _limits
from playhead.errors import BadImport
from playhead.event.kinds import CiReported

RUN_PROPERTY = "playhead.run_id"  # by which a test names the run that it is about
BAD = ("failed", "error")

_SUITES = ("testsuites", "testsuite")
# What a part of a test case says of it; a test that passed in the end may have failed before (Surefire).
_OUTCOMES = {"failure": "failed", "error": "error", "skipped": "skipped"}
_NOT_RUN = {"notrun", "disabled", "suppressed", "skipped"}  # which gtest and CTest say in an attribute alone
_RERUNS = ("flakyFailure", "flakyError", "rerunFailure", "rerunError")
_OUTPUTS = {"system-out": "stdout", "system-err": "stderr"}
_GROUPED = re.compile(r"[1-9]\d{0,2}(,\d{3})+(\.\d*)?")  # `1,204.5`; any other comma is that of `0,073`


class Case(msgspec.Struct, omit_defaults=True):
    """One test case."""

    name: str
    classname: str | None = None
    status: str = "passed"
    duration_us: int | None = None
    file: str | None = None
    line: int | None = None
    message: str | None = None
    type: str | None = None
    text: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    properties: dict[str, str] = {}
    reruns: int = 0

    @property
    def title(self) -> str:
        """Name it as people do: `tests.test_login::test_case`."""
        return f"{self.classname}::{self.name}" if self.classname else self.name

    @property
    def told(self) -> str:
        """Say in one line what went wrong."""
        reason = (self.message or self.text or "").strip().partition("\n")[0]
        return f"{self.title}: {reason}" if reason else self.title

    def as_dict(self) -> dict[str, Any]:
        """Return all that is known of it."""
        told: dict[str, Any] = {"name": self.name, "status": self.status, **msgspec.to_builtins(self)}
        return told

    def short(self) -> dict[str, Any]:
        """Return what it is and how it ended: the rest stands elsewhere."""
        told = self.as_dict()
        return {name: told[name] for name in ("name", "classname", "status", "duration_us") if name in told}


class Suite(msgspec.Struct):
    """A suite that has tests of its own; `name` has the names of those that it is in."""

    name: str
    tests: list[Case] = []
    timestamp: str | None = None
    duration_us: int | None = None
    properties: dict[str, str] = {}
    stdout: str | None = None
    stderr: str | None = None
    broken: list[str] = []  # what failed that none of its tests tells of


class Report(msgspec.Struct):
    """One file."""

    suites: list[Suite]

    @property
    def failed(self) -> list[str]:
        """Say in one line each what went wrong: in suites as such, then in tests."""
        broken = [told for suite in self.suites for told in suite.broken]
        return [*broken, *(test.told for test in self.tests if test.status in BAD)]

    @property
    def tests(self) -> list[Case]:
        """Return the tests of all suites, in their order."""
        return [test for suite in self.suites for test in suite.tests]


def read(data: bytes) -> Report:
    """Read one file. BadImport where it is no JUnit XML, or cannot be taken in safely."""
    if len(data) > _limits.IMPORT_FILE_BYTES_MAX:
        raise BadImport(f"it has more than {_limits.IMPORT_FILE_BYTES_MAX:,} bytes")
    reading = _Reading()
    try:
        reading.parser.Parse(data, True)
    except expat.ExpatError as problem:
        raise BadImport(f"it is no XML: {problem}") from None
    except (LookupError, ValueError) as problem:  # an encoding that nobody knows
        raise BadImport(f"it is no XML that can be read: {problem}") from None
    return Report(reading.finish())


class _Reading:
    """Follow the elements of one file, and keep what is in test suites."""

    def __init__(self) -> None:
        self.suites: list[Suite] = []
        self._open: list[tuple[Suite, int, int]] = []  # that we are in; what each says that failed, and what had before
        self._failed = 0  # that was found until now, in tests and suites
        self._test: Case | None = None
        self._path: list[str] = []
        self._text: list[str] | None = None  # of the element that we are in, where it is wanted
        self._tests = self._opened = 0
        self._said: dict[tuple[int, str], tuple[Case | Suite, list[str]]] = {}  # what has several parts, until its end
        self.parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.EntityDeclHandler = parser.ExternalEntityRefHandler = parser.SkippedEntityHandler = _refuse_entity

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rpartition(":")[2]
        if not self._path and tag not in _SUITES:
            raise BadImport(f"it is XML, but no JUnit file: it begins with <{tag[:60]}>")
        self._path.append(tag)
        if len(self._path) > _limits.JUNIT_DEPTH_MAX:
            raise BadImport(f"it has more than {_limits.JUNIT_DEPTH_MAX} elements within elements")
        if tag in _SUITES:
            self._open_suite(tag, attributes)
        elif tag == "testcase":
            self._open_test(attributes)
        elif tag == "property":
            self._add_property(attributes)
        elif tag in _OUTCOMES:
            self._judge(tag, attributes)
        elif tag in _RERUNS and self._test is not None:
            self._test.reruns += 1
        if tag in _OUTCOMES or tag in _OUTPUTS:
            self._text = []

    def _open_suite(self, tag: str, attributes: dict[str, str]) -> None:
        """Open a suite; the element around all of them is one without a name, for what is in none."""
        self._opened += tag == "testsuite"
        if self._opened > _limits.JUNIT_TESTS_MAX:
            raise BadImport(f"it has more than {_limits.JUNIT_TESTS_MAX:,} suites")
        outer = self._open[-1][0].name if self._open else ""
        suite = Suite(outer)
        if tag == "testsuite":
            suite.name = " / ".join(filter(None, (outer, attributes.get("name"))))
            suite.timestamp = attributes.get("timestamp") or None
            suite.duration_us = _microseconds(attributes.get("time"))
        said = sum(_number(attributes.get(name)) or 0 for name in ("failures", "errors"))
        self._open.append((suite, said, self._failed))
        self.suites.append(suite)

    def _close_suite(self) -> None:
        """Close a suite. Where it says that more failed than is in it, that is a failure of its own."""
        suite, said, before = self._open.pop()
        missing = said - (self._failed - before)
        if missing > 0:
            self._break(suite, f"{missing} failed that {'is' if missing == 1 else 'are'} not in the file", missing)

    def _break(self, suite: Suite, why: str, count: int = 1) -> None:
        self._failed += count
        if len(suite.broken) < _limits.JUNIT_EVENTS_MAX:
            suite.broken.append(f"{suite.name}: {why}".removeprefix(": "))

    def _open_test(self, attributes: dict[str, str]) -> None:
        self._tests += 1
        if self._tests > _limits.JUNIT_TESTS_MAX:
            raise BadImport(f"it has more than {_limits.JUNIT_TESTS_MAX:,} tests")
        self._test = Case(
            attributes.get("name") or "(no name)",
            attributes.get("classname") or None,
            duration_us=_microseconds(attributes.get("time")),
            file=attributes.get("file") or None,
            line=_number(attributes.get("line")),
        )
        if not _NOT_RUN.isdisjoint(attributes.get(name, "").lower() for name in ("status", "result")):
            self._test.status = "skipped"
        self._open[-1][0].tests.append(self._test)

    def _judge(self, tag: str, attributes: dict[str, str]) -> None:
        """Take what a failure, an error or a skip says; where there are several, the first says what kind it is."""
        test = self._test
        if test is None:
            if tag != "skipped":
                self._break(self._open[-1][0], attributes.get("message") or tag)
            return
        self._failed += tag != "skipped"
        if test.status == "passed" or (test.status == "skipped" and tag != "skipped"):
            test.status = _OUTCOMES[tag]
        self._say(test, "message", attributes.get("message"))
        test.type = test.type or attributes.get("type") or None

    def _add_property(self, attributes: dict[str, str]) -> None:
        name, value = attributes.get("name"), attributes.get("value")
        if name and value is not None:
            self._holder.properties[name] = value

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _end(self, tag: str) -> None:
        tag = self._path.pop()
        if self._text is not None and (tag in _OUTCOMES or tag in _OUTPUTS):
            self._keep_text(tag, "".join(self._text))
            self._text = None
        elif tag == "testcase":
            self._test = None
        elif tag in _SUITES:
            self._close_suite()

    @property
    def _holder(self) -> Case | Suite:
        return self._test if self._test is not None else self._open[-1][0]

    def _keep_text(self, tag: str, text: str) -> None:
        name, holder = _OUTPUTS.get(tag, "text"), self._holder
        if text.strip() and (name != "text" or isinstance(holder, Case)):
            self._say(holder, name, text)

    def _say(self, holder: Case | Suite, name: str, text: str | None) -> None:
        """Keep one part of what a test or a suite says; all of them are put together once, at the end."""
        if text:
            self._said.setdefault((id(holder), name), (holder, []))[1].append(text)

    def finish(self) -> list[Suite]:
        """Return the suites that have something in them."""
        for (_, name), (holder, parts) in self._said.items():
            setattr(holder, name, "\n\n".join(parts))
        return [suite for suite in self.suites if suite.tests or suite.stdout or suite.stderr or suite.broken]


def _refuse_entity(*_: Any) -> int:
    raise BadImport(
        "it declares or uses entities, which no JUnit file needs and which can make a small file endless",
        hint="Take out its DOCTYPE, if you trust where it came from.",
    )


def _microseconds(seconds: str | None) -> int | None:
    """Read a time such as `0.073`, `0,073` or `1,204.5`; None where it is none."""
    told = seconds or ""
    try:
        amount = float(told.replace(",", "" if _GROUPED.fullmatch(told.strip()) else "."))
    except ValueError:
        return None
    return round(amount * 1_000_000) if 0 <= amount < 1e9 else None


def _number(told: str | None) -> int | None:
    return int(told) if told and told.isdecimal() and len(told) < 10 else None


def counts(tests: list[Case]) -> dict[str, int]:
    """Count tests by how they ended."""
    found: dict[str, int] = {}
    for test in tests:
        found[test.status] = found.get(test.status, 0) + 1
    return dict(sorted(found.items()))


def result(suites: list[Suite]) -> str:
    """Say what suites come to: nothing that was run is `unknown` or `skipped`, and no success."""
    by_status = counts([test for suite in suites for test in suite.tests])
    if any(by_status.get(status) for status in BAD) or any(suite.broken for suite in suites):
        return "failure"
    return "success" if by_status.get("passed") else "skipped" if by_status else "unknown"


def events(report: Report, job: str | None = None) -> list[CiReported]:
    """Return what a file says as events: one for all of it, one for each suite where there are several, and one for
    each test that failed, as far as there are not too many.
    """
    tests, suites = report.tests, report.suites
    bad = [test for test in tests if test.status in BAD]
    own = {id(test) for test in bad[: _limits.JUNIT_EVENTS_MAX]}
    job = job or (suites[0].name if len(suites) == 1 and suites[0].name else "junit")
    of_suites = [_suite_event(suite, job, own) for suite in suites]
    if len(of_suites) == 1:
        (whole,) = of_suites
        whole.step = None
        of_suites = []
    else:
        times = [suite.duration_us for suite in suites]
        whole = CiReported(
            job=job,
            source="junit",
            result=result(suites),
            result_from="file",
            started=min((suite.timestamp for suite in suites if suite.timestamp), default=None),
            duration_us=None if None in times or not times else sum(filter(None, times)),
            counts=counts(tests),
        )
    whole.errors = report.failed[: _limits.JUNIT_EVENTS_MAX]
    of_tests = [
        event_of(test, job, suite.name if of_suites else None)
        for suite in suites
        for test in suite.tests
        if id(test) in own
    ]
    return [whole, *of_suites, *of_tests]


def event_of(test: Case, job: str | None, suite: str | None = None) -> CiReported:
    """Return the event of one test."""
    return CiReported(
        job=job or "junit",
        step=suite,
        result={"passed": "success", "skipped": "skipped"}.get(test.status, "failure"),
        test=test.as_dict(),
        duration_us=test.duration_us,
        source="junit",
        result_from="file",
    )


def _suite_event(suite: Suite, job: str, own: set[int]) -> CiReported:
    output = {"stdout": suite.stdout, "stderr": suite.stderr}
    return CiReported(
        job=job,
        step=suite.name or "(no name)",
        source="junit",
        result=result([suite]),
        errors=suite.broken,
        result_from="file",
        started=suite.timestamp,
        duration_us=suite.duration_us,
        counts=counts(suite.tests),
        tests=[test.short() if id(test) in own else test.as_dict() for test in suite.tests],
        log={name: text for name, text in output.items() if text} or None,
        properties=dict(suite.properties),
    )
