from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.index_timelines import Timeline, every_row, line, run_id

from playhead import _limits
from playhead.event.kinds import PAYLOADS, UNSEEN
from playhead.store.index import Index
from playhead.store.questions import QUESTIONS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".playhead").mkdir()
    return tmp_path / ".playhead"


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
fields = st.sampled_from(
    sorted({field for payload in PAYLOADS.values() for field in payload.__struct_fields__} | {"cost"})
)
kinds = st.sampled_from([*PAYLOADS, "some.thing"])
payloads = st.dictionaries(fields, values, max_size=4) | st.just({"usage": {"input": 5}, "status": "ok", "name": "n"})
spans = st.sampled_from(["a", "b", "c", None])
garbage = st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"") + b"\n")


@st.composite
def timelines(draw: st.DrawFn) -> bytes:
    out, run = b"", run_id(1)
    for seq in range(draw(st.integers(0, 12))):
        out += line(run, seq, draw(kinds), draw(payloads), span=draw(spans), elapsed_us=draw(st.integers(0, 50)))
        if draw(st.integers(0, 5)) == 0:
            out += draw(garbage)
    return out


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=timelines(), cuts=st.lists(st.floats(0, 1), max_size=4), batch=st.sampled_from([1, 3, 2000]))
def test_any_split_into_appends_gives_the_rows_of_a_rebuild(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, cuts: list[float], batch: int
) -> None:
    root = tmp_path_factory.mktemp("store")
    places = [0, *sorted(int(cut * len(data)) for cut in cuts), len(data)]
    run = Timeline(root, 1)
    run.path.write_bytes(b"")
    with pytest.MonkeyPatch.context() as patch, Index(root) as index:
        patch.setattr(_limits, "INDEX_BATCH_EVENTS", batch)
        for start, end in pairwise(places):
            run.append(data[start:end])
            run.note("open")
            index.catch_up()
        pieces = every_row(index)
        patch.undo()
        index.rebuild()
        assert pieces == every_row(index)
        lines = index.query("SELECT coalesce(sum(events + bad_lines), 0) FROM runs")[1]
        assert lines == [(data.count(b"\n"),)]


@pytest.mark.parametrize(
    "bad",
    [
        b"not json\n", b"[]\n", b"{}\n", b"\n", b"\xff\xfe\n", b'{"a":1}\n', b"[" * 5000 + b"\n",
        line(run_id(2), 1, "note.added", {}), line(run_id(1), 0, "note.added", {}),
        line(run_id(1), -1, "note.added", {}),
        line(run_id(1), 1, "note.added", {}, seq=2**60), line(run_id(1), 1, "note.added", []),
        line(run_id(1), 1, "note.added", {}, time=5), line(run_id(1), 1, "note.added", {}, elapsed_us="1"),
        line(run_id(1), 1, "note.added", {}, lane=[0]), line(run_id(1), 1, "tool.called", {"name": "x"}),
        line(run_id(1), 1, "note.added", {}).replace(b'"kind"', b'"kin"'), line(run_id(1), 1, "n", {}, seq=True),
    ],
)  # fmt: skip
def test_a_line_that_is_none_is_counted_and_skipped(root: Path, bad: bytes) -> None:
    run = Timeline(root, 1)
    run.append(bad)
    run.finish()
    with Index(root) as index:
        found = index.get(run.id)
    assert found is not None
    assert (found["bad_lines"], found["events"], found["status"]) == (1, 2, "ok")


def test_a_line_too_long_to_be_held_is_counted_and_skipped(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_limits, "LINE_BYTES_MAX", 1000)
    monkeypatch.setattr(_limits, "READ_CHUNK_BYTES", 64)
    run = Timeline(root, 1).add("note.added", {"text": "x" * 5000}).finish()
    with Index(root) as index:
        found = index.get(run.id)
        assert found is not None
        assert (found["bad_lines"], found["events"], found["status"]) == (1, 2, "ok")
        run.append(b"y" * 5000)  # and one that is still being written is left alone
        run.note("open")
        assert index.list_runs()[0]["bytes"] == found["bytes"]


def test_what_was_never_seen_is_not_counted_as_lost(root: Path) -> None:
    run = run_id(1)
    folder = root / "runs" / run
    folder.mkdir(parents=True)
    reasons = [*sorted(UNSEEN), "write_failed"]
    lines = [line(run, seq, "gap.noted", {"reason": reason, "count": 2}) for seq, reason in enumerate(reasons)]
    (folder / "timeline.jsonl").write_bytes(b"".join(lines))
    with Index(root) as index:
        index.rebuild()
        (found,) = index.list_runs()
    assert (found["gaps"], found["lost"]) == (1, 2)


def test_a_tool_that_was_inferred_has_no_latency(root: Path) -> None:
    run = Timeline(root, 1)
    for span, more in (("1", {"inferred": True}), ("2", {})):
        run.add("tool.called", {"name": "read", **more}, span=span)
        run.add("tool.returned", {"status": "ok", **more}, span=span)
    with Index(root) as index:
        _, rows = index.query("SELECT status, latency_us FROM calls ORDER BY seq")
        assert [tuple(row) for row in rows] == [("ok", None), ("ok", 1000)]
        _, rows = index.query(QUESTIONS["slowest-tools"].sql)
        assert [tuple(row) for row in rows] == [("read", 1, 1.0, 1.0, 0)]


def _answered(root: Path, mode: str | None, *, reported: bool) -> list[int | None]:
    """Return who answered three calls of a run, the last two of which it says that it asked of the world."""
    run = Timeline(root, 1, **({} if mode is None else {"origin": {"run": "run_x", "mode": mode}}))
    run.add("model.invoked", {"model": "m", "attempt": 2}, span="1", parent="root")
    run.add("model.responded", {"status": "ok", "model": "m-2026"}, span="1")
    run.add("model.invoked", {"model": "by hand"}, span="2", parent="root")
    run.add("http.sent", {"method": "GET", "url": "http://x/"}, span="3", parent="2")
    if reported:
        run.add("replay.reported", {"answered": 1, "live": 1, "live_spans": ["3", 5]})
        run.add("replay.reported", {"answered": 0})  # of another process
    run.add("tool.called", {"name": "later"}, span="4", parent="root").finish()
    with Index(root) as index:
        assert index.query("SELECT name, model, attempt FROM calls WHERE span = '1'")[1] == [("m", "m-2026", 2)]
        return [row[0] for row in index.query("SELECT taped FROM calls ORDER BY seq")[1]]


@pytest.mark.parametrize(
    ("mode", "reported", "taped"),
    [
        (None, True, [None] * 4),
        ("child", True, [None] * 4),
        ("exact", True, [1] * 4),
        ("exact", False, [1] * 4),
        ("fork", True, [1, 0, 0, None]),  # what was asked by hand went out with what it is made of
        ("model", True, [1, 0, 0, None]),
        ("resume", False, [None] * 4),  # cut off: nobody knows
    ],
)
def test_a_call_says_whether_a_tape_answered_it(
    root: Path, mode: str | None, reported: bool, taped: list[int | None]
) -> None:
    assert _answered(root, mode, reported=reported) == taped
