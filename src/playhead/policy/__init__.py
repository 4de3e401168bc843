"""Decide what an agent may do: the rules of a `playhead.policy.toml`, and one function that applies them.

`resources`, `hosts` and `commands` say which things a rule means, whatever they are called, and `pushes` whether a
command is one; `patterns` says which can mean nothing; `rules` reads a policy and decides; `backtest` asks what a
policy would have said about runs that were recorded.
"""
