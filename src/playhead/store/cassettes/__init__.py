"""Keep one run, with the runs of the programs it started, in one portable file that is never changed.

`form` says what both forms of the file have in common, `zips` and `lines` read and write them, `reading` is the store
that answers from one, `packing` makes one of a run, and `unpacking` makes runs of one.
docs/reference/cassette-format.md describes the files exactly.
"""
