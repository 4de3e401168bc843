"""Compare two runs: pair what is the same in both, name every difference, and say which came first and why.

`nodes` makes a tree of a run, `content` says what each node asked and was answered, `pairing` finds which belong
together (`wrappers` looks into spans put around others, `gaps` aligns what is left, `likeness` says what is most
alike, `kin` what has an argument in common), `order` what changed its place, `causes` what follows from what (and
`cancelled` from a task beside it), `setting` compares what the runs ran in, `saying` says in a line what only one has,
and `comparison` puts it together.
"""
