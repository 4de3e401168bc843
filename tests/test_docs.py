"""Keep the pages true: what the code has is in them, links lead somewhere, and every example does what it says."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from tests.docs_pages import (
    EVERY_PAGE,
    PAGES,
    ROOT,
    Shown,
    blocks,
    commands_of,
    comparable,
    run_command,
    run_python,
    shown,
)
from tests.docs_servers import servers_of
from tests.http_pages import PAGE as HTTP_PAGE
from tests.http_pages import page as http_page
from tests.http_pages import unsaid

import playhead
from playhead import _limits, errors
from playhead.capture.redact import Redactor
from playhead.cli.main import COMMANDS, GROUPS, main, parser_of
from playhead.event.envelope import FIELDS
from playhead.event.kinds import PAYLOADS, Payload, Usage
from playhead.event.plain import MARKS
from playhead.ledger.verify import Reason
from playhead.replay.deviation import Type
from playhead.replay.playback import PlaybackResult
from playhead.replay.readiness import REASONS, Readiness
from playhead.replay.ready import ALL_REASONS
from playhead.server.answering import STATUSES
from playhead.server.routing import load as load_routes
from playhead.settings import Settings
from playhead.store.index_database import INTERNAL_TABLES, TABLES
from playhead.store.questions import QUESTIONS
from playhead.views.report.contract import ReportedRun
from playhead.views.summary import Summary
from playhead.views.timeline import Row

REFERENCE = ROOT / "docs" / "reference"


def page(name: str) -> str:
    return (REFERENCE / f"{name}.md").read_text("utf-8")


def sections(text: str, level: int = 3) -> dict[str, str]:
    """Return what stands under each heading of a level, up to the next heading of this level or a higher one."""
    mark = "#" * level
    found = re.split(rf"(?m)^{mark} (.+)$", text)
    bodies = (re.split(rf"(?m)^#{{1,{level - 1}}} ", body)[0] for body in found[2::2])
    return dict(zip(found[1::2], bodies, strict=True))


def code(text: str) -> set[str]:
    """Return everything that stands in backticks, outside of blocks."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", text)))


def rows(text: str) -> Iterator[list[str]]:
    """Yield the cells of every row of every table."""
    for line in text.splitlines():
        if line.startswith("| ") and line.endswith(" |"):
            yield [cell.strip() for cell in line[1:-1].split(" |")]


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


# What the code has is in the pages.


def test_every_public_name_is_documented() -> None:
    named = code(page("api"))
    missing = [name for name in playhead.__all__ if f"playhead.{name}" not in named]
    assert not missing


@pytest.mark.parametrize("kind", [playhead.Run, playhead.Event, PlaybackResult, Readiness, playhead.Envelope])
def test_every_public_member_is_documented(kind: type) -> None:
    text = page("api")
    names = {name for name in [*vars(kind), *getattr(kind, "__annotations__", {})] if not name.startswith("_")}
    ours = {name for name in names if name not in ("of", "as_dict")}  # used between modules, and said once for all
    missing = {name for name in ours if not re.search(rf"`{name}\b|`\w+\.{name}\b|[(,] ?{name}=|\({name}, ", text)}
    assert not missing


def test_every_field_of_the_line_is_documented_in_its_order() -> None:
    table = page("events").split("## The line")[1].split("## The run")[0]
    found = [cells[0].strip("`") for cells in rows(table) if cells[0].startswith("`")]
    assert found == list(FIELDS)


@pytest.mark.parametrize("payload", PAYLOADS.values(), ids=lambda payload: payload.KIND)
def test_every_kind_and_field_is_documented(payload: type[Payload]) -> None:
    found = {title.split("`")[1]: (title, body) for title, body in sections(page("events")).items()}
    assert payload.KIND in found
    title, body = found[payload.KIND]
    if payload.PHASE != "point":
        assert f"({payload.PHASE})" in title
    missing = {field.name for field in msgspec.structs.fields(payload)} - code(body)
    assert not missing


def test_no_kind_is_documented_that_does_not_exist() -> None:
    found = {title.split("`")[1] for title in sections(page("events"))}
    assert found == set(PAYLOADS)


def test_every_count_of_tokens_is_documented() -> None:
    body = next(body for title, body in sections(page("events")).items() if "model.responded" in title)
    assert {field.name for field in msgspec.structs.fields(Usage)} <= code(body)


def test_every_mark_is_documented() -> None:
    found = {cells[0].strip("`") for cells in rows(page("values")) if cells[0].startswith("`$")}
    assert found == set(MARKS)


def _error_classes() -> list[type[errors.PlayheadError]]:
    classes = [value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, Exception)]
    return list(dict.fromkeys(classes))


@pytest.mark.parametrize("kind", _error_classes(), ids=lambda kind: kind.__name__)
def test_every_error_is_documented_with_its_code_and_hint(kind: type[errors.PlayheadError]) -> None:
    found = {cells[0].strip("`"): cells for cells in rows(page("errors"))}
    assert kind.__name__ in found
    cells = found[kind.__name__]
    assert cells[1] == f"`{kind.code}`"
    assert kind.__name__ in (errors.__doc__ or ""), "draw it in the tree"
    hint = re.sub(r"\[(\w+)\]\([\w.-]+\)", r"docs/reference/\1.md", cells[4])
    if kind.default_hint:
        assert hint == kind.default_hint


def test_the_exit_code_of_every_error_is_documented() -> None:
    from playhead.cli.main import exit_code

    found = {cells[0].strip("`"): cells[3] for cells in rows(page("errors")) if len(cells) > 3}
    for kind in _error_classes():
        problem = kind.__new__(kind)
        assert found[kind.__name__] == str(exit_code(problem)), kind.__name__


@pytest.mark.parametrize(
    ("section", "of"),
    [("What a run was", Summary), ("Rows of a timeline", Row), ("The data of a report", ReportedRun)],
)
def test_every_field_of_a_report_is_documented(section: str, of: Any) -> None:
    text = page("report")
    text = sections(text, 2).get(section, text)
    named = {name for row in rows(text) for name in code(row[0])}
    assert {one.name for one in fields(of)} - {"children"} - named == set()


def test_every_type_of_a_deviation_and_every_reason_of_a_refusal_is_documented() -> None:
    _, types, reasons = re.split(r"^## .*$", page("errors"), flags=re.MULTILINE)
    made = "".join(path.read_text("utf-8") for path in sorted((ROOT / "src" / "playhead").rglob("*.py")))
    in_code = {*get_args(Type), *re.findall(r'deviation=\{"type": "(\w+)"', made)}
    for told, known in ((types, in_code), (reasons, set(ALL_REASONS))):
        found = {cells[0].strip("`"): cells for cells in rows(told) if cells[0].startswith("`")}
        assert set(found) == known
        assert all(len(cells) == 3 and cells[2] for cells in found.values()), "each says what to do"
    for reason, meaning in ALL_REASONS.items():
        assert meaning.partition(",")[0] in reasons, reason


def test_every_setting_is_documented() -> None:
    found = {cells[0].strip("`"): cells for cells in rows(page("configuration"))}
    for item in fields(Settings):
        cells = found[item.name]
        variable = (
            "only in a file"
            if item.name in ("redact_patterns", "prices", "normalise")
            else f"`PLAYHEAD_{item.name.upper()}`"
        )
        assert cells[1] == variable
        if isinstance(item.default, bool | str):
            assert cells[2] == f"`{str(item.default).lower() if isinstance(item.default, bool) else item.default}`"


def test_every_variable_that_is_read_is_documented() -> None:
    source = "\n".join(path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py"))
    used = set(re.findall(r'"(PLAYHEAD_[A-Z]+)"', source))
    assert used, "the pattern finds nothing any more"
    assert used <= code(page("configuration"))


def test_every_limit_is_documented_with_its_value() -> None:
    found = {cells[0].strip("`"): cells for cells in rows(page("limits")) if cells[0].startswith("`")}
    limits = {name: value for name, value in vars(_limits).items() if name.isupper()}
    assert {name: cells[1] for name, cells in found.items()} == {name: str(value) for name, value in limits.items()}
    assert all(len(cells[2]) > 10 for cells in found.values()), "say why"


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield what a command takes, and what its parts take (`playhead import junit`)."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_flag_is_documented(command: str) -> None:
    text = page("cli")
    body = sections(text).get(f"`playhead {command}`")
    assert body is not None
    shared = code(text.split("## Record")[0])
    named = {word.split()[0] for word in code(body) | shared}
    for action in _actions(parser_of(command)):
        missing = {flag for flag in action.option_strings if flag not in named}
        assert not missing
        if action.choices and not isinstance(action, argparse._SubParsersAction):
            unsaid = [choice for choice in action.choices if choice not in body]
            assert action.dest == "status" or not unsaid, f"{action.dest}: {unsaid}"


def test_no_command_is_documented_that_does_not_exist() -> None:
    found = {title.strip("`").removeprefix("playhead ") for title in sections(page("cli"))}
    assert found == set(COMMANDS) == {name for names in GROUPS.values() for name in names}


def test_no_flag_is_documented_that_does_not_exist() -> None:
    real = {flag for name in COMMANDS for action in _actions(parser_of(name)) for flag in action.option_strings}
    said = {flag for text in code(page("cli")) for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)}
    assert said - real == {"--version"}


def test_every_redaction_rule_is_documented() -> None:
    found = {cells[0].strip("`") for cells in rows(sections(page("redaction"), 2)["Rules"]) if cells[0].startswith("`")}
    assert found == set(Redactor(environ={}).rules)


def test_every_table_of_the_index_is_documented() -> None:
    text = page("index-tables")
    assert [title.split("`")[1] for title in sections(text, 2) if "`" in title] == list(TABLES)
    assert set(INTERNAL_TABLES) <= code(text)


def test_every_named_question_is_documented() -> None:
    assert set(QUESTIONS) <= code(page("cli"))


def test_the_reference_of_the_http_api_is_the_one_that_its_routes_make() -> None:
    text = HTTP_PAGE.read_text("utf-8")
    assert text == http_page(text), "`python tests/http_pages.py` writes it"


def test_every_parameter_and_field_of_the_http_api_has_a_meaning() -> None:
    assert not unsaid(load_routes()), "a comment behind the field says what it means"


def test_every_status_of_an_error_is_documented() -> None:
    told = {cells[0] for cells in rows(HTTP_PAGE.read_text("utf-8").split("## Pages")[0])}
    assert {str(status) for status in STATUSES.values()} | {"500"} == {status for status in told if status.isdecimal()}


def test_every_reason_is_documented() -> None:
    guides = {path.stem: path.read_text("utf-8") for path in (ROOT / "docs" / "guides").glob("*.md")}
    found = {cells[0].strip("`") for cells in rows(guides["playback"])}
    assert set(REASONS) <= found
    told = {cells[0].strip("`") for cells in rows(guides["verify"])}
    assert set(Reason.__args__) <= told  # type: ignore[attr-defined]


# The pages hold together.


def _anchors(text: str) -> set[str]:
    titles = re.findall(r"(?m)^#+ (.+)$", re.sub(r"(?ms)^```.*?^```", "", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("path", EVERY_PAGE, ids=relative)
def test_every_link_leads_somewhere(path: Path) -> None:
    text = re.sub(r"(?ms)^```.*?^```", "", path.read_text("utf-8"))
    broken = []
    for target in re.findall(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)", text):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        there = (path.parent / name).resolve() if name else path
        if not there.exists() or (anchor and anchor not in _anchors(there.read_text("utf-8"))):
            broken.append(target)
    assert not broken


def test_every_page_can_be_reached_from_the_index() -> None:
    start = ROOT / "docs" / "index.md"
    seen, todo = set(), [start]
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file() or path.suffix != ".md":
            continue
        seen.add(path)
        targets = re.findall(r"\]\(([^)\s#]+)", path.read_text("utf-8"))
        todo += [(path.parent / target).resolve() for target in targets if "://" not in target]
    pages = {path for path in EVERY_PAGE if path.is_relative_to(ROOT / "docs")}
    assert pages <= seen, sorted(relative(path) for path in pages - seen)


def test_every_decision_says_context_decision_and_consequences() -> None:
    found = sorted((ROOT / "docs" / "design" / "decisions").glob("*.md"))
    assert [int(path.name[:4]) for path in found] == list(range(1, len(found) + 1))
    for path in found:
        text = path.read_text("utf-8")
        assert text.startswith(f"# {path.name[:4]}: ")
        assert list(sections(text, 2)) == ["Context", "Decision", "Consequences"], path.name


# Every example does what it says.


@pytest.mark.parametrize("path", PAGES, ids=relative)
def test_every_example_of_a_page_runs_and_prints_what_the_page_shows(path: Path, tmp_path: Path) -> None:
    text = path.read_text("utf-8")
    # What a lane reads is written after a second at the latest: on a machine that is busy, a page has one event more.
    for attempt in ("first", "second", "third"):
        folder = tmp_path / attempt / "project"
        folder.mkdir(parents=True)
        with servers_of(folder):
            done = run_python(text, folder)
            assert done.returncode == 0, done.stderr
            wrong = _first_that_differs(text, folder)
        if wrong is None:
            return
    now, one = wrong
    assert now == comparable(one.output), f"{path.name}:{one.line}: `python tests/docs_pages.py` mends it"


def _first_that_differs(text: str, folder: Path) -> tuple[str, Shown] | None:
    """Return what a command of a page prints now, and the command, where that is not what the page shows."""
    for block in blocks(text):
        if block.language == "console" and "run" in block.words:
            for one in shown(block):
                now = comparable(run_command(one.command, folder))
                if now != comparable(one.output):
                    return now, one
    return None


def test_the_readme_and_every_guide_have_examples_that_run() -> None:
    for path in PAGES:
        found = list(blocks(path.read_text("utf-8")))
        assert any(block.language == "python" for block in found), relative(path)
        assert any(block.language == "console" and "run" in block.words for block in found), relative(path)
        shown_only = [block for block in found if "no-run" in block.words]
        assert len(shown_only) <= 2, "what is shown should run"


@pytest.mark.parametrize("path", EVERY_PAGE, ids=relative)
def test_every_command_in_a_page_can_be_parsed(path: Path) -> None:
    for line, words in commands_of(path.read_text("utf-8")):
        name, *arguments = words or ["--help"]
        if name in ("--help", "--version"):
            continue
        assert name in COMMANDS, f"{relative(path)}:{line}: {words}"
        try:
            parser_of(name).parse_args(arguments)
        except errors.UsageError as problem:
            pytest.fail(f"{relative(path)}:{line}: playhead {' '.join(words)}: {problem.message}")


def test_every_command_in_the_text_of_a_page_exists() -> None:
    for path in EVERY_PAGE:
        for text in code(path.read_text("utf-8")):
            found = re.match(r"playhead ([a-z]+)\b", text)
            if found:
                assert found[1] in COMMANDS, f"{relative(path)}: {text}"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_in_the_help_of_a_command_can_be_parsed(command: str) -> None:
    epilog = parser_of(command).epilog or ""
    examples = re.findall(r"(?m)^  (.*\bplayhead .*)$", epilog.split("example")[-1])
    block = "```sh\n" + "\n".join(re.split(r"  {4,}", example)[0] for example in examples) + "\n```\n"
    for _, words in commands_of(block):
        parser_of(words[0]).parse_args(words[1:])


def test_the_pages_say_the_version_of_the_package() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"## [{playhead.__version__}]" in changes


def test_the_help_lists_what_the_pages_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    assert all(f"  {name} " in told for name in COMMANDS)


def test_the_first_page_leads_to_every_guide() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    assert [path.name for path in (ROOT / "docs/guides").glob("*.md") if f"(docs/guides/{path.name})" not in text] == []
