"""Record the processes that the agent's code starts and talks to, as calls that a tape can answer.

Nothing is held back or read ahead: what passes through a pipe is noted when the agent itself reads or writes it.
"""
