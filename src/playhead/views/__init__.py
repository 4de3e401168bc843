"""Pure functions from events to plain data: no input, no output."""
