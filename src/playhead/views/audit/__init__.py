"""Audit runs: what they touched, what they were allowed to touch, and what is not known of it.

`watching` takes the events of one run and knows what was done where; `undeclared` compares that with what tools said
they do; `repeats` looks for what was attempted more than once, across runs; `unseen` for what changed and nobody was
seen to do; `report` puts it together. `places` and `addresses` say what a path and an address are, `redactions` finds
what was taken out.
"""
