from __future__ import annotations

import subprocess
import sys
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import playhead
from playhead.store.index_reads import rows_of

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["of", "by", "via", "values", "path", "size", "sizes", "bytes", "ns", "*", "x"]),
            inner | st.sampled_from(["os.environ", "open", "lane.ended"]),
            max_size=4,
        )
    ),
    max_leaves=8,
)


def test_reads_of_one_source_are_counted_and_named_ones_stand_apart():
    data = {
        "packed": [
            {"of": "time.time", "by": "m", "at": [1, 0], "ns": [5, 6]},
            {"of": "os.urandom", "by": "m", "via": "uuid.uuid4", "bytes": "A" * 64, "sizes": 16},
        ],
        "reads": [
            {"of": "os.environ", "by": "m", "values": [{"HOME": "/root"}, {"HOME": "/root"}, {"*": ["A", "B"]}]},
            {"of": "open", "by": "m", "values": [{"path": "/a", "size": 3, "digest": "d", "content": "abc"}]},
            {"of": "lane.ended", "by": "", "values": [["0.1", 5, "ok"]]},
            {"of": "os.stat", "by": "m", "values": [{"path": "/a", "stat": []}, {"path": "/b", "stat": []}]},
        ],
    }
    assert rows_of(data) == [
        ("time.time", None, "m", None, 3, None),
        ("os.urandom", "uuid.uuid4", "m", None, 3, None),
        ("os.environ", None, "m", "HOME", 2, None),
        ("os.environ", None, "m", "*", 1, None),
        ("open", None, "m", "/a", 1, '{"size":3,"digest":"d"}'),
        ("lane.ended", None, None, "0.1", 1, '{"outcome":"ok","at_us":5}'),
        ("os.stat", None, "m", None, 2, None),
    ]


def test_what_is_written_as_a_reference_is_counted_without_a_name():
    groups = [
        {"of": "open", "by": "m", "values": {"$same": "3#/reads/0/values"}},
        {"of": "os.environ", "by": "m", "values": {"$blob": "0" * 64, "len": 5, "as": "json"}},
    ]
    packed = [{"of": "time.time", "by": "m", "at": [1, 0], "ns": []}]
    assert rows_of({"packed": packed, "reads": groups, "order": "b3ab2c12"}) == [
        ("time.time", None, "m", None, 1, None),
        ("open", None, "m", None, 5, None),
        ("os.environ", None, "m", None, 12, None),
    ]
    assert [row[4] for row in rows_of({"reads": groups[:1]})] == [1]  # where nothing says how often


def test_what_is_too_much_for_a_line_is_looked_up():
    def load(digest: str) -> bytes:
        return orjson.dumps([{"path": f"/{number}", "size": 1} for number in range(3)])

    group = {"of": "open", "by": "m", "values": {"$blob": "0" * 64, "len": 5, "as": "json"}}
    assert [row[3] for row in rows_of({"reads": [group], "count": 3}, load)] == ["/0", "/1", "/2"]


@given(data=st.dictionaries(st.sampled_from(["packed", "reads", "count", "order"]), values))
def test_whatever_a_line_holds_nothing_raises(data: Any):
    for row in rows_of(data):
        assert len(row) == 6


PROGRAM = """
import os, playhead
playhead.install()
with playhead.record("n", store="store"):
    os.environ.get("NO_SUCH_THING")
    for number in range(5):
        open(f"in{number}.txt").read()
"""


def test_every_read_of_a_run_is_found_in_the_index(tmp_path, monkeypatch, ask_index):
    # In a process of its own: Python 3.13 forgets that a class was changed when that has happened a thousand times.
    monkeypatch.setenv("PLAYHEAD_GIT", "0")
    names = [f"in{number}.txt" for number in range(5)]
    for name in names:
        (tmp_path / name).write_text(name * 2000)  # together more than fits a line
    subprocess.run([sys.executable, "-c", PROGRAM], cwd=tmp_path, check=True)
    found = ask_index(tmp_path / "store", "SELECT source, target, times FROM reads")
    assert ("os.environ", "NO_SUCH_THING", 1) in found
    for name in names:
        assert ("open", str(tmp_path / name), 1) in found
    (run,) = playhead.runs(store=tmp_path / "store")
    assert sum(times for _, _, times in found) == sum(1 for _ in run.reads())


@pytest.fixture
def ask_index() -> Any:
    from playhead._api.reading import open_index, open_store

    def ask(root: Any, sql: str) -> list[tuple[Any, ...]]:
        with open_index(open_store(root)) as index:
            return index.query(sql)[1]

    return ask
