"""Say whether a pattern of a policy means a name, such as that of a tool or a model.

Where case may or may not matter, what is forbidden is forbidden in any case, and what is allowed only as written.
"""

from __future__ import annotations

import functools
import re

from playhead import _limits


def fits_text(pattern: str, text: str, *, any_case: bool) -> bool:
    """Say whether a pattern means a text; `*` stands for any."""
    return _any_text(pattern, any_case).fullmatch(text) is not None


@functools.lru_cache(maxsize=_limits.POLICY_PATTERNS_KEPT_MAX)
def _any_text(pattern: str, any_case: bool = False) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, pattern.split("*"))), re.DOTALL | (re.IGNORECASE if any_case else 0))
