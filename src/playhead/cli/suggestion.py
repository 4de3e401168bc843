"""Write the normalisers that would make two runs ask the same: the rules to stdout, what they do to stderr."""

from __future__ import annotations

from playhead._api.reading import Run
from playhead.cli.output import Output
from playhead.event.normalise import Normalisers
from playhead.replay.cause import explained
from playhead.replay.suggest import Pair, Suggestion, suggest
from playhead.settings import load as load_settings
from playhead.views import text

_SHOWN_MAX = 10


def tell(left: Run, right: Run, out: Output) -> int:
    """Compare two runs and say what to declare; 0 where all questions become equal, else 1."""
    found = suggest(left.events(), right.events(), Normalisers.of_settings(load_settings().normalise))
    if out.json:
        out.emit({"left": left.id, "right": right.id, **found.as_dict()})
    else:
        _tell(found, out)
    return 1 if found.differing or found.unpaired else 0


def _tell(found: Suggestion, out: Output) -> None:
    still = len(found.differing)
    counts = f"{text.several(found.questions, 'question')} in both runs: {found.equal} equal as they are"
    if found.rules:
        out.warn(f"{counts}, {found.become_equal} become equal with these rules, {still} still differ.\n")
        # Only this is on stdout: `playhead replay --suggest A B >> playhead.toml` keeps it.
        out.print("# in playhead.toml; in pyproject.toml the table is [tool.playhead.normalise]")
        for name, example in found.examples.items():
            out.print(f"# {name}: {text.cut(example, 100)}")
        out.print(found.toml().rstrip())
    elif not still:
        out.warn(f"{counts}. There is nothing to declare.")
    else:
        out.warn(f"{counts}, {still} differ. Nothing in them looks volatile, so there is no rule to propose.")
    _list("still different:", [_told(pair) for pair in found.differing], out)
    _list("asked in one run only:", [f"{one.title} (event {one.seq}, lane {one.lane})" for one in found.unpaired], out)


def _told(pair: Pair) -> str:
    why = explained(pair.changes, pair.left, pair.right)
    return f"{pair.left.title} (events {pair.left.seq} and {pair.right.seq}): {why[0] if why else 'another question'}"


def _list(title: str, lines: list[str], out: Output) -> None:
    if not lines:
        return
    out.warn(f"\n{title}")
    for line in lines[:_SHOWN_MAX]:
        out.warn(f"  {line}")
    if len(lines) > _SHOWN_MAX:
        out.warn(f"  and {len(lines) - _SHOWN_MAX} more; `--json` lists them")
