"""Remember what the launcher set for this process: it holds here, and the program does not see it.

A module of its own, without an import: most programs that a program starts never read a setting.
"""

from __future__ import annotations

variables: dict[str, str] = {}  # as they stood in the environment: PLAYHEAD_DIR, and others that are settings
