"""How facts are noticed: recorder, tools, redaction, and where a run came from."""
