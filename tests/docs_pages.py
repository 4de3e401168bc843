"""Read the pages of the documentation, and do what they say.

A block of Python is run as it stands; the blocks of one page are one program. `python NAME.py` after the backticks also
saves the block under that name, `python no-run` only shows it, and both together save it for a command to run. Of a
block `console run` each command after a `$` is run, and what it prints must be what the page shows, but for ids, times
and durations. `playhead serve &` starts a server that the commands after it can ask at `localhost:4000`.

`python tests/docs_pages.py` writes what the commands print now into the pages, or into those that are named (`server`).
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from playhead.testing import ReceivedRequest, ScriptedProvider, ToolCall, ToolCalls
from playhead.testing.script import Loose

try:
    from tests import docs_servers
except ModuleNotFoundError:  # this is run as a script
    import docs_servers  # type: ignore[import-not-found, no-redef]

ROOT = Path(__file__).parent.parent
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
PAGES = [ROOT / "README.md", *GUIDES]
EVERY_PAGE = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "src/**/*.md")
    for path in ROOT.glob(pattern)
    if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)
)

_FENCE = re.compile(r"^(?P<mark>```+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=mark)[ \t]*$", re.MULTILINE | re.DOTALL)
_KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "VIRTUAL_ENV")


class Block(NamedTuple):
    """One fenced block of a page."""

    language: str
    words: tuple[str, ...]  # what stands after the language
    body: str
    line: int
    start: int  # of the body, in the text of the page
    end: int


class Shown(NamedTuple):
    """One command of a `console run` block, and what the page says that it prints."""

    command: str
    output: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    """Yield every fenced block of a page."""
    for found in _FENCE.finditer(text):
        words = found["info"].split()
        line = text.count("\n", 0, found.start("body")) + 1
        yield Block(words[0] if words else "", tuple(words[1:]), found["body"], line, *found.span("body"))


def shown(block: Block) -> list[Shown]:
    """Split a block into its commands; a line that does not begin with `$` belongs to the command before it."""
    out: list[Shown] = []
    for number, line in enumerate(block.body.splitlines(keepends=True)):
        if line.startswith("$ "):
            out.append(Shown(line[2:].rstrip("\n"), "", block.line + number))
        elif out:
            out[-1] = out[-1]._replace(output=out[-1].output + line)
    return out


def commands_of(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield line and words of every `playhead …` in a shell block of a page, up to the first pipe or redirection."""
    for block in blocks(text):
        if block.language not in ("sh", "bash", "shell", "console"):
            continue
        for number, line in enumerate(block.body.splitlines()):
            line = line.removeprefix("$ ") if block.language == "console" and line.startswith("$ ") else line
            if block.language == "console" and not block.body.splitlines()[number].startswith("$ "):
                continue
            words = _words(line)
            for at, word in enumerate(words):
                if word == "playhead" and (at == 0 or words[at - 1] in ("|", "&&", ";", "||", "(")):
                    rest = words[at + 1 :]
                    end = next((n for n, one in enumerate(rest) if set(one) <= set("|&;><()")), len(rest))
                    if rest[end : end + 1] and ">" in rest[end] and rest[end - 1] in ("1", "2"):
                        end -= 1  # the number belongs to the redirection
                    yield block.line + number, rest[:end]


def _words(line: str) -> list[str]:
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of a reader: nothing of ours, nothing of CI, `playhead` and `python` on the path."""
    programs = folder.parent / f"{folder.name}-bin"
    programs.mkdir(exist_ok=True)
    named = {"playhead": f'"{sys.executable}" -m playhead', "python": f'"{sys.executable}"', **docs_servers.programs()}
    for name, command in named.items():
        (programs / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        (programs / name).chmod(0o755)
    out = {name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ}
    out["PATH"] = f"{programs}{os.pathsep}{out.get('PATH', os.defpath)}"
    out |= {"OPENAI_BASE_URL": provider().base_url, "OPENAI_API_KEY": "sk-of-the-reader-0000"}
    out["PYTEST_ADDOPTS"] = (
        "-p no:asyncio -p no:cacheprovider"  # the plain one, without what this project has installed
    )
    more = {"HOME": str(folder), "USER": "ada", "LOGNAME": "ada", "NO_COLOR": "1", "PYTHONUTF8": "1"}
    return {**out, **more, "PYTHONPATH": str(ROOT / "src")}


@functools.cache
def provider() -> ScriptedProvider:
    """Return the model that the readers' programs speak to."""

    def answer(request: ReceivedRequest) -> Loose:
        if request.json().get("model") == "gpt-5-mini":
            return "Ignore the case of addresses."
        if "Read issue" in request.prompt:
            return ToolCalls((ToolCall("read_issue", {"number": 1842}),))
        return "Compare addresses in lower case."

    started = ScriptedProvider(answer)
    started.start()
    return started


def run_python(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the Python of a page, all blocks as one program, in a folder."""
    program = ""
    for block in blocks(text):
        if block.language != "python":
            continue
        for name in block.words:
            if name != "no-run":
                (folder / name).write_text(docs_servers.with_port(block.body, folder))
        if "no-run" in block.words:
            continue
        program += "\n" * max(0, block.line - program.count("\n") - 1) + block.body  # errors name the page's lines
    script = folder.parent / f"{folder.name}-page.py"
    script.write_text(program)
    env = environment(folder)
    env["PYTHONPATH"] += f"{os.pathsep}{folder}"  # a block may import one that was saved
    return subprocess.run(
        [sys.executable, str(script)],
        cwd=folder, env={**env, "PLAYHEAD_GIT": "0"}, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip


def run_command(command: str, folder: Path) -> str:
    """Run one command of a page in a shell, and return what a reader would see."""
    command = docs_servers.with_port(command, folder)
    if command.startswith("playhead serve") and command.endswith("&"):
        return _as_seen(docs_servers.start(command.rstrip("& "), folder, environment(folder)), folder)
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, check=False,
    )  # fmt: skip
    return _as_seen(done.stdout, folder)


def _as_seen(output: str, folder: Path) -> str:
    output = output.replace(f"{folder}/", "").replace(str(Path(sys.executable).parent), "/home/ada/.venv/bin")
    return docs_servers.without_port(output, folder)


def comparable(output: str) -> str:
    """Return output without what differs from run to run."""
    for pattern, instead in (
        (r"run_[0-9a-hjkmnp-tv-z]{3,26}", "RUN"),
        (r"\b(cas|job)_[0-9a-hjkmnp-tv-z]{26}\b", r"\1_ID"),
        (r"\bph_[0-9a-z]+_[\w-]{20,}", "KEY"),
        (r"\b[0-9a-f]{64}\b", "DIGEST"),
        (r"\b[0-9a-f]{32}\b", "TRACE"),
        (r"\b[0-9a-f]{10}\b", "COMMIT"),
        (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| UTC)?", "TIME"),
        (r"\b(just now|\d+ (s|min) ago)", "AGO"),
        (r"127\.0\.0\.1:\d+", "127.0.0.1:PORT"),
        (r"\d+(\.\d+)? (µs|ms|s)\b", "DURATION"),
        (r"recorded event \d+|event \d+ of the (?=recording|replay)", "event N "),  # as much was read meanwhile
        (r"\b(event|events|playhead) \d+(, \d+)*\b", r"\1 N"),
        (r"→ \d+, /", "→ N, /"),
        (r"\b\d+ events\b", "N events"),  # reads are packed by the time that passes
        (r"\bin \d+\.\d+s\b", "in DURATION"),  # of pytest
        (r"(?m)^(RUN +\w+ +\d+) +\d+\.\d(?= |$)", r"\1 SECONDS"),  # of `playhead test`
        (r'"duration_ms": [\d.]+', '"duration_ms": N'),
        (r'"uptime_s": ?[\d.]+', '"uptime_s": N'),
        (r'"bytes": \d+', '"bytes": N'),
        (r"\b(Key|revoke) [0-9a-z]{16}\b", r"\1 ID"),
        (r"(?m)^(\s*python ).*$", r"\1VERSION"),
        (r"(attached to Python) [\d.]+", r"\1 VERSION"),
        (r"(msgspec|orjson) [\d.]+", r"\1 VERSION"),
        (r"(?m)^\w+ +(git|python|disk) .*$", r"\1"),  # of `doctor`: as this machine is
        (r"\b[\d.]+ [kMGT]?B\b", "SIZE"),
        (r"[ \t]+", " "),
        (r"(?m)^ ?\d+ (?=[·✓✗]|(changed|same|failed) )", "N "),  # of the rows of `show` and reruns, for the same reason
        (r"(?m)^ ?((?:first|before|◆? ?[~+>-]) )(?:\d+|–)( → (?:\d+|–))? ", r"\1N "),  # of those of `diff`
    ):
        output = re.sub(pattern, instead, output)
    return "\n".join(line.rstrip() for line in output.strip().splitlines())


def update(page: Path) -> bool:
    """Write into a page what its commands print now, where that differs; say whether it did."""
    text = page.read_text("utf-8")
    with tempfile.TemporaryDirectory() as around, contextlib.ExitStack() as inside:
        folder = Path(around).resolve() / "project"
        folder.mkdir()
        inside.enter_context(docs_servers.servers_of(folder))
        done = run_python(text, folder)
        if done.returncode:
            raise SystemExit(f"{page}: {done.stderr}")
        out, at, changed = "", 0, False
        for block in blocks(text):
            if block.language != "console" or "run" not in block.words:
                continue
            out, at = out + text[at : block.start], block.end
            for one in shown(block):
                now = run_command(one.command, folder).rstrip()
                changed = changed or comparable(now) != comparable(one.output)
                out += f"$ {one.command}\n{now}\n" if now else f"$ {one.command}\n"
    if changed:  # all of them, so that one run has one id throughout the page
        page.write_text(out + text[at:], "utf-8")
    return changed


if __name__ == "__main__":
    meant = [page for page in PAGES if len(sys.argv) < 2 or page.stem in sys.argv[1:]]
    for changed in [page for page in meant if update(page)]:
        print(f"updated {changed.relative_to(ROOT)}")
