from __future__ import annotations

import os
from pathlib import Path

import pytest

from playhead.policy.resources import fits_path, has_other_names, path_of


@pytest.mark.parametrize(
    ("pattern", "path", "fits"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/**", "src", False),
        ("src", "src/a/b.py", True),
        ("src/", "src/a", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/**", "source/a", False),
        ("**/.env", "a/b/.env", True),
        ("**/.env", ".env", True),
        ("**/.env", "a.env", False),
        ("**/secrets", "a/secrets/key", True),
        ("conf*/prod", "conf.d/prod/x", True),
        ("src/*.py", "src/a.py/b", True),
        ("**", "anything/at/all", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("/etc/**", "/etc/passwd", True),
        ("a[1].txt", "a[1].txt", True),
    ],
)
def test_patterns_of_paths(tmp_path: Path, pattern: str, path: str, fits: bool) -> None:
    root = str(tmp_path)
    assert fits_path(pattern, path_of(path, root), root, any_case=False) is fits


def test_a_path_has_one_name_whatever_it_is_called(tmp_path: Path) -> None:
    root = str(tmp_path)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "loop").symlink_to("loop")
    wanted = os.path.join(os.path.realpath(root), "real", "a")
    for name in ("real/a", "./real/a", "x/../real/a", "link/a", "link/../link/./a", str(tmp_path / "link" / "a")):
        assert path_of(name, root) == wanted
    assert path_of("link", root, itself=True) == os.path.join(os.path.realpath(root), "link")
    path_of("loop/a", root)


def test_what_is_forbidden_is_so_in_any_case_and_what_is_allowed_is_not(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert fits_path("**/.env", path_of(".ENV", root), root, any_case=True)
    assert not fits_path("src/**", path_of("SRC/a", root), root, any_case=False)


def test_hard_links_are_noticed(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    assert not has_other_names(str(tmp_path / "a"))
    os.link(tmp_path / "a", tmp_path / "b")
    assert has_other_names(str(tmp_path / "a"))
    assert not has_other_names(str(tmp_path))
