"""Say what the names of attributes say, once for each set of names: instrumentations use the same again and again."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import NamedTuple

from playhead import _limits
from playhead.ingest.otlp.conventions import AGENTS, NUMBERED, NUMBERED_BEGIN, RANKS, RUN_ID, SESSIONS, TABLE

_NAMES_MAX = _limits.OTLP_NAMING_CHARACTERS_MAX // 32
_MESSAGE = "message."  # what OpenInference puts before each field of a message

Item = tuple[tuple[str, str], ...]  # fields of an item, each with the attribute that has its value


class Naming(NamedTuple):
    """What some names say."""

    meanings: dict[str, str]  # meaning → the attribute that says it
    numbered: tuple[str, ...]  # attributes that begin like numbered ones
    listed: frozenset[str]  # the meanings of these
    lists: tuple[
        tuple[str, tuple[Item, ...]], ...
    ]  # by what they begin with, items of lists that are spread over names
    bare: dict[str, tuple[str, tuple[Item, ...]]]  # meaning → the same of the one list that has messages without parts
    loose: tuple[str, ...]  # attributes of lists of which numbers are missing
    others: tuple[str, ...]  # attributes that are no item of any list
    runs: tuple[str, ...]  # attributes that name a run or a session
    agent: str | None  # the attribute that names the agent at work


def naming_of(names: tuple[str, ...]) -> Naming:
    """Return what these names say."""
    found = _known.get(names)
    if found is None:
        found = _read(names)
        if len(names) <= _NAMES_MAX and sum(map(len, names)) <= _limits.OTLP_NAMING_CHARACTERS_MAX:
            if len(_known) >= _limits.OTLP_NAMINGS_KEPT_MAX:
                _known.clear()
            _known[names] = found
    return found


_known: dict[tuple[str, ...], Naming] = {}


def _read(names: tuple[str, ...]) -> Naming:
    spread: dict[str, dict[str, dict[str, str]]] = {}
    others = []
    for name in names:
        parts = _parts(name) if name.startswith(NUMBERED_BEGIN) else None
        if parts is None:
            others.append(name)
            continue
        begin, number, rest = parts
        spread.setdefault(begin, {}).setdefault(number, {})[rest] = name
    lists: list[tuple[str, tuple[Item, ...]]] = []
    loose: list[str] = []
    for begin, items in spread.items():
        in_order = [items.get(str(number)) for number in range(len(items))]
        if None in in_order:
            loose += [name for item in items.values() for name in item.values()]
        else:
            lists.append((begin, tuple(tuple(item.items()) for item in in_order if item is not None)))
    numbered = tuple(name for name in names if name not in TABLE and name.startswith(NUMBERED_BEGIN))
    return Naming(
        meanings=_meanings(names),
        numbered=numbered,
        listed=frozenset(NUMBERED[begin] for begin in NUMBERED_BEGIN if any(map(_begins(begin), numbered))),
        lists=tuple(lists),
        bare=_bare(dict(lists), spread.keys()),
        loose=tuple(loose),
        others=tuple(others),
        runs=tuple(name for name in (RUN_ID, *SESSIONS) if name in names),
        agent=next((name for name in AGENTS if name in names), None),
    )


def _begins(begin: str) -> Callable[[str], bool]:
    return lambda name: name.startswith(begin)


def _meanings(names: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in names:
        for meaning, rank in TABLE.get(name, ()):
            if meaning not in found or rank < RANKS[found[meaning]][meaning]:
                found[meaning] = name
    return found


def _bare(lists: dict[str, tuple[Item, ...]], begins: Iterable[str]) -> dict[str, tuple[str, tuple[Item, ...]]]:
    """Return the lists of messages none of which has anything inside, as most have; by the one meaning of each."""
    found: dict[str, tuple[str, tuple[Item, ...]]] = {}
    for meaning in set(NUMBERED.values()):
        spread = [begin for begin in begins if NUMBERED[begin] == meaning]
        items = lists.get(spread[0]) if len(spread) == 1 else None
        if items is None or not all(
            rest.startswith("message.") and rest.count(".") == 1 for item in items for rest, _ in item
        ):
            continue
        found[meaning] = spread[0], tuple(tuple((rest[8:], name) for rest, name in item) for item in items)
    return found


@lru_cache(maxsize=_limits.OTLP_NAMES_KEPT_MAX)
def _parts(name: str) -> tuple[str, str, str] | None:
    """Take apart the name of one of many: `llm.input_messages.`, `0`, `message.role`; None where it is none."""
    begin = next(begin for begin in NUMBERED_BEGIN if name.startswith(begin))
    number, _, rest = name[len(begin) :].partition(".")
    return (begin, number, rest) if number.isdecimal() and number == str(int(number[:9])) and rest else None
