"""The environment of a program is that of then: which variables there are, and what the program makes of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.replay.again import record

ALL = """
import os
print(len(os.environ), sorted(os.environ), list(os.environ.keys()), sorted(os.environ.items()))
print(len(dict(os.environ)), len({**os.environ}), len(os.environ.copy()), len(os.environ | {}), sorted(os.environb))
print(os.environ)
os.environ["OF_ITS_OWN"] = "1"
print(len(os.environ), "OF_ITS_OWN" in list(os.environ))
for name in list(os.environ):
    if name.startswith("GONE_"):
        del os.environ[name]
print([name for name in os.environ if name.startswith("GONE_")], len(os.environ))
os.environ.clear()
print(len(os.environ), os.environ)
"""


def test_names_and_values_are_those_of_then_in_a_changed_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GONE_LATER", "1")
    recorded = record(tmp_path, ALL)
    monkeypatch.delenv("GONE_LATER")
    monkeypatch.setenv("GONE_NEW", "2")
    monkeypatch.setenv("HOME", "/another/home")
    recorded.faithful()


def test_what_a_changed_program_sets_is_among_the_names(tmp_path: Path) -> None:
    recorded = record(tmp_path, "import os\nprint('MINE' in list(os.environ))\n")
    (tmp_path / "program.py").write_text("import os\nos.environ['MINE'] = '1'\nprint('MINE' in list(os.environ))\n")
    assert recorded.replay().output == "True\n"


def test_a_variable_that_is_set_or_deleted_unseen_was_not_what_it_is_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TO_DELETE", "1")
    recorded = record(tmp_path, 'import os\nos.environ["TO_SET"] = "1"\ndel os.environ["TO_DELETE"]\nprint("done")\n')
    monkeypatch.setenv("TO_SET", "1")
    monkeypatch.delenv("TO_DELETE")
    recorded.faithful()


ZONE = """
import multiprocessing, os, time
def show():
    there = os.environ.get("TZ"), "TZ" in dict(os.environ), "TZ" in {**os.environ}, len(os.environ.copy())
    print(time.tzname, time.strftime("%H %Z", time.localtime(0)), time.mktime((1970, 1, 2, 0, 0, 0, 0, 0, 0)), *there,
          flush=True)
if __name__ == "__main__":
    show()
    time.tzset()
    show()
    child = multiprocessing.get_context("spawn").Process(target=show)
    child.start()
    child.join()
    os.environ["TZ"] = "America/New_York"
    time.tzset()
    show()
"""


@pytest.mark.parametrize(("then", "now"), [(None, None), (None, "Asia/Tokyo"), ("Asia/Tokyo", None)])
def test_the_time_zone_is_that_of_then_and_shows_in_the_environment_as_it_did(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, then: str | None, now: str | None
) -> None:
    _zone(monkeypatch, then)
    recorded = record(tmp_path, ZONE)
    _zone(monkeypatch, now)
    recorded.faithful()


def _zone(monkeypatch: pytest.MonkeyPatch, zone: str | None) -> None:
    if zone is not None:
        monkeypatch.setenv("TZ", zone)
    elif "TZ" in os.environ:
        monkeypatch.delenv("TZ")
