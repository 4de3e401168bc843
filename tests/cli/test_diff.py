from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import HOSTILE
from tests.ledger.timelines import OTHER, RUN, finish, ledger

import playhead
from playhead.store import layout


@playhead.tool(effects=["read"])
def price(item: str) -> Any:
    return PRICES[item]


PRICES: dict[str, Any] = {}


def shop(store: Path, budget: int = 20, **prices: Any) -> str:
    PRICES.update(apple=2, bread=3)
    PRICES.update(prices)
    with playhead.record("shop", input={"budget": budget}, store=store) as run:
        with playhead.step("look"):
            found = {item: price(item) for item in ("apple", "bread")}
        playhead.artifact("order.patch", f"--- a\n+++ b\n@@ -1 +1 @@\n-0\n+{found['apple']}\n", role="patch")
        run.output = {"cheapest": min(found.values(), key=str)}
        return run.id


def test_the_outcome_comes_first_then_where_the_runs_part(ask, store):
    shop(store)
    shop(store, apple=9)
    said = ask("diff", "@last~1", "@last")
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[2] == "the final output differs"
    assert lines[3].split() == ["/output/cheapest", "2", "→", "3"]
    assert lines[4] == "first  2  tool price  in shop / look  same question, another answer"
    assert "      /output  2 → 9" in lines
    assert "3 deviations, 2 of them follow from others" in lines


def test_under_the_outcome_stands_what_came_out_and_the_request_stands_with_the_run(ask, store):
    shop(store)
    shop(store, budget=30, apple=9)
    top, _, rest = ask("diff", "@last~1", "@last").out.partition("\nfirst ")
    assert "/output/cheapest  2 → 3" in top
    assert "budget" not in top
    assert "/input/payload/budget  20 → 30" in rest
    assert "/output/cheapest" not in rest


def test_a_patch_is_shown_line_by_line(ask, store):
    shop(store)
    shop(store, apple=9)
    out = ask("diff", "@last~1", "@last", "--only", "artifact", "--all").out
    assert "-+2" in out
    assert "++9" in out
    assert "tool price" not in out.partition("deviations")[2]


def test_json_has_the_shape_that_scripts_rely_on(ask, store):
    left, right = shop(store), shop(store, apple=9)
    found = ask("diff", left, right, "--json").json
    assert (found["left"], found["right"], found["identical"]) == (left, right, False)
    assert found["headline"] == found["deviations"][0]
    assert found["deviations"][0] == {
        "type": "changed",
        "cause": "output_changed",
        "kind": "tool",
        "name": "price",
        "path": "shop / look / price",
        "left_seq": 2,
        "right_seq": 2,
        "changes": [{"path": "/output", "left": 2, "right": 9}],
        "deviation_point": True,
    }
    assert found["metrics"]["tool_calls"] == {"left": 2, "right": 2, "delta": 0}


def test_what_only_one_run_has_says_what_it_asked_and_what_came_of_it(ask, store):
    def read(*items: str) -> str:
        PRICES.update(apple=2, bread="dear")
        with playhead.record("shop", store=store) as run:
            for item in items:
                price(item)
            playhead.check("shop.order", resource=items[0])
            talk = [{"role": "user", "content": f"Buy {items}?"}]
            with playhead.model_call(provider="openai", model="gpt-5", request={"messages": talk}) as call:
                call.respond({"choices": [{"message": {"role": "assistant", "content": "yes"}}]})
            return run.id

    left = read("apple", "bread")
    with playhead.record("shop", store=store) as run:
        right = run.id
    out = ask("diff", left, right).out
    assert '- 1 → –  tool price(item="apple") → 2  in shop  removed\n' in out
    assert '- 3 → –  tool price(item="bread") → "dear"  in shop  removed, follows\n' in out
    assert "- 5 → –  policy shop.order(apple) → allow" in out
    assert "model gpt-5(\"Buy ('apple', 'bread')?\") → \"yes\"" in out
    found = ask("diff", right, left, "--json").json["deviations"]
    assert (found[0]["type"], found[0]["asked"], found[0]["answered"]) == ("added", 'item="apple"', "2")
    for form in ("md", "html"):
        ask("report", left, right, "--format", form, "-o", str(store / "report"))
        text = (store / "report").read_text().replace("&quot;", '"').replace("&#34;", '"').replace("&#39;", "'")
        assert '(item="apple") → 2' in text.replace("\\", "")


def test_the_outcome_says_why_one_of_the_runs_failed(ask, store):
    left = shop(store)
    with contextlib.suppress(KeyError), playhead.record("shop", input={"budget": 20}, store=store):
        price("pear")
    out = ask("diff", left, "@last").out
    assert "      right failed  KeyError: 'pear'  test_diff.py:" in out.partition("first")[0]
    assert "in price\n" in out.partition("first")[0]
    assert "failed" not in ask("diff", "@last", "@last").out
    for form in ("md", "html"):
        ask("report", left, "@last", "--format", form, "-o", str(store / "report"))
        assert "right failed: " in (store / "report").read_text()


def test_in_a_report_the_error_of_the_left_run_does_not_cut_the_table_apart(ask, store):
    with contextlib.suppress(KeyError), playhead.record("shop", store=store):
        price("pear")
    right = shop(store)
    ask("report", "@last~1", right, "--format", "md", "-o", str(store / "report"))
    lines = (store / "report").read_text().splitlines()
    table = [at for at, line in enumerate(lines) if line.startswith("|") and "`run" in line]
    assert table[1] == table[0] + 1
    assert lines[table[1] + 2].startswith("> `run")


def test_tasks_that_were_cancelled_since_one_of_their_group_failed_follow(store):
    @playhead.tool
    async def fetch(number: int, fails: bool) -> int:
        await asyncio.sleep(0.01 * number)
        if fails:
            raise ConnectionError(number)
        return number

    async def part(number: int, fails: bool) -> None:
        with playhead.step(f"part {number}"):
            await fetch(number, False)
        with playhead.step(f"rest {number}"):
            await fetch(3 + 10 * number * fails, fails and not number)

    async def group(fails: bool) -> str:
        with playhead.record("group", store=store) as run, contextlib.suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as tasks:
                for number in range(3):
                    tasks.create_task(part(number, fails))
        return run.id

    found = playhead.diff(*(asyncio.run(group(fails)) for fails in (False, True)), ignore=["/input"])
    assert [(one.cause, one.name, one.path.split(" / ")[1]) for one in found.deviations if one.cause != "follows"] == [
        ("status_changed", "fetch", "rest 0")
    ]
    assert sum(one.cause == "follows" for one in found.deviations) >= 5


@pytest.mark.parametrize(
    ("options", "code"), [([], 0), (["--exit-code"], 1), (["--exit-code", "--only", "model"], 0), (["--exit-code", "--ignore", "/output"], 1)]
)  # fmt: skip
def test_the_exit_code_tells_of_differences_only_where_it_is_asked_to(ask, store, options, code):
    shop(store)
    shop(store, apple=9)
    assert ask("diff", "@last~1", "@last", *options).code == code


def test_two_runs_that_did_the_same_are_said_to(ask, store):
    shop(store)
    shop(store)
    said = ask("diff", "@last~1", "@last", "--exit-code", "--ignore", "/digest")
    assert (said.code, said.out.splitlines()[2]) == (0, "no difference in what the two runs did and were answered")


def test_bad_questions_say_what_can_be_asked(ask, store):
    shop(store)
    said = ask("diff", "@last", "@last", "--only", "tols")
    assert (said.code, "nothing in a diff is called 'tols'" in said.err, "tool" in said.err) == (2, True, True)
    assert ask("diff", "@last", "nothing").code == 2
    said = ask("diff", "@last", "@last", "--ignore", "output")
    assert (said.code, "not a path" in said.err) == (2, True)
    for command in (("diff", "@last"), ("show",)):
        said = ask(*command, "@last", "--limit", "-1")
        assert (said.code, "--limit is a number of" in said.err) == (2, True)


def test_a_run_that_cannot_be_read_is_no_empty_diff(ask, store):
    left, right = shop(store), shop(store)
    path = layout.timeline(layout.run_dir(store, right))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"{torn}\n", *lines[2:]]))
    said = ask("diff", left, right, "--json")
    assert (said.code, said.json["error"]["code"]) == (3, "not_comparable")


def test_an_altered_run_is_compared_and_never_called_the_same(ask, store):
    left, right = shop(store), shop(store)
    path = layout.timeline(layout.run_dir(store, right))
    path.write_bytes(path.read_bytes().replace(b'"output":2', b'"output":7'))
    said = ask("diff", left, right)
    assert said.code == 3
    assert "this record was altered" in said.err
    assert "/output  2 → 7" in said.out


def test_lost_content_is_said_to_be_not_compared(ask, store):
    runs = [shop(store, apple="x" * 40_000), shop(store, apple="y" * 40_000)]
    for blob in layout.blobs_dir(store).rglob("*"):
        if blob.is_file():
            blob.unlink()
    found = ask("diff", *runs, "--json")
    assert {one["side"] for one in found.json["not_compared"]} == {"left", "right"}
    assert found.json["identical"] is not True


def test_text_of_an_agent_is_not_acted_on(ask, store):
    shop(store)
    shop(store, apple=HOSTILE)
    assert "\x1b" not in ask("diff", "@last~1", "@last", "--all").out


def test_diff_in_python_names_the_first_deviation(store):
    left, right = shop(store), shop(store, apple=9)
    found = playhead.diff(left, right)
    assert found
    assert found.first is not None
    assert (found.first.path, found.first.cause) == ("shop / look / price", "output_changed")
    assert [(change.path, change.left, change.right) for change in found.first.changes] == [("/output", 2, 9)]
    assert not playhead.diff(playhead.load(left), playhead.load(left))


def test_two_runs_that_failed_each_in_its_own_way_are_not_said_to_have_the_same_output(ask, store):
    for error in (ValueError("no such customer"), KeyError("token"), KeyError("token")):
        with contextlib.suppress(ValueError, KeyError), playhead.record("shop", store=store):
            raise error
    out = ask("diff", "@last~2", "@last").out
    top = out.partition("\nfirst ")[0].splitlines()
    assert top[2] == "both runs failed, each in its own way"
    assert "left failed  ValueError: no such customer" in out
    assert "right failed  KeyError: 'token'" in out
    page = ask("report", "@last~2", "@last", "--format", "md").out
    assert "### Differences: both runs failed, each in its own way" in page
    shop(store)
    assert "left failed  KeyError: 'token'" in ask("diff", "@last~1", "@last").out


def test_the_headline_and_the_count_are_of_what_is_shown(ask, store):
    shop(store)
    shop(store, budget=30, apple=9)
    out = ask("diff", "@last~1", "@last", "--only", "artifact").out
    assert "first  7  artifact order.patch" in out
    assert "\n1 of 3 deviations, 1 of them follow from others\n" in out
    assert (
        ask("diff", "@last~1", "@last", "--only", "artifact", "--json").json["headline"]["kind"] == "artifact.created"
    )
    none = ask("diff", "@last~1", "@last", "--only", "mcp")
    assert "\n0 of 3 deviations\n" in none.out
    assert "first" not in none.out


def test_texts_that_differ_in_their_quotes_look_different(ask, store):
    shop(store, apple='{"vat": 0.19}')
    shop(store, apple="{'vat': 0.19}")
    shop(store, apple="""{'vat': "0.19"}""")
    assert "/output  '{\"vat\": 0.19}' → \"{'vat': 0.19}\"" in ask("diff", "@last~2", "@last~1").out
    assert r'''→ "{'vat': \"0.19\"}"''' in ask("diff", "@last~1", "@last").out


def test_a_run_that_is_still_written_does_not_differ_from_itself(ask, store):
    with playhead.record("live", store=store) as run:
        stop = threading.Event()

        def write() -> None:
            while not stop.is_set():
                playhead.note("more")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(3):
                assert playhead.diff(run.id, run.id).deviations == []
        finally:
            stop.set()
            writer.join()


def test_nothing_of_what_was_asked_for_differs_is_no_answer_where_values_are_gone(ask, store):
    for text in ("a", "b"):
        with playhead.record("large", store=store):
            price_of_all(50_000)
            playhead.note(text)
    for blob in (store / "blobs").rglob("*"):
        if blob.is_file():
            blob.unlink()
    assert ask("diff", "@last~1", "@last", "--only", "tool", "--exit-code").code == 3
    assert ask("diff", "@last~1", "@last", "--only", "note", "--exit-code").code == 1


@playhead.tool
def price_of_all(count: int) -> str:
    return "a" * count


def test_values_that_look_alike_are_told_apart(ask, store):
    shop(store, apple=b"abc")
    shop(store, apple=b"abd")
    assert "[-YWJj-] {+YWJk+}" in ask("diff", "@last~1", "@last").out


def test_what_is_in_a_dict_with_keys_that_are_no_texts_is_named_and_can_be_ignored(ask, store):
    for word in ("good", "bad"):
        with playhead.record("keys", store=store) as run:
            run.output = {1: "the first answer, which is long", 2: "the second one", 3: f"third {word}", "n": None}
    assert '/output/3  "third good" → "third bad"' in ask("diff", "@last~1", "@last").out
    told = ask("report", "@last~1", "@last", "--format", "md").out
    assert '`/output/3`: `"third good"` → `"third bad"`' in told
    assert ask("diff", "@last~1", "@last", "--ignore", "/output/3", "--exit-code").code == 0
    assert ask("diff", "@last~1", "@last", "--ignore", "/output/2", "--exit-code").code == 1


def test_of_long_words_both_are_shown(ask, store):
    shop(store, apple="0" * 200)
    shop(store, apple="1" * 200)
    out = ask("diff", "@last~1", "@last").out
    assert "0-] {+1" in out
    assert "1+}" in out


AGENT = """
import sys
import playhead

@playhead.tool(effects=["read"])
def price(item): return int(sys.argv[1])

@playhead.agent
def shop(budget):
    with playhead.step("look"): return budget // price("apple")

price("outside of the agent")
print(shop(20))
"""


def test_an_agent_that_was_recorded_with_its_whole_program_does_the_same_as_by_itself(ask, shell, tmp_path):
    (tmp_path / "agent.py").write_text(AGENT)

    def record(amount: int, *launcher: str) -> str:
        environment = {**os.environ, "PLAYHEAD_DIR": str(tmp_path / ".playhead")}
        subprocess.run([*launcher, sys.executable, "agent.py", str(amount)], cwd=tmp_path, env=environment, check=True)
        return playhead.load("@last").id

    whole = record(2, sys.executable, "-m", "playhead", "record", "--quiet", "--")
    for both in ((whole, record(2)), (record(2), whole)):
        found = ask("diff", *both, "--json").json
        assert (found["identical"], found["output_differs"]) == (True, False)
        assert "/entrypoint/file" not in [change["path"] for change in found["config"]]
    found = ask("diff", whole, record(4), "--json").json
    assert [(one["type"], one["cause"], one["path"]) for one in found["deviations"]] == [
        ("changed", "output_changed", "shop / look / price"),
        ("changed", "follows", "shop"),
    ]
    (changed,) = found["deviations"][1]["changes"]
    assert (changed["path"], changed["left"], changed["right"]) == ("/output", 10, 5)


def test_what_is_nested_too_deep_for_us_is_not_compared_and_no_bug(ask, store):
    for run, leaf in ((RUN, "1"), (OTHER, "2")):
        writer, log, _ = ledger(run)
        writer.append("run.started", b'{"name":"t"}', opens=True)
        deep = "[" * 700 + leaf + "]" * 700
        opened = writer.append("tool.called", b'{"name":"f","input":null}', parent="0", opens=True)
        writer.append("tool.returned", f'{{"status":"ok","output":{deep}}}'.encode(), span=opened.span, parent="0")
        finish(writer)
        folder = layout.run_dir(store, run)
        folder.mkdir(parents=True)
        layout.timeline(folder).write_bytes(bytes(log.buffer))
    said = ask("diff", RUN, OTHER, "--json")
    assert said.code == 3
    assert said.json["error"]["code"] == "not_comparable"
