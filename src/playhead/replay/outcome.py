"""Say how a run that left its tape came out, beside the one that it was made from: its end, and what models said."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from playhead.event.envelope import Event
from playhead.store.reader import RunReader
from playhead.views.aside import said
from playhead.views.difference import changes
from playhead.views.points import written


@dataclass
class Ended:
    """How a run came out."""

    status: str | None = None
    exit_code: Any = None
    output: Any = None
    error: Any = None
    stdout: str = ""
    raised: str = ""  # the last line of stderr, of a program that failed

    def differs_from(self, other: Ended) -> list[dict[str, Any]]:
        """Return in what two of them differ."""
        found = []
        for name in ("status", "exit_code", "output", "stdout", "raised"):
            then, now = getattr(other, name), getattr(self, name)
            if then != now:
                found.append({"what": name, "then": then, "now": now})
        if self.error_said() != other.error_said():
            found.append({"what": "error", "then": other.error_said(), "now": self.error_said()})
        return found

    def error_said(self) -> str | None:
        """Return what went wrong, in one line."""
        error = self.error
        if not isinstance(error, dict):
            return None
        return f"{error.get('type')}: {str(error.get('message')).partition(chr(10))[0]}"


class Answer(NamedTuple):
    """What a model said."""

    seq: int
    said: Any
    model: str | None
    question: str | None = None  # by what it is known


@dataclass
class Came:
    """What a run came to, as far as two of them are compared."""

    end: Ended = field(default_factory=Ended)
    answers: dict[str, list[Answer]] = field(default_factory=dict)  # by lane


def came(reader: RunReader) -> Came:
    """Read a run to its end."""
    found, stdout, stderr = Came(), bytearray(), bytearray()
    questions: dict[str | None, str | None] = {}  # by span
    for event in reader.resolved():
        data = event.data
        if event.kind == "model.invoked":
            questions[event.span] = event.key
        elif event.kind == "model.responded":
            answer = Answer(event.seq, said(data), data.get("model"), questions.get(event.span))
            found.answers.setdefault(event.lane, []).append(answer)
        elif event.kind == "output.written" and data.get("stream") == "stdout":
            stdout += written(data)
        elif event.kind == "output.written" and data.get("stream") == "stderr":
            stderr += written(data)
        elif event.kind == "run.finished":
            found.end = _ended(event)
    found.end.stdout = stdout.decode("utf-8", "replace")
    if found.end.exit_code:
        found.end.raised = (stderr.decode("utf-8", "replace").strip().splitlines() or [""])[-1]
    return found


def _ended(event: Event) -> Ended:
    data = event.data
    code = (data.get("metadata") or {}).get("exit_code")
    return Ended(data.get("status"), code, data.get("output"), data.get("error"))


def compared(then: Came, now: Came, *, after: int = -1) -> dict[str, Any]:
    """Return which answers of models changed, and whether the outcome did; only those `after` an event were asked."""
    pairs = list(_paired(then, now))
    changed = []
    same = 0
    for lane, number, old, new in pairs:
        if old is not None and old.seq <= after:
            continue
        if old is None or new is None:
            changed.append(_told(lane, number, old, new, []))
            continue
        found = changes(old.said, new.said)
        if found:
            changed.append(_told(lane, number, old, new, [change.as_dict() for change in found]))
        else:
            same += 1
    differences = now.end.differs_from(then.end)
    return {
        "outcome": {"same": not differences, "differences": differences},
        "answers": {"same": same, "changed": changed},
    }


def _paired(then: Came, now: Came) -> Iterator[tuple[str, int, Answer | None, Answer | None]]:
    """Yield the answers of both runs beside each other: to the same question, else by their places in their lane."""
    left: dict[str | None, list[Answer]] = {}
    for answers in then.answers.values():
        for answer in answers:
            left.setdefault(answer.question, []).append(answer)
    same = {
        new.seq: left[new.question].pop(0)
        for answers in now.answers.values()
        for new in answers
        if new.question is not None and left.get(new.question)
    }
    taken = {answer.seq for answer in same.values()}
    for lane in dict.fromkeys([*then.answers, *now.answers]):
        others = iter([answer for answer in then.answers.get(lane, []) if answer.seq not in taken])
        number = 0
        for number, new in enumerate(now.answers.get(lane, []), 1):
            yield lane, number - 1, same.get(new.seq) or next(others, None), new
        for more, old in enumerate(others):
            yield lane, number + more, old, None


def _told(
    lane: str, number: int, old: Answer | None, new: Answer | None, found: list[dict[str, Any]]
) -> dict[str, Any]:
    sort = "added" if old is None else "gone" if new is None else "changed"
    return {
        "type": sort,
        "lane": lane,
        "number": number + 1,
        "seq": None if old is None else old.seq,
        "at": None if new is None else new.seq,
        "models": [None if one is None else one.model for one in (old, new)],
        "changes": found,
    }
