from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.store.index_timelines import START_US, Timeline

from playhead._api.metrics import stats_of
from playhead._api.spending import costs_of
from playhead.store.files import FileStore
from playhead.store.index import Index
from playhead.store.index_filter import RunFilter
from playhead.store.reader import RunReader
from playhead.views.metrics import metrics_of
from playhead.views.prices import DAY_US
from playhead.views.sums import BY, Metrics
from playhead.views.timeline import Timeline as ViewedTimeline

# One model whose price changes within a run, one with a price for long input, one that nobody knows.
TERMS: dict[str, list[dict[str, Any]]] = {
    "timely": [{"input": [[0, 1.0]]}, {"input": [[0, 3.0]], "since_us": START_US + 20_000}],
    "nightly": [{"input": [[0, 1.0]]}, {"output": [[0, 9.0]], "daily_us": [(START_US + 15_000) % DAY_US, (START_US + 25_000) % DAY_US]}],
    "long": [{"input": [[0, 1.0], [1000, 2.0]], "cached": [[0, 0.5]], "output": [[0, 4.0], [500, 8.0]], "request": 0.01}],
}  # fmt: skip


def sold(provider: str | None, model: str) -> list[dict[str, Any]] | None:
    return TERMS.get(model)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / ".playhead").mkdir()
    return tmp_path / ".playhead"


def of_one(root: Path, run: str, by: str, recorded_us: int | None = None) -> Metrics:
    return metrics_of(RunReader(FileStore(root), run).events(), by, sold, recorded_us=recorded_us)


def same(left: Any, right: Any) -> bool:
    """Compare plain data; floats, which are added up in another order, up to their last digits."""
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same, left, right))
    return left == pytest.approx(right) if isinstance(left, float) and isinstance(right, float) else left == right


def comparable(found: Metrics) -> dict[str, Any]:
    """Return it without the order in which things that have none were found."""
    document = found.as_dict() | {"run": None}
    for group in [document["total"], *document["groups"]]:
        models = group.get("models", {"saved": {"unpriced": []}})
        for told in (models, models["saved"]):
            if "unpriced" in told:
                told["unpriced"] = sorted(told["unpriced"])
    document["unpriced"] = sorted(document["unpriced"])
    document["groups"].sort(key=lambda group: (group["name"] is None, group["name"] or ""))
    return document


NAMES = st.sampled_from(["timely", "nightly", "long", "free", None, "", 5])
COUNTS = st.sampled_from([None, 0, 7, 999, 1001, 10**12, 2**60, -1, "x"])
STATUSES = st.sampled_from(["ok", "ok", "error", "cancelled", None])
ERRORS = st.sampled_from(
    [None, {"type": "playhead.errors.DeviationError", "message": "no"}, {"type": "E", "message": "m"},
     {"type": "httpx.ReadTimeout", "message": "m"}, "Timeout: m"]
)  # fmt: skip


@st.composite
def runs(draw: st.DrawFn) -> tuple[str | None, list[tuple[str, dict[str, Any], dict[str, Any]]]]:
    """Make the events of a run: calls and steps in each other, closed in any order or not at all, said by anybody."""
    chance = draw(st.randoms(use_true_random=False))
    mode = draw(st.sampled_from([None, "exact", "fork", "model", "child"]))
    events: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
    opened: list[tuple[str, str]] = []
    spans = ["root", "gone"]
    for number in range(draw(st.integers(0, 14))):
        kind = chance.choice(["model", "model", "tool", "step", "http", "close", "close", "report"])
        if kind == "report":
            events.append(("replay.reported", {"live_spans": chance.sample(spans, min(2, len(spans)))}, {}))
        elif kind == "close" and opened:
            kind, span = opened.pop(chance.randrange(len(opened)))
            usage = {name: draw(COUNTS) for name in ("input", "output", "cached", "reasoning")}
            data = {"status": draw(STATUSES), "error": draw(ERRORS), "usage": usage, "model": draw(NAMES),
                    "cost": chance.choice([None, None, 0.25]), "inferred": chance.random() < 0.2,
                    "http": chance.choice([None, {"status": 200}, {"status": 429}, {"status": "x"}, {}])}  # fmt: skip
            closing = {
                "model": "model.responded",
                "tool": "tool.returned",
                "step": "step.finished",
                "http": "http.received",
            }
            events.append((closing[kind], data, {"span": span}))
        elif kind != "close":
            span = str(number)
            opening = {"model": "model.invoked", "tool": "tool.called", "step": "step.started", "http": "http.sent"}
            data = {"name": chance.choice(["a", "b"]), "model": draw(NAMES), "provider": chance.choice(["p", None]),
                    "attempt": chance.choice([1, 1, 2, 3, "x"]),
                    "operation": chance.choice(["chat", "chat", "count_tokens", 5])}  # fmt: skip
            where = {"span": span, "parent": chance.choice(spans), "lane": chance.choice(["0", "0", "0.1"]),
                     "key": chance.choice([None, "k1:a", "k1:a", "k1:b"])}  # fmt: skip
            events.append((opening[kind], data, where))
            opened.append((kind, span))
            spans.append(span)
    return mode, events


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(made=runs())
def test_one_run_comes_to_the_same_from_its_events_and_from_the_index(
    tmp_path_factory: pytest.TempPathFactory, made: tuple[str | None, list[Any]]
) -> None:
    mode, events = made
    root = tmp_path_factory.mktemp("store")
    run = Timeline(root, 1, agent={"name": "agent"}, **({"origin": {"run": "run_x", "mode": mode}} if mode else {}))
    for kind, data, where in events:
        run.add(kind, data, **where)
    run.finish()
    with Index(root) as index:
        for by in BY:
            assert same(comparable(stats_of(index, by, RunFilter(), sold)), comparable(of_one(root, run.id, by))), by
        bill = costs_of(index, [run.id], sold)[run.id]
        spent = of_one(root, run.id, "run").total.models
        assert spent is not None
        assert same([bill.amount, sorted(bill.unpriced)], [spent.cost, sorted(spent.unpriced)])
        assert bill.silent == spent.without_usage


def filled(root: Path) -> list[Timeline]:
    """Record three runs on two days, one of them with a retry, and a replay of the first."""
    chance, made = random.Random(1), []
    for number in range(3):
        run = Timeline(root, number, agent={"name": "even" if number % 2 == 0 else "odd"}, tags={"n": str(number)})
        for _ in range(5):
            run.call("tool.called", {"name": "read"}, "tool.returned", {"status": "ok"})
            usage = {"input": chance.randrange(2000), "output": 10}
            run.call(
                "model.invoked", {"provider": "p", "model": "long"}, "model.responded", {"status": "ok", "usage": usage}
            )
        run.finish("ok" if number else "error")
        made.append(run)
    replay = Timeline(root, 3, origin={"run": made[0].id, "mode": "exact"}, agent={"name": "even"})
    usage = {"input": 100, "output": 10}
    replay.call(
        "model.invoked", {"provider": "p", "model": "long"}, "model.responded", {"status": "ok", "usage": usage}
    )
    replay.call("tool.called", {"name": "read"}, "tool.returned", {"status": "ok"})
    return [*made, replay.finish()]


def test_many_runs_come_to_the_sum_of_each(root: Path) -> None:
    made = filled(root)
    each = [of_one(root, run.id, "agent").total for run in made]
    with Index(root) as index:
        found = stats_of(index, "agent", RunFilter(), sold)
    total = found.total
    assert total.models is not None
    assert total.tools is not None
    assert total.runs is not None
    assert total.models.cost == pytest.approx(sum(one.models.cost or 0 for one in each if one.models))
    assert total.models.tokens_in == sum(one.models.tokens_in for one in each if one.models)
    assert (total.runs.count, total.runs.ok, total.runs.failed, total.runs.replays) == (3, 2, 1, 1)
    assert (total.models.calls, total.models.saved.calls, total.models.saved.tokens_in) == (15, 1, 100)
    assert (total.tools.calls, total.tools.saved_calls) == (15, 1)
    groups = {group.name: group for group in found.groups}
    assert {name: group.models and group.models.calls for name, group in groups.items()} == {"even": 10, "odd": 5}


def test_a_replay_is_no_spending_but_what_it_was_told_is_saved_with_the_time(root: Path) -> None:
    *_, replay = made = filled(root)
    with Index(root) as index:
        found = stats_of(index, "run", RunFilter(), sold)
        took_us = dict(index.query("SELECT id, duration_us FROM runs")[1])
    group = next(group for group in found.groups if group.name == replay.id)
    assert group.models is not None
    assert group.runs is not None
    assert (group.models.calls, group.models.cost, group.models.ms, group.models.p50_ms) == (0, None, 0.0, None)
    assert group.models.saved.cost == pytest.approx(0.01 + 100 / 1_000_000 + 10 * 4 / 1_000_000)
    assert group.runs.saved_ms == (took_us[made[0].id] - took_us[replay.id]) / 1000 > 0
    one = of_one(root, replay.id, "run", recorded_us=took_us[made[0].id])
    assert same(one.as_dict()["groups"], [group.as_dict()])


def test_percentiles_are_the_nearest_rank(root: Path) -> None:
    run = Timeline(root, 1)
    for took_ms in random.Random(3).sample(range(1, 201), 200):
        span = f"s{run.seq}"
        at_us = run.seq * 1_000_000
        run.add("tool.called", {"name": "read"}, span=span, elapsed_us=at_us)
        run.add("tool.returned", {"status": "ok"}, span=span, elapsed_us=at_us + took_ms * 1000)
    run.finish()
    with Index(root) as index:
        (group,) = stats_of(index, "tool", RunFilter(), sold).groups
    assert group.tools is not None
    assert (group.tools.p50_ms, group.tools.p95_ms, group.tools.p99_ms) == (100.0, 190.0, 198.0)
    assert same(of_one(root, run.id, "tool").groups[0].as_dict(), group.as_dict())


def test_filters_and_a_limit_choose_and_the_total_is_of_all_that_is_chosen(root: Path) -> None:
    made = filled(root)
    with Index(root) as index:
        odd = stats_of(index, "run", RunFilter(agent="odd"), sold)
        assert [group.name for group in odd.groups] == [made[1].id]
        assert stats_of(index, "day", RunFilter(tag="n=2"), sold).total.models == stats_of(
            index, "tool", RunFilter(since_us=START_US, agent="even", tag="n=2"), sold
        ).total.models  # fmt: skip
        every = stats_of(index, "run", RunFilter(), sold)
        page = stats_of(index, "run", RunFilter(), sold, limit=2)
        assert [group.name for group in page.groups] == [made[3].id, made[2].id]
        assert (page.left_out, every.left_out) == (2, 0)
        assert same(page.total.as_dict(), every.total.as_dict())
        assert [
            same(one.as_dict(), other.as_dict()) for one, other in zip(page.groups, every.groups, strict=False)
        ] == [True, True]
        nothing = stats_of(index, "agent", RunFilter(name="nobody"), sold)
        assert (nothing.groups, nothing.as_dict()["total"]["runs"]["count"]) == ([], 0)


def test_a_retry_of_a_step_follows_an_attempt_that_failed(root: Path) -> None:
    run = Timeline(root, 1)
    for name, attempt, status in [
        ("a", 1, "error"),
        ("a", 2, "cancelled"),
        ("a", 3, "ok"),
        ("a", 4, "ok"),
        ("b", 1, "ok"),
        ("b", 2, "ok"),
    ]:
        run.call("step.started", {"name": name, "attempt": attempt}, "step.finished", {"status": status}, parent="root")
    run.call("step.started", {"name": "a", "attempt": 2}, "step.finished", {"status": "ok"}, parent="elsewhere")
    run.add("step.started", {"name": "a", "attempt": 5}, span="open", parent="root")
    run.finish()
    with Index(root) as index:
        groups = {group.name: group.steps for group in stats_of(index, "step", RunFilter(), sold).groups}
    assert groups["a"] is not None
    assert groups["b"] is not None
    assert (groups["a"].count, groups["a"].ok, groups["a"].failed, groups["a"].open, groups["a"].retries) == (
        6,
        3,
        2,
        1,
        2,
    )
    assert (groups["a"].success_rate, groups["a"].retry_rate) == (3 / 5, 2 / 6)
    assert (groups["b"].retries, groups["b"].success_rate) == (0, 1.0)


def retries(root: Path, run: Timeline, section: str) -> int:
    """Return how often something was tried again, which the run itself and the index say alike."""
    with Index(root) as index:
        totals = [stats_of(index, "model", RunFilter(), sold).total, of_one(root, run.id, "model").total]
    first, second = (getattr(total, section).retries for total in totals)
    assert first == second
    return int(first)


def test_a_question_is_asked_again_after_it_had_failed_from_wherever_that_is(root: Path) -> None:
    run = Timeline(root, 1)
    for number, (key, status) in enumerate(
        [("a", "error"), ("b", "ok"), ("a", "cancelled"), ("b", "ok"), ("a", "ok"), ("a", "ok"), ("c", "error")]
    ):
        answer = {"status": status}
        run.call(
            "model.invoked", {}, "model.responded", answer, parent=f"s{number}", lane=f"0.{number}", key=f"k1:{key}"
        )
    run.call("model.invoked", {"provider": "another"}, "model.responded", {"status": "ok"}, key="k1:c")
    run.call("model.invoked", {"attempt": 2}, "model.responded", {"status": "ok"}, key="k1:d")
    assert retries(root, run.finish(), "models") == 3


@pytest.mark.parametrize(
    ("answer", "unknown"),
    [
        ({"status": "ok"}, True),
        ({"status": "ok", "usage": {"input": 0}}, False),
        ({"status": "cancelled", "error": {"type": "asyncio.exceptions.CancelledError"}}, True),
        ({"status": "error", "http": {"status": 200}, "error": {"type": "httpx.RemoteProtocolError"}}, True),
        ({"status": "error", "http": {"form": "none"}, "error": {"type": "httpx.ReadTimeout"}}, True),
        ({"status": "error", "error": {"type": "TimeoutError"}}, True),
        (None, True),  # without an end
        ({"status": "error", "http": {"status": 429}, "error": {"type": "HTTPStatus"}}, False),
        ({"status": "error", "http": {"status": 504}, "error": {"type": "HTTPStatus"}}, False),
        ({"status": "error", "http": {"form": "none"}, "error": {"type": "httpx.ConnectError"}}, False),
        ({"status": "error", "http": {"form": "none"}, "error": {"type": "httpx.ConnectTimeout"}}, False),
        ({"status": "error", "error": {"type": "playhead.errors.PolicyDenied"}}, False),
    ],
)
def test_what_may_have_been_billed_is_unknown_and_never_nothing(
    root: Path, answer: dict[str, Any] | None, unknown: bool
) -> None:
    run = Timeline(root, 1).add("model.invoked", {"operation": "chat"}, span="a")
    if answer is not None:
        run.add("model.responded", answer, span="a")
    run.add("model.invoked", {"operation": "count_tokens"}, span="b").add("model.responded", answer or {}, span="b")
    run.finish()
    events = list(RunReader(FileStore(root), run.id).events())
    with Index(root) as index:
        found = stats_of(index, "model", RunFilter(), sold).total.models
        bill = costs_of(index, [run.id], sold)[run.id]
    alone = of_one(root, run.id, "model").total.models
    assert found is not None
    assert alone is not None
    told = answer is None or "error" in answer or "usage" in answer  # else nobody recorded an answer
    shown = ViewedTimeline().take_all(events).finish().calls_without_usage if told else int(unknown)
    assert {found.without_usage, alone.without_usage, bill.silent, shown} == {int(unknown)}


def test_a_question_asked_several_times_at_once_is_asked_once_more_only_after_one_failed(root: Path) -> None:
    run = Timeline(root, 1)
    for span in "ab":
        run.add("model.invoked", {}, span=span, key="k1:a")
    run.add("model.responded", {"status": "error"}, span="a").add("model.responded", {"status": "ok"}, span="b")
    run.add("model.invoked", {}, span="c", key="k1:a")
    assert retries(root, run.finish(), "models") == 0


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        ("0+a 1+b 2+c a- b c", 0),  # all began before the first failed
        ("0+a 1+b 2+c a- 0+d d- 0+e e b c", 2),  # the same task tries again, others go on beside it
        ("0+a 1+b a- 3+c b c", 0),  # the next one of a queue
        ("0+a a- 1+b b- 2+c c", 2),  # each attempt in a task of its own
        ("0+a a- 0+b b 0+c c", 1),
    ],
)
def test_a_step_that_began_before_the_other_failed_or_runs_beside_others_is_no_retry(
    root: Path, story: str, expected: int
) -> None:
    run, attempt = Timeline(root, 1), 0
    for told in story.split():
        if "+" in told:
            lane, span = told.split("+")
            attempt += 1
            run.add("step.started", {"name": "item", "attempt": attempt}, span=span, parent="root", lane=f"0.{lane}")
        else:
            run.add("step.finished", {"status": "error" if told.endswith("-") else "ok"}, span=told[0])
    assert retries(root, run.finish(), "steps") == expected


def test_tokens_belong_to_the_innermost_step_also_through_tools(root: Path) -> None:
    run = Timeline(root, 1)
    run.add("step.started", {"name": "outer"}, span="1", parent="root")
    run.add("step.started", {"name": "inner"}, span="2", parent="1")
    run.add("tool.called", {"name": "t"}, span="3", parent="2")
    run.add("tool.called", {"name": "t"}, span="4", parent="3")
    usage = {"input": 100, "output": 0}
    for parent in ("4", "1", "root"):
        run.call("model.invoked", {"model": "long"}, "model.responded", {"status": "ok", "usage": usage}, parent=parent)
    run.add("tool.called", {"name": "round"}, span="5", parent="6").add(
        "tool.called", {"name": "round"}, span="6", parent="5"
    )
    run.finish()
    with Index(root) as index:
        found = stats_of(index, "step", RunFilter(), sold)
    assert {group.name: (group.models and group.models.tokens_in, group.tools and group.tools.calls) for group in found.groups} == {
        "inner": (100, 2), "outer": (100, 0), None: (100, 2),
    }  # fmt: skip


def test_the_agent_that_adopts_a_run_is_the_run_and_none_of_its_steps(root: Path) -> None:
    run = Timeline(root, 1)
    run.add("step.started", {"name": "agent", "adopts": True}, span="1", parent="root")
    run.call("step.started", {"name": "plan"}, "step.finished", {"status": "error"}, parent="1")
    run.call("tool.called", {"name": "t"}, "tool.returned", {"status": "ok"}, parent="1")
    run.add("step.finished", {"status": "ok", "adopts": True}, span="1").finish()
    with Index(root) as index:
        found = [stats_of(index, "step", RunFilter(), sold), of_one(root, run.id, "step")]
        assert index.list_runs()[0]["steps"] == 1
    for told in found:
        counted = [(one.name, one.steps and one.steps.count, one.tools and one.tools.calls) for one in told.groups]
        assert counted == [("plan", 1, 0), (None, 0, 1)]
        assert told.total.steps is not None
        assert told.total.steps.success_rate == 0


def test_numbers_beyond_all_reason_add_up_to_something(root: Path) -> None:
    run = Timeline(root, 1)
    for _ in range(1100):
        run.call("model.invoked", {"model": "long"}, "model.responded", {"status": "ok", "usage": {"input": 2**53}})
    run.finish()
    with Index(root) as index:
        total = stats_of(index, "model", RunFilter(), sold).total
    assert total.models is not None
    assert total.models.tokens_in == 2**63 - 1
