"""Lay out a table: how wide each column is, and what becomes of it where the terminal is too narrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from playhead.views import text

Cell = tuple[str, str]  # text in one line, and its style

_GAP = "  "
_SHORT_MIN = 14  # columns of a text that is shortened
_WRAPPED_MIN = 8  # of one that is wrapped
_BELOW_MIN = 24  # of one that may as well stand below its row
_INDENT = "    "  # of what stands below


class Table:
    """Columns and rows. As made, every cell has the room it needs; `fit` makes it as narrow as asked."""

    def __init__(self, columns: Sequence[str], rows: list[list[Cell]], *, right: set[str], whole: set[str]) -> None:
        self._columns = list(columns)
        self._rows = rows
        self._right = right
        self._whole = whole
        self._below: str | None = None
        self._width = 0
        self._widths = [
            max([text.cells(column), *(text.cells(row[at][0]) for row in rows)]) for at, column in enumerate(columns)
        ]

    def fit(self, width: int, *, drop: Sequence[str], short: str | None, below: str | None) -> None:
        """Make it at most this wide, as far as that can be done without breaking what shall stay whole."""
        self._width = width
        least = {}  # what a column needs, where that is less than it would like
        if short is not None:
            least[short] = min(_SHORT_MIN, self._width_of(short))
        if below is not None:
            least[below] = min(_BELOW_MIN, self._width_of(below))
            if self._total(least) > width:
                self._below = below
        for column in drop:
            if self._total(least) <= width:
                break
            if column in self._columns:  # one that is empty is not there
                self._remove(self._columns.index(column))
        if short is not None and short != self._below:
            at = self._columns.index(short)
            over = max(0, self._total() - width)
            self._widths[at] = max(least[short], self._widths[at] - over)
            for row in self._rows:
                row[at] = (text.cut(row[at][0], self._widths[at]), row[at][1])
        self._narrow()

    def lines(self) -> Iterator[list[Cell]]:
        """Yield the parts of each line, the names of the columns first; a row that is wrapped has several."""
        yield from self._lines_of([(column, "dim") for column in self._columns])
        for row in self._rows:
            yield from self._lines_of(row)
            told = "" if self._below is None else row[self._columns.index(self._below)][0]
            for line in text.wrap(told, self._width - len(_INDENT)) if told else ():
                yield [(_INDENT, ""), (line, "")]

    def _lines_of(self, row: list[Cell]) -> Iterator[list[Cell]]:
        shown = [at for at, column in enumerate(self._columns) if column != self._below]
        pieces = {at: text.wrap(row[at][0], self._widths[at], fold=True) for at in shown}
        for number in range(max(map(len, pieces.values()), default=0)):
            line: list[Cell] = []
            for at in shown:
                told = pieces[at][number] if number < len(pieces[at]) else ""
                padding = " " * (self._widths[at] - text.cells(told))
                before, after = (padding, "") if self._columns[at] in self._right else ("", padding)
                line += [(before, ""), (told, row[at][1]), (after + _GAP, "")]
            yield line

    def _width_of(self, column: str) -> int:
        return self._widths[self._columns.index(column)]

    def _total(self, least: dict[str, int] | None = None) -> int:
        """Return how wide the table is, or would be with some columns as narrow as they may be."""
        shown = [
            (least or {}).get(column, width)
            for column, width in zip(self._columns, self._widths, strict=True)
            if column != self._below
        ]
        return sum(shown) + len(_GAP) * (len(shown) - 1)

    def _remove(self, at: int) -> None:
        del self._columns[at], self._widths[at]
        for row in self._rows:
            del row[at]

    def _narrow(self) -> None:
        """Wrap the widest cells first, and none to less than a few letters."""
        loose = [at for at, column in enumerate(self._columns) if column not in self._whole and column != self._below]
        over = self._total() - self._width
        most = max((self._widths[at] for at in loose), default=0)
        while over > 0 and most > _WRAPPED_MIN:
            most -= 1
            for at in loose:
                if self._widths[at] > most:
                    over -= self._widths[at] - most
                    self._widths[at] = most
