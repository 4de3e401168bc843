"""Tell the arguments of a call by name, whatever way they were passed."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from playhead.event.plain import fields_of


def arguments_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, whole: bool = False
) -> dict[str, Any]:
    """Return the arguments of a call by name; where they do not fit, as they came.

    The object of a method is left out: its repr differs from run to run. It is there with `whole`, if it can be made
    again from its fields. Defaults that are plain values are there, so
    that a call is the same whether or not it spells them out.
    """
    try:
        signature = _signature(function)
        bound = signature.bind(*args, **kwargs)
    except (TypeError, ValueError):
        return {"args": list(args), "kwargs": dict(kwargs)}  # the call itself will raise, and that is recorded
    out: dict[str, Any] = {}
    for position, (name, parameter) in enumerate(signature.parameters.items()):
        if name not in bound.arguments:
            if isinstance(parameter.default, (str, int, float, bool)) or parameter.default is None:
                out[name] = parameter.default
            continue
        value = bound.arguments[name]
        if position == 0 and name in ("self", "cls") and is_method(function):
            if whole and fields_of(value, type(value)) is not None:
                out[name] = value
            continue
        match parameter.kind:
            case inspect.Parameter.VAR_POSITIONAL:
                out[f"*{name}"] = list(value)
            case inspect.Parameter.VAR_KEYWORD:
                out.update(value) if not set(value) & set(out) else out.update({f"**{name}": value})
            case _:
                out[name] = value
    return out


def is_method(function: Callable[..., Any]) -> bool:
    """Say whether a function was defined in the body of a class."""
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    return owner != "" and not owner.endswith("<locals>")


@functools.lru_cache(maxsize=1024)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)
