"""Decide what an agent may do: the rules of a `playhead.policy.toml`, and one function that applies them.

`resources` says which things a rule means, whatever they are called; `rules` reads a policy and decides; `backtest`
asks what a policy would have said about runs that were recorded.
"""
