"""Answer at the command line: parse, call, respond."""
