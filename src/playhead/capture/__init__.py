"""How facts are noticed: recorder, tools, redaction, and where a run came from."""

from playhead.store import forking  # noqa: F401  # before `logging`, so that it hears first of signals after a fork
