"""Record the calls of a test once, into a cassette beside it, and replay them from then on: `@pytest.mark.cassette`.

pytest loads this module at its start in every project that has Playhead installed, so next to nothing is imported here;
the rest comes with the first test that uses a cassette.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from playhead.pytest_plugin.modes import MODES, Mode, mode_of

if TYPE_CHECKING:
    from playhead.pytest_plugin.cassette import Cassette
    from playhead.pytest_plugin.shared import Watch

_MARK = "cassette"
_TEMPORARY = "tmp_path_factory"  # which `tmp_path` and `tmpdir` use
_MODE = pytest.StashKey[Mode]()
_HAS = pytest.StashKey[bool]()  # whether a test has a cassette
_CASSETTE = pytest.StashKey["Cassette"]()
_OWNER = pytest.StashKey[str]()  # the test before it that has the same cassette
_LIVE = pytest.StashKey[list[str]]()  # what shared fixtures asked live, and nobody was told so far
_STRICT_INI = "playhead_strict_unused"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what can be said at the command line and in the ini file."""
    group = parser.getgroup("playhead", "cassettes of Playhead")
    group.addoption(
        "--playhead",
        choices=MODES,
        default=None,
        help="none: never record; once: record where there is no cassette; new: record what a cassette lacks; "
        "all: record anew (once, and none where CI is set)",
    )
    group.addoption(
        "--playhead-strict-unused",
        action="store_true",
        default=None,
        help="fail a test that does not ask for everything on its cassette",
    )
    parser.addini("playhead", "the mode of --playhead", default="")
    parser.addini(_STRICT_INI, "fail a test that does not ask for everything on its cassette", "bool", default=False)


def pytest_configure(config: pytest.Config) -> None:
    """Find out the mode, and make the mark known."""
    config.addinivalue_line(
        "markers",
        f"{_MARK}(name=None, *, waive=(), on_deviation='raise', ambient=False, allow=()): "
        "record the calls of this test into a cassette, and replay them from then on",
    )
    config.stash[_MODE] = mode_of(config.getoption("--playhead"), str(config.getini("playhead")))
    config.stash[_LIVE] = []
    config.pluginmanager.register(_Summary(), "playhead-summary")


def pytest_report_header(config: pytest.Config) -> str:
    """Say which mode is in force, and why."""
    return f"playhead: {config.stash[_MODE].told}"


def pytest_itemcollected(item: pytest.Item) -> None:
    """Let a test with the mark have the fixture; and any test have it before its own, after those that are shared."""
    names = getattr(item, "fixturenames", None)
    if names is None or (_MARK not in names and item.get_closest_marker(_MARK) is None):
        return
    known = item._fixtureinfo.name2fixturedefs  # type: ignore[attr-defined]
    if _MARK in known and known[_MARK][-1].func.__module__ != __name__:
        return  # one of the project's own
    others = [name for name in names if name != _MARK]
    own = (at for at, name in enumerate(others) if name in known and known[name][-1].scope == "function")
    at = next(own, len(others))
    item.fixturenames = [*others[:at], _MARK, *others[at:]]  # type: ignore[attr-defined]
    item.stash[_HAS] = True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note which tests name a cassette that another one has."""
    having = [item for item in items if item.stash.get(_HAS, False)]
    if not having or config.stash[_MODE].name == "off":
        return
    from playhead.pytest_plugin.places import owners

    for item, owner in owners((item, item.get_closest_marker(_MARK)) for item in having):
        item.stash[_OWNER] = owner


def _cassette_of(item: pytest.Item) -> Cassette:
    from playhead.pytest_plugin.cassette import Cassette
    from playhead.pytest_plugin.places import Wanted, taken

    found = item.stash.get(_CASSETTE, None)
    if found is None:
        wanted = Wanted.of(item.get_closest_marker(_MARK))
        path = wanted.place(item.path, item.nodeid, item.name)
        if (owner := item.stash.get(_OWNER, None)) is not None:
            raise taken(path, item.nodeid, owner)
        found = item.stash[_CASSETTE] = Cassette(path, item.nodeid, item.config.stash[_MODE], wanted)
    return found


@pytest.fixture
def cassette(request: pytest.FixtureRequest) -> Iterator[Cassette]:
    """Record the calls of this test, or replay them; `recording`, `replaying`, `path` and `unused` say more."""
    item = request.node
    with _briefly():
        found = _cassette_of(item)
        if _TEMPORARY in item.fixturenames:
            found.temporary = str(request.getfixturevalue(_TEMPORARY).getbasetemp())
        found.begin()
    original = item.obj
    item.obj = found.inside(original)
    yield found
    item.obj = original
    with _briefly():
        found.end()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """Watch a fixture that a test with a cassette shares with others: what it asks is on no cassette."""
    item = request._pyfuncitem
    if not item.stash.get(_HAS, False):
        return (yield)
    from playhead.errors import DeviationError

    watch = None if fixturedef.scope == "function" else _watch_of(item, fixturedef)
    if watch is not None:
        fixturedef.addfinalizer(watch.end)  # what is added first is called last
    try:
        with contextlib.nullcontext() if watch is None else watch:
            value = yield
    except DeviationError as error:
        # pytest takes what is no Exception for the end of all tests, and would not set it up for any other.
        fixturedef.cached_result = (None, fixturedef.cache_key(request), (error, error.__traceback__))  # type: ignore[arg-type]
        fixturedef.finish(request)  # type: ignore[arg-type]
        raise
    if watch is not None:
        fixturedef.addfinalizer(watch.begin)
    return value


def _watch_of(item: pytest.Item, fixturedef: pytest.FixtureDef[Any]) -> Watch | None:
    from playhead.errors import PlayheadError

    try:
        return _cassette_of(item).watch(fixturedef.argname, fixturedef.scope, item.config.stash[_LIVE].append)
    except PlayheadError:
        return None  # a mark or a cassette that is of no use, which is told when its turn comes


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Keep what was recorded, when all has passed; end a cassette where a deviation let pytest not go on to its end."""
    found = item.stash.get(_CASSETTE, None)
    try:
        yield
    except BaseException:
        if found is not None:
            found.passed = False
        raise
    finally:
        if found is not None:
            if not found.ended:
                found.end()
            with _briefly():
                found.keep()


@contextlib.contextmanager
def _briefly() -> Iterator[None]:
    """Let an error of ours be told by its words alone: where it was raised is no matter of the test's."""
    from playhead.errors import PlayheadError

    try:
        yield
    except PlayheadError as problem:
        raise pytest.fail.Exception(str(problem), pytrace=False) from None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let a deviation be the failure, in its own words; and know whether the test passed."""
    found = item.stash.get(_CASSETTE, None)
    if found is not None and (call.excinfo is not None or (found.deviations and call.when == "teardown")):
        # Tasks that a deviation has left unfinished say so when they are collected: now, and not while pytest parses
        # the source of a traceback or of a plugin, which Python 3.11 does not survive.
        gc.collect()
    report = yield
    live = item.config.stash[_LIVE] if call.when == "teardown" else []
    if found is None:
        if live:  # of tests before it, by a fixture that ends with this one
            report.playhead = {"live": [live.pop() for _ in live[:]]}  # type: ignore[attr-defined]
        return report
    from playhead.pytest_plugin import reporting

    reporting.tell_deviation(item, call, report, found)
    if call.when == "call":
        found.passed = report.passed or hasattr(report, "wasxfail")
    if call.when == "teardown":
        strict = item.config.getoption("--playhead-strict-unused") or item.config.getini(_STRICT_INI)
        judged = found.passed and report.passed and found.replaying and found.mode != "new"
        if strict and judged and found.unused:
            found.passed = False
            reporting.fail(report, reporting.unused_text(found), reporting.test_place(item))
        report.playhead = found.told() | {"live": [live.pop() for _ in live[:]]}  # type: ignore[attr-defined]  # goes from a worker of xdist to where it is shown
    return report


class _Summary:
    """Keep what tests say of their cassettes, also those of other processes, and tell it at the end."""

    def __init__(self) -> None:
        self._told: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what a test says."""
        told = getattr(report, "playhead", None)
        if report.when == "teardown" and told is not None:
            self._told.append(told)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what was recorded, what was not, and which answers nobody asked for."""
        if self._told:
            from playhead.pytest_plugin import reporting

            reporting.summary(terminalreporter, self._told)
