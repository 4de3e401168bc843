"""Answer questions in SQL over the index of a project. It can only be read."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from playhead import _limits
from playhead.errors import UsageError
from playhead.server.asking import Ask
from playhead.server.routing import Body, route
from playhead.store.questions import QUESTIONS


class QuestionBody(Body):
    """A question, and what is filled in."""

    sql: Annotated[str, msgspec.Meta(min_length=1, max_length=_limits.SQL_CHARACTERS_MAX)]  # one SELECT, or a name
    # for `:name`, or for each `?`
    params: dict[str, str | int | float | bool | None] | list[str | int | float | bool | None] = []
    replays: bool = False  # count exact replays too, whose calls were never made
    # the first row that is told: an answer of more rows than are told at once is told in pages, by the `next` of each
    start: Annotated[int, msgspec.Meta(ge=0, le=2**53)] | None = None


@route("POST", "/api/query", group="Questions", body=QuestionBody)
def ask_index(ask: Ask) -> dict[str, Any]:
    """Answer one SELECT over the tables of the index, or a question with a name: `{columns, rows}`.

    Only the runs of this project are in these tables. What takes longer than 10 s, or says more than 16 MiB, is
    stopped. An answer of more than 100,000 rows is refused, unless `start` asks for it in pages: then `next` is where
    the next page starts, or null.
    """
    body: QuestionBody = ask.json()
    known = QUESTIONS.get(body.sql)
    sql = body.sql if known is None else known.sql
    if known is not None and isinstance(body.params, dict):
        missing = [name for name in known.parameters if name not in body.params]
        if missing:
            raise UsageError(f"the question {body.sql!r} needs {', '.join(missing)}")
    most = _limits.QUERY_ROWS_MAX if body.start is None else _limits.QUERY_PAGE_ROWS_MAX
    columns, rows = ask.project.index.query(
        sql,
        body.params,
        replays=body.replays,
        seconds=_limits.QUERY_S,
        rows_max=most,
        start=body.start,
        bytes_max=_limits.QUERY_BYTES_MAX,
    )
    told: dict[str, Any] = {"columns": columns, "rows": rows}
    return told if body.start is None else told | {"next": body.start + most if len(rows) == most else None}


@route("GET", "/api/questions", group="Questions")
def list_questions(ask: Ask) -> dict[str, Any]:
    """List the questions that have a name: `{questions}`, each `{name, asks, parameters, sql}`."""
    listed = [
        {"name": name, "asks": question.about, "parameters": list(question.parameters), "sql": question.sql.strip()}
        for name, question in QUESTIONS.items()
    ]
    return {"questions": listed}
