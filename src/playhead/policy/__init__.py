"""Decide what an agent may do: the rules of a `playhead.policy.toml`, and one function that applies them.

`paths`, `hosts`, `commands` and `texts` say which things a rule means, whatever they are called, `pushes` whether a
command is a push of git, and `things` joins them; `patterns` says which rules can mean nothing; `capabilities` which of
them an effect needs; `rules` reads a policy and decides; `backtest` asks what a policy would have said about runs that
were recorded.
"""
