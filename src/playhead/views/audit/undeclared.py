"""Compare what was done inside of tools with what the tools declare.

The words of a declaration are `read`, `write` and `irreversible`. `write` covers whatever changes something: writing,
deleting, processes, the network. `irreversible` covers that too. `read` covers requests that only ask (GET, HEAD), and
the connections they need. A tool that declares nothing covers nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from playhead import _limits
from playhead.views import text
from playhead.views.audit.acts import Act
from playhead.views.audit.addresses import is_numeric, split
from playhead.views.audit.around import IRREVERSIBLE, READ, WRITE, Around
from playhead.views.audit.findings import Finding

_ACTS = ("write", "delete", "process", "network")
_DID = {"write": "wrote", "delete": "deleted", "process": "started", "network": "used the network:"}


def undeclared(run: str, acts: Iterable[Act], claims: Iterable[Act], is_real: Callable[[Act], bool]) -> list[Finding]:
    """Return a finding for each tool and each sort of thing that was done in it and that it does not declare.

    `claims` are calls of tools inside of other tools: what those declare, their callers do.
    """
    inside: dict[Around, dict[str, list[Act]]] = {}
    for act in (*(one for one in acts if one.rule in _ACTS), *claims):
        for tool in act.around.tools() if act.around is not None else ():
            inside.setdefault(tool, {}).setdefault(act.rule, []).append(act)
    out = []
    for tool, sorts in inside.items():
        for sort, done in sorts.items():
            if uncovered := _uncovered(tool, sort, done):
                out.append(_finding(run, tool, sort, uncovered, is_real))
    return out


def _uncovered(tool: Around, sort: str, done: list[Act]) -> list[Act]:
    declared = tool.declared
    if IRREVERSIBLE in declared or sort in declared or (WRITE in declared and sort != IRREVERSIBLE):
        return []
    if sort != "network":
        return done
    if tool.server:
        done = [act for act in done if act.asked]  # else it is how the tool itself is reached
    if READ not in declared:
        return done
    asked = [act for act in done if act.only_asks]
    return [act for act in done if not act.only_asks and not (act.only_connects and _belongs(act, asked))]


def _belongs(act: Act, asked: list[Act]) -> bool:
    """Say whether a connection may be that of a request: to its port, and to its host where that is a number.

    One whose names are known was joined with its request where it has one (joining.py), so it is something else.
    """
    host, port = split(act.target)
    for one in asked:
        asked_host, asked_port = split(one.target)
        if asked_port == port and (asked_host == host or not (act.names or is_numeric(asked_host))):
            return True
    return False


def _finding(run: str, tool: Around, sort: str, done: list[Act], is_real: Callable[[Act], bool]) -> Finding:
    sure = [act for act in done if not act.did]  # to have been done; else what may have been
    done = sorted(sure or done, key=lambda act: act.seqs[0])
    real = any(is_real(act) for act in done)
    severity = "low" if all(act.quiet for act in done) else "high" if tool.declared else "medium"
    declared = ", ".join(tool.declared) or "nothing"
    first, more = done[0], len(done) - 1
    if first.what == "tool.called":
        did = f"called {first.target}, which declares {sort}"
    else:
        to_what = text.cut(first.shown or first.target, _limits.CELL_CHARACTERS_MAX)
        did = f"{'sent' if first.what == 'process.signalled' else first.did or _DID[sort]} {to_what}"
    return Finding(
        rule="undeclared",
        severity=severity if real else "info",
        run=run,
        seq=first.seqs[0],
        detail=f"tool {tool.name} declares {declared}, and {did}{f', and {more} more' if more else ''}",
        what=sort,
        target=first.target,
        path=tool.path,
        lane=first.lane,
        count=sum(act.count for act in done),
        seqs=sorted(seq for act in done for seq in act.seqs),
        real=real,
    )
