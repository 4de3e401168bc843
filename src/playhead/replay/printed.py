"""Say where the output of a replay differs from the recorded one, and which line of the program printed it."""

from __future__ import annotations

from typing import Any, NamedTuple

from playhead.event.tracebacks import without_frames
from playhead.replay.compare import Told
from playhead.replay.places import Places

_AROUND = 60  # characters that are shown before the place where two lines differ
_SHOWN = 200
_LOOKED_BACK = 20  # lines before one of which it is not known who printed it


class _Found(NamedTuple):
    """The first line that differs, and both versions of it; None where there is none."""

    at: int  # from 0
    text: str
    new: bytes | None


def difference(stream: str, recorded: Told, replayed: Told, places: Places) -> dict[str, Any] | None:
    """Compare one output of two runs; None where it is the same, as far as can be told."""
    left, right = recorded.outputs.get(stream, b""), replayed.outputs.get(stream, b"")
    whole = stream != "stderr" or without_frames(left) == left
    if stream == "stderr":
        left, right = without_frames(left), without_frames(right)
    if left == right or (stream == "stderr" and recorded.shares_stderr and _is_among(right, left)):
        return None
    old, new = left.splitlines(keepends=True), right.splitlines(keepends=True)
    found = _first(old, new)
    event = recorded.piece_at(stream, sum(map(len, old[: found.at]))) if whole and found.at < len(old) else None
    where, near = _where(stream, found, new, places)
    facts = [f"printed at {where}" if where else f"the line before it was printed at {near}" if near else ""]
    facts.append("" if event is None else f"recorded in event {event}")
    if recorded.shared.get(stream):
        facts.append(f"not on the tape is what wrote there by itself: {', '.join(recorded.shared[stream][:5])}")
    text = "; ".join(filter(None, (f"{stream} differs: {found.text}", *facts)))
    place = where or near
    return {"type": "output", "name": stream, "text": text, "seq": event, **({"where": place} if place else {})}


def _first(old: list[bytes], new: list[bytes]) -> _Found:
    for at, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return _Found(at, f"line {at + 1} was {_both(one, other)}", other)
    at = min(len(old), len(new))
    counts = f"{len(old)} lines were recorded, {len(new)} replayed"
    if len(new) > at:
        return _Found(at, f"{counts}; the first that is new: {_short(_text(new[at]))}", new[at])
    return _Found(at, f"{counts}; the first that is missing: {_short(_text(old[at]))}", None)


def _both(one: bytes, other: bytes) -> str:
    texts = _text(one), _text(other)
    if texts[0] == texts[1]:
        return f"{_short(texts[0])}, and ends otherwise"
    at = next((n for n, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    start = max(0, at - _AROUND)
    was, now = (("…" if start else "") + _short(text[start:]) for text in texts)
    return f"{was}, and is {now}"


def _where(stream: str, found: _Found, new: list[bytes], places: Places) -> tuple[str, str]:
    """Return which line of the program printed it; where that is not known, which one printed the last before it."""
    if found.new is not None and (place := places.printed(stream, _text(found.new))):
        return place, ""
    before = reversed(new[max(0, found.at - _LOOKED_BACK) : found.at])
    return "", next(filter(None, (places.printed(stream, _text(line)) for line in before)), "")


def _text(line: bytes) -> str:
    return line.rstrip(b"\r\n").decode(errors="replace")


def _is_among(some: bytes, all_of_them: bytes) -> bool:
    """Say whether lines stand among others, in this order."""
    left = iter(all_of_them.splitlines())
    return all(line in left for line in some.splitlines())


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
