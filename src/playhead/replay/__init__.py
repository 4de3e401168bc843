"""Play a run back, and later run its code again while the tape answers."""
