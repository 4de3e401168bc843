"""Draw bars in the terminal, with plain text."""

from __future__ import annotations

from collections.abc import Sequence

from playhead.cli.output import Output, one_line
from playhead.views import text

_EIGHTHS = " ▏▎▍▌▋▊▉"
_LABEL_CELLS_MAX = 32
_LABEL_CELLS_MIN = 8
_BAR_CELLS_MIN = 10
_GAP = "  "


def draw(bars: Sequence[tuple[str, float | None, str]], out: Output) -> None:
    """Draw a bar for each label, value and text of the value, scaled to the width; what is unknown has none."""
    rest = out.width - max((text.cells(told) for _, _, told in bars), default=0) - 2 * len(_GAP)
    most_cells = min(_LABEL_CELLS_MAX, max(_LABEL_CELLS_MIN, rest - _BAR_CELLS_MIN))
    labels = [text.cut(one_line(label), most_cells) for label, _, _ in bars]
    wide = max(map(text.cells, labels), default=0)
    room = rest - wide
    most = max((value or 0.0 for _, value, _ in bars), default=0.0)
    for label, (_, value, told) in zip(labels, bars, strict=True):
        bar = _bar((value or 0.0) / most if most else 0.0, max(_BAR_CELLS_MIN, room), out.unicode)
        padding = " " * (wide - text.cells(label))
        out.styled(label + padding + _GAP, (bar, "cyan"), *([_GAP] if bar else []), told)


def _bar(share: float, room: int, unicode: bool) -> str:
    """Return a bar of some share of the room; what is not nothing is seen."""
    if share <= 0:
        return ""
    if not unicode:
        return "#" * max(1, round(share * room))
    eighths = max(1, round(share * room * 8))
    whole, rest = divmod(eighths, 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")
