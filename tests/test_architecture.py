"""Keep the shape of the code: which way imports point, what is public, how large things may grow, who may swallow."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import playhead

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "playhead"
SOURCES = sorted(PACKAGE.rglob("*.py"))

# From the top. Imports point down; within a row nobody imports anybody else, but for what SIDEWAYS allows.
LAYERS = (
    {"cli", "server", "proxy", "pytest_plugin", "__main__"},
    {"testing"},
    {"playhead"},  # __init__.py, the names a user imports
    {"_api"},
    {"attach"},  # what Python runs first in a program: it begins a recording, or a replay
    {"replay", "capture"},
    {"views", "ingest", "store", "policy"},
    {"ledger"},
    {"event"},
    {"errors", "settings", "_clock", "_ids", "_launched", "_limits", "_muted", "_version"},
)
RANK = {name: -row for row, names in enumerate(LAYERS) for name in names}

SIDEWAYS = {
    ("__main__", "cli"): "`python -m playhead` is the command line",
    ("cli", "server"): "`playhead serve` starts it",
    ("replay", "capture"): "a replay asks the same way, and is recorded",
    ("settings", "errors"): "a setting that cannot be read is an error of ours",
    ("settings", "_launched"): "what the launcher set is a setting here",
    ("_ids", "_clock"): "ids sort by time",
}

PUBLIC = [
    "AskedAlone", "Audit", "Client", "Comparison", "Deviation", "DeviationError", "Envelope", "EnvelopeMismatch", "Event", "Finding", "InFlight", "Moment", "NotComparable", "NotReplayable", "PlaybackResult", "PlayheadError", "PolicyDenied",
    "Readiness", "RecordedError", "RecordingStopped", "RecordingWarning", "Repeated", "ReplayHashMismatch", "Replayed", "Report", "Rerun", "Run", "RunNotFound", "Stepped", "__version__",
    "add_secret", "agent", "artifact", "audit", "check", "connect", "context_pack", "diff", "find", "fork", "install", "load", "model_call", "normaliser", "note", "record", "replay", "report", "resume", "runs", "stats", "step",
    "tool", "uninstall", "unwrap", "verify", "wrap",
]  # fmt: skip

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
TRUSTED_LINES_MAX = 900

# Handlers of every exception that neither raise nor call capture/guard.py: (file, function), and why that is right.
MAY_CATCH_ALL = {
    ("_api/recording.py", "_text"): "an object that raises when asked for its text; that is said instead",
    ("event/plain.py", "class_name"): "a metaclass that refuses to be looked at; its default name is said instead",
    ("event/plain.py", "mark"): "a value that resists everything is recorded as `$repr`, which says what it raised",
    ("event/plain.py", "_describe"): "an exception that cannot be looked at is recorded as `unreadable`",
    ("event/plain.py", "error_message"): "an exception whose `__str__` raises is recorded with what that raised",
    ("event/rebuilt.py", "_tried"): "a class of the agent that will not be made that way is made another way",
    ("capture/around.py", "_noting"): "what the caller throws into a generator is thrown into the one inside",
    ("capture/around.py", "_watched"): "the same for a coroutine",
    ("capture/around.py", "generator"): "the same for an asynchronous generator",
    ("testing/demo_agent.py", "work"): "carried over to the thread that waits, which raises it",
    ("capture/clients/replies.py", "work"): "the same, to the event loop",
    ("_api/recording.py", "_ask"): "a policy that raises denies, and the decision says what it raised",
    ("capture/attach/sitecustomize.py", ""): "the program runs as it would without us; the launcher is told in a file",
    ("capture/ambient.py", "_or_none"): "a child that cannot be recorded runs on; the launcher is told in a file",
    ("capture/hooks_python.py", "_try"): "handed to `problem`, which is capture/guard.py",
    ("_api/receiving/intake.py", "_given"): "raised when every process that writes has been heard to its end",
    ("server/application.py", "_answer"): "a mistake of ours is answered with 500, and the log says what it was",
    ("server/caring.py", "_look_after"): "one project must not end the care of all others; the log says what it was",
    ("server/hands.py", "_done"): "the server is told, which answers with 500; the log says what it was",
    (
        "server/hands.py",
        "start_hands",
    ): "a process that was forked ends here, whatever happened; the log says what it was",
    ("server/minding.py", "start_minder"): "the same",
    ("server/working.py", "_do"): "a job that fails by a mistake of ours says so, and the log says what it was",
    ("cli/main.py", "_answer"): "a mistake of ours is told in one line; PLAYHEAD_DEBUG=1 shows where",
}

FORBIDDEN_NAMES = {"utils", "helpers", "common", "manager"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "yaml"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
HEAVY = (
    "rich",
    "httpx",
    "openai",
    "starlette",
    "asyncio",
    "argparse",
    "sqlite3",
    "argcomplete",
    "pydantic",
    "genai_prices",
)

FILE_NAMES = {
    "timeline.jsonl",
    "context_pack.json",
    "policy_snapshot.json",
    "playhead.db",
    "prices.json",
    "server.db",
    "search.db",
}
FOLDER_NAMES = {"runs", "blobs", "artifacts", "private", "journal", "format", "keys", "checkpoints", "projects"}


def relative(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), str(path))


def layer_of(module: str) -> str:
    """Return the layer of `playhead.a.b`: `a`, or `playhead` for the package itself."""
    parts = module.split(".")
    if parts[1:3] == ["capture", "attach"]:
        return "attach"
    return parts[1] if len(parts) > 1 else "playhead"


def module_of(path: Path) -> str:
    parts = ["playhead", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_type_checking(node: ast.If) -> bool:
    return "TYPE_CHECKING" in ast.dump(node.test)


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Walk the code that runs: what stands under `if TYPE_CHECKING` names types only."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and is_type_checking(child):
            for other in child.orelse:
                yield other
                yield from runtime_nodes(other)
            continue
        yield child
        yield from runtime_nodes(child)


def imported(path: Path, known: set[str]) -> Iterator[tuple[int, str]]:
    """Yield line and module of everything of ours that a file imports, at its top or inside a function."""
    for node in runtime_nodes(parsed(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, name.name) for name in node.names if name.name.split(".")[0] == "playhead")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{relative(path)}:{node.lineno} imports relatively"
            if node.module is None or node.module.split(".")[0] != "playhead":
                continue
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield node.lineno, inner if inner in known else node.module


def test_every_part_of_the_package_has_a_layer() -> None:
    found = {layer_of(module_of(path)) for path in SOURCES}
    assert found <= set(RANK), f"say in LAYERS where these belong: {sorted(found - set(RANK))}"


def test_imports_only_point_down() -> None:
    known = {module_of(path) for path in SOURCES}
    wrong, used = [], set()
    for path in SOURCES:
        own = layer_of(module_of(path))
        if own == "playhead":
            continue  # the public names are loaded from wherever they are; nothing is imported at once, see below
        for line, module in imported(path, known):
            target = layer_of(module)
            if target == own or RANK[target] < RANK[own]:
                continue
            if (own, target) in SIDEWAYS and RANK[own] == RANK[target]:
                used.add((own, target))
                continue
            wrong.append(f"{relative(path)}:{line} ({own}) imports {module} ({target})")
    assert not wrong, "\n".join(wrong)
    assert used == set(SIDEWAYS), f"no longer needed: {set(SIDEWAYS) - used}"


def test_the_import_rule_sees_imports_inside_functions_and_not_those_for_types(tmp_path: Path) -> None:
    source = tmp_path / "sample.py"
    source.write_text(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from playhead.cli import main\n"
        "def late():\n    from playhead.store import files\n    import playhead.views.text\n"
    )
    found = [module for _, module in imported(source, {"playhead.store.files"})]
    assert found == ["playhead.store.files", "playhead.views.text"]


def test_views_do_no_input_or_output() -> None:
    allowed = {"playhead", "__future__", "collections", "dataclasses", "typing", "itertools", "functools", "re",
               "unicodedata", "orjson", "msgspec", "shlex", "array", "hashlib", "json", "bisect", "math", "html", "ipaddress", "posixpath", "graphlib"}  # fmt: skip
    for path in (PACKAGE / "views").rglob("*.py"):
        for node in runtime_nodes(parsed(path)):
            names = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module]
            for name in names:
                assert name.split(".")[0] in allowed, f"{relative(path)} imports {name}"
                assert not name.startswith("playhead.store"), f"{relative(path)} reads a store"
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                assert node.func.id not in {"open", "print", "input"}, f"{relative(path)} calls {node.func.id}"


def test_the_public_names_are_a_sorted_list_that_this_test_repeats() -> None:
    assert playhead.__all__ == sorted(playhead.__all__)
    assert playhead.__all__ == PUBLIC


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "__version__"])
def test_a_public_name_can_be_imported_and_says_that_it_is_public(name: str) -> None:
    value = getattr(playhead, name)
    assert value.__module__ == "playhead"
    assert name in dir(playhead)


def test_a_name_that_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="nothing_of_ours"):
        playhead.nothing_of_ours  # noqa: B018


def _loaded_by(code: str) -> set[str]:
    """Return the modules that a fresh interpreter has loaded after running this, which it had not before."""
    script = (
        f"import sys, json\nbefore = set(sys.modules)\n{code}\nprint(json.dumps(sorted(set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r})\n{script}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(json.loads(done.stdout))


def test_importing_playhead_loads_next_to_nothing() -> None:
    loaded = _loaded_by("import playhead")
    assert {name for name in loaded if name.startswith("playhead.")} == {"playhead._version"}
    assert not [name for name in loaded if name.split(".")[0] in (*HEAVY, "msgspec", "orjson")]


def test_the_verbs_an_agent_uses_load_no_terminal_and_no_client() -> None:
    names = [
        name
        for name in PUBLIC
        if name
        not in (
            "Client",
            "Report",
            "Run",
            "audit",
            "connect",
            "diff",
            "find",
            "fork",
            "load",
            "replay",
            "report",
            "resume",
            "runs",
            "stats",
            "verify",
        )
    ]
    loaded = _loaded_by("import playhead\n" + "\n".join(f"playhead.{name}" for name in names))
    assert not [name for name in loaded if name.split(".")[0] in HEAVY]


def test_files_stay_readable_at_one_sitting() -> None:
    long = {relative(path): n for path in SOURCES if (n := path.read_text("utf-8").count("\n")) > FILE_LINES_MAX}
    assert not long, f"split by noun: {long}"


def test_functions_stay_readable_at_a_glance() -> None:
    long = []
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                if lines > FUNCTION_LINES_MAX:
                    long.append(f"{relative(path)}:{node.lineno} {node.name}: {lines} lines")
    assert not long, "\n".join(long)


def test_the_trusted_core_can_be_read_in_an_hour() -> None:
    core = [*(PACKAGE / "ledger").glob("*.py"), PACKAGE / "event" / "envelope.py"]
    lines = sum(path.read_text("utf-8").count("\n") for path in core)
    assert lines <= TRUSTED_LINES_MAX


def test_modules_are_named_by_nouns_that_mean_something() -> None:
    wrong = [relative(path) for path in SOURCES if {*path.parts[:-1], path.stem} & FORBIDDEN_NAMES]
    assert not wrong


def test_recorded_data_is_never_executed() -> None:
    wrong = []
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            modules = [name.name for name in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [node.module or ""]
            if any(module.split(".")[0] in FORBIDDEN_MODULES for module in modules):
                wrong.append(f"{relative(path)}:{node.lineno} imports {modules}")
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in FORBIDDEN_CALLS:
                wrong.append(f"{relative(path)}:{node.lineno} calls {node.func.id}")
    assert not wrong, "\n".join(wrong)


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in ("Exception", "BaseException")) for kind in kinds
    )


def _passes_on(handler: ast.ExceptHandler) -> bool:
    """Say whether a handler raises, or hands the exception to the guard, which counts it."""
    for node in ast.walk(handler):
        if isinstance(node, ast.Raise):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            if isinstance(owner, ast.Name) and owner.id == "guard":
                return True
    return False


def swallowed(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield function and line of every handler of all exceptions that keeps what it caught to itself."""

    def visit(node: ast.AST, function: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
            if isinstance(child, ast.ExceptHandler) and _catches_everything(child) and not _passes_on(child):
                yield function, child.lineno
            if isinstance(child, ast.Call) and ast.unparse(child.func).endswith("suppress"):
                broad = {ast.unparse(argument) for argument in child.args} & {"Exception", "BaseException"}
                if broad:
                    yield function, child.lineno
            yield from visit(child, inside)

    return visit(tree, "")


def test_exceptions_are_swallowed_in_one_place_only() -> None:
    wrong, used = [], set()
    for path in SOURCES:
        if relative(path) == "capture/guard.py":
            continue
        for function, line in swallowed(parsed(path)):
            if (relative(path), function) in MAY_CATCH_ALL:
                used.add((relative(path), function))
            else:
                wrong.append(f"{relative(path)}:{line} in {function}")
    assert not wrong, "\n".join(wrong)
    assert used == set(MAY_CATCH_ALL), f"no longer needed: {set(MAY_CATCH_ALL) - used}"


def test_the_rule_about_swallowing_sees_every_form_of_it() -> None:
    bad = [
        "try: f()\nexcept Exception: pass",
        "try: f()\nexcept: pass",
        "try: f()\nexcept (ValueError, BaseException): x = 1",
        "with contextlib.suppress(Exception): f()",
    ]
    good = [
        "try: f()\nexcept Exception:\n    clean()\n    raise",
        "try: f()\nexcept Exception as e: guard.absorb(e, r, 'x')",
        "try: f()\nexcept OSError: pass",
    ]
    assert all(list(swallowed(ast.parse(source))) for source in bad)
    assert not any(list(swallowed(ast.parse(source))) for source in good)


def _docstrings(tree: ast.Module) -> set[int]:
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                found.add(id(first.value))
    return found


def spelled_names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and text of every name of a file of the store, and of every path joined with one of its folders."""
    documentation = _docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in FILE_NAMES and id(node) not in documentation:
            yield node.lineno, node.value
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            for side in (node.left, node.right):
                if isinstance(side, ast.Constant) and side.value in FOLDER_NAMES:
                    yield node.lineno, side.value


def test_only_the_layout_spells_the_names_of_the_stores_files() -> None:
    wrong = []
    for path in SOURCES:
        if relative(path) != "store/layout.py":
            wrong += [f"{relative(path)}:{line} spells {name!r}" for line, name in spelled_names(parsed(path))]
    assert not wrong, "use store/layout.py:\n" + "\n".join(wrong)


def project_files() -> list[Path]:
    """Return what is in the repository, or would be: tracked files and new ones that are not ignored."""
    listed = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, capture_output=True, check=False,
    )  # fmt: skip
    if listed.returncode != 0:
        pytest.skip("this is not a checkout")
    return [path for name in listed.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]


# In pieces, so that this file does not hold what it looks for.
_HERE = re.compile("/wo" + r"rk/(?:main|shared|\.library)|/tm" + r"p/(?:x/v|notes|docs_try)\b|/ro" + r"ot/[\w.]")
_PACKAGE_HOSTS = re.compile(
    r"py" + r"pi\.org|python" + r"hosted\.org|arti" + r"factory|dev" + r"pi|(?:extra-)?index" + r"-url|npm" + r"js\.",
    re.IGNORECASE,
)


def test_no_file_names_a_path_of_the_machine_it_was_written_on_or_a_package_registry() -> None:
    wrong = []
    for path in project_files():
        for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1):
            if found := _HERE.search(line) or _PACKAGE_HOSTS.search(line):
                wrong.append(f"{path.relative_to(ROOT)}:{number}: {found[0]}")
    assert not wrong, "\n".join(wrong)


def test_a_public_function_is_not_hidden_by_a_part_of_the_package_that_has_its_name() -> None:
    code = "import playhead; playhead.load; from playhead.replay import tape; assert callable(playhead.replay)"
    subprocess.run([sys.executable, "-c", code], check=True)
