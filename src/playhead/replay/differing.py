"""Name every difference between a run and its replay, with the line of the program as far as it is known."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson

from playhead import _limits
from playhead.event.kinds import CALLS
from playhead.replay import printed, written
from playhead.replay.compare import Told
from playhead.replay.detail import changed, left_out
from playhead.replay.deviation import moved, unasked
from playhead.replay.places import Places
from playhead.replay.question import question_of
from playhead.store.reader import RunReader

_CODE_SHOWN = 3
_Lines = list[tuple[str, int]]


class Differing:
    """Compare what two runs come down to."""

    def __init__(self, recorded: Told, replayed: Told, reader: RunReader, places: Places) -> None:
        self._recorded, self._replayed = recorded, replayed
        self._reader = reader  # of the recorded one
        self._places = places

    def all(self) -> list[dict[str, Any]]:
        """Return where the replay differs, the earliest first; none where all is the same."""
        left, right = self._recorded, self._replayed
        found = [dict(deviation) for deviation in right.deviations]
        stopped = bool(found)
        if not stopped:  # after a question that could not be answered, everything else follows from that
            came = self._came()
            for lane in sorted(left.lanes):
                found += self._done_otherwise(lane, left.lanes[lane], right.lanes.get(lane, []))
                found += self._gone(lane, came)
            for line, places in came.items():
                for lane, seq in places:
                    what = "happened in the replay and was not recorded"
                    found.append(self._other("added", lane, line, None, seq, what))
            found += self._at_the_end()
        return sorted(found, key=_when)

    def _came(self) -> dict[str, list[tuple[str, int]]]:
        """Return what lanes did that they had not done, or not as often: by what it is, the lane and the event."""
        found: dict[str, list[tuple[str, int]]] = {}
        for lane in sorted(self._replayed.lanes):
            known = Counter(line for line, _ in self._recorded.lanes.get(lane, ()))
            for line, seq in self._replayed.lanes[lane]:
                known[line] -= 1
                if known[line] < 0:
                    found.setdefault(line, []).append((lane, seq))
        return found

    def _gone(self, lane: str, came: dict[str, list[tuple[str, int]]]) -> list[dict[str, Any]]:
        """Say what one lane did not do any more, or not in this order; what another one did instead is taken out."""
        left, right = self._recorded.lanes[lane], self._replayed.lanes.get(lane, [])
        if [line for line, _ in left] == [line for line, _ in right]:
            return []
        recorded, replayed = (Counter(line for line, _ in lines) for lines in (left, right))
        missing = recorded - replayed
        before = self._before(left, right) if missing else []
        found: list[dict[str, Any]] = []
        for at in reversed(range(len(left))):  # of several alike, it is the last that was not asked any more
            line, seq = left[at]
            if missing[line] > 0:
                missing[line] -= 1
                asks = line.partition(" ")[0] in CALLS and len(found) < _limits.DEVIATIONS_KEPT_MAX
                if came.get(line):
                    found.append(self._moved(lane, line, seq, *came[line].pop(), asks=asks))
                elif asks:
                    found.append(self._unasked(seq, recorded[line], replayed[line], before[at]))
                else:
                    what = "was recorded and did not happen again"
                    found.append(self._other("removed", lane, line, seq, None, what, before[at]))
        found.reverse()
        if recorded == replayed:
            same = next(at for at, (line, _) in enumerate(left) if line != right[at][0])
            line, seq = left[same]
            found.append(self._other("moved", lane, line, seq, right[same][1], "happened in another order"))
        return found

    def _done_otherwise(self, lane: str, left: _Lines, right: _Lines) -> list[dict[str, Any]]:
        """Compare how each thing was done that was done again."""
        again: dict[str, list[int]] = {}
        for line, seq in reversed(right):
            again.setdefault(line, []).append(seq)
        found = []
        for line, seq in left:
            at = seqs.pop() if (seqs := again.get(line)) else None
            if at is None:
                continue
            details = self._recorded.details.get(seq, {}), self._replayed.details.get(at, {})
            for name, was, now in changed(*details):
                what = f"was done otherwise: {name} was {_short(was)}, and is {_short(now)}"
                found.append(self._other("changed", lane, line, seq, at, what))
        return found

    def _moved(self, lane: str, line: str, seq: int, there: str, at: int, *, asks: bool) -> dict[str, Any]:
        """Describe what one lane did and another one does now."""
        if not asks:
            return self._other("moved", there, line, seq, at, f"was recorded in lane {lane}")
        question = question_of(self._reader.event(seq))
        return moved(question, lane=there, at=at, where=self._places.event(at, seq) or None).as_fields()

    def _unasked(self, seq: int, recorded: int, asked: int, where: str) -> dict[str, Any]:
        question = question_of(self._reader.event(seq))
        found = unasked(question, recorded_times=recorded, asked_times=asked, cause=self._cause(), where=where or None)
        return found.as_fields()

    def _cause(self) -> str | None:
        """Say why something was not done any more, where that is known."""
        changed = sorted({one for report in self._replayed.reports for one in report.get("code_changed", ())})
        if changed:
            more = f" and {len(changed) - _CODE_SHOWN} more" if len(changed) > _CODE_SHOWN else ""
            return f"the code has changed since it was recorded: {', '.join(changed[:_CODE_SHOWN])}{more}"
        error = self._replayed.error
        if isinstance(error, dict) and error != self._recorded.error:
            raised = f" ({self._replayed.raised})" if self._replayed.raised else ""
            return f"the replay had ended before, with {error.get('type')}: {_short(error.get('message'))}{raised}"
        return None

    def _before(self, left: _Lines, right: _Lines) -> list[str]:
        """Return for each thing that was done which line of the program did the last before it that was done again."""
        again: dict[str, list[int]] = {}
        for line, seq in reversed(right):
            again.setdefault(line, []).append(seq)
        found = [""]
        for line, recorded in left:
            seqs = again.get(line)
            found.append((self._places.event(seqs.pop(), recorded) if seqs else "") or found[-1])
        return found

    def _other(
        self, sort: str, lane: str, line: str, seq: int | None, at: int | None, what: str, before: str = ""
    ) -> dict[str, Any]:
        """Describe a difference in what was done, beside questions that were not asked."""
        kind, _, rest = line.partition(" ")
        about = "" if kind in CALLS else f" {rest[:200]}"
        title = question_of(self._reader.event(seq)).title if kind in CALLS and seq is not None else kind
        event = f"event {seq}, " if seq is not None else ""
        where = "" if at is None else self._places.event(at, seq)
        place = f" (at {where})" if where else f" (after {before})" if before else ""
        found = {
            "type": sort,
            "lane": lane,
            "kind": kind,
            "seq": seq,
            "at": at,
            "text": f"{event}lane {lane}: {title}{about} {what}{place}",
        }
        return {**found, **({"where": where or before} if where or before else {})}

    def _at_the_end(self) -> list[dict[str, Any]]:
        found = []
        left, right = self._recorded, self._replayed
        whole = left.launched == right.launched  # else one of them does not know what the program printed
        for stream in sorted({*left.outputs, *right.outputs}) if whole else ():
            one = printed.difference(stream, left, right, self._places)
            found += [one] if one is not None else []
        for name, was, now in (
            ("status", left.status, right.status),
            ("exit code", left.exit_code, right.exit_code),
            ("output", left.output, right.output),
            ("error", left.error, right.error),
        ):
            of_the_launcher = name == "exit code" or (name == "output" and was == {"exit_code": left.exit_code})
            if was != now and (whole or not of_the_launcher):
                text = f"the {name} of the run differs: {_short(was)} was recorded, {_short(now)} replayed"
                raised = right.raised or left.raised if name == "error" else None
                place = f" ({'raised' if right.raised else 'raised then'} at {raised})" if raised else ""
                found.append({"type": "output", "name": name, "text": text + place})
        named = {str(one.get("name")) for one in right.deviations if one.get("type") == "write"}
        lines = {path: line for report in right.reports for path, line in (report.get("wrote") or {}).items()}
        in_files, right.files_left_out = written.differences(left.files, right.files, lines, named)
        right.files_left_out += filter(None, map(left_out, left.details.values()))
        return found + in_files


def _when(one: dict[str, Any]) -> tuple[bool, int]:
    """Order by what was recorded; what came of it, and what was not recorded at all, is last."""
    late = one["type"] == "output" or one.get("seq") is None
    return late, 0 if late else one["seq"]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    return text if len(text) <= 200 else f"{text[:200]}…"
