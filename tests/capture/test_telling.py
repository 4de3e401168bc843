"""The line on which a program tells its launcher what is secret: what goes over it, and what may happen to it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.capture.launching import launched, only_run, python, written

from playhead import _limits
from playhead.capture import telling
from playhead.capture.telling import Ear

ODD = [
    "plain-value",
    "with blanks in it",
    "two\nlines\r\n",
    "ümläut-€-\U0001f600",
    "half \ud83d of one",
    "back\\slash\\n",
    "\0nul",
]


@pytest.fixture
def ear(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ear]:
    monkeypatch.setattr(telling, "_line", None)
    monkeypatch.setattr(telling, "_told", set())
    ear = Ear()
    yield ear
    ear.close()


def test_a_value_arrives_as_it_was_with_its_rule_and_once(ear: Ear) -> None:
    telling.connect(ear.handed)
    assert ear.hear() == []
    telling.tell([(value, "env") for value in ODD])
    telling.tell([(ODD[0], "known"), ("another-one", "header")])
    assert ear.hear() == [*((value, "env") for value in ODD), ("another-one", "header")]
    assert ear.hear() == []
    ear.let_go()


def test_the_end_of_the_program_has_a_high_number(ear: Ear) -> None:
    telling.connect(ear.handed)
    number = telling.descriptor()
    assert number is not None
    assert number >= _limits.DESCRIPTOR_MIN
    ear.let_go()


def test_a_number_that_means_another_file_now_is_not_written_to(ear: Ear, tmp_path: Path) -> None:
    telling.connect(ear.handed)
    number = telling.descriptor()
    assert number is not None
    with (tmp_path / "own").open("wb") as own:
        os.dup2(own.fileno(), number)
        telling.tell([("a-secret-value", "env")])
        assert telling.descriptor() is None
    os.close(number)
    assert (tmp_path / "own").read_bytes() == b""
    assert ear.hear() == []


def test_nobody_is_told_where_the_launcher_is_gone(ear: Ear) -> None:
    telling.connect(ear.handed)
    ear.close()
    telling.tell([("a-secret-value", "env")])
    telling.tell([("another-value", "env")])
    ear.let_go()


@pytest.mark.parametrize("handed", ["", "7", "a/b/c", "99999/1/2", "-1/1/2"])
def test_what_is_no_line_is_not_used(ear: Ear, handed: str) -> None:
    telling.connect(handed)
    telling.tell([("a-secret-value", "env")])
    assert telling.descriptor() is None
    ear.let_go()


def test_half_a_line_and_a_rule_that_nobody_knows_do_no_harm(ear: Ear) -> None:
    number = int(ear.handed.partition("/")[0])
    os.write(number, b"env begun-and-\nNO-such rule-of-mine\nenv \nenv bad\\x\n\xff\xfe \n\nenv not-ended")
    assert ear.hear() == [("begun-and-", "env"), ("rule-of-mine", "known")]
    os.write(number, b"-before\n")
    assert ear.hear() == [("not-ended-before", "env")]
    ear.let_go()
    assert ear.hear() == []
    assert not ear.open, "nobody has the other end"


def test_a_program_that_closes_all_its_files_runs_on(tmp_path: Path) -> None:
    code = "import os; os.closerange(3, 5000); os.environ['MY_TOKEN'] = 'set-too-late'; print('fine', flush=True)"
    again = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1)'], check=True)"
    assert launched(tmp_path, python(f"{code}; {again}"))[:2] == (0, b"fine\n1\n")


def test_a_program_may_tell_more_than_the_line_holds_and_write_nothing_meanwhile(tmp_path: Path) -> None:
    code = (
        "import os\n"
        "for n in range(120): os.environ['MY_TOKEN'] = last = f'value-{n}-' + 'x' * 3000\n"
        "print(last, 'and', last.replace('119', '7'))"
    )
    assert launched(tmp_path, python(code))[0] == 0
    assert written(only_run(tmp_path), "stdout") == b"[redacted:env] and [redacted:env]\n"


def test_a_process_that_outlives_the_launcher_goes_on(tmp_path: Path) -> None:
    late = (
        "import os, sys; sys.stdin.read(); os.environ['MY_TOKEN'] = 'after-its-end-1'; open('done', 'w').write('yes')"
    )
    code = (
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {late!r}], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)"
    )
    reading, writing = os.pipe()
    try:
        command = [sys.executable, "-m", "playhead", "record", "--quiet", "--", *python(code)]
        subprocess.run(command, stdin=reading, cwd=tmp_path, check=True, timeout=60)
    finally:
        os.close(reading)
        os.close(writing)
    for _ in range(6000):
        if (tmp_path / "done").exists() and (tmp_path / "done").read_text():
            break
        subprocess.run(["sleep", "0.01"], check=True)
    assert (tmp_path / "done").read_text() == "yes"


def test_the_values_stand_in_no_file_and_in_no_environment(tmp_path: Path) -> None:
    code = (
        "import os, subprocess\n"
        "import playhead\n"
        "playhead.add_secret('made-' + 'known-1')\n"
        "env = subprocess.run(['env'], capture_output=True, text=True).stdout\n"
        "report = [v for v in env.splitlines() if v.startswith('PLAYHEAD_ATTACH')][0].split(os.pathsep)[1]\n"
        "folder = os.path.dirname(report)\n"
        "held = [open(os.path.join(folder, name)).read() for name in os.listdir(folder)]\n"
        "assert 'made-known' not in env + ''.join(held)"
    )
    assert launched(tmp_path, python(code))[0] == 0
