"""A family of runs is drawn with this run in it, however large it is."""

from __future__ import annotations

from typing import Any

from playhead.cli.family import _SHOWN, _shown


def member(id: str, parent: str | None, depth: int) -> dict[str, Any]:
    return {"id": id, "from": parent, "depth": depth}


def test_of_a_large_family_this_run_and_the_newest_are_drawn() -> None:
    members = [member("run_00", None, 0), *(member(f"run_{n:02}", "run_00", 1) for n in range(1, 60))]
    members.insert(4, member("run_03a", "run_03", 2))  # after what it was made from
    drawn = [one["id"] for one in _shown(members, "run_03a")]
    assert drawn[:3] == ["run_00", "run_03", "run_03a"]
    assert drawn[3:] == [f"run_{n:02}" for n in range(60 - (_SHOWN - 3), 60)]


def test_a_small_family_is_drawn_whole() -> None:
    members = [member("run_00", None, 0), member("run_01", "run_00", 1)]
    assert _shown(members, "run_01") == members


def test_a_long_line_is_drawn_whole() -> None:
    members = [member("run_00", None, 0), *(member(f"run_{n:02}", f"run_{n - 1:02}", n) for n in range(1, 40))]
    assert _shown(members, "run_39") == members
