"""Keys in data that is no text."""

from __future__ import annotations

import pickle
import sqlite3
from pathlib import Path

import pytest

from playhead.capture.redact import Redactor

KEYS = {
    "openai-key": "sk-proj-" + "Zq7xV2mN8pL4kJ9hG3fD6sA1" * 2,
    "anthropic-key": "sk-ant-" + "api03-Zq7xV2mN8pL4kJ9hG3fD6sA1",
    "github-token": "ghp_" + "Zq7xV2mN8pL4kJ9hG3fD6sA1b5c7d9e2f4g6",
    "groq-key": "gsk_" + "Zq7xV2mN8pL4kJ9hG3fD6sA1b5c7d9e2f4g6",
}


@pytest.mark.parametrize("rule", KEYS)
def test_a_key_in_a_database_is_found_whatever_stands_before_it(rule: str, tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "x.db") as database:
        database.execute("create table secrets (service text, key text, note text)")
        database.executemany("insert into secrets values (?, ?, '')", [("service", KEYS[rule]), ("q", KEYS[rule])])
    database.close()
    counts: dict[str, int] = {}
    clean = Redactor().redact_bytes((tmp_path / "x.db").read_bytes(), counts)
    assert KEYS[rule].encode() not in clean
    assert counts == {rule: 2}


@pytest.mark.parametrize("rule", KEYS)
def test_a_key_in_a_pickle_is_found(rule: str) -> None:
    for length in range(40):
        data = pickle.dumps({"name": "x" * length, "key": KEYS[rule], "more": [1, 2, 3]})
        assert KEYS[rule].encode() not in Redactor().redact_bytes(data, {})


def test_binary_data_without_a_key_is_the_same_object() -> None:
    for data in (b"\0" * 100, b"\0ask-me\0disk-", bytes(range(256)) * 50):
        assert Redactor().redact_bytes(data, {}) is data


def test_a_mark_in_the_data_stays_there() -> None:
    data = "\ufdd0".encode() + b"\0" + KEYS["github-token"].encode()
    clean = Redactor().redact_bytes(data, {})
    assert clean.startswith("\ufdd0".encode())
    assert b"Zq7x" not in clean
