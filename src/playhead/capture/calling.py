"""Look at the call that a frame is in: which arguments it names. Audit events do not tell of all of them."""

from __future__ import annotations

import functools
import inspect
from types import CodeType, FrameType, FunctionType, MethodType, NoneType
from typing import Any

_LOADS = ("LOAD_CONST", "LOAD_FAST", "LOAD_DEREF", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_ATTR")

_MAKES_FUNCTION = ("MAKE_FUNCTION", "SET_FUNCTION_ATTRIBUTE")  # the second with what it closes over, from 3.13 on


def names_argument(frame: FrameType, name: str) -> bool:
    """Say whether the call that a frame is in gives an argument by this name."""
    # The names that a call uses are among the constants: most code has none of this name, and is looked at no further.
    for constant in frame.f_code.co_consts:
        if type(constant) is tuple and name in constant:
            return name in _named_in_call(frame.f_code, frame.f_lasti)
    return False


@functools.lru_cache(maxsize=1024)
def _named_in_call(code: CodeType, at: int) -> tuple[Any, ...]:
    """Return the names of the arguments that a call gives by name."""
    import dis  # here: few programs come this far

    names: object = ()
    for instruction in dis.get_instructions(code):
        if instruction.offset == at:
            return names if instruction.opname.startswith("CALL") and isinstance(names, tuple) else ()
        # Right before the call, from Python 3.13 on as any constant; 3.11 has one more instruction in between.
        if instruction.opname in ("KW_NAMES", "LOAD_CONST") and instruction.arg is not None:
            names = code.co_consts[instruction.arg]
        elif instruction.opname != "PRECALL":
            names = ()
    return ()


def spreads_arguments(frame: FrameType) -> bool:
    """Say whether the call that a frame is in takes arguments from a sequence or a mapping: `f(*args, **options)`."""
    return _opname(frame.f_code, frame.f_lasti).startswith("CALL_FUNCTION_EX")


def gives_argument(frame: FrameType, name: str) -> bool | None:
    """Say whether the call that a frame is in gives an argument by this name that is not None.

    None of one that is calculated in the call: nobody can tell. One that cannot be looked at is taken for None.
    """
    if not names_argument(frame, name):
        return False
    how = _how_given(frame.f_code, frame.f_lasti, name)
    if how is None:
        return False
    opname, what, of = how
    if opname == "LOAD_CONST":
        return what is not None
    if opname == "LOAD_ATTR":
        return None if of is None else _has(_value(frame, of), what)
    if opname in _LOADS:
        return _value(frame, what) is not None
    return True if opname in _MAKES_FUNCTION else None


def _has(holder: Any, name: str) -> bool | None:
    """Say whether an object has an attribute that is not None, without running any code of its own."""
    found = inspect.getattr_static(holder, name, None)
    if isinstance(found, (FunctionType, MethodType, NoneType)) or not hasattr(type(found), "__get__"):
        return found is not None
    return None


def _value(frame: FrameType, name: Any) -> Any:
    return frame.f_locals.get(name, frame.f_globals.get(name))


@functools.lru_cache(maxsize=1024)
def _opname(code: CodeType, at: int) -> str:
    import dis

    return next((one.opname for one in dis.get_instructions(code) if one.offset == at), "")


@functools.lru_cache(maxsize=1024)
def _how_given(code: CodeType, at: int, name: str) -> tuple[str, Any, str | None] | None:
    """Return the instruction that loads an argument of a call, what it loads, and of which variable; None if it is far.

    No instruction (`""`) where there are several, of which one is chosen.
    """
    import dis

    loads: list[tuple[str, Any]] = []
    joined = 0  # how many there were where two ways last met
    for one in dis.get_instructions(code):
        if one.is_jump_target:
            joined = len(loads)
        if one.offset == at:
            break
        if one.opname.startswith("LOAD_FAST_") and isinstance(one.argval, tuple):  # two at once, from Python 3.13 on
            loads += [("LOAD_FAST", given) for given in one.argval]
        elif one.opname not in ("KW_NAMES", "PRECALL", "COPY_FREE_VARS"):
            loads.append((one.opname, one.argval))
    given = _named_in_call(code, at)
    if loads and loads[-1] == ("LOAD_CONST", given):
        loads.pop()  # the names themselves, from Python 3.13 on
    after = len(given) - 1 - given.index(name)
    later = loads[len(loads) - after :] if after else []
    if any(not opname.startswith(_LOADS) or opname == "LOAD_ATTR" for opname, _ in later) or len(loads) < after + 2:
        return None
    place = len(loads) - 1 - after
    opname, what = loads[place]
    opname = next((one for one in _LOADS if opname.startswith(one)), opname)
    by, of = loads[place - 1]
    is_variable = by.startswith(_LOADS) and not by.startswith(("LOAD_ATTR", "LOAD_CONST"))
    return opname if joined <= place else "", what, of if is_variable else None
