"""Compare two runs: pair what is the same in both, name every difference, and say which came first and why.

`nodes` makes a tree of a run, `content` says what each node asked and was answered, `pairing` finds which belong
together (`wrappers` looks into spans put around others, `gaps` aligns what is left, `likeness` says what is most
alike), `order` what changed its place, `causes` what follows from what, `setting` compares what the runs ran in, and
`comparison` puts it together.
"""
