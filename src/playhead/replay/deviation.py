"""Tell a deviation: what was asked, the nearest recorded question, what differs, the usual cause, and what to do.

The text is what a traceback, a failing test and the report show, so its first line alone says it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Literal

from playhead import _limits
from playhead.replay.cause import causes, explained
from playhead.replay.question import Question, similarity
from playhead.views import text as views_text
from playhead.views.difference import ABSENT, Change, changes
from playhead.views.words import Part, fitted, hunks, plain, shown, words

Type = Literal[
    "changed", "added", "removed", "repeated", "moved", "unanswered", "output", "read", "write", "network", "process"
]  # fmt: skip

_ORDINALS = ("", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_TIMES = ("never", "once", "twice")
_LETTERS_COMPARED_MAX, _ALIKE_LETTERS_MIN = 200, 0.6
_ONE_QUESTION_MIN = 0.2  # of the words in what changed
_EVENT_FIELDS = (
    "type",
    "text",
    "seq",
    "at",
    "lane",
    "kind",
    "name",
    "changes",
    "cause",
    "recorded_times",
    "asked_times",
    "where",
)
_CHANGES_SHOWN_MAX = 8
_HUNKS_SHOWN_MAX = 4  # of one text
_LABEL = 10  # columns
_INDENT = " " * (_LABEL + 2)


@dataclass(frozen=True)
class Deviation:
    """One place where a replay is not what was recorded.

    `seq` is the event of the recording it is about: the question that was not asked, or the nearest one; `at` is the
    event of the replay that asked. `recorded_times` and `asked_times` count this very question.
    """

    type: Type
    seq: int | None = None
    at: int | None = None
    lane: str | None = None
    kind: str | None = None
    name: str | None = None
    asked: Question | None = None
    nearest: Question | None = None
    changes: Sequence[Change] = ()
    cause: str | None = None
    advice: str | None = None
    recorded_times: int = 0
    asked_times: int = 0
    detail: str | None = None  # in place of a question: what was read, written or connected to
    where: str | None = None  # file and line of the program that asked
    consumed: bool = False  # the nearest question was answered already
    _text: list[str] = field(default_factory=list, repr=False, compare=False)

    @property
    def text(self) -> str:
        """Return the whole message."""
        if not self._text:
            self._text.append(deviation_text(self))
        return self._text[0]

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON, for reports and for the event `replay.deviated`."""
        return {
            "type": self.type, "seq": self.seq, "at": self.at, "lane": self.lane, "kind": self.kind, "name": self.name,
            "asked": None if self.asked is None else self.asked.as_dict(),
            "nearest": None if self.nearest is None else self.nearest.as_dict(),
            "changes": [change.as_dict() for change in self.changes], "cause": self.cause,
            "advice": self.advice, "recorded_times": self.recorded_times, "asked_times": self.asked_times,
            "consumed": self.consumed, "detail": self.detail, "where": self.where, "text": self.text,
        }  # fmt: skip

    def as_fields(self) -> dict[str, Any]:
        """Return the fields of the event `replay.deviated` that say something.

        The two questions are not among them: `at` and `seq` name the events that hold them.
        """
        found = {name: value for name, value in self.as_dict().items() if name in _EVENT_FIELDS}
        return {name: value for name, value in found.items() if value is not None and value != []}


def unanswered(
    asked: Question,
    nearest: Question | None,
    *,
    recorded_times: int = 0,
    asked_times: int = 1,
    consumed: bool = False,
    where: str | None = None,
    in_new_lane: bool = False,
) -> Deviation:
    """Explain a question that the tape cannot answer.

    Recorded before, and asked more often than that, it is `repeated`. With a recorded question like it that is still to
    be asked it is `changed`; else, and where a task or thread asks that asked nothing then, it is `added`.
    """
    found = [] if nearest is None else changes(nearest.input, asked.input)
    likely = nearest is not None and not consumed and _is_another_form(found, nearest, asked)
    what: Type = "repeated" if recorded_times else "changed" if likely and not (found and in_new_lane) else "added"
    if nearest is not None and what == "changed" and not found and nearest.name == asked.name:
        what = "moved"  # the very question is there, for another lane
    told = explained(found, nearest, asked) if nearest is not None and what == "changed" else None
    why, advice = told if told is not None else (None, None)
    return Deviation(
        what, seq=None if nearest is None else nearest.seq, at=asked.seq, lane=asked.lane, kind=asked.kind,
        name=asked.name, asked=asked, nearest=nearest, changes=tuple(found), cause=why, advice=advice,
        recorded_times=recorded_times, asked_times=asked_times, consumed=consumed, where=where,
    )  # fmt: skip


def _is_another_form(found: Sequence[Change], nearest: Question, asked: Question) -> bool:
    """Say whether two questions are forms of one, rather than two: what changed in them has words in common.

    Where something else than free text changed, such as a date, a model or the order of items, they are.
    """
    if nearest.name != asked.name and asked.kind != "model.invoked":
        return False
    if all(one.left is ABSENT or one.right is ABSENT for one in found):
        return True  # something came or went, and the rest is the same
    if any(cause.code not in ("template", "argument", "conversation") for cause in causes(found, nearest, asked)):
        return True
    lefts, rights = (
        [side for one in found if (side := getattr(one, name)) is not ABSENT] for name in ("left", "right")
    )
    return similarity(lefts, rights) >= _ONE_QUESTION_MIN or _is_one_word_alike(lefts, rights)


def _is_one_word_alike(lefts: list[Any], rights: list[Any]) -> bool:
    """Say whether short texts are alike in their letters: they have too few words to have some in common."""
    left, right = (" ".join(str(side) for side in sides) for sides in (lefts, rights))
    if max(len(left), len(right)) > _LETTERS_COMPARED_MAX:
        return False
    return SequenceMatcher(None, left, right, autojunk=False).ratio() >= _ALIKE_LETTERS_MIN


def unasked(
    recorded: Question,
    *,
    recorded_times: int = 1,
    asked_times: int = 0,
    cause: str | None = None,
    where: str | None = None,
) -> Deviation:
    """Explain a recorded question that the replay never asked, or not as often; `where` says what came before it."""
    return Deviation(
        "removed", seq=recorded.seq, lane=recorded.lane, kind=recorded.kind, name=recorded.name, nearest=recorded,
        recorded_times=recorded_times, asked_times=asked_times, cause=cause, where=where,
    )  # fmt: skip


def moved(recorded: Question, *, lane: str, at: int, where: str | None = None) -> Deviation:
    """Explain a recorded question that was asked, and answered, in another lane."""
    return Deviation(
        "moved", seq=recorded.seq, at=at, lane=lane, kind=recorded.kind, name=recorded.name, nearest=recorded,
        where=where,
    )  # fmt: skip


def other_output(recorded: Any, replayed: Any, *, seq: int | None = None, at: int | None = None) -> Deviation:
    """Explain an output that is not the recorded one."""
    found = tuple(changes(recorded, replayed))
    return Deviation("output", seq=seq, at=at, changes=found)


def deviation_text(deviation: Deviation) -> str:
    """Return the readable message, in plain text."""
    return "\n".join(plain(line) for line in deviation_lines(deviation))


def deviation_lines(deviation: Deviation) -> list[list[Part]]:
    """Return the lines of the message with the styles that a terminal may give them."""
    lines: list[list[Part]] = [[(_headline(deviation), "bold")]]
    for label, told in _facts(deviation):
        lines += _labelled(label, told)
    changed = _changed(deviation)
    if changed:
        count = len(deviation.changes)
        lines += _labelled("differs", "in 1 place" if count == 1 else f"in {count} places")
        lines += changed
    for label, said in (("cause", deviation.cause), ("do", _advice(deviation))):
        lines += _labelled(label, said) if said else []
    lines = [fitted(line, _limits.DEVIATION_WIDTH_MAX) for line in lines]
    if len(lines) > _limits.DEVIATION_LINES_MAX:
        kept = _limits.DEVIATION_LINES_MAX - 1
        lines = [*lines[:kept], [f"  … {len(lines) - kept} more lines; `--json` has them"]]
    return lines


def _labelled(label: str, told: str) -> list[list[Part]]:
    width = _limits.DEVIATION_WIDTH_MAX - len(_INDENT)
    first, *rest = views_text.wrap(shown(told, 6 * width), width, fold=True)
    lines: list[list[Part]] = [["  ", (f"{label:<{_LABEL}}", "dim"), first]]
    for line in rest:
        lines.append([_INDENT, line])
    return lines


def _headline(deviation: Deviation) -> str:
    told = _sentence(deviation)
    if deviation.type in ("changed", "output") and deviation.changes:
        return f"{told}: {_first_change(deviation.changes, _limits.DEVIATION_WIDTH_MAX - len(told) - 2)}"
    return told


def _sentence(deviation: Deviation) -> str:
    question = deviation.asked or deviation.nearest
    title = shown(question.title if question is not None else deviation.name or deviation.kind or "", 60)
    where = "" if deviation.seq is None else f" (recorded event {deviation.seq})"
    match deviation.type:
        case "changed":
            return f"{title} was asked something else{where}"
        case "added":
            return f"{title} was asked something that is not on the tape"
        case "removed":
            often = f" {_times(deviation.recorded_times)}" if deviation.recorded_times > 1 else ""
            asked = f"only {_times(deviation.asked_times)}" if deviation.asked_times else "never"
            about = shown(question.words, 80) if question is not None else ""
            return f"{title}{about and f' {about}'} was recorded{often} and {asked} asked{where}"
        case "repeated":
            ordinal, times = _ordinal(deviation.asked_times), _times(deviation.recorded_times)
            return f"{title} was asked a {ordinal} time, recorded {times}{where}"
        case "moved":
            there = deviation.nearest.lane if deviation.nearest is not None else "?"
            return f"{title} was asked in lane {deviation.lane}, recorded in lane {there}{where}"
        case "unanswered":
            return f"{title} was asked as recorded, and the recording ended before the answer{where}"
        case "output":
            return "the output is not the recorded one"
    verbs = {
        "read": "was read, which is not on the tape",
        "write": "would be written, which a replay does not do",
        "network": "would be connected to, which a replay refuses",
        "process": "would be started, which is not on the tape",
    }
    return f"{shown(deviation.detail or title, 70)} {verbs[deviation.type]}"


def _first_change(found: Sequence[Change], width: int) -> str:
    first = found[0]
    more = f", and {len(found) - 1} more" if len(found) > 1 else ""
    path = shown(first.path or "/", 40)
    if first.left is ABSENT or first.right is ABSENT:
        return f"{path} was {'added' if first.left is ABSENT else 'left out'}{more}"
    room = max(24, width - len(path) - len(more) - 1)
    if type(first.left) is str and type(first.right) is str:
        changed = [piece for piece in words(first.left, first.right) if piece.how != "same"][:2]
        marks = {"removed": "[-{}-]", "added": "{{+{}+}}"}
        told = " ".join(marks[piece.how].format(shown(piece.text, max(8, room // 2 - 5))) for piece in changed)
    else:
        told = f"[-{_value(first.left, room // 2 - 5)}-] {{+{_value(first.right, room // 2 - 5)}+}}"
    return f"{path} {told}{more}"


def _facts(deviation: Deviation) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    if deviation.type != "removed" and (deviation.at is not None or deviation.lane is not None):
        at = "" if deviation.at is None else f"event {deviation.at} of the replay, "
        found.append(
            ("asked", f"{at}lane {deviation.lane or '0'}" + (f", at {deviation.where}" if deviation.where else ""))
        )
    nearest = deviation.nearest
    if nearest is not None:
        state = "asked before" if deviation.consumed or deviation.type == "repeated" else "not asked so far"
        label = "recorded" if deviation.type in ("removed", "repeated", "moved") else "nearest"
        title = "" if deviation.asked is None or nearest.title == deviation.asked.title else f", {nearest.title}"
        more = "" if deviation.asked is None else f"{title}, {state}"
        found.append((label, f"event {nearest.seq} of the recording, lane {nearest.lane}{more}"))
    elif deviation.type == "added":
        found.append(("nearest", "none: nothing of this kind was recorded that is like it"))
    if deviation.type == "removed" and deviation.where:
        found.append(("after", f"{deviation.where}, the last before it that was done again"))
    question = deviation.asked if deviation.type in ("added", "repeated") else nearest
    if question is not None and deviation.type in ("added", "removed", "repeated", "moved"):
        found.append(("question", views_text.arguments(question.input, 400)))
    return found


def _changed(deviation: Deviation) -> list[list[Part]]:
    if deviation.type in ("repeated", "removed", "moved") or (deviation.type == "added" and deviation.consumed):
        return []
    lines: list[list[Part]] = []
    for change in deviation.changes[:_CHANGES_SHOWN_MAX]:
        lines += _one_change(change)
    left = len(deviation.changes) - _CHANGES_SHOWN_MAX
    if left > 0:
        lines.append([f"    and {left} more; `--json` has them"])
    return lines


def _one_change(change: Change) -> list[list[Part]]:
    path = shown(change.path or "/", 100)
    room = _limits.DEVIATION_WIDTH_MAX - 12
    if change.left is ABSENT:
        return [[f"    {path}"], ["      ", (f"{{+{_value(change.right, room)}+}}", "green")]]
    if change.right is ABSENT:
        return [[f"    {path}"], ["      ", (f"[-{_value(change.left, room)}-]", "red")]]
    if type(change.left) is str and type(change.right) is str:
        found = hunks(words(change.left, change.right), room)
        lines: list[list[Part]] = [["      ", *line] for line in found[:_HUNKS_SHOWN_MAX]]
        if len(found) > _HUNKS_SHOWN_MAX:
            lines.append([f"      and {len(found) - _HUNKS_SHOWN_MAX} more places in this text"])
        return [[f"    {path}"], *lines]
    half = room // 2 - 4
    left, right = _value(change.left, half), _value(change.right, half)
    return [[f"    {path}"], ["      ", (f"[-{left}-]", "red"), " ", (f"{{+{right}+}}", "green")]]


def _value(value: Any, width: int) -> str:
    return shown(views_text.short(value, max(8, width)), max(8, width))


def _advice(deviation: Deviation) -> str | None:
    if deviation.advice is not None:
        return deviation.advice
    match deviation.type:
        case "repeated":
            return "Look for a retry or a loop that the recorded run did not make; or record anew."
        case "added":
            return "The program asks more than it did: if that is meant, record anew."
        case "removed":
            return "The program asks less than it did: if that is meant, record anew."
        case "moved":
            return "Another task or thread asks it now. It was answered; the order of answers may differ."
        case "read" | "process" | "network" | "write":
            return "In an exact replay only the tape answers: if the program is meant to do this, record anew."
    return None


def _ordinal(number: int) -> str:
    if number < len(_ORDINALS):
        return _ORDINALS[number]
    end = "th" if 10 <= number % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{end}"


def _times(number: int) -> str:
    return _TIMES[number] if number < len(_TIMES) else f"{number} times"
