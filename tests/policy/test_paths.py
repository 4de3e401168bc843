from __future__ import annotations

import os
from pathlib import Path

import pytest

from playhead.policy.paths import fits_path, has_other_names, means_all_in, names_of, path_of, reaches


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


def test_a_path_has_a_name_with_each_link_that_is_followed(tmp_path: Path) -> None:
    root = os.path.realpath(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "a" / "one").symlink_to("../b/two")
    (tmp_path / "b" / "two").symlink_to(tmp_path / "b" / "c")
    assert names_of("a/one/x", root) == [f"{root}/a/one/x", f"{root}/b/two/x", f"{root}/b/c/x"]
    assert names_of("a/one/../x", root) == [f"{root}/b/x"]
    assert names_of("a/one", root, itself=True) == [f"{root}/a/one"]
    assert names_of("a/one/.", root, itself=True)[-1] == f"{root}/b/c"
    assert names_of("a/../../..", "/") == ["/"]


@pytest.mark.parametrize("pattern", ["secrets/**", "**/secrets/**", "*/**", "secrets"])
def test_what_is_forbidden_in_a_folder_is_forbidden_to_the_folder(tmp_path: Path, pattern: str) -> None:
    root = str(tmp_path)
    assert fits_path(pattern, path_of("secrets", root), root, any_case=True)
    assert fits_path(pattern, path_of("secrets/a/b", root), root, any_case=True)


def test_a_letter_is_the_same_however_it_is_composed(tmp_path: Path) -> None:
    root = str(tmp_path)
    assert fits_path("caf\u00e9/**", path_of("cafe\u0301/x", root), root, any_case=True)
    assert fits_path("cafe\u0301/**", path_of("CAF\u00c9/x", root), root, any_case=True)


@pytest.mark.parametrize(
    ("pattern", "all_of_it"),
    [("out", True), ("out/", True), ("out/**", True), ("**", True), ("out/*", False), ("out/?", False),
     ("out/*.txt", False), ("out/**/*", False), ("out/a/**", False), ("*/", True), ("o*", False)],
)  # fmt: skip
def test_a_pattern_means_all_in_a_folder_or_not(tmp_path: Path, pattern: str, all_of_it: bool) -> None:
    root = os.path.realpath(tmp_path)
    assert means_all_in(pattern, f"{root}/out", root) is all_of_it


def test_a_pattern_reaches_what_lies_on_its_way(tmp_path: Path) -> None:
    root = os.path.realpath(tmp_path)
    folders = {
        pattern: reaches(pattern, f"{root}/a", root) for pattern in ("**/x", "a/b/c", "A", "ab/c", "/etc/**", "*")
    }
    assert folders == {"**/x": True, "a/b/c": True, "A": True, "ab/c": False, "/etc/**": False, "*": True}
