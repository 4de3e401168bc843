"""Say in a few words what happened at one point of a run. A field of the wrong form is said as it is."""

from __future__ import annotations

from typing import Any

from playhead import _limits
from playhead.event.plain import restore
from playhead.views import reads, text
from playhead.views.last_words import TRACEBACK, raised
from playhead.views.text import Resolve

LINKS = {  # of a commit and a run
    "committed": "made by this run",
    "trailer": "its message names this run",
    "note": "a note names this run",
    "started_from": "this run was started from it",
    "older": "older than this run, which took it in",
}
QUIET = ("emitter.described", "span.revised")  # who spoke; what the rows of spans say already
ANEW = {  # why a span was told anew
    "sent_again": "it came again, with other content",
    "joined": "more became known of it",
}
_WIDTH = _limits.CELL_CHARACTERS_MAX


def said(kind: str, data: dict[str, Any], name: str, resolve: Resolve | None) -> str:
    """Say a point event in a few words, beside its kind and its name."""
    match kind:
        case "note.added":
            return words(data.get("text"))
        case "output.written":
            written = words(data.get("text")).strip("\n")
            last = raised(f"{written}\n") if written.startswith(TRACEBACK) else None
            return written if last is None else f"… {last}"
        case "effect.observed":
            return _effect(data, resolve)
        case "ambient.read":
            return reads.told(data, resolve)
        case "git.committed":
            told = f"{words(data.get('commit'))[:10]} {words(data.get('message')).partition(chr(10))[0]}"
            why = LINKS.get(words(data.get("link")))
            return f"{told} ({why})" if why else told
        case "ci.reported":
            return _reported(data, resolve)
        case "mcp.notified":
            return words(mapping(data.get("error")).get("message")) or mcp_side(data)
        case "run.invalidated":
            by = words(data.get("by"))
            return words(data.get("why")) + (f" (by {by})" if by else "")
        case "log.emitted":
            body = text.followed(data.get("body"), resolve)
            told = words(body) if isinstance(body, str) else "" if body is None else text.short(body, _WIDTH, resolve)
            return " ".join(filter(None, (words(data.get("severity")), told)))
        case "emitter.described":
            about = [mapping(mapping(data.get("resource")).get("attributes")), mapping(data.get("scope"))]
            names = (about[0].get("service.name"), about[0].get("service.version"), about[1].get("name"))
            return " ".join(words(name) for name in names if name is not None)
        case "span.revised":
            why = words(data.get("why"))
            return ANEW.get(why, why)
        case "run.reopened":
            return words(data.get("why"))
        case "content.erased":
            return f"event {words(data.get('seq'))} {words(data.get('path'))} {words(data.get('why'))}".rstrip()
        case _:
            rest = {key: value for key, value in data.items() if not (name and key == "name")}
            return text.arguments(rest, _limits.CELL_CHARACTERS_MAX, resolve) if rest else ""


def unseen(data: dict[str, Any], resolve: Resolve | None) -> str:
    """Say what a gap tells of that was never seen: `websocket ws://host`, or a Python that was not attached."""
    detail = mapping(text.followed(data.get("detail"), resolve))
    if data.get("reason") == "python_not_attached":
        version, why = words(detail.get("version")), words(detail.get("why"))
        inside = f"what happens inside Python{f' {version}' if version else ''} ({words(detail.get('executable'))})"
        return f"{inside}: {why}" if why else inside
    return " ".join(filter(None, (words(detail.get(name)) for name in ("source", "where")))) or "something"


def files_changed(data: dict[str, Any], resolve: Resolve | None) -> int:
    """Count the files of the note that says what changed in the working tree."""
    told = mapping(text.followed(data.get("data"), resolve))
    lists = [text.followed(told.get(name), resolve) for name in ("files", "altered", "undone", "new", "gone")]
    return sum(len(names) for names in lists if isinstance(names, list))


def _effect(data: dict[str, Any], resolve: Resolve | None) -> str:
    """Say what was done to what: of a process the command, of a name that changed the new one."""
    target, detail = words(data.get("target")), mapping(text.followed(data.get("detail"), resolve))
    argv, to, times = text.followed(detail.get("argv"), resolve), detail.get("to"), detail.get("times")
    if isinstance(argv, list):
        said = " ".join(words(word) for word in argv)
    elif isinstance(detail.get("signal"), int):
        said = f"{target} with signal {detail['signal']}"
    else:
        said = f"{target} → {words(to)}" if to else target
    return f"{said} ({times}×)" if isinstance(times, int) else said


def _reported(data: dict[str, Any], resolve: Resolve | None) -> str:
    """Say what CI reported: the step or test, how it came out, and what went wrong first."""
    test, errors = mapping(text.followed(data.get("test"), resolve)), text.followed(data.get("errors"), resolve)
    names = [words(test.get(name)) for name in ("classname", "name")] if test else [words(data.get("step"))]
    told = mapping(text.followed(data.get("counts"), resolve))
    amounts = ", ".join(f"{words(count)} {name}" for name, count in told.items())
    first = words(test.get("message")) or (words(errors[0]) if isinstance(errors, list) and errors else "")
    parts = ("::".join(filter(None, names)), words(data.get("result")), amounts, first.partition("\n")[0])
    return " · ".join(filter(None, parts))


def mcp_side(data: dict[str, Any]) -> str:
    """Say which way a message of MCP went."""
    return f"{'from' if data.get('from_server') else 'to'} {words(data.get('server')) or 'the server'}"


def words(value: Any) -> str:
    """Return a text as it is, and anything else shortly."""
    match value:
        case None:
            return ""
        case str():
            return value
        case {"$str": _}:
            return text.legible(value)
        case _:
            return text.short(value, _limits.CELL_CHARACTERS_MAX)


def mapping(value: Any) -> dict[str, Any]:
    """Return an object as it is, and an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def written(data: dict[str, Any]) -> bytes:
    """Return what a program wrote, from the data of `output.written`."""
    output = restore(data.get("text"))
    return output if isinstance(output, bytes) else str(output).encode("utf-8", "surrogatepass")
