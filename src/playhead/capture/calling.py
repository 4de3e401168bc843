"""Look at the call that a frame is in: which arguments it names. Audit events do not tell of all of them."""

from __future__ import annotations

import functools
from types import CodeType, FrameType


def names_argument(frame: FrameType, name: str) -> bool:
    """Say whether the call that a frame is in gives an argument by this name."""
    # The names that a call uses are among the constants: most code has none of this name, and is looked at no further.
    for constant in frame.f_code.co_consts:
        if type(constant) is tuple and name in constant:
            return _in_this_call(frame.f_code, frame.f_lasti, name)
    return False


@functools.lru_cache(maxsize=1024)
def _in_this_call(code: CodeType, at: int, name: str) -> bool:
    import dis  # here: few programs come this far

    names: object = ()
    for instruction in dis.get_instructions(code):
        if instruction.offset == at:
            return instruction.opname.startswith("CALL") and isinstance(names, tuple) and name in names
        # Right before the call, from Python 3.13 on as any constant; 3.11 has one more instruction in between.
        if instruction.opname in ("KW_NAMES", "LOAD_CONST") and instruction.arg is not None:
            names = code.co_consts[instruction.arg]
        elif instruction.opname != "PRECALL":
            names = ()
    return False
