from __future__ import annotations

import csv
import io
import subprocess
import sys

import pytest

from playhead.store.index_database import TABLES
from playhead.store.questions import QUESTIONS


def test_an_answer_is_a_table_csv_or_json(ask, sample):
    sql = "SELECT name, events, cost FROM runs"
    events = ask("ls", "--json").json[0]["events"]
    assert ask("query", sql).out.splitlines() == ["name       events  cost", f"fix-login      {events}"]
    assert ask("query", sql, "--json").json == [{"name": "fix-login", "events": events, "cost": None}]
    assert list(csv.reader(io.StringIO(ask("query", sql, "--csv").out))) == [
        ["name", "events", "cost"], ["fix-login", str(events), ""],
    ]  # fmt: skip


@pytest.mark.parametrize(
    "sql", ["DELETE FROM runs", "DROP TABLE runs", "ATTACH 'x' AS y", "PRAGMA user_version = 3", "nonsense", ""]
)
def test_whatever_writes_or_is_no_question_is_refused(ask, sample, sql):
    said = ask("query", sql, "--json")
    assert said.code == 2
    assert said.json["error"]["code"] == "usage"
    assert len(ask("ls", "--json").json) == 1


def test_the_named_questions_can_be_asked(ask, sample):
    assert [row["name"] for row in ask("query", "--list", "--json").json] == list(QUESTIONS)
    for name, question in QUESTIONS.items():
        parameters = [part for needed in question.parameters for part in ("-p", f"{needed}=src/login.py")]
        assert ask("query", name, *parameters).code == 0
    assert {row["name"] for row in ask("query", "slowest-tools", "--json").json} == {"read_file", "failing"}
    refused = ask("query", "runs-touching-a-file")
    assert refused.code == 2
    assert "-p file=" in refused.err


def test_the_tables_and_columns_are_listed(ask, store):
    rows = ask("query", "--tables", "--json").json
    assert list(dict.fromkeys(row["table"] for row in rows)) == list(TABLES)
    assert {"table": "calls", "column": "latency_us"} in rows


def test_parameters_are_values_and_never_sql(ask, sample):
    sql = "SELECT count(*) AS n FROM runs WHERE name = :name"
    assert ask("query", sql, "-p", "name=fix-login", "--json").json == [{"n": 1}]
    assert ask("query", sql, "-p", "name=x' OR '1'='1", "--json").json == [{"n": 0}]
    assert ask("query", sql, "-p", "name").code == 2


def test_a_cell_never_becomes_a_formula(ask, sample):
    rows = list(csv.reader(io.StringIO(ask("query", "SELECT '=1+1' AS a, -5 AS b, '@x' AS c", "--csv").out)))
    assert rows[1] == ["'=1+1", "-5", "'@x"]


def test_columns_of_the_same_name_are_all_kept(ask, sample):
    assert ask("query", "SELECT 1 AS a, 2 AS a, 3 AS a", "--json").json == [{"a": 1, "a_2": 2, "a_3": 3}]


def test_one_question_at_a_time(ask, sample):
    assert ask("query").code == 2
    assert ask("query", "SELECT 1", "--tables").code == 2
    assert ask("query", "SELECT 1", "--csv", "--json").code == 2


def test_counts_of_what_never_ended_are_zero_and_not_blank(ask, store):
    code = (
        "import os, playhead\nplayhead.record('dies').__enter__()\nplayhead.step('work').__enter__()\n"
        "playhead.model_call(provider='p', model='m').__enter__()\nos.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    (step,) = ask("query", "steps-by-success-rate", "--json").json
    assert (step["ok"], step["unfinished"], step["success_rate"]) == (0, 1, None)
    (model,) = ask("query", "tokens-by-model", "--json").json
    assert (model["calls"], model["errors"]) == (1, 0)


def test_whoever_gives_a_parameter_without_its_name_is_told_how(ask, sample):
    said = ask("query", "runs-touching-a-file", "my agent.py")
    assert said.code == 2
    assert "`playhead query runs-touching-a-file -p file='my agent.py'`" in said.err
    assert "has no parameters" in ask("query", "slowest-tools", "x").err
    assert "one pair of quotes" in ask("query", "SELECT", "name").err
