"""Functions of compiled libraries, answered from the tape."""

from __future__ import annotations

from pathlib import Path

from tests.replay.clients.replaying import record, same

DRAWING = """
import uuid_utils, uuid_utils.compat
print(uuid_utils.uuid7(), uuid_utils.compat.uuid7(), uuid_utils.uuid4())
"""


def test_functions_that_belong_to_nothing_give_what_they_gave(tmp_path: Path) -> None:
    same(record(tmp_path, DRAWING))


def test_a_program_that_sets_variables_finds_them_as_it_did(tmp_path: Path) -> None:
    same(record(tmp_path, "import os; os.environ['MADE_HERE'] = 'yes'; print(os.environ['MADE_HERE'])"))
