"""Find the deviation in what a program raised."""

from __future__ import annotations

from playhead.errors import DeviationError


def unwrapped(error: BaseException) -> BaseException:
    """Return the deviation inside of an exception group; the error itself where there is none.

    Task groups hand on what their tasks raised in a group, and groups may stand in groups.
    """
    todo, seen = [error], 0
    while todo and seen < 10_000:
        one = todo.pop()
        seen += 1
        if isinstance(one, DeviationError):
            return one
        if isinstance(one, BaseExceptionGroup):
            todo.extend(one.exceptions)
        todo += [inner for inner in (one.__cause__, one.__context__) if inner is not None]
    return error
