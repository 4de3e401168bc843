"""Write answers: `rich` on a terminal, plain text in a pipe, one JSON document with `--json`.

Text that an agent wrote is never interpreted: what could move a cursor, change a colour or turn the reading direction
is shown as an escape. Heavy modules are imported where they are used.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TextIO

from playhead.cli.table import Cell, Table
from playhead.views import text

if TYPE_CHECKING:
    from rich.console import Console

# C0 without tab and newline, DEL, C1, and the marks that change the direction or the line without being seen.
_INVISIBLE = (*range(9), *range(11, 32), *range(127, 160), 0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F),
              *range(0x2066, 0x206A), 0xFEFF)  # fmt: skip
_ESCAPES = {code: f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" for code in _INVISIBLE}
_JSON_ESCAPES = {code: f"\\u{code:04x}" for code in _INVISIBLE if code >= 127}
_ONE_LINE = {**_ESCAPES, 9: " ", 10: "⏎"}

_NOT_ASCII = re.compile(r"[^\x00-\x7f]")

_WRAPPED_WIDTH_MIN = 20
_QUIET_S = 0.5  # that work may take before one is told how far it is
PLAIN_WIDTH = 100  # of a line in a pipe, where nothing says how wide the reader's page is

Part = str | tuple[str, str]  # text, or text with a style


def clean(text: str) -> str:
    """Return text with everything that a terminal would act on shown as an escape; tabs and newlines stay."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES)


def one_line(text: str) -> str:
    """Return clean text without line breaks and tabs."""
    return text if text.isascii() and text.isprintable() else text.translate(_ONE_LINE)


class Output:
    """Where a command writes. `json` and `terminal` say in which form."""

    def __init__(
        self,
        *,
        json: bool = False,
        color: bool = True,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
        terminal: bool | None = None,
    ) -> None:
        self.json = json
        self.stdout = stdout if stdout is not None else sys.stdout
        self.stderr = stderr if stderr is not None else sys.stderr
        self.terminal = not json and (_is_terminal(self.stdout) if terminal is None else terminal)
        self.color = color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
        self.unicode = "utf" in (getattr(self.stdout, "encoding", None) or "utf-8").lower()
        self._console: Console | None = None

    @property
    def console(self) -> Console:
        """Return the console of `rich`, made at its first use."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(
                file=self.stdout, force_terminal=self.terminal, color_system=self._colors, highlight=False, markup=False
            )
        return self._console

    @property
    def _colors(self) -> Literal["auto"] | None:
        return "auto" if self.color else None

    @property
    def width(self) -> int:
        """Return how many characters a line may have."""
        if not self.terminal:
            return PLAIN_WIDTH
        import shutil

        return max(40, shutil.get_terminal_size((PLAIN_WIDTH, 24)).columns)

    def print(self, text: str = "") -> None:
        """Write one piece of text to stdout."""
        self.stdout.write(clean(text) + "\n")

    def styled(self, *parts: Part) -> None:
        """Write one line whose parts may have a style, such as `("failed", "bold red")`."""
        if not (self.terminal and self.color):
            self.print("".join(part if isinstance(part, str) else part[0] for part in parts))
            return
        from rich.text import Text

        line = Text()
        for part in parts:
            told, style = (part, "") if isinstance(part, str) else part
            line.append(clean(told), style)
        self.console.print(line, soft_wrap=True)

    def emit(self, document: Any) -> None:
        """Write one JSON document to stdout; msgspec structs and dataclasses are welcome."""
        # JSON may hold these characters as they are; escaped, they mean the same and no terminal acts on them.
        text = to_json(document).translate(_JSON_ESCAPES)
        self.stdout.write((text if self.unicode else _NOT_ASCII.sub(_escaped, text)) + "\n")

    def write_bytes(self, data: bytes) -> None:
        """Write exact bytes to stdout."""
        self.binary.write(data)

    def write_exactly(self, told: str) -> None:
        """Write text as it is; a terminal is shown escapes for what it would act on."""
        if self.terminal:
            self.stdout.write(clean(told))
        else:
            self.write_bytes(told.encode("utf-8", "backslashreplace"))

    @property
    def binary(self) -> BinaryIO:
        """Return stdout for exact bytes, after what was written as text."""
        self.stdout.flush()
        return self.stdout.buffer

    def wrapped(self, first: Sequence[Part], told: str, style: str = "") -> None:
        """Write one line, on a terminal wrapped at words: what does not fit stands below where `told` begins."""
        told = one_line(told)
        indent = sum(text.cells(part if isinstance(part, str) else part[0]) for part in first)
        lines = text.wrap(told, max(_WRAPPED_WIDTH_MIN, self.width - indent)) if self.terminal else [told]
        self.styled(*first, (lines[0], style))
        for line in lines[1:]:
            self.styled(" " * indent, (line, style))

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        right: Iterable[str] = (),
        whole: Iterable[str] = (),
        drop: Sequence[str] = (),
        short: str | None = None,
        below: str | None = None,
    ) -> None:
        """Write a table: fitted to a terminal, aligned text in a pipe.

        `right` names the columns of numbers. Where a terminal is too narrow, the columns of `drop` are left out in
        that order, the cells of `short` are shortened, those of `below` stand below their row, those of `whole` stay
        as they are, and all others are wrapped at words. A cell is anything with a text; None is empty. A cell
        `(text, style)` has a style on a terminal.
        """
        cells = [[_cell(value) for value in row] for row in rows]
        laid = Table([one_line(column) for column in columns], cells, right=set(right), whole=set(whole))
        if self.terminal:
            laid.fit(self.width, drop=drop, short=short, below=below)
        for line in laid.lines():
            while line and not line[-1][0].strip():
                line.pop()
            self.styled(*line)

    def warn(self, text: str) -> None:
        """Write one piece of text to stderr."""
        self.stdout.flush()
        self.stderr.write(clean(text) + "\n")
        self.stderr.flush()

    @contextmanager
    def progress(self, total: int | None, label: str) -> Iterator[Callable[..., None]]:
        """Show how far work is, where stderr is a terminal, once it turns out to be long.

        Gives a function to be told how much more is done, and what stands beside the label from then on.
        """
        if not _is_terminal(self.stderr):
            yield lambda amount, told="": None
            return
        from rich.console import Console
        from rich.progress import Progress

        # A copy of it: what programs write meanwhile may be kept from the other one.
        with os.fdopen(os.dup(self.stderr.fileno()), "w", encoding=self.stderr.encoding, errors="replace") as copy:
            console = Console(file=copy, color_system=self._colors, force_terminal=True)
            bar = Progress(console=console, transient=True)
            task = bar.add_task(one_line(label), total=total)

            def advance(amount: int, told: str = "") -> None:
                bar.update(task, advance=amount, description=one_line(f"{label} {told}".strip()))

            begins = threading.Timer(_QUIET_S, bar.start)
            begins.daemon = True
            begins.start()
            try:
                yield advance
            finally:
                begins.cancel()
                begins.join()
                if bar.live.is_started:
                    bar.stop()


def to_json(document: Any) -> str:
    """Return a document as indented JSON."""
    import orjson

    option = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    try:
        return orjson.dumps(document, default=_plain, option=option).decode()
    except orjson.JSONEncodeError:
        # A number beyond 64 bits, a file name that is not Unicode, or more than 254 levels.
        import json

        return json.dumps(document, default=_plain, indent=2)


def _plain(value: Any) -> Any:
    if hasattr(value, "__struct_fields__"):
        import msgspec

        return msgspec.to_builtins(value)
    if isinstance(value, (bytes, bytearray)):
        import base64

        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _cell(value: Any) -> Cell:
    told, style = value if isinstance(value, tuple) else (value, "")
    return ("" if told is None else one_line(str(told))), style


def _escaped(letter: re.Match[str]) -> str:
    """Return a letter as JSON escapes it."""
    units = letter[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False
