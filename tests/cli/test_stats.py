from __future__ import annotations

import contextlib
import csv
import importlib
import io
from pathlib import Path

import pytest

import playhead
from playhead.cli.chart import draw
from playhead.cli.main import parser_of
from playhead.cli.output import Output
from playhead.cli.stats_text import summary, table
from playhead.store import layout
from playhead.store.price_list import PriceList
from playhead.views.sums import BY, Group, Metrics, StepSums, ToolSums


@playhead.tool(effects=["read"])
def look(at: str) -> str:
    if at == "nothing":
        raise LookupError(at)
    return at


def record(store: Path, name: str, models: tuple[str, ...], *, fails: bool = False) -> str:
    with playhead.record(name, store=store, tags={"kind": name}) as run:
        for attempt in range(2 if fails else 1):
            try:
                with playhead.step("look"):
                    look("nothing" if fails and not attempt else "around")
            except LookupError:
                pass
        with playhead.step("answer"):
            for model in models:
                with playhead.model_call(provider="acme", model=model, request="?") as call:
                    call.respond("!", usage={"input": 1_000_000, "output": 10, "cached": 400_000, "reasoning": 4})
        return run.id


@pytest.fixture
def store(store: Path) -> Path:
    """Give a store with two runs, and the price of one of their two models."""
    (store.parent / "playhead.toml").write_text('[prices]\n"known" = { input = 10, cached = 1, output = 0 }')
    record(store, "first", ("known", "strange"))
    record(store, "second", ("known",), fails=True)
    return store


def test_what_is_known_and_what_is_unknown_are_said_for_all_and_for_each(ask, store):
    said = ask("stats")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("runs    2 (2 ok)")
    assert "3 calls; p50 " in lines[1]
    assert "tokens 3,000,000 in (1,200,000 cached) → 30 out (12 reasoning)" in lines[1]
    assert lines[2] == "cost    about $12.80, estimated; no price is known for strange"
    assert lines[3].startswith("tools   3 calls, 1 failed; p50 ")
    assert lines[4].startswith("steps   5, 80 % ok, 1 retry; p50 ")
    rows = [line.split() for line in lines[6:]]
    assert rows[0][:4] == ["model", "provider", "calls", "failed"]
    assert [(row[0], row[1], row[2]) for row in rows[1:]] == [("known", "acme", "2"), ("strange", "acme", "1")]
    assert ("$12.80" in lines[7], "unknown" in lines[8]) == (True, True)


@pytest.mark.parametrize("by", BY)
def test_every_way_to_group_has_a_table_json_csv_and_a_chart(ask, store, by):
    document = ask("stats", "--by", by, "--json").json
    assert (document["by"], document["run"], document["left_out"], document["unpriced"]) == (by, None, 0, ["strange"])
    names = [group["name"] for group in document["groups"]]
    rows = list(csv.DictReader(io.StringIO(ask("stats", "--by", by, "--csv").out)))
    assert [row[by] or None for row in rows] == names
    if "models" in document["groups"][0]:
        assert [row["models_cost"] for row in rows] == [
            "" if group["models"]["cost"] is None else str(group["models"]["cost"]) for group in document["groups"]
        ]
    for answer in (ask("stats", "--by", by).out, ask("stats", "--by", by, "--chart").out):
        assert all((name or "(no") in answer for name in names)


def test_one_run_is_added_up_by_itself_and_says_what_a_playback_of_it_saves(ask, store):
    whole = ask("stats", "second", "--by", "step", "--json").json
    assert whole["run"] == playhead.load("second").id
    assert {group["name"]: group["steps"]["retries"] for group in whole["groups"]} == {"answer": 0, "look": 1}
    assert playhead.load("second").metrics("step").as_dict() == whole
    assert "saves   about $6.40 each time it is played back or replayed exactly\n" in ask("stats", "second").out
    assert "saves   about $6.40 + unknown each time" in ask("stats", "first").out
    assert whole["total"]["models"]["cost"] == pytest.approx(6.4)


def test_providers_are_told_in_one_order_of_one_run_and_of_several(ask, store):
    with playhead.record("two", store=store):
        for provider in ("openai", "anthropic", "openai"):
            with playhead.model_call(provider=provider, model="m"):
                pass
    for which in (["two"], ["--name", "two"]):
        assert ask("stats", *which, "--json").json["total"]["models"]["providers"] == ["anthropic", "openai"]


def test_what_cannot_be_played_back_saves_nothing(ask, store):
    assert "saves" in ask("stats", "second").out
    assert ask("invalidate", "second", "--why", "wrong").code == 0
    said = ask("stats", "second").out
    assert "cost" in said
    assert "saves" not in said


def test_a_word_after_chart_that_is_neither_a_chart_nor_a_run_is_answered_with_the_charts(ask, store):
    for more in ((), ("--since", "7d")):
        said = ask("stats", "--chart", "csot", *more)
        assert (said.code, "neither a chart nor a run 'csot'" in said.err) == (2, True), said.err
        assert "A chart is cost, tokens, calls, time, latency, errors" in said.err
    assert ask("stats", "--chart", "second").code == 0
    assert ask("stats", "csot").code == 2


def test_the_same_from_python(store):
    assert playhead.stats("model", since="7d").total == playhead.stats("model").total
    found = playhead.stats("model", name="first")
    assert (found.total.models.cost, found.total.models.unpriced) == (pytest.approx(6.4), ["strange"])
    with pytest.raises(playhead.PlayheadError, match="not added up by 'moon'"):
        playhead.stats("moon")
    with pytest.raises(playhead.PlayheadError, match="not a point in time: 'yesterday'"):
        playhead.stats(since="yesterday")
    with pytest.raises(playhead.PlayheadError, match="no run has the status 'fine'"):
        playhead.stats(status="fine")


def test_filters_choose_and_none_is_no_error(ask, store):
    assert ask("stats", "--name", "first", "--json").json["total"]["runs"]["count"] == 1
    assert ask("stats", "--tag", "kind=second", "--by", "agent", "--json").json["total"]["models"]["calls"] == 1
    nothing = ask("stats", "--name", "nobody")
    assert (nothing.code, nothing.out) == (0, "No run matches. `playhead ls` without filters lists all of them.\n")
    assert ask("stats", "--name", "nobody", "--json").json["groups"] == []
    assert ask("stats", "--name", "nobody", "--csv").out.startswith("model,models_calls,")


def test_so_many_groups_and_how_many_there_are_more(ask, store):
    said = ask("stats", "--by", "run", "-n", "1")
    assert said.out.endswith("\n1 more: `-n 0` for all.\n")
    assert ask("stats", "--by", "run", "-n", "1", "--json").json["groups"][0]["name"] == playhead.load("second").id
    assert ask("stats", "first", "-n", "1", "--json").json["left_out"] == 1
    many = ask("stats", "--by", "run", "-n", "100000", "--json").json  # more than a question may have values
    assert [group["name"] for group in many["groups"]] == [run.id for run in playhead.runs()]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("first", "--name", "first"), "one run, or the runs that filters choose"),
        (("--csv", "--chart"), "three answers"),
        (("--chart", "colour", "first"), "no chart of 'colour' by model"),
        (("--by", "tool", "--chart", "cost"), "no chart of 'cost' by tool"),
        (("--limit", "-1"), "--limit is a number of groups"),
        (("nobody",), "no run answers to 'nobody'"),
        (("--chart", "nobody"), "neither a chart nor a run 'nobody'"),
        (("--since", "once"), "not a point in time"),
    ],
)
def test_what_makes_no_sense_is_said(ask, store, arguments, told):
    said = ask("stats", *arguments)
    assert (said.code, said.out) == (2, "")
    assert told in said.err


def test_bars_are_scaled_to_the_width_and_what_is_unknown_has_none():
    for encoding, expected in (
        ("utf-8", ["a   " + "█" * 80 + "  10", "bb  " + "█" * 20 + "  2.5", "c   ▏  0.01", "d   unknown"]),
        ("ascii", ["a   " + "#" * 80 + "  10", "bb  " + "#" * 20 + "  2.5", "c   #  0.01", "d   unknown"]),
    ):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding=encoding, newline="\n")
        out = Output(stdout=stream, terminal=False)
        draw([("a", 10, "10" + " " * 12), ("bb", 2.5, "2.5"), ("c", 0.01, "0.01"), ("d", None, "unknown")], out)
        stream.flush()
        drawn = raw.getvalue().decode(encoding).splitlines()
        assert [line.rstrip() for line in drawn] == expected
        assert max(map(len, drawn)) <= out.width


def test_without_prices_it_is_said_how_to_get_them(ask, store, monkeypatch):
    (store.parent / "playhead.toml").unlink()
    monkeypatch.setattr(PriceList, "_find_package", lambda self: "")
    said = ask("stats").out
    assert "cost    no price is known for known, strange\n" in said
    assert said.endswith("\nNo prices are installed:  pip install 'playhead[prices]'\n")
    refused = ask("rerun", "--budget", "1")
    assert (refused.code, "--budget needs to know what models cost" in refused.err) == (2, True)


def test_tokens_and_costs_of_which_nobody_said_anything_are_unknown_and_not_nothing(ask, store):
    with playhead.record("silent", store=store):
        for model, usage in (("quiet", None), ("known", {"input": 1_000_000, "output": 1}), ("known", None)):
            with playhead.model_call(provider="acme", model=model, request="?") as call:
                call.respond("!", usage=usage)
    with playhead.record("mute", store=store), playhead.model_call(provider="acme", model="quiet", request="?") as call:
        call.respond("!")
    lines = ask("stats", "silent").out.splitlines()
    assert lines[1] == "cost    about $10.00, estimated; 2 calls did not say their tokens"
    rows = {line.split()[0]: line for line in lines if line}
    assert "$10.00 + unknown" in rows["known"]
    assert rows["quiet"].split()[5:9] == ["unknown", "0", "unknown", "0"]
    for arguments in (("mute",), ("--name", "mute")):
        said = ask("stats", *arguments).out
        assert "tokens 0 in" not in said
        assert "cost    unknown; 1 call did not say its tokens\n" in said
    listed = {line.split()[1]: line.split()[-1] for line in ask("ls").out.splitlines()}
    assert (listed["silent"], listed["mute"], listed["second"]) == ("$10.00+", "?", "$6.40")
    assert ask("stats", "mute", "--chart", "tokens").out.splitlines()[-1].split() == ["quiet", "unknown"]


def test_a_run_of_which_there_is_nothing_to_add_up_says_so(ask, store):
    with playhead.record("empty", store=store):
        pass
    for by in BY:
        assert ask("stats", "empty", "--by", by).out.startswith("No model was asked, no tool called")


def test_csv_that_is_not_all_of_it_says_so_beside_it(ask, store):
    cut, whole = ask("stats", "--csv", "-n", "1"), ask("stats", "--csv", "-n", "0")
    assert (len(cut.out.splitlines()), "1 more: `-n 0` for all." in cut.err) == (2, True)
    assert (len(whole.out.splitlines()), whole.err) == (3, "")


@pytest.mark.parametrize("command", [["stats", "--csv"], ["query", "SELECT name FROM calls", "--csv"]])
def test_csv_is_exact_in_a_pipe_and_acts_on_no_terminal(ask, store, command):
    record(store, "hostile", ("\x1b[31mred",))
    assert "\x1b[31mred" in ask(*command).out
    screen = io.StringIO()
    name, *rest = command
    answer = importlib.import_module(f"playhead.cli.commands.{name}").run
    assert answer(parser_of(name).parse_args(rest), Output(stdout=screen, terminal=True)) == 0
    assert "\\x1b[31mred" in screen.getvalue()
    assert "\x1b" not in screen.getvalue()


def test_a_chart_of_latency_says_whose_and_which(ask, store):
    for by in BY:
        whose = "latency" if by in ("model", "tool", "step") else "latency of tools"
        assert f"\n{whose} (p95) by {by}" in ask("stats", "--by", by, "--chart", "latency").out


@pytest.mark.parametrize(("ok", "told"), [(3000, "100 %"), (2999, ">99.9 %"), (2950, "98.3 %"), (0, "0 %")])
def test_what_did_not_all_succeed_is_not_told_as_all(ok, told):
    steps = StepSums(count=3000, ok=ok, failed=3000 - ok, success_rate=ok / 3000)
    assert summary(Metrics("model", Group(steps=steps), []), replayable=False)[-1] == ("steps", f"3,000, {told} ok")


def test_a_chart_fits_a_narrow_terminal(monkeypatch):
    for columns in (40, 60, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        said = io.StringIO()
        draw([("a-name-that-is-quite-long-" * 3, 10, "1,234,567"), ("b", None, "unknown")],
             Output(stdout=said, terminal=True, color=False))  # fmt: skip
        assert max(map(len, said.getvalue().splitlines())) <= columns
        assert said.getvalue().startswith("a-name-t")


def test_runs_without_a_name_fit_a_terminal_too(store):
    said = io.StringIO()
    out = Output(stdout=said, terminal=True, color=False)
    table(playhead.stats("run"), {}, out)
    header, *rows = said.getvalue().splitlines()
    assert (header.split()[0], len(rows)) == ("run", 2)
    assert "name" not in header.split()


def test_what_an_altered_run_took_is_told_with_a_warning(ask, store):
    run = record(store, "third", ("known",))
    path = layout.timeline(layout.run_dir(store, run))
    path.write_bytes(path.read_bytes().replace(b'"input":1000000', b'"input":1000007'))
    said = ask("stats", run, "--json")
    assert (said.code, said.json["problem"]["code"]) == (3, "altered")
    assert said.json["total"]["models"]["tokens_in"] == 1_000_007
    assert "this record was altered" in ask("stats", run).err


def test_nobody_knows_how_long_tools_took_that_were_inferred():
    said = io.StringIO()
    groups = [Group(name, tools=ToolSums(calls=1, untimed=untimed, ms=ms, p50_ms=ms or None))
              for name, untimed, ms in (("guessed", 1, 0.0), ("seen", 0, 2.0))]  # fmt: skip
    table(Metrics("tool", Group(), groups), {}, Output(stdout=said, terminal=False))
    rows = [line.split() for line in said.getvalue().splitlines()[1:]]
    assert rows == [["guessed", "1", "0", "0", "1"], ["seen", "1", "0", "0", "0", "2.0", "ms", "2.0", "ms"]]


def test_retries_of_models_and_of_steps_are_told_apart(ask, store):
    with playhead.record("again", store=store):
        for attempt in range(3):
            with contextlib.suppress(ValueError), playhead.model_call(provider="openai", model="gpt-5", request="x"):
                if attempt < 2:
                    raise ValueError("busy")
    (group,) = ask("stats", "--by", "run", "--name", "again", "--json").json["groups"]
    assert (group["models"]["retries"], group["steps"]["retries"]) == (2, 0)
    heads, row = ask("stats", "--by", "run", "--name", "again").out.splitlines()[-2:]
    end = heads.index("retries") + len("retries")
    assert row[:end].endswith(" 2")
    assert "step retries" in heads
